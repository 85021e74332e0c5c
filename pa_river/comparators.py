"""The fixed vector that a bound compares a learner with: its length, and its scores and distances."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

from pa_river import _validate
from pa_river.features import features, short
from pa_river.kernels import Kernel
from pa_river.learner import ScoreLearner
from pa_river.prototypes import PALabelLearner
from pa_river.terms import Features, Name
from pa_river.uniclass import PAUniclass


class Comparator(abc.ABC):
    """One vector a slot; `square` is the squared length of all, `lift` the coordinate that a learned radius adds."""

    square: float
    lift = 0.0

    @abc.abstractmethod
    def dot(self, phi: Features, slot: int) -> float:
        """Return u_slot . phi, intercept included."""

    @abc.abstractmethod
    def distance(self, phi: Features) -> float:
        """Return |u_0 - phi|."""


class LinearComparator(Comparator):
    """Weights by feature name and an intercept a slot."""

    def __init__(self, rows: list[tuple[Features, float]]):
        self._rows = rows
        self.square = math.fsum(value * value for weights, _ in rows for value in weights.values())
        self.square += math.fsum(intercept * intercept for _, intercept in rows)

    def dot(self, phi: Features, slot: int) -> float:
        weights, intercept = self._rows[slot] if slot < len(self._rows) else ({}, 0.0)
        return math.fsum([intercept, *[weights.get(name, 0.0) * value for name, value in phi.items()]])

    def distance(self, phi: Features) -> float:
        center, _ = self._rows[0]
        return math.hypot(*[center.get(name, 0.0) - phi.get(name, 0.0) for name in dict.fromkeys([*center, *phi])])


class KernelComparator(Comparator):
    """An expansion a slot: [(x, coefficient), ...]."""

    def __init__(self, kernel: Kernel, extra: float, rows: list[list[tuple[Features, float]]]):
        self._kernel, self._extra, self._rows = kernel, extra, rows
        self.square = math.fsum(c * self.dot(x, slot) for slot, row in enumerate(rows) for x, c in row)

    def dot(self, phi: Features, slot: int) -> float:
        row = self._rows[slot] if slot < len(self._rows) else []
        return math.fsum(c * (self._kernel(x, phi) + self._extra) for x, c in row)

    def distance(self, phi: Features) -> float:
        square = self.square - 2.0 * self.dot(phi, 0) + self._kernel(phi, phi)
        return math.sqrt(max(square, 0.0))


def comparator(model: Any, u: Any) -> Comparator | None:
    """Return `u`, as `Certified` documents it, ready to compare with `model`; `ValueError` if it is not that."""
    if u is None:
        return None
    if isinstance(model, PALabelLearner):
        if not isinstance(u, Mapping) or len(model._known) < 2 or set(u) - set(model._known):
            raise ValueError("Certified(u=...) must be {label: comparator}, and the model's labels declared beforehand")
        parts = [u.get(label, [] if model.kernel is not None else {}) for label in model._known]
    else:
        parts = [u]
    radius = None
    if isinstance(model, PAUniclass) and model.max_radius is not None:
        radius, parts = _radius(model.max_radius, parts[0])
    extra = isinstance(model, (ScoreLearner, PALabelLearner)) and model.learn_intercept
    try:
        result = _built(model, extra, parts)
    except OverflowError:  # a partial sum of squares
        raise ValueError(_TOO_LONG) from None
    if radius is not None:
        result.square += radius * radius
        result.lift = math.sqrt((model.max_radius - radius) * (model.max_radius + radius))
    if not math.isfinite(result.square):
        raise ValueError(_TOO_LONG)
    return result


_TOO_LONG = "Certified(u=...): the squared length of the comparator is beyond float range"


def _built(model: Any, extra: bool, parts: list[Any]) -> Comparator:
    if model.kernel is not None:
        return KernelComparator(model.kernel, 1.0 if extra else 0.0, [_expansion(part) for part in parts])
    return LinearComparator([_weights(part, extra) for part in parts])


def _radius(largest: float, u: Any) -> tuple[float, list[Any]]:
    if isinstance(u, Mapping):
        radius, rest = u.get(None, largest), {name: value for name, value in u.items() if name is not None}
    else:  # an expansion has no place for one
        radius, rest = largest, u
    if not (_validate.is_number(radius) and 0.0 <= radius <= largest):
        raise ValueError(f"Certified(u=...): the radius must be a number from 0 to {largest}, got {short(radius)}")
    return float(radius), [rest]


def _weights(u: Any, extra: bool) -> tuple[dict[Name, float], float]:
    if not isinstance(u, Mapping):
        raise ValueError(f"Certified(u=...) must be a mapping of names to weights, got {type(u).__name__}")
    intercept = features({"intercept": u.get(None, 0.0)})["intercept"]
    if intercept and not extra:
        raise ValueError("Certified(u=...): the model learns no intercept, so its comparator has none")
    return dict(features({name: value for name, value in u.items() if name is not None})), intercept


def _expansion(u: Any) -> list[tuple[Features, float]]:
    if not isinstance(u, (list, tuple)) or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in u):
        raise ValueError("Certified(u=...) must be [(x, coefficient), ...] for a kernel model")
    return [(dict(features(x)), features({"coefficient": c})["coefficient"]) for x, c in u]
