"""Weights that know how sure they are: a variance beside each, 1 at first, smaller with each example that moves it."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pa_river import _loops, state
from pa_river.rows import RowStore
from pa_river.terms import Features, Name, Term

#: A variance is above 0 in exact arithmetic, and so here.
_LEAST_VARIANCE = sys.float_info.min


class ConfidenceStore(RowStore):
    """One prototype a slot and the diagonal of its covariance S, intercepts included; S = 1 where nothing moved yet.

    O(len(phi)) time a term; two floats a name and slot.
    """

    def __init__(self, learn_intercept: bool):
        super().__init__(learn_intercept)
        self._variances: dict[Name, list[float]] = {}
        self._intercept_variances: list[float] = []

    def variances(self, slot: int) -> dict[Name, float]:
        """Return the variances of a slot that are not 1, a fresh dict, without the intercept's."""
        return {name: row[slot] for name, row in self._variances.items() if slot < len(row) and row[slot] != 1.0}

    def pairs(self, slot: int) -> dict[Name | None, tuple[float, float]]:
        """Return name -> (weight, variance) of all that a slot holds, a fresh dict; None names the intercept."""
        found: dict[Name | None, tuple[float, float]] = {
            name: (row[slot], self._variances[name][slot]) for name, row in self._rows.items() if slot < len(row)}
        if slot < len(self._intercepts):
            found[None] = self._intercepts[slot], self._intercept_variances[slot]
        return found

    def deviation(self, phi: Features, slots: Sequence[int]) -> float:
        """Return sqrt(sum over the slots of phi' S phi): how unsure the scores are, and the length of a direction."""
        return math.hypot(*[self._deviation(phi, slot) for slot in slots])

    def tilt(self, terms: tuple[Term, ...], length: float, deviation: float, left: float) -> None:
        """Add length * S (sum of terms) / deviation, and shrink S to S - (1 - left) (S phi) (S phi)' / deviation^2.

        `left` is the share of the variance along the direction that remains. `ValueError`, and nothing moves, if a
        weight would not be finite.
        """
        moves = []
        for sign, phi, slot in terms:
            pairs: list[tuple[Name | None, float]] = [(name, value) for name, value in phi.items() if value]
            if self._extra:
                pairs.append((None, 1.0))  # the nameless feature
            for name, value in pairs:
                weights, variances = self._row(name)
                variance = _at(variances, slot, 1.0)
                part = value / deviation
                weight = _at(weights, slot, 0.0) + sign * length * (variance * part)
                if not math.isfinite(weight):
                    what = "intercept" if name is None else f"weight of feature {name!r}"
                    raise ValueError(f"the {what} would not be finite; nothing was learned")
                share = variance * part * part
                shrunk = max(variance * (max(1.0 - share, 0.0) + share * left), _LEAST_VARIANCE)
                moves.append((name, slot, weight, shrunk))
        for name, slot, weight, variance in moves:
            weights, variances = self._row(name, create=True)
            _put(weights, slot, weight, 0.0)
            _put(variances, slot, variance, 1.0)

    def blend(self, parts: Sequence[tuple[float, ConfidenceStore, Sequence[int]]]) -> None:
        """Become what is nearest to all `parts` in the sum of share * KL divergence; this one is empty.

        Of normal distributions that is the one whose precision is the sum of share * precision, and whose precision
        times mean is the sum of theirs. What a part lacks counts as new: mean 0, variance 1.
        """
        for target in range(1 + max((slot for _, _, slots in parts for slot in slots), default=-1)):
            found = [(share, store.pairs(slots.index(target))) for share, store, slots in parts if target in slots]
            names = dict.fromkeys(name for _, pairs in found for name in pairs if name is not None)
            for name in [*names, *([None] if self._extra else [])]:
                precision, pull = 1.0 - math.fsum(share for share, _ in found), 0.0
                for share, pairs in found:
                    weight, variance = pairs.get(name, (0.0, 1.0))
                    part = share / variance
                    precision += part
                    pull += part * weight
                variance = max(1.0 / precision, _LEAST_VARIANCE)
                weights, variances = self._row(name, create=True)
                _put(weights, target, _loops.finite(pull / precision), 0.0)
                _put(variances, target, variance, 1.0)

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        phis = list(phis)
        restore_weights, known = super().mark(phis), len(self._variances)
        intercepts = self._intercept_variances.copy()
        before = {name: self._variances[name].copy() for phi in phis for name in phi if name in self._variances}

        def restore() -> None:
            restore_weights()
            self._intercept_variances = intercepts
            self._variances.update(before)
            while len(self._variances) > known:
                self._variances.popitem()

        return restore

    def get_state(self) -> dict[str, Any]:
        flat = itertools.chain(*self._variances.values(), self._intercept_variances)
        return {**super().get_state(), "variances": np.array(list(flat), float)}

    def set_state(self, values: dict[str, Any]) -> None:
        super().set_state(values)
        variances = state.finite_vector(values["variances"])
        if len(variances) != sum(map(len, self._rows.values())) + len(self._intercepts) or (variances <= 0.0).any():
            raise state.StateError("a variance above 0 is missing for a weight")
        flat = iter(variances.tolist())
        self._variances = {name: list(itertools.islice(flat, len(row))) for name, row in self._rows.items()}
        self._intercept_variances = list(flat)

    def _row(self, name: Name | None, create: bool = False) -> tuple[list[float], list[float]]:
        if name is None:
            return self._intercepts, self._intercept_variances
        if create:
            return self._rows.setdefault(name, []), self._variances.setdefault(name, [])
        return self._rows.get(name, []), self._variances.get(name, [])

    def _deviation(self, phi: Features, slot: int) -> float:
        get = self._variances.get
        scaled = {name: math.sqrt(_at(get(name, ()), slot, 1.0)) * value for name, value in phi.items() if value}
        return _loops.norm(scaled, self._extra * _at(self._intercept_variances, slot, 1.0))


def _at(row: Sequence[float], slot: int, default: float) -> float:
    return row[slot] if slot < len(row) else default


def _put(row: list[float], slot: int, value: float, default: float) -> None:
    if slot >= len(row):
        row.extend([default] * (slot + 1 - len(row)))
    row[slot] = value
