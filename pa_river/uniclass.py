"""One class only: a center that moves no further towards each record than the distance it is at fault."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pa_river import _validate, batch, state, steps, support
from pa_river.budget import Budget
from pa_river.centers import KernelCenter, LinearCenter
from pa_river.features import features
from pa_river.kernels import Kernel
from pa_river.terms import Features, Name, Term, Violation

try:
    from river.base import AnomalyDetector as AnomalyDetector
except ImportError:  # where older Rivers keep it
    from river.anomaly.base import AnomalyDetector as AnomalyDetector

#: The score of a record elsewhere than a center of radius 0; a score is finite.
_OUTSIDE = 1e308


@state.storable
class PAUniclass(AnomalyDetector):
    """Passive-Aggressive uniclass prediction: the smallest move that brings a record within the radius of the center.

    Parameters
    ----------
    rule
        Step rule; `PA1(C=1.0)` if None. `C` caps the move, in units of distance.
    eps
        A fixed radius, finite and >= 0; 1.0 if neither `eps` nor `max_radius` is given.
    max_radius
        An upper bound B > 0 of a radius that is learned with the center; it grows from 0.
    kernel
        None for a center by feature name; `Linear()`, `Polynomial(degree)` or `RBF(gamma)` for support vectors.
    budget
        `Budget(size)` bounds the support vectors; None or `Budget(math.inf)` does not.

    Notes
    -----
    x: feature name -> finite number, absent means 0. Loss max(0, |x - center| - radius); the center moves along the
    unit vector towards x, so a rule's norm is 1: by loss (PA), min(C w, loss) (PA-I), loss / (1 + 1 / (2 C w)) (PA-II).
    A learned radius is a fixed radius B with one coordinate more, B at the start and 0 in every record:
    radius = sqrt(B^2 - its square). Raises `ValueError` naming a feature that is not finite, before anything moves.
    O(len(x)) time, whatever the dimension; one float per name seen in a move. With a kernel the distance is that in
    its space, one kernel value a support vector. Source: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7,
    2006, section 6.

    Examples
    --------
    >>> from pa_river import PA, PAUniclass
    >>> model = PAUniclass(PA(), eps=1.0)
    >>> model.learn_one({"a": 3.0, "b": 4.0})  # distance 5: the center moves by 4, to distance 1
    >>> {name: round(value, 9) for name, value in model.center.items()}
    {'a': 2.4, 'b': 3.2}
    >>> round(model.score_one({"a": 2.4, "b": 1.2}), 9)  # distance 2, radius 1
    2.0

    """

    rule = steps.Chosen()

    def __init__(
        self, rule: steps.StepRule | None = None, *, eps: float | None = None, max_radius: float | None = None,
        kernel: Kernel | None = None, budget: Budget | None = None,
    ):
        owner = type(self).__name__
        if eps is not None and max_radius is not None:
            raise ValueError(f"{owner} takes a fixed radius eps={eps!r} or a bound max_radius={max_radius!r}, not both")
        support.check(owner, kernel, budget)
        self.rule = rule
        self.eps = eps if eps is None else _validate.require_non_negative(owner, "eps", eps)
        self.max_radius = max_radius if max_radius is None else _validate.require_positive(
            owner, "max_radius", max_radius)
        self.kernel = kernel
        self.budget = budget
        self._store = LinearCenter() if kernel is None else KernelCenter(kernel, budget)
        self._lift = self.max_radius or 0.0  # the coordinate more; 0 for a fixed radius
        self._version = 0

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"rule"}

    @property
    def center(self) -> dict[Name, float]:
        """The learned center, a fresh dict: name -> coordinate. A kernel model has `support` instead."""
        return self._store.center

    @property
    def support(self) -> list[tuple[dict[Name, float], float]]:
        """The support vectors of a kernel model by age: center = sum of coefficient * phi(x)."""
        return [(x, coefficients[0]) for x, coefficients in support.of(self._store).vectors]

    @property
    def budget_loss(self) -> float:
        """The summed length of all that a budget dropped from the center; it shrinks as the center moves on."""
        return support.lost(self._store)

    @property
    def radius(self) -> float:
        """The radius: `eps`, or what was learned so far, between 0 and `max_radius`."""
        if self.max_radius is None:
            return self._bound
        # B sqrt(1 - r^2), rounded once under the root: so it grows with every move, and has its digits near 0
        ratio = self._lift / self.max_radius
        split = 134217729.0 * ratio  # 2^27 + 1 (Veltkamp): two halves whose products are exact
        high = split - (split - ratio)
        low = ratio - high
        return self.max_radius * math.sqrt(math.fsum([1.0, -high * high, -2.0 * high * low, -low * low]))

    @property
    def version(self) -> int:
        """How many records were learned: weight above 0, passive ones included."""
        return self._version

    def learn_one(self, x: Mapping[Any, Any], *, w: float = 1.0) -> None:
        """Learn one record.

        Parameters
        ----------
        x
            Feature name -> finite number; a missing name or None means 0, text is an indicator feature.
        w
            Importance, finite and >= 0: it scales `C` inside the rule. 0 changes nothing at all.

        Raises
        ------
        ValueError
            If a feature or w is refused, or a distance would not be finite. The model is as before.

        """
        w, phi = _validate.example_weight(w), features(x)
        if w:
            self._learn(phi, w, self._store.distance(phi))

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return distance to the center / radius: above 1 is outside. Never changes the model.

        With a radius of 0: 0.0 at the center, 1e308 anywhere else.
        """
        return self._score(self._store.distance(features(x)))

    def step(self, x: Mapping[Any, Any], *, w: float = 1.0) -> float:
        """Return what `score_one(x)` returns, then learn: one distance for both."""
        w, phi = _validate.example_weight(w), features(x)
        distance = self._store.distance(phi)
        score = self._score(distance)
        if w:
            self._learn(phi, w, distance)
        return score

    def learn_many(self, X: Any, *, w: Any = None) -> None:
        """Learn the rows of X in order, all or nothing: equal to a loop of `learn_one`.

        Parameters
        ----------
        X
            numpy array or scipy sparse matrix, (n, d): column j is the feature `j`, an int; or a pandas frame, whose
            columns are the names.
        w
            n weights, or one for all; None for 1.

        Raises
        ------
        ValueError
            Naming row and column; nothing is learned then. Being able to take a batch back costs a copy of the center.

        """
        self._learn_rows(X, w, None)

    def step_many(self, X: Any, *, w: Any = None) -> Any:
        """Return the score of each row before it is learned, and learn them: a loop of `step`, all or nothing."""
        scores: list[float] = []
        self._learn_rows(X, w, scores)
        return batch.like(X, scores, float)

    def score_many(self, X: Any) -> Any:
        """Return `score_one` of the rows of X: a Series for a frame, with its index; else an array."""
        rows = batch.numbered(batch.rows(X), lambda phi: self._score(self._store.distance(phi)))
        return batch.like(X, list(rows), float)

    def _learn_rows(self, X: Any, w: Any, scores: list[float] | None) -> None:
        rows = batch.rows(X)
        examples = batch.examples(rows, [None] * len(rows), w, lambda y: y)
        version, lift, restore_store = self._version, self._lift, self._store.mark(rows)
        for number, (phi, _, weight) in enumerate(examples):
            try:
                distance = self._store.distance(phi)
                if scores is not None:
                    scores.append(self._score(distance))
                if weight:
                    self._learn(phi, weight, distance)
            except Exception as error:
                self._version, self._lift = version, lift
                restore_store()
                if isinstance(error, ValueError):
                    raise ValueError(f"row {number}: {error}") from error
                raise

    @property
    def _bound(self) -> float:
        if self.max_radius is not None:
            return self.max_radius
        return 1.0 if self.eps is None else self.eps

    def _score(self, distance: float) -> float:
        radius = self.radius
        if radius > 0.0:
            return min(distance / radius, _OUTSIDE)
        return _OUTSIDE if distance > 0.0 else 0.0

    def _violation(self, phi: Features, y: None, scores: float) -> Violation | None:
        """Return the constraint that a record at distance `scores` breaks; its direction is a unit vector."""
        loss = math.hypot(scores, self._lift) - self._bound
        return Violation(loss, 1.0, (Term(1.0, phi),)) if loss > 0.0 else None

    def _learn(self, phi: Features, w: float, distance: float) -> None:
        try:
            self._update(phi, w, distance)
        except support.Full:  # a support vector gives way first: the center is elsewhere without it
            with support.of(self._store).room_for(phi):
                self._update(phi, w, self._store.distance(phi))
        self._version += 1

    def _update(self, phi: Features, w: float, distance: float) -> None:
        violation = self._violation(phi, None, distance)
        if violation is not None:
            length = (self.rule or steps.DEFAULT).length(violation.loss, violation.norm, w)
            share = min(length / math.hypot(distance, self._lift), 1.0)
            if share > 0.0:
                self._store.approach(phi, share)
                if self.max_radius is not None:  # above 0 in exact arithmetic, and so here
                    self._lift = max(self._lift * (1.0 - share), sys.float_info.min)

    def _blend(self, models: Sequence[PAUniclass], shares: Sequence[float]) -> None:
        """Become the weighted average of models of this class, in the lifted space; this one is new."""
        self._version = sum(model._version for model in models)
        self._lift = math.fsum(share * model._lift for share, model in zip(shares, models))
        store: Any = self._store
        store.blend([(share, model._store, (0,)) for share, model in zip(shares, models)])

    def _get_state(self) -> dict[str, Any]:
        return {"version": self._version, "lift": self._lift, "store": self._store.get_state()}

    def _set_state(self, values: dict[str, Any]) -> None:
        self._version = _validate.require_count(type(self).__name__, "version", values["version"], least=0)
        self._lift = state.finite_float(values["lift"])
        if not 0.0 <= self._lift <= (self.max_radius or 0.0):
            raise state.StateError("the coordinate that holds the radius is out of range")
        self._store.set_state(values["store"])
