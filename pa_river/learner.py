"""The one learn step that every learner shares: read, score, judge, move, count; all of it or nothing."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pa_river import _compiled, _validate, batch, steps, stores, support
from pa_river.budget import Budget
from pa_river.features import features
from pa_river.kernels import Kernel
from pa_river.support import SupportStore
from pa_river.terms import Features, Name, Violation

#: What a variant's scores look like: a float, or one float a label.
S = TypeVar("S")

#: Rows of a batch that a kernel store looks at in one go.
_CHUNK = 256


class Learner(abc.ABC, Generic[S]):
    """Read an example, score it, move the weights if it asks for that, count it.

    A learner says what it scores (`_scores`), what that predicts (`_predicted`), how the weights move (`_update`) and
    how y is normalised (`_normalise_y`). Nothing of a model changes before everything about an example is known to be
    good: a call that raised leaves the model as it was.
    """

    _store: stores.Store | stores.MultiStore
    _version = 0
    #: the type of all predictions; object where labels of any type are predicted
    _answer: type = object

    def _input(self, x: Any) -> Any:
        """Return x as `_scores` takes it: here checked features; `ValueError` if it cannot be."""
        return features(x)

    def _read(self, x: Any) -> tuple[Any, S | None]:
        """Return x as `_input` does, and its scores where the store found them on the way."""
        return self._input(x), None

    def _inputs(self, X: Any) -> Iterable[Any]:
        """Return the rows of X as `_input` returns them; `ValueError` that names the row."""
        lines: Iterable[Any] | None = _compiled.inputs(self._store, X)
        return batch.rows(X, lazy=isinstance(self._store, SupportStore)) if lines is None else lines

    @abc.abstractmethod
    def _scores(self, phi: Any) -> S:
        """Return the raw score or scores of a checked input."""

    @abc.abstractmethod
    def _predicted(self, scores: S) -> Any:
        """Return what `predict_one` answers to these scores."""

    @abc.abstractmethod
    def _update(self, phi: Any, y: Any, w: float, scores: S) -> None:
        """Move the weights, or leave them; `ValueError`, and nothing moves, if one would not be finite."""

    @staticmethod
    @abc.abstractmethod
    def _normalise_y(y: Any) -> Any:
        """Return y as the learner compares it; `ValueError` if it is no label or target."""

    @property
    def version(self) -> int:
        """How many examples were learned: weight above 0, passive ones included."""
        return self._version

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Feature name -> finite number; a missing name or None means 0, text is an indicator feature.
        y
            The label or target.
        w
            Importance, finite and >= 0: it scales `C` inside the rule. 0 changes nothing at all.

        Raises
        ------
        ValueError
            If a feature, y or w is refused, or a score or weight would not be finite. The model is as before.

        """
        w = _validate.example_weight(w)
        phi, scores = self._read(x)
        y = self._normalise_y(y)
        if w:
            self._learn(phi, y, w, self._scores(phi) if scores is None else scores)

    def step(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> Any:
        """Return what `predict_one(x)` returns, then learn: one look-up of the features for both."""
        w = _validate.example_weight(w)
        phi, scores = self._read(x)
        y = self._normalise_y(y)
        if scores is None:
            scores = self._scores(phi)
        prediction = self._predicted(scores)
        if w:
            self._learn(phi, y, w, scores)
        return prediction

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> Any:
        """Return the prediction for x. Never changes the model; `ValueError` as in `learn_one`."""
        phi, scores = self._read(x)
        return self._predicted(self._scores(phi) if scores is None else scores)

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of X in order, all or nothing: equal to a loop of `learn_one`.

        Parameters
        ----------
        X
            numpy array or scipy sparse matrix, (n, d): column j is the feature `j`, an int; or a pandas frame, whose
            columns are the names.
        y
            n labels or targets.
        w
            n weights, or one for all; None for 1.

        Raises
        ------
        ValueError
            Naming row and column; nothing is learned then.

        """
        self._learn_rows(X, y, w, None)

    def step_many(self, X: Any, y: Any, w: Any = None) -> Any:
        """Return what `predict_one` answers to each row before it is learned, and learn them: a loop of `step`.

        All or nothing, and with the parameters of `learn_many`; the result is as that of `predict_many`.
        """
        predicted: list[Any] = []
        self._learn_rows(X, y, w, predicted)
        return batch.like(X, predicted, self._answer)

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for the rows of X: a Series for a frame, with its index; else an array."""
        return batch.like(X, self._predict_rows(X), self._answer)

    def _learn_rows(self, X: Any, y: Any, w: Any, predicted: list[Any] | None) -> None:
        """Learn the rows of X, and give `predicted` what each would have been answered before."""
        inputs = batch.table(self._inputs(X))
        examples = batch.examples(inputs, y, w, self._normalise_y)
        undo = self._mark(inputs)
        for begin in range(0, len(examples), _CHUNK):
            end = begin + _CHUNK
            with support.batch(self._store, inputs.part(begin, end)):
                for row, (phi, label, weight) in enumerate(examples[begin:end], begin):
                    try:
                        if not weight and predicted is None:
                            continue
                        scores = self._scores(phi)
                        if predicted is not None:
                            predicted.append(self._predicted(scores))
                        if weight:
                            self._learn(phi, label, weight, scores)
                    except Exception as error:  # also what a user's cost or feature map raises: all or nothing
                        undo()
                        if isinstance(error, ValueError):
                            raise ValueError(f"row {row}: {error}") from error
                        raise

    def _predict_rows(self, X: Any) -> list[Any]:
        inputs = batch.table(self._inputs(X))
        predicted: list[Any] = []
        for begin in range(0, len(inputs), _CHUNK):
            part = inputs.part(begin, begin + _CHUNK)
            with support.batch(self._store, part):
                predicted += [self._predicted(self._scores(phi)) for phi in part]
        return predicted

    def _learn(self, phi: Any, y: Any, w: float, scores: S) -> None:
        try:
            self._update(phi, y, w, scores)
        except support.Full:  # a support vector gives way first: its part no longer counts in the loss
            with support.of(self._store).room_for(phi):
                self._update(phi, y, w, self._scores(phi))
        self._version += 1

    def _mark(self, phis: list[Any]) -> Callable[[], None]:
        version, restore_store = self._version, self._store.mark(phis)

        def undo() -> None:
            self._version = version
            restore_store()

        return undo

    def _blend(self, models: Sequence[Any], shares: Sequence[float]) -> None:
        """Become the weighted average of models of this class; this one is new, and run by the reference."""
        self._version = sum(model._version for model in models)
        store: Any = self._store
        store.blend([(share, model._store, self._places(model)) for share, model in zip(shares, models)])

    def _places(self, model: Any) -> Sequence[int]:
        """Return the slot here of each slot of `model`, of the same class."""
        return (0,)

    def _get_state(self) -> dict[str, Any]:
        return {"version": self._version, "store": self._store.get_state()}

    def _set_state(self, values: dict[str, Any]) -> None:
        self._version = _validate.require_count(type(self).__name__, "version", values["version"], least=0)
        self._store.set_state(values["store"])


class PALearner(Learner[S]):
    """Find the constraint that an example breaks, move along it by the step rule's length."""

    rule = steps.Chosen()

    @abc.abstractmethod
    def _violation(self, phi: Any, y: Any, scores: S) -> Violation | None:
        """Return the constraint that the example breaks, or None where the model stays passive."""

    def _update(self, phi: Any, y: Any, w: float, scores: S) -> None:
        violation = self._violation(phi, y, scores)
        if violation is not None:
            length = (self.rule or steps.DEFAULT).length(violation.loss, violation.norm, w)
            if length > 0.0:
                self._store.add(violation.terms, length, violation.norm)


class ScoreLearner(PALearner[float]):
    """A learner with one weight vector: binary classification and regression."""

    _store: stores.LinearStore | SupportStore

    def __init__(
        self, rule: steps.StepRule | None = None, *, learn_intercept: bool = True,
        kernel: Kernel | None = None, budget: Budget | None = None,
    ):
        owner = type(self).__name__
        self.rule = rule
        support.check(owner, kernel, budget)
        self.learn_intercept = _validate.require_bool(owner, "learn_intercept", learn_intercept)
        self.kernel = kernel
        self.budget = budget
        self._store = _compiled.single(learn_intercept, kernel, budget)

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"rule"}

    @property
    def weights(self) -> dict[Name, float]:
        """The learned weights, a fresh dict: name -> weight, without the intercept. A kernel model has `support`."""
        return self._store.weights(0) if isinstance(self._store, SupportStore) else dict(self._store.weights)

    @property
    def support(self) -> list[tuple[dict[Name, float], float]]:
        """The support vectors of a kernel model by age, each with its coefficient: w = sum of coefficient * phi(x)."""
        return [(x, coefficients[0]) for x, coefficients in support.of(self._store).vectors]

    @property
    def intercept(self) -> float:
        """The learned weight of the constant feature; 0.0 if there is none."""
        return self._store.intercept(0) if isinstance(self._store, SupportStore) else self._store.intercept

    @property
    def budget_loss(self) -> float:
        """The summed length of all that a budget dropped: what a score has lost is at most that times norm(x)."""
        return support.lost(self._store)

    def decision_one(self, x: Mapping[Any, Any]) -> float:
        """Return the raw score w . x + intercept. Never changes the model."""
        return self._scores(features(x))

    def _read(self, x: Any) -> tuple[Any, float | None]:
        """Let a flat store of the reference look first: what it scores at a glance needs no check by `features`."""
        store = self._store
        if type(store) is stores.LinearStore:
            score = store.glance(x)
            if score is not None:
                return x, score
        return self._input(x), None

    def _scores(self, phi: Features) -> float:
        return self._store.score(phi)
