"""The one learn step that every Passive-Aggressive learner shares: score, judge, move, count."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from pa_river import _validate, batch, budget as budgets, kernels, steps, stores, support
from pa_river.features import features
from pa_river.terms import Features, Name, Violation

#: What a variant's scores look like: a float, or one float a label.
S = TypeVar("S")


class PALearner(abc.ABC, Generic[S]):
    """Score an example, find the constraint it breaks, move along it by the step rule's length.

    A variant says what it scores (`_scores`), what that predicts (`_predicted`), which constraint is broken
    (`_violation`) and how y is normalised (`_normalise_y`). Nothing of a model changes before everything about an
    example is known to be good: a call that raised leaves the model as it was.
    """

    rule: steps.StepRule | None
    _store: stores.Store
    _version = 0

    @abc.abstractmethod
    def _scores(self, phi: Features) -> S:
        """Return the raw score or scores of checked features."""

    @abc.abstractmethod
    def _predicted(self, scores: S) -> Any:
        """Return what `predict_one` answers to these scores."""

    @abc.abstractmethod
    def _violation(self, phi: Features, y: Any, scores: S) -> Violation | None:
        """Return the constraint that the example breaks, or None where the model stays passive."""

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
        w, phi, y = _validate.example_weight(w), features(x), self._normalise_y(y)
        if w:
            self._learn(phi, y, w, self._scores(phi))

    def step(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> Any:
        """Return what `predict_one(x)` returns, then learn: one look-up of the features for both."""
        w, phi, y = _validate.example_weight(w), features(x), self._normalise_y(y)
        scores = self._scores(phi)
        prediction = self._predicted(scores)
        if w:
            self._learn(phi, y, w, scores)
        return prediction

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> Any:
        """Return the prediction for x. Never changes the model; `ValueError` as in `learn_one`."""
        return self._predicted(self._scores(features(x)))

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
            n weights, or None for 1 each.

        Raises
        ------
        ValueError
            Naming row and column; nothing is learned then.

        """
        examples = batch.examples(X, y, w, self._normalise_y)
        undo = self._mark([phi for phi, _, _ in examples])
        for row, (phi, label, weight) in enumerate(examples):
            try:
                if weight:
                    self._learn(phi, label, weight, self._scores(phi))
            except ValueError as error:
                undo()
                raise ValueError(f"row {row}: {error}") from error

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for the rows of X: a Series for a frame, with its index; else an array."""
        return batch.like(X, [self._predicted(self._scores(phi)) for phi in batch.rows(X)])

    def _learn(self, phi: Features, y: Any, w: float, scores: S) -> None:
        try:
            self._update(phi, y, w, scores)
        except support.Full:  # a support vector gives way first: what it said no longer counts in the loss
            with self._store.room_for(phi):
                self._update(phi, y, w, self._scores(phi))
        self._version += 1

    def _update(self, phi: Features, y: Any, w: float, scores: S) -> None:
        violation = self._violation(phi, y, scores)
        if violation is not None:
            length = (self.rule or steps.DEFAULT).length(violation.loss, violation.norm, w)
            if length > 0.0:
                self._store.add(violation.terms, length, violation.norm)

    def _mark(self, phis: list[Features]) -> Any:
        version, restore_store = self._version, self._store.mark(phis)

        def undo() -> None:
            self._version = version
            restore_store()

        return undo

    def _get_state(self) -> dict[str, Any]:
        return {"version": self._version, "store": self._store.get_state()}

    def _set_state(self, values: dict[str, Any]) -> None:
        self._version = _validate.require_count(type(self).__name__, "version", values["version"], least=0)
        self._store.set_state(values["store"])


class ScoreLearner(PALearner[float]):
    """A learner with one weight vector: binary classification and regression."""

    _store: stores.LinearStore | support.SupportStore

    def __init__(
        self, rule: steps.StepRule | None = None, *, learn_intercept: bool = True,
        kernel: kernels.Kernel | None = None, budget: budgets.Budget | None = None,
    ):
        owner = type(self).__name__
        _validate.require_instance(owner, "rule", rule, steps.StepRule, "PA(), PA1(C) or PA2(C)")
        support.check(owner, kernel, budget)
        self.rule = rule
        self.learn_intercept = _validate.require_bool(owner, "learn_intercept", learn_intercept)
        self.kernel = kernel
        self.budget = budget
        self._store = stores.single(learn_intercept, kernel, budget)

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"rule"}

    @property
    def weights(self) -> dict[Name, float]:
        """The learned weights, a fresh dict: name -> weight, without the intercept. A kernel model has none."""
        return self._store.weights()

    @property
    def support(self) -> list[tuple[dict[Name, float], float]]:
        """The support vectors of a kernel model by age, each with its coefficient: w = sum of coefficient * phi(x)."""
        return [(x, coefficients[0]) for x, coefficients in self._store.support]

    @property
    def intercept(self) -> float:
        """The learned weight of the constant feature; 0.0 if there is none."""
        return self._store.intercept()

    @property
    def budget_loss(self) -> float:
        """The summed length of all that a budget dropped: what a score has lost is at most that times norm(x)."""
        return self._store.lost

    def decision_one(self, x: Mapping[Any, Any]) -> float:
        """Return the raw score w . x + intercept. Never changes the model."""
        return self._scores(features(x))

    def _scores(self, phi: Features) -> float:
        return self._store.score(phi)
