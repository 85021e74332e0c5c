"""Averaging: predict by the mean of the weights after each example, in which the last ones count like any other."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from river import base

from pa_river import _compiled, _loops, _validate, binary, learner, multilabel, regression, rows, state, stores
from pa_river.features import short
from pa_river.terms import Features, Term

#: The stores whose scores are linear in what was added: the mean of their scores is the score of their mean.
LINEAR = (stores.LinearStore, rows.RowStore)


class Averaged(base.Wrapper, base.Estimator):
    """Predict by the running mean of a linear learner's weights; learn as the learner itself does.

    `Averaged(model)` is an `AveragedClassifier`, `AveragedMultiLabelClassifier` or `AveragedRegressor`, whatever the
    model is.

    Parameters
    ----------
    model
        A linear learner of this package: binary, regression, multiclass, cost-sensitive, multilabel, Perceptron, MIRA.
        What it learned before it was wrapped is where the mean begins. From then on it learns through the wrapper only.

    Notes
    -----
    The mean is over the weights after each example of weight above 0, passive ones included: (w_1 + ... + w_T) / T. It
    is kept as w_T - s / T, where s sums each move times the examples before it, so an example still costs O(len(x));
    memory doubles. `PASequence` has an option of its own. Source: Freund and Schapire,
    Large Margin Classification Using the Perceptron Algorithm, Machine Learning 37, 1999; Collins, Discriminative
    Training Methods for Hidden Markov Models, EMNLP 2002.

    Examples
    --------
    >>> from pa_river import PA, PAClassifier
    >>> model = Averaged(PAClassifier(PA(), learn_intercept=False))
    >>> model.learn_one({"a": 1.0}, True)  # w = 1
    >>> model.learn_one({"a": 1.0}, False)  # w = -1
    >>> for _ in range(2):  # passive, w = -1
    ...     model.learn_one({"a": 1.0}, False)
    >>> model.weights
    {'a': -0.5}

    """

    model: Any

    def __new__(cls, model: Any = None) -> Averaged:
        # the class follows the model, as a Path is a PosixPath; copies ask for the class itself, without a model
        chosen = next((own for own, kind in _KINDS if isinstance(model, kind)), cls) if cls is Averaged else cls
        return object.__new__(chosen)

    def __init__(self, model: Any):
        if hasattr(model, "_store"):
            _compiled.on_reference(model)  # the moves are watched, which the compiled core makes without a call
        ours = isinstance(model, learner.Learner) and isinstance(model, tuple(kind for _, kind in _KINDS))
        if not (ours and type(model._store) in LINEAR):  # a store derived from them moves in another way
            raise ValueError(
                f"Averaged(model=...) must be a linear learner of pa_river, without a kernel, got {short(model)}"
            )
        self.model = model
        # sum over examples of (examples before it, here) * (its move)
        self._sums: Any = _compiled.on_reference(model.clone())._store
        self._start = model.version

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Any:
        """Return a fresh one with the same parameters, or with all that was learned too; see River's `Base.clone`."""
        twin = super().clone(new_params, include_attributes)
        if include_attributes and "model" not in (new_params or {}):  # a parameter for River, which makes it anew
            twin.model = copy.deepcopy(self.model)
        return twin

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def _normalise_y(self) -> Callable[[Any], Any]:
        return self.model._normalise_y  # type: ignore[no-any-return]

    @property
    def version(self) -> int:
        """How many examples the model learned: weight above 0, passive ones included."""
        return self.model.version  # type: ignore[no-any-return]

    @property
    def weights(self) -> Any:
        """The mean of the weights, as the model's own `weights` are laid out."""
        return self._mean_of("weights")

    @property
    def intercept(self) -> Any:
        """The mean of the intercept, as the model's own."""
        return self._mean_of("intercept")

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0, **kwargs: Any) -> None:
        """Learn one example, as the model does. Keyword arguments, here and below, are the model's own."""
        self._followed(self.model.learn_one, x, y, w, **kwargs)

    def step(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> Any:
        """Return what `predict_one(x)` returns, then learn."""
        prediction = self.predict_one(x)
        self.learn_one(x, y, w)
        return prediction

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> Any:
        """Return the model's prediction by the mean of its weights."""
        return self._serving().predict_one(x, **kwargs)

    def decision_one(self, x: Mapping[Any, Any]) -> Any:
        """Return the raw score, or {label: score}, by the mean of the weights."""
        return self._serving().decision_one(x)

    def learn_many(self, X: Any, y: Any, w: Any = None, **kwargs: Any) -> None:
        """Learn the rows of X in order, all or nothing, as the model does."""
        self._followed(self.model.learn_many, X, y, w, **kwargs)

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """Return the predictions for the rows of X by the mean of the weights."""
        return self._serving().predict_many(X, **kwargs)

    def _followed(self, learn: Callable[..., None], *example: Any, **kwargs: Any) -> None:
        store = self.model._store
        self.model._store = _Followed(store, self._sums, self.model, self._start)
        try:
            learn(*example, **kwargs)
        finally:
            self.model._store = store

    def _serving(self) -> Any:
        """A shallow copy of the model that scores by the mean: the model itself is not touched, nor its readers."""
        examples = self.model.version - self._start
        return self._with(_Mean(self.model._store, self._sums, examples)) if examples else self.model

    def _with(self, store: Any) -> Any:
        twin = copy.copy(self.model)
        twin._store = store
        return twin

    def _mean_of(self, name: str) -> Any:
        examples = self.model.version - self._start
        now = getattr(self.model, name)
        return _mean(now, getattr(self._with(self._sums), name), examples) if examples else now

    def _get_state(self) -> dict[str, Any]:
        return {"start": self._start, "sums": self._sums.get_state()}

    def _set_state(self, values: dict[str, Any]) -> None:
        self._start = _validate.require_count("Averaged", "start", values["start"], least=0)
        if self._start > self.model.version:
            raise state.StateError("the mean begins after the model's last example")
        self._sums.set_state(values["sums"])


@state.storable
class AveragedClassifier(Averaged, base.MiniBatchClassifier):
    """What `Averaged` is of a classifier."""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": binary.PAClassifier()}

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the model's `predict_proba_one` by the mean of its weights; no calibrated probability either."""
        return self._serving().predict_proba_one(x, **kwargs)  # type: ignore[no-any-return]

    def predict_proba_many(self, X: Any, **kwargs: Any) -> Any:
        """Return `predict_proba_one` of every row as a pandas DataFrame, one column a label."""
        return self._serving().predict_proba_many(X, **kwargs)


@state.storable
class AveragedMultiLabelClassifier(Averaged, base.MultiLabelClassifier):
    """What `Averaged` is of a multilabel classifier."""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": multilabel.PAMultilabel()}

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, dict[bool, float]]:
        """Return the model's `predict_proba_one` by the mean of its weights; no calibrated probability either."""
        return self._serving().predict_proba_one(x, **kwargs)  # type: ignore[no-any-return]

    def rank_one(self, x: Mapping[Any, Any]) -> list[Any]:
        """Return the labels by the mean of their weights, the best first."""
        return self._serving().rank_one(x)  # type: ignore[no-any-return]


