"""The places where weights live: a store scores, measures and moves, and knows nothing of labels or losses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from pa_river import _loops, state
from pa_river.terms import Features, Name, Term


class Store(Protocol):
    """What a learner asks of the place where its weights live."""

    def score(self, phi: Features) -> float:
        """Return w . phi, intercept included; `ValueError` if it is not finite."""

    def norm(self, phi: Features) -> float:
        """Return the length of phi, intercept included."""

    def add(self, terms: tuple[Term, ...], length: float, norm: float) -> None:
        """Add length * (sum of terms) / norm; `ValueError`, and nothing moves, if a weight would not be finite."""

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        """Return a function that restores what moves along `phis` may change: the undo of a batch."""

    def get_state(self) -> dict[str, Any]:
        """Return what `set_state` needs, as plain values."""

    def set_state(self, values: dict[str, Any]) -> None:
        """Take over a state; `StateError` if it is not one."""


class MultiStore(Protocol):
    """What a learner with one prototype a label asks of the place where they live: slots, numbered from 0."""

    def scores(self, phi: Features, slots: int) -> list[float]:
        """Return w_slot . phi for the first `slots` slots, intercepts included; `ValueError` if one is not finite."""

    def norm(self, phi: Features) -> float:
        """Return the length of phi in one slot, intercept included."""

    def add(self, terms: tuple[Term, ...], length: float, norm: float) -> None:
        """Add length * (sum of terms) / norm; `ValueError`, and nothing moves, if a weight would not be finite."""

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        """Return a function that restores what moves along `phis` may change: the undo of a batch."""

    def weights(self, slot: int) -> dict[Name, float]:
        """Return the weights of a slot that are not 0, a fresh dict, without the intercept."""

    def intercept(self, slot: int) -> float:
        """Return the weight of the constant feature in a slot; 0.0 if there is none."""

    @property
    def slots(self) -> int:
        """How many slots hold anything: the highest that ever moved, plus 1."""

    def get_state(self) -> dict[str, Any]:
        """Return what `set_state` needs, as plain values."""

    def set_state(self, values: dict[str, Any]) -> None:
        """Take over a state; `StateError` if it is not one."""


class LinearStore:
    """One weight a feature name, and the intercept as a nameless feature of constant value 1.

    O(len(phi)) time for each method but the states; one dict entry a name that ever moved.
    """

    def __init__(self, learn_intercept: bool):
        self._extra = 1.0 if learn_intercept else 0.0
        self.weights: dict[Name, float] = {}
        self.intercept = 0.0
        self._texts = True  # whether all names are text: a name of another type may equal one that is none

    def glance(self, x: Any) -> float | None:
        """Return the score of a record that nobody has checked, where one pass proves it clean; else None."""
        return _loops.glance(self.weights, x, self.intercept) if type(x) is dict and self._texts else None

    def score(self, phi: Features) -> float:
        score = _loops.dot(self.weights, phi) + self.intercept
        return score if score - score == 0.0 else _loops.finite(score)

    def norm(self, phi: Features) -> float:
        return _loops.norm(phi, self._extra)

    def add(self, terms: tuple[Term, ...], length: float, norm: float) -> None:
        if len(terms) != 1:
            raise ValueError("a flat store takes one term a step")
        sign, phi, _ = terms[0]
        weights, known = self.weights, len(self.weights)
        if self._extra:
            intercept = self.intercept + sign * length / norm
            if intercept - intercept != 0.0:
                _loops.moved(weights, phi, sign * length, norm)  # a feature is blamed first
                raise ValueError("the intercept would not be finite; nothing was learned")
            weights.update(_loops.moved(weights, phi, sign * length, norm))
            self.intercept = intercept
        else:
            weights.update(_loops.moved(weights, phi, sign * length, norm))
        fresh = len(weights) - known
        if fresh and self._texts:
            self._texts = _texts(itertools.islice(reversed(weights), fresh))

    def blend(self, parts: Sequence[tuple[float, LinearStore, Sequence[int]]]) -> None:
        """Become the sum of share * store over `parts` (their slots are all 0); this one is empty."""
        self.weights = _loops.blended([(share, store.weights) for share, store, _ in parts])
        self._texts = _texts(self.weights)
        self.intercept = _loops.finite(math.fsum(share * store.intercept for share, store, _ in parts))

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        intercept, known = self.intercept, len(self.weights)
        before = {name: self.weights.get(name) for phi in phis for name in phi}

        def restore() -> None:
            self.intercept = intercept
            for name, weight in before.items():
                if weight is not None:
                    self.weights[name] = weight
            while len(self.weights) > known:  # names that the batch brought stand last
                self.weights.popitem()

        return restore

    def get_state(self) -> dict[str, Any]:
        return {
            "names": state.pack_names(list(self.weights)),
            "weights": np.fromiter(self.weights.values(), float, len(self.weights)),
            "intercept": self.intercept,
        }

    def set_state(self, values: dict[str, Any]) -> None:
        names, weights = state.unpack_names(values["names"]), state.finite_vector(values["weights"])
        if len(names) != len(weights):
            raise state.StateError(f"{len(names)} names for {len(weights)} weights")
        self.weights, self._texts = dict(zip(names, weights.tolist())), _texts(names)
        if len(self.weights) != len(names):
            raise state.StateError("a feature name is stored twice")
        self.intercept = state.finite_float(values["intercept"])


def _texts(names: Iterable[Name]) -> bool:
    return set(map(type, names)) <= {str}
