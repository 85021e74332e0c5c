"""Weights of features that are scaled as they come: the spread of each feature's values beside its weight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pa_river import state
from pa_river.stores import LinearStore
from pa_river.terms import Features, Name


class Spread(NamedTuple):
    """What is known of a feature's values: how many there were, their mean and their variance."""

    seen: float
    mean: float
    variance: float


class ScaledStore(LinearStore):
    """One weight a feature name, and the spread of its values. O(len(phi)) time; four floats a name."""

    def __init__(self, learn_intercept: bool):
        super().__init__(learn_intercept)
        self.spreads: dict[Name, Spread] = {}

    def scaled(self, phi: Features) -> dict[Name, float]:
        """Return (value - mean) / deviation of every feature, by the spreads so far."""
        return scaled(phi, self.spreads)

    def observed(self, phi: Features) -> dict[Name, Spread]:
        """Return the spreads of the features of `phi` with its values among them; `ValueError` if one is not finite."""
        after = {}
        for name, value in phi.items():
            count, before, variance = self.spreads.get(name, (0.0, 0.0, 0.0))
            count += 1.0
            mean = before + (value - before) / count
            variance += ((value - before) * (value - mean) - variance) / count
            if not math.isfinite(variance):
                raise ValueError(f"the variance of feature {name!r} would not be finite; nothing was learned")
            after[name] = Spread(count, mean, variance)
        return after

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        phis = list(phis)
        restore_weights, known = super().mark(phis), len(self.spreads)
        before = {name: self.spreads[name] for phi in phis for name in phi if name in self.spreads}

        def restore() -> None:
            restore_weights()
            self.spreads.update(before)
            while len(self.spreads) > known:
                self.spreads.popitem()

        return restore

    def get_state(self) -> dict[str, Any]:
        spreads = np.array(list(self.spreads.values()), float).reshape(-1, 3)
        return {
            "names": state.pack_names(list(self.spreads)),
            "weights": np.array([self.weights.get(name, 0.0) for name in self.spreads], float),
            "counts": spreads[:, 0].copy(), "means": spreads[:, 1].copy(), "variances": spreads[:, 2].copy(),
            "intercept": self.intercept,
        }

    def set_state(self, values: dict[str, Any]) -> None:
        super().set_state(values)
        columns = [state.finite_vector(values[key]) for key in ("counts", "means", "variances")]
        if {len(column) for column in columns} != {len(self.weights)}:
            raise state.StateError("a spread is missing for a name")
        if (columns[0] < 1.0).any():
            raise state.StateError("a spread of no values")
        self.spreads = dict(zip(self.weights, map(Spread._make, zip(*(column.tolist() for column in columns)))))
        self.weights = {name: weight for name, weight in self.weights.items() if weight}


def scaled(phi: Features, spreads: Mapping[Name, Spread]) -> dict[Name, float]:
    """Return (value - mean) / deviation of every feature; 0 where its variance is 0 or unknown."""
    result = {}
    for name, value in phi.items():
        spread = spreads.get(name)
        if spread is not None and spread.variance > 0.0:
            result[name] = (value - spread.mean) / math.sqrt(spread.variance)
        else:
            result[name] = 0.0
    return result
