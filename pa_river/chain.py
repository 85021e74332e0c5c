"""Where the weights of a first-order chain live: a block of one weight a tag for each feature, and the moves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pa_river import _loops, state
from pa_river.decode import Array, Lattice
from pa_river.terms import Features, Name, Term
from pa_river.tokens import Sentence

#: The slot before the first token: a start is the move from there.
START = -1


def difference(sentence: Sentence, gold: Sequence[int], rival: Sequence[int]) -> dict[Name, float]:
    """Return Phi(sentence, gold) - Phi(sentence, rival), the joint features of two paths of tag slots.

    Emissions are named ("emit", slot, feature), moves ("move", previous slot, slot), starts ("move", START, slot). What
    both paths have cancels as a multiset, each entry rounded once, so that the length of the direction is exact too.
    A token whose tags agree cancels unseen. O(features of the tokens that differ + m).
    """
    parts: dict[Name, list[float]] = {}
    gold_before = rival_before = START
    for phi, own, other in zip(sentence, gold, rival):
        if own != other:
            for name, value in phi.items():
                parts.setdefault(("emit", own, name), []).append(value)
                parts.setdefault(("emit", other, name), []).append(-value)
        if own != other or gold_before != rival_before:
            parts.setdefault(("move", gold_before, own), []).append(1.0)
            parts.setdefault(("move", rival_before, other), []).append(-1.0)
        gold_before, rival_before = own, other
    try:
        return {name: values[0] if len(values) == 1 else math.fsum(values) for name, values in parts.items()}
    except OverflowError:
        raise ValueError("the sum of a feature over the tokens would not be finite; nothing was learned") from None


class ChainStore:
    """The weights of emissions (feature x tag), moves and starts (previous x tag), by slot.

    A feature that ever moved has a row with one weight a tag, so a sentence's emissions are one gather. Rows and tags
    have room to grow into, always 0 there: memory is at most four times what the weights need.
    """

    def __init__(self) -> None:
        self._rows: dict[Name, int] = {}
        self._emit: Array = np.zeros((0, 0))
        self._move: Array = np.zeros((1, 0))  # row 0: START; row p + 1: from the tag in slot p
        #: how many slots hold anything: the highest that ever moved, plus 1
        self.slots = 0

    def reserve(self, tags: int) -> None:
        """Make room for `tags` tags; no weight changes."""
        _, room = self._emit.shape
        if tags > room:
            room = max(tags, 2 * room)
            self._emit = _enlarged(self._emit, (len(self._emit), room))
            self._move = _enlarged(self._move, (room + 1, room))

    def lattice(self, sentence: Sentence, tags: int) -> Lattice:
        """Return the scores of a sentence over the first `tags` slots; `ValueError` if one is not finite.

        One gather of rows, O(tags x features of the sentence); unseen features weigh 0.
        """
        self.reserve(tags)
        find = self._rows.get
        rows: list[int] = []
        values: list[float] = []
        begins, filled = [], []
        for i, phi in enumerate(sentence):
            begin = len(rows)
            for name, value in phi.items():
                row = find(name)
                if row is not None and value:
                    rows.append(row)
                    values.append(value)
            if len(rows) > begin:
                begins.append(begin)
                filled.append(i)
        emit = np.zeros((len(sentence), tags))
        if rows and tags:
            with np.errstate(over="ignore", invalid="ignore"):  # what leaves the floats is told below, in words
                products = self._emit[rows]
                products *= np.array(values, dtype=float)[:, None]
                emit[filled] = np.add.reduceat(products, begins, axis=0)[:, :tags]
            if not np.isfinite(emit).all():
                raise ValueError("the score would not be finite; nothing was learned")
        return Lattice(emit, self._move[1:tags + 1, :tags], self._move[0, :tags])

    def score(self, phi: Features) -> float:
        """Return w . phi for joint features as `difference` names them."""
        total = 0.0
        parts: Iterable[tuple[Any, float]] = phi.items()
        for (kind, first, second), value in parts:
            if kind == "move":
                total += float(self._move[first + 1, second]) * value
            elif (row := self._rows.get(second)) is not None:
                total += float(self._emit[row, first]) * value
        return _loops.finite(total)

    def norm(self, phi: Features) -> float:
        """Return the length of joint features."""
        return _loops.norm(phi)

    def add(self, terms: tuple[Term, ...], length: float, norm: float) -> None:
        """Add length * (the one term's joint features) / norm; `ValueError`, and nothing moves, if not finite."""
        self.prepare(terms, length, norm)()

    def prepare(self, terms: tuple[Term, ...], length: float, norm: float) -> Callable[[], None]:
        """Check what `add` would do and return the function that does it: two stores move together or not at all."""
        ((sign, phi, _),) = terms
        find, known, fresh = self._rows.get, len(self._rows), dict[Name, int]()
        at: dict[str, tuple[list[int], list[int], list[float]]] = {"emit": ([], [], []), "move": ([], [], [])}
        highest = START
        parts: Iterable[tuple[Any, float]] = _loops.moved({}, phi, sign * length, norm).items()
        for (kind, first, second), move in parts:
            rows, columns, moves = at[kind]
            if kind == "emit":
                row = find(second)
                row, slot = fresh.setdefault(second, known + len(fresh)) if row is None else row, first
            else:
                row, slot, highest = first + 1, second, max(highest, first)
            rows.append(row)
            columns.append(slot)
            moves.append(move)
            highest = max(highest, slot)
        slots = max(self.slots, highest + 1)
        self.reserve(slots)
        if known + len(fresh) > len(self._emit):
            self._emit = _enlarged(self._emit, (max(known + len(fresh), 2 * known), self._emit.shape[1]))
        emit, step = _sums(self._emit, *at["emit"]), _sums(self._move, *at["move"])

        def commit() -> None:
            self.slots = slots
            self._rows.update(fresh)
            self._emit[at["emit"][:2]] = emit
            self._move[at["move"][:2]] = step

        return commit

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        """Return a function that restores what moves along tokens with these features may change."""
        known, slots = len(self._rows), self.slots
        rows = sorted({row for phi in phis for name in phi if (row := self._rows.get(name)) is not None})
        emit, step = self._emit[rows], self._move.copy()

        def restore() -> None:
            self.slots = slots
            while len(self._rows) > known:  # names that the batch brought stand last
                self._rows.popitem()
            self._emit[known:] = 0.0
            self._emit[rows] = 0.0  # also in the columns that have come since
            self._emit[rows, :emit.shape[1]] = emit
            self._move[:] = 0.0
            self._move[:step.shape[0], :step.shape[1]] = step

        return restore

    def weights(self) -> dict[tuple[Any, ...], float]:
        """Return every weight other than 0: ("start", slot), ("move", previous, slot), ("emit", slot, feature)."""
        found: dict[tuple[Any, ...], float] = {}
        for row, slot in np.argwhere(self._move).tolist():
            found[("move", row - 1, slot) if row else ("start", slot)] = float(self._move[row, slot])
        names = list(self._rows)
        for row, slot in np.argwhere(self._emit).tolist():
            found["emit", slot, names[row]] = float(self._emit[row, slot])
        return found

    def get_state(self) -> dict[str, Any]:
        """Return what `set_state` needs, without the room to grow into."""
        return {
            "names": state.pack_names(list(self._rows)),
            "emit": self._emit[:len(self._rows), :self.slots],
            "move": self._move[:self.slots + 1, :self.slots],
        }

    def set_state(self, values: dict[str, Any]) -> None:
        """Take over a state; `StateError` if it is not one."""
        names = state.unpack_names(values["names"])
        emit, move = state.finite_vector(values["emit"], 2), state.finite_vector(values["move"], 2)
        slots = move.shape[1]
        if emit.shape != (len(names), slots) or len(move) != slots + 1:
            raise state.StateError(f"weights of shape {emit.shape} and {move.shape} for {len(names)} names")
        rows = {name: row for row, name in enumerate(names)}
        if len(rows) != len(names):
            raise state.StateError("a feature name is stored twice")
        self._rows, self._emit, self._move, self.slots = rows, emit, move, slots


def _enlarged(old: Array, shape: tuple[int, int]) -> Array:
    new = np.zeros(shape)
    new[:old.shape[0], :old.shape[1]] = old
    return new


def _sums(block: Array, rows: list[int], columns: list[int], moves: list[float]) -> Array:
    with np.errstate(over="ignore"):
        new: Array = block[rows, columns] + np.array(moves, dtype=float)
    if not np.isfinite(new).all():
        raise ValueError("a weight would not be finite; nothing was learned")
    return new