@state.storable
class AveragedRegressor(Averaged, base.MiniBatchRegressor):
    """What `Averaged` is of a regressor."""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": regression.PARegressor()}


#: Which class an averaged model is, by River's class of the model.
_KINDS: list[tuple[type[Averaged], type]] = [
    (AveragedMultiLabelClassifier, base.MultiLabelClassifier),
    (AveragedClassifier, base.Classifier),
    (AveragedRegressor, base.Regressor),
]


class _Followed:
    """A model's store while it learns: the sums follow its moves, as many times as far as examples came before."""

    def __init__(self, store: Any, sums: Any, model: Any, start: int):
        self._store, self._sums, self._model, self._start = store, sums, model, start
        self.norm = store.norm
        self.score, self.scores = getattr(store, "score", None), getattr(store, "scores", None)

    def add(self, terms: tuple[Term, ...], length: float, norm: float) -> None:
        undo = self._sums.mark([term.phi for term in terms])
        before = self._model.version - self._start
        if before:
            self._sums.add(terms, length * before, norm)
        try:
            self._store.add(terms, length, norm)
        except ValueError:  # a weight would not be finite: both or neither
            undo()
            raise

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        phis = list(phis)
        restore = self._store.mark(phis), self._sums.mark(phis)

        def undo() -> None:
            for each in restore:
                each()

        return undo


class _Mean:
    """A store that scores by the mean of the weights and does not move."""

    def __init__(self, store: Any, sums: Any, examples: int):
        self._store, self._sums, self._examples = store, sums, examples
        self.norm = store.norm

    def score(self, phi: Features) -> float:
        return _loops.finite(self._store.score(phi) - self._sums.score(phi) / self._examples)

    def scores(self, phi: Features, slots: int) -> list[float]:
        pairs = zip(self._store.scores(phi, slots), self._sums.scores(phi, slots))
        return [_loops.finite(now - past / self._examples) for now, past in pairs]


def _mean(now: Any, past: Any, examples: int) -> Any:
    """now - past / examples, through the dicts in which weights come; a name that is missing in one has 0 there."""
    if isinstance(now, dict):
        nothing: Any = {} if any(isinstance(value, dict) for value in now.values()) else 0.0
        return {name: _mean(now.get(name, nothing), past.get(name, nothing), examples) for name in {**now, **past}}
    return now - past / examples
