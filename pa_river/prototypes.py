"""One prototype a label: which slot is whose, what a new label may do, and what the scores of the slots mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from pa_river import _compiled, _proba, _validate, batch, labels, state, steps, stores, support
from pa_river.budget import Budget
from pa_river.features import short
from pa_river.kernels import Kernel
from pa_river.learner import Learner, PALearner
from pa_river.terms import Name


class LabelLearner(Learner[list[float]]):
    """A learner that scores labels, each by the prototype in its slot; slots in order of arrival.

    A label that is new takes the next free slot, and its prototype is 0. It is among the known ones when rivals are
    chosen, and stays so only if the example was learned.
    """

    _store: stores.MultiStore
    #: 2 where slot 1 exists from the start, nameless, until a second label takes it: the first label then has a rival.
    _least_slots = 0

    def __init__(
        self, *, learn_intercept: bool, kernel: Kernel | None, budget: Budget | None,
        declared: Sequence[Hashable] = (),
    ):
        self.learn_intercept = _validate.require_bool(type(self).__name__, "learn_intercept", learn_intercept)
        support.check(type(self).__name__, kernel, budget)
        self.kernel = kernel
        self.budget = budget
        self._store = _compiled.multi(learn_intercept, kernel, budget)
        self._known: list[Hashable] = []
        self._slots: dict[Hashable, int] = {}  # by Python's equality; the first spelling stays the key
        self._register(declared)

    @property
    def weights(self) -> dict[Hashable, dict[Name, float]]:
        """The learned weights, fresh dicts: label -> name -> weight, without the intercepts; a 0 is not stored."""
        return {label: self._store.weights(slot) for slot, label in enumerate(self._known)}

    @property
    def support(self) -> list[tuple[dict[Name, float], dict[Hashable, float]]]:
        """The support vectors of a kernel model by age: (x, {label: coefficient}), coefficients of 0 left out."""
        return [
            (x, {label: coefficient for label, coefficient in zip(self._known, row) if coefficient})
            for x, row in support.of(self._store).vectors
        ]

    @property
    def budget_loss(self) -> float:
        """The summed length of all that a budget dropped: what a score has lost is at most that times norm(x)."""
        return support.lost(self._store)

    @property
    def intercept(self) -> dict[Hashable, float]:
        """The learned weight of the constant feature, a fresh dict: label -> weight."""
        return {label: self._store.intercept(slot) for slot, label in enumerate(self._known)}

    def decision_one(self, x: Mapping[Any, Any]) -> dict[Hashable, float]:
        """Return label -> raw score w_label . x + intercept, in order of arrival. Never changes the model."""
        return dict(zip(self._known, self._scores(self._input(x))))

    def _scores(self, phi: Any) -> list[float]:
        return self._store.scores(phi, max(self._least_slots, len(self._known)))

    def _place(self, y: Hashable, scores: list[float]) -> tuple[int, list[float]]:
        """Return the slot of y, the next free one for a new label, and the scores with it among them."""
        slot = self._slots.get(y, len(self._known))
        return slot, scores if slot < len(scores) else [*scores, 0.0]

    def _arriving(self, y: Any) -> Sequence[Hashable]:
        """Return the labels that an example with this y brings."""
        return (y,)

    def _register(self, arriving: Sequence[Hashable]) -> None:
        for label in arriving:
            if label not in self._slots:
                self._slots[label] = len(self._known)
                self._known.append(label)

    def _learn(self, phi: Any, y: Any, w: float, scores: list[float]) -> None:
        super()._learn(phi, y, w, scores)
        self._register(self._arriving(y))

    def _blend(self, models: Sequence[Any], shares: Sequence[float]) -> None:
        for model in models:
            self._register(model._known)
        super()._blend(models, shares)

    def _places(self, model: Any) -> Sequence[int]:
        """Return the slot here of each slot of `model`; its nameless one becomes that of the first label it lacks."""
        places = [self._slots[label] for label in model._known]
        free = (slot for slot in range(max(self._least_slots, len(self._known))) if slot not in places)
        return places + [next(free) for _ in range(model._store.slots - len(places))]

    def _mark(self, phis: list[Any]) -> Callable[[], None]:
        known, restore_rest = len(self._known), super()._mark(phis)

        def undo() -> None:
            for label in self._known[known:]:
                del self._slots[label]
            del self._known[known:]
            restore_rest()

        return undo

    def _get_state(self) -> dict[str, Any]:
        for label in self._known:
            if not storable_label(label):
                raise state.StateError(f"the label {short(label)} cannot be stored: only str, bytes, int, finite "
                                       f"float, bool and tuples of these can")
        return {**super()._get_state(), "labels": list(self._known)}

    def _set_state(self, values: dict[str, Any]) -> None:
        super()._set_state(values)
        known = values["labels"]
        if not (isinstance(known, list) and all(map(storable_label, known))):
            raise state.StateError("the labels are missing, or one has a type that no label has")
        self._known, self._slots = known, {label: slot for slot, label in enumerate(known)}
        if len(self._slots) != len(known):
            raise state.StateError("a label is stored twice")
        if self._store.slots > max(self._least_slots, len(known)):
            raise state.StateError(f"{self._store.slots} prototypes for {len(known)} labels")


class SingleLabelLearner(LabelLearner):
    """One label is right; the prediction is the label with the highest score, the one seen first among equals."""

    _normalise_y = staticmethod(labels.label)

    @property
    def _multiclass(self) -> bool:
        return True

    def _predicted(self, scores: list[float]) -> Hashable | None:
        return self._known[best(scores[:len(self._known)])] if self._known else None

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Hashable, float]:
        """Return label -> exp(score) / sum of exp(scores), over the known labels; {} untrained.

        It sums to 1 and orders as the scores do, but is no calibrated probability: a margin has no scale of its own.
        """
        return self._proba(self._input(x))

    def predict_proba_many(self, X: Any) -> Any:
        """Return `predict_proba_one` of every row as a pandas DataFrame, one column a label."""
        return batch.proba_like(X, [self._proba(phi) for phi in self._inputs(X)])

    def _proba(self, phi: Any) -> dict[Hashable, float]:
        return dict(zip(self._known, _proba.softmax(self._scores(phi)[:len(self._known)])))


class PALabelLearner(PALearner[list[float]], LabelLearner):
    """A learner with one prototype a label that moves by a step rule."""

    def __init__(
        self, rule: steps.StepRule | None, *, learn_intercept: bool, kernel: Kernel | None, budget: Budget | None,
        declared: Sequence[Hashable] = (),
    ):
        super().__init__(learn_intercept=learn_intercept, kernel=kernel, budget=budget, declared=declared)
        self.rule = rule

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"rule"}


class Declaring:
    """A River model with the parameter `labels`: what it knows before any example, in the order of the slots."""

    labels: tuple[Hashable, ...]

    def _get_params(self) -> dict[str, Any]:
        # River's `clone` looks at the first item of a tuple, and fails at the default ()
        params: dict[str, Any] = super()._get_params()  # type: ignore[misc]
        return {**params, "labels": list(self.labels)}


def declared(owner: str, names: Any, param: str = "labels") -> tuple[Hashable, ...]:
    """Return the labels that a user declares, normalised; `ValueError` unless they are a list or tuple of labels."""
    if not isinstance(names, (list, tuple)):
        raise ValueError(f"{owner}({param}=...) must be a list or tuple of labels, got {short(names)}")
    known = tuple(labels.label(name) for name in names)
    if len(set(known)) != len(known):
        raise ValueError(f"{owner}({param}=...) has equal labels: {short(names)}")
    return known


def best(scores: list[float], without: int | None = None) -> int:
    """Return the slot with the highest score, the first among equals; the slot `without` does not count."""
    return max((slot for slot in range(len(scores)) if slot != without), key=scores.__getitem__)


def storable_label(label: Any) -> bool:
    kind = type(label)
    if kind is tuple:
        return all(map(storable_label, label))
    return kind in (str, bytes, int, bool) or (kind is float and math.isfinite(label))
