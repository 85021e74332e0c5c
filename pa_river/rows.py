"""A row of weights a feature name, one weight a slot: the scores of all labels in one pass over the features."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pa_river import _loops, state
from pa_river.terms import Features, Name, Term


class RowStore:
    """One prototype a slot, kept by feature: name -> weights of the slots 0, 1, ..., and so with the intercept.

    A row ends at the highest slot that ever moved the name: what lies beyond is 0. O(len(phi) * slots) time to score,
    O(len(phi)) a term to move; a float a name and slot.
    """

    def __init__(self, learn_intercept: bool):
        self._extra = 1.0 if learn_intercept else 0.0
        self._rows: dict[Name, list[float]] = {}
        self._intercepts: list[float] = []

    def scores(self, phi: Features, slots: int) -> list[float]:
        totals = [0.0] * slots
        get = self._rows.get
        for name, value in phi.items():
            row = get(name)
            if row is not None:
                totals[:len(row)] = [total + weight * value for total, weight in zip(totals, row)]
        known = self._intercepts
        totals[:len(known)] = [total + intercept for total, intercept in zip(totals, known)]
        if not math.isfinite(sum(totals)):
            for total in totals:
                _loops.finite(total)
        return totals

    def norm(self, phi: Features) -> float:
        return _loops.norm(phi, self._extra)

    def add(self, terms: tuple[Term, ...], length: float, norm: float) -> None:
        new: dict[int, dict[Name, float]] = {}
        intercepts: dict[int, float] = {}
        for sign, phi, slot in terms:
            before = {name: _at(self._rows.get(name, ()), slot) for name in phi}
            moved = new.setdefault(slot, {})
            before.update(moved)  # a slot that an earlier term has moved
            moved.update(_loops.moved(before, phi, sign * length, norm))
            if self._extra:
                intercepts[slot] = intercepts.get(slot, self.intercept(slot)) + sign * length / norm
                if not math.isfinite(intercepts[slot]):
                    raise ValueError("the intercept would not be finite; nothing was learned")
        for slot, column in new.items():
            for name, weight in column.items():
                _put(self._rows.setdefault(name, []), slot, weight)
        for slot, intercept in intercepts.items():
            _put(self._intercepts, slot, intercept)

    def blend(self, parts: Sequence[tuple[float, Any, Sequence[int]]]) -> None:
        """Become the sum of share * store over `parts`, each with the slot here of each there; this one is empty."""
        for target in range(1 + max((slot for _, _, slots in parts for slot in slots), default=-1)):
            columns = [(share, store.weights(slot), store.intercept(slot)) for share, store, slots in parts
                       for slot, place in enumerate(slots) if place == target]
            for name, weight in _loops.blended([(share, weights) for share, weights, _ in columns]).items():
                _put(self._rows.setdefault(name, []), target, weight)
            intercept = _loops.finite(math.fsum(share * intercept for share, _, intercept in columns))
            if intercept:
                _put(self._intercepts, target, intercept)

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        intercepts, known = self._intercepts.copy(), len(self._rows)
        names = dict.fromkeys(name for phi in phis for name in phi)
        before = {name: self._rows[name].copy() for name in names if name in self._rows}

        def restore() -> None:
            self._intercepts = intercepts
            self._rows.update(before)
            while len(self._rows) > known:  # names that the batch brought stand last
                self._rows.popitem()

        return restore

    def weights(self, slot: int) -> dict[Name, float]:
        return {name: row[slot] for name, row in self._rows.items() if slot < len(row) and row[slot]}

    def intercept(self, slot: int) -> float:
        return _at(self._intercepts, slot)

    @property
    def slots(self) -> int:
        return max(map(len, [self._intercepts, *self._rows.values()]))

    def get_state(self) -> dict[str, Any]:
        rows = self._rows.values()
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return {
            "names": state.pack_names(list(self._rows)),
            "lengths": lengths,
            "weights": np.fromiter(itertools.chain.from_iterable(rows), float, int(lengths.sum())),
            "intercepts": np.array(self._intercepts, float),
        }

    def set_state(self, values: dict[str, Any]) -> None:
        names, weights = state.unpack_names(values["names"]), state.finite_vector(values["weights"])
        lengths = values["lengths"]
        if not (isinstance(lengths, np.ndarray) and lengths.dtype == np.int64 and lengths.shape == (len(names),)):
            raise state.StateError("the lengths of the rows are missing")
        if not ((lengths > 0) & (lengths <= len(weights))).all() or sum(lengths.tolist()) != len(weights):
            raise state.StateError("the lengths of the rows do not add up")
        flat = iter(weights.tolist())
        self._rows = {name: list(itertools.islice(flat, length)) for name, length in zip(names, lengths.tolist())}
        if len(self._rows) != len(names):
            raise state.StateError("a feature name is stored twice")
        self._intercepts = state.finite_vector(values["intercepts"]).tolist()


def _at(row: list[float] | tuple[()], slot: int) -> float:
    return row[slot] if slot < len(row) else 0.0


def _put(row: list[float], slot: int, weight: float) -> None:
    if slot >= len(row):
        row.extend([0.0] * (slot + 1 - len(row)))
    row[slot] = weight
