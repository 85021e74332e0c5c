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
                if value:
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


class Part:
    """One number a (feature, tag) and a (previous, tag): the weights of a chain, or the sums that make their mean.

    `emit` has a row a feature, `move` row 0 for START and row p + 1 for the tag in slot p. Rows and tags have room to
    grow into, always 0 there; the room for tags is a multiple of eight, as the compiled loops want it.
    """

    def __init__(self) -> None:
        self.emit: Array = np.zeros((0, 0))
        self.move: Array = np.zeros((1, 0))

    def grow(self, rows: int, tags: int) -> None:
        """Make room for so many rows and tags; no number changes."""
        held, room = self.emit.shape
        rows = max(rows, 2 * held) if rows > held else held
        room = -(-max(tags, 2 * room) // 8) * 8 if tags > room else room
        if (rows, room) != self.emit.shape:
            self.emit = _enlarged(self.emit, (rows, room))
        if room + 1 != len(self.move):
            self.move = _enlarged(self.move, (room + 1, room))

    def lattice(self, features: _Rows, tags: int) -> Lattice:
        """Return what these features score over the first `tags` slots; `ValueError` if a score is not finite."""
        emit = np.zeros((features.tokens, tags))
        if features.rows and tags:
            with np.errstate(over="ignore", invalid="ignore"):  # what leaves the floats is told below, in words
                products = self.emit[features.rows]
                products *= np.array(features.values, dtype=float)[:, None]
                ends = [*features.begins[1:], len(products)]
                for i, begin, end in zip(features.filled, features.begins, ends):
                    # in the order of the features, as the compiled loops add them; `reduceat` has another
                    emit[i] = np.add.reduce(products[begin:end], axis=0)[:tags]
            if not np.isfinite(emit).all():
                raise ValueError("the score would not be finite; nothing was learned")
        return Lattice(emit, self.move[1:tags + 1, :tags], self.move[0, :tags])

    def mark(self, rows: list[int], known: int) -> Callable[[], None]:
        """Return a function that restores these rows, the moves, and the nothing beyond the `known` rows."""
        emit, move = self.emit[rows], self.move.copy()

        def restore() -> None:
            self.emit[known:] = 0.0
            self.emit[rows] = 0.0  # also in the columns that have come since
            self.emit[rows, :emit.shape[1]] = emit
            self.move[:] = 0.0
            self.move[:move.shape[0], :move.shape[1]] = move

        return restore

    def weights(self, names: list[Name]) -> dict[tuple[Any, ...], float]:
        """Return every number other than 0: ("start", slot), ("move", previous, slot), ("emit", slot, feature)."""
        found: dict[tuple[Any, ...], float] = {}
        for row, slot in np.argwhere(self.move).tolist():
            found[("move", row - 1, slot) if row else ("start", slot)] = float(self.move[row, slot])
        for row, slot in np.argwhere(self.emit).tolist():
            found["emit", slot, names[row]] = float(self.emit[row, slot])
        return found


class _Rows:
    """The rows of a sentence's features that have one, token after token, with the features' values."""

    def __init__(self, sentence: Sentence, rows: dict[Name, int]):
        self.tokens = len(sentence)
        self.rows: list[int] = []
        self.values: list[float] = []
        self.begins: list[int] = []  # where a token with any begins
        self.filled: list[int] = []  # and which it is
        find = rows.get
        for i, phi in enumerate(sentence):
            begin = len(self.rows)
            for name, value in phi.items():
                row = find(name)
                if row is not None and value:
                    self.rows.append(row)
                    self.values.append(value)
            if len(self.rows) > begin:
                self.begins.append(begin)
                self.filled.append(i)


class ChainStore:
    """The weights of emissions (feature x tag), moves and starts (previous x tag), by slot; and what averages them.

    A feature that ever moved has a row with one weight a tag, so a sentence's emissions are one gather. Memory is at
    most four times what the weights of eight tags or more need.

    Parameters
    ----------
    average
        Whether to keep, beside each weight, the sum over examples of (examples before it) * (its move): the mean of
        the weights after each of n examples is the weight less that sum / n, without a look at weights that rest.

    """

    #: whether the compiled loops leave this store to the reference
    interpreted = False

    def __init__(self, average: bool = False) -> None:
        self.rows: dict[Name, int] = {}
        self.now = Part()
        self.past = Part() if average else None
        #: how many slots hold anything: the highest that ever moved, plus 1
        self.slots = 0
        #: another object as soon as a row may have another number
        self.numbering = object()

    def reserve(self, tags: int, rows: int = 0) -> None:
        """Make room for so many tags and rows; no weight changes."""
        for part in self._parts():
            part.grow(rows, tags)

    def lattice(self, sentence: Sentence, tags: int) -> Lattice:
        """Return the scores of a sentence over the first `tags` slots; `ValueError` if one is not finite.

        One gather of rows, O(tags x features of the sentence); unseen features weigh 0.
        """
        self.reserve(tags)
        return self.now.lattice(_Rows(sentence, self.rows), tags)

    def mean_lattice(self, sentence: Sentence, tags: int, examples: int) -> Lattice:
        """Return the same by the mean of the weights after each of `examples` examples."""
        self.reserve(tags)
        features = _Rows(sentence, self.rows)
        now = self.now.lattice(features, tags)
        if self.past is None or not examples:
            return now
        with np.errstate(over="ignore"):  # decoding tells, in words, of a score that is not finite
            return Lattice(*(own - sums / examples for own, sums in zip(now, self.past.lattice(features, tags))))

    def score(self, phi: Features) -> float:
        """Return w . phi for joint features as `difference` names them."""
        total = 0.0
        parts: Iterable[tuple[Any, float]] = phi.items()
        for (kind, first, second), value in parts:
            if kind == "move":
                total += float(self.now.move[first + 1, second]) * value
            elif (row := self.rows.get(second)) is not None:
                total += float(self.now.emit[row, first]) * value
        return _loops.finite(total)

    def norm(self, phi: Features) -> float:
        """Return the length of joint features."""
        return _loops.norm(phi)

    def add(self, terms: tuple[Term, ...], length: float, norm: float, examples: int = 0) -> None:
        """Add length * (the one term's joint features) / norm, `examples` examples having come before.

        `ValueError`, and nothing moves, if a weight or a sum would not be finite.
        """
        ((sign, phi, _),) = terms
        moves = _Moves(_loops.moved({}, phi, sign * length, norm), self.rows)
        slots = max(self.slots, moves.highest + 1)
        self.reserve(slots, len(self.rows) + len(moves.fresh))
        commits = [moves.onto(self.now)]
        if self.past is not None and examples:
            far = sign * length * examples
            if not math.isfinite(far):
                raise ValueError("the loss or the step would not be finite; nothing was learned")
            commits.append(_Moves(_loops.moved({}, phi, far, norm), self.rows).onto(self.past))
        self.slots = slots
        self.rows.update(moves.fresh)
        for commit in commits:
            commit()

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        """Return a function that restores what moves along tokens with these features may change."""
        known, slots = len(self.rows), self.slots
        rows = sorted({row for phi in phis for name in phi if (row := self.rows.get(name)) is not None})
        parts = [part.mark(rows, known) for part in self._parts()]

        def restore() -> None:
            self.slots, self.numbering = slots, object()
            while len(self.rows) > known:  # names that the batch brought stand last
                self.rows.popitem()
            for part in parts:
                part()

        return restore

    def weights(self, examples: int) -> dict[tuple[Any, ...], float]:
        """Return every weight other than 0, averaged over the examples if the store does that.

        Named ("start", slot), ("move", previous, slot), ("emit", slot, feature).
        """
        names = list(self.rows)
        found = self.now.weights(names)
        if self.past is not None and examples:
            for key, value in self.past.weights(names).items():
                found[key] = found.get(key, 0.0) - value / examples
        return {key: value for key, value in found.items() if value}

    def get_state(self) -> dict[str, Any]:
        """Return what `set_state` needs, without the room to grow into."""
        return self._state_of(self.now)

    def get_sums(self) -> dict[str, Any] | None:
        """Return what `set_sums` needs; None if nothing is averaged."""
        return None if self.past is None else self._state_of(self.past)

    def set_state(self, values: dict[str, Any]) -> None:
        """Take over a state; `StateError` if it is not one."""
        rows, emit, move = _checked(values)
        self.rows, self.slots, self.numbering = rows, move.shape[1], object()
        self.now, self.past = Part(), None if self.past is None else Part()
        self.reserve(self.slots, len(rows))
        self.now.emit[:len(emit), :self.slots], self.now.move[:len(move), :self.slots] = emit, move

    def set_sums(self, values: dict[str, Any]) -> None:
        """Take over the sums, after the weights; `StateError` if they are none."""
        rows, emit, move = _checked(values)
        places = [self.rows.setdefault(name, len(self.rows)) for name in rows]  # their own order, in older states
        slots = move.shape[1]
        self.slots = max(self.slots, slots)
        self.reserve(self.slots, len(self.rows))
        self.past = Part()
        self.past.grow(*self.now.emit.shape)  # both parts always have the same shape
        self.past.emit[places, :slots], self.past.move[:len(move), :slots] = emit, move

    def _parts(self) -> list[Part]:
        return [self.now] if self.past is None else [self.now, self.past]

    def _state_of(self, part: Part) -> dict[str, Any]:
        return {
            "names": state.pack_names(list(self.rows)),
            "emit": part.emit[:len(self.rows), :self.slots],
            "move": part.move[:self.slots + 1, :self.slots],
        }


class _Moves:
    """What is added to which cells, and the rows that come for it."""

    def __init__(self, moves: dict[Name, float], rows: dict[Name, int]):
        self.fresh: dict[Name, int] = {}
        self.highest = START
        self._at: dict[str, tuple[list[int], list[int], list[float]]] = {"emit": ([], [], []), "move": ([], [], [])}
        find, known = rows.get, len(rows)
        parts: Iterable[tuple[Any, float]] = moves.items()
        for (kind, first, second), move in parts:
            if kind == "emit":
                row = find(second)
                row, slot = self.fresh.setdefault(second, known + len(self.fresh)) if row is None else row, first
            else:
                row, slot, self.highest = first + 1, second, max(self.highest, first)
            self.highest = max(self.highest, slot)
            rows_at, slots_at, moves_at = self._at[kind]
            rows_at.append(row)
            slots_at.append(slot)
            moves_at.append(move)

    def onto(self, part: Part) -> Callable[[], None]:
        """Return a function that adds them; `ValueError` if a sum would not be finite."""
        emit, move = _sums(part.emit, *self._at["emit"]), _sums(part.move, *self._at["move"])

        def commit() -> None:
            part.emit[self._at["emit"][:2]] = emit
            part.move[self._at["move"][:2]] = move

        return commit


def _checked(values: Any) -> tuple[dict[Name, int], Array, Array]:
    names = state.unpack_names(values["names"])
    emit, move = state.finite_vector(values["emit"], 2), state.finite_vector(values["move"], 2)
    slots = move.shape[1]
    if emit.shape != (len(names), slots) or len(move) != slots + 1:
        raise state.StateError(f"weights of shape {emit.shape} and {move.shape} for {len(names)} names")
    rows = {name: row for row, name in enumerate(names)}
    if len(rows) != len(names):
        raise state.StateError("a feature name is stored twice")
    return rows, emit, move


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
