"""The weights of a kernel model: support vectors with one coefficient a slot, at most as many as a budget allows."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pa_river import _gram, _loops, _validate, budget, state
from pa_river._block import Block
from pa_river._gram import Batch, DenseRows
from pa_river._row import Row
from pa_river.batch import Table
from pa_river.kernels import Array, Kernel
from pa_river.terms import Features, Name, Term

#: From this many support vectors on the block is faster than the plain loop.
_BLOCK_FROM = 32

_warned = False


def check(owner: str, kernel: Any, limit: Any) -> None:
    """Check `kernel=` and `budget=` of a learner; warn, once a process, of a kernel without a budget."""
    _validate.require_instance(owner, "kernel", kernel, Kernel, "Linear(), Polynomial(degree) or RBF(gamma)")
    _validate.require_instance(owner, "budget", limit, budget.Budget, "Budget(size)")
    if kernel is None and limit is not None:
        raise ValueError(f"{owner}(budget=...) limits the support vectors of a kernel model; give a kernel too")
    global _warned
    if kernel is not None and limit is None and not _warned:
        _warned = True
        warnings.warn(
            f"{owner}: a kernel model without a budget keeps every example that moved it; give budget=Budget(size), "
            "or Budget(math.inf) if the stream ends", UserWarning, stacklevel=4,
        )


class Full(Exception):
    """A new support vector needs another's place. Nothing has moved: make room, then size the step anew."""


class SupportStore:
    """One w a slot, each the sum of coefficient * phi over the support vectors; with an intercept the kernel is k + 1.

    A support vector is an example that moved: one entry each, however many slots it moved. A score costs one kernel
    value a support vector. The block mirrors the vectors where that is faster and is no part of the state.
    """

    def __init__(self, kernel: Kernel, learn_intercept: bool, limit: budget.Budget | None = None):
        self._kernel = kernel
        self._extra = 1.0 if learn_intercept else 0.0
        self._limit = limit or budget.Budget(math.inf)
        self._policy = budget.policy(self._limit)
        self._block: Block | None = None
        self._dense: DenseRows | None = None  # the same for batches of dense tables
        self._guest: tuple[Features, Array] | None = None  # for whom room is made, with its similarities
        self._seated = False  # whether the guest is the last support vector already
        self._batch: Batch | None = None
        self._vectors: list[Features] = []
        self._squares: list[float] = []  # k of each vector with itself
        self._table: Array = np.zeros((0, 1))  # coefficients, a column a slot; replaced when it changes
        self._room: Array = self._table  # where `_table` grows: its rows, and free ones
        self.lost = 0.0

    @property
    def vectors(self) -> list[tuple[dict[Name, float], list[float]]]:
        """The support vectors by age, each with its coefficients by slot; fresh objects."""
        return [(dict(vector), row) for vector, row in zip(self._vectors, self._table.tolist())]

    @property
    def slots(self) -> int:
        """How many slots hold anything: the highest that ever moved, plus 1."""
        return self._table.shape[1] if len(self._vectors) else 0

    def intercept(self, slot: int) -> float:
        """Return the weight of the constant feature in a slot; 0.0 if there is none."""
        return self._extra * float(self._table[:, slot].sum()) if slot < self._table.shape[1] else 0.0

    def weights(self, slot: int) -> dict[Name, float]:
        """There are none by feature name; `AttributeError`."""
        raise AttributeError("a kernel model has no weights by feature name, but support: [(x, coefficient)]")

    def score(self, phi: Features) -> float:
        """Return w . phi in slot 0; `ValueError` if it is not finite."""
        return self.scores(phi, 1)[0]

    def scores(self, phi: Features, slots: int) -> list[float]:
        """Return w . phi in the first `slots` slots; `ValueError` if one is not finite."""
        if self._batch is not None and (row := self._batch.row(phi)) is not None:
            scores = self._batch.scores(row, slots)
        else:
            with np.errstate(all="ignore"):
                scores = (self.similarities(phi)[:, None] * self._table[:, :slots]).sum(axis=0).tolist()
        _loops.finite(sum(scores))
        return scores + [0.0] * (slots - len(scores)) if len(scores) < slots else scores

    @contextlib.contextmanager
    def batch(self, phis: Sequence[Features]) -> Iterator[None]:
        """Score `phis`, and learn them in this order, at the price of a product of matrices; to rounding the same.

        Only without a limit: where support vectors give way, each example is on its own. And only where there is enough
        of both to pay: the rounding of a product of matrices may decide a tie in another way than the loop does.
        """
        if self._limit.size == math.inf and len(self._vectors) + len(phis) >= _BLOCK_FROM:
            if isinstance(phis, Table) and phis.matrix is not None and (rows := self._dense_rows(phis.names)):
                self._batch = _gram.dense(phis, phis.matrix, self._kernel, self._extra, rows, self._table)
            elif len(self._vectors) >= _BLOCK_FROM:
                self._batch = _gram.sparse(phis, self._kernel, self._extra, self._mirror(), self._table)
        try:
            yield
        finally:
            self._batch = None

    def norm(self, phi: Features) -> float:
        """Return the length of phi, intercept included: sqrt(k(phi, phi))."""
        return math.sqrt(self._square(phi))

    def similarities(self, phi: Features) -> Array:
        """Return k of every support vector with phi, intercept included."""
        if self._guest is not None and phi is self._guest[0]:
            return self._guest[1]
        if len(self._vectors) < _BLOCK_FROM:
            return np.array([self._kernel(vector, phi) for vector in self._vectors]) + self._extra
        with np.errstate(all="ignore"):
            return self._kernel.of(self._mirror().against(phi)) + self._extra

    def add(self, terms: tuple[Term, ...], length: float, norm: float, keep: float = 1.0) -> None:
        """Add length * (sum of terms) / norm to `keep` times what was there.

        `ValueError`, and nothing moves, if a coefficient would not be finite. `Full`, and nothing moves, where the
        budget has no place for phi: `with room_for(phi)` makes one.
        """
        phi = terms[0].phi
        if any(term.phi is not phi for term in terms):
            raise ValueError("a kernel store takes terms of one example a step")
        row = np.zeros(1 + max(term.slot for term in terms))
        for sign, _, slot in terms:
            row[slot] += sign * length / norm
        self._put(phi, row, keep)

    def blend(self, parts: Sequence[tuple[float, SupportStore, Sequence[int]]]) -> None:
        """Become the sum of share * store over `parts`, each with the slot here of each slot there; this one is empty.

        The same record is one support vector, however many stores hold it. The others come in order of their age, as
        newcomers of a stream do: where the budget is full, its policy makes room. `ValueError` if a coefficient would
        not be finite.
        """
        aged = sorted(
            ((place / len(store._vectors), number, place) for number, (_, store, _) in enumerate(parts)
             for place in range(len(store._vectors))),
        )
        rows: dict[frozenset[tuple[Name, float]], tuple[Features, Array]] = {}
        for _, number, place in aged:
            share, store, slots = parts[number]
            phi = store._vectors[place]
            row = np.zeros(1 + max(slots))
            own = store._table[place]
            row[list(slots)[:len(own)]] = share * own  # no slot twice; the last ones may never have moved
            key = frozenset(phi.items())
            if key in rows:
                row = _sum(rows.pop(key)[1], row)
            rows[key] = phi, row
        self.lost = sum(share * store.lost for share, store, _ in parts)
        for phi, row in rows.values():
            if len(self._vectors) < self._limit.size:
                self._put(phi, row)
            else:
                with self.room_for(phi):
                    self._put(phi, row)

    @contextlib.contextmanager
    def room_for(self, phi: Features) -> Iterator[None]:
        """Make a support vector give way to phi, of length > 0; undone if what follows raises."""
        restore = self.mark(())
        try:
            self._make_room(phi)
            yield  # until then, phi is the guest
        except BaseException:
            restore()
            raise
        finally:
            self._guest, self._seated = None, False

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        """Return a function that takes everything back: O(number of support vectors), for references only."""
        vectors, squares, policy = list(self._vectors), list(self._squares), copy.copy(self._policy)
        table, lost = self._table, self.lost

        def restore() -> None:
            self._vectors, self._squares, self._policy = vectors, squares, policy
            self._table, self.lost, self._block, self._dense = table, lost, None, None

        return restore

    def get_state(self) -> dict[str, Any]:
        columns: dict[Any, int] = {}
        places = [columns.setdefault(name, len(columns)) for vector in self._vectors for name in vector]
        return {
            "names": state.pack_names(list(columns)),
            "lengths": np.array([len(vector) for vector in self._vectors], np.int64),
            "places": np.array(places, np.int64),
            "values": np.array([value for vector in self._vectors for value in vector.values()], float),
            "coefficients": self._table if self._vectors else np.zeros((0, 1)),
            "lost": self.lost,
            "policy": self._policy.memory(),
        }

    def set_state(self, values: dict[str, Any]) -> None:
        vectors = _vectors(values)
        table = state.finite_vector(values["coefficients"], ndim=2)
        if len(table) != len(vectors) or not (table.shape[1] if vectors else table.shape == (0, 1)):
            raise state.StateError(f"coefficients of shape {table.shape} for {len(vectors)} support vectors")
        if len(vectors) > self._limit.size:
            raise state.StateError(f"{len(vectors)} support vectors in a budget of {self._limit.size}")
        lost = state.finite_float(values["lost"])
        if lost < 0.0:
            raise state.StateError("the loss of a budget is negative")
        self._policy.recall(values["policy"], len(vectors))
        self._squares = [self._square(vector) for vector in vectors]
        self._vectors, self._table, self.lost, self._block, self._dense = vectors, table, lost, None, None

    def _square(self, phi: Features) -> float:
        if self._batch is not None and math.isfinite(square := self._batch.square(phi)):
            return square
        return self._kernel(phi, phi) + self._extra

    def _put(self, phi: Features, row: Array, keep: float = 1.0) -> None:
        """Add `row`, a coefficient a slot, to phi's, after all others became `keep` times what they were."""
        table, seated = self._table if keep == 1.0 else keep * self._table, self._seated
        if len(row) < table.shape[1]:
            row = np.append(row, np.zeros(table.shape[1] - len(row)))
        if seated:
            row = _sum(row, table[-1])
        if not np.isfinite(row).all():
            raise ValueError("a coefficient would not be finite; nothing was learned")
        if seated:
            table = table[:-1]
        elif not row.any():  # too short a step for the floats
            return
        elif len(self._vectors) >= self._limit.size:
            raise Full
        else:
            self._seat(phi)
        self._table = self._grown(table, row)
        if self._batch is not None:
            self._batch.move(phi, row, keep)
        self.lost *= keep

    def _seat(self, phi: Features) -> None:
        row = None if self._batch is None or self._dense is None else self._batch.dense_row(phi)
        square = self._square(phi)
        own = phi.kept() if isinstance(phi, Row) else {name: float(value) for name, value in phi.items() if value}
        self._vectors.append(own)
        self._squares.append(square)
        if row is not None and self._dense is not None:
            self._dense.take(row)

    def _grown(self, table: Array, row: Array) -> Array:
        """Return the table with one more row, in the free place below it where there is one: nobody else reads that."""
        count, slots = table.shape
        if table.base is not self._room or count == len(self._room) or slots != len(row):
            self._room = np.zeros((2 * count + 16, len(row)))
            self._room[:count, :slots] = table
        self._room[count] = row
        return self._room[:count + 1]

    def _mirror(self) -> Block:
        if self._block is None:
            self._block = Block([])
        for vector in self._vectors[len(self._block):]:
            self._block.append(vector)
        return self._block

    def _dense_rows(self, names: Sequence[Name]) -> DenseRows | None:
        """Return the support vectors by the columns of a table; None if one has a name that the table lacks."""
        rows = self._dense
        if rows is None or rows.names != names:
            rows = DenseRows(names, self._kernel.dtype)
        missing = self._vectors[len(rows.matrix):]
        self._dense = rows if rows.fits(missing) else None
        if self._dense is not None:
            for vector in missing:
                rows.append(vector)
        return self._dense

    def _make_room(self, phi: Features) -> None:
        near, own, table = self.similarities(phi), self._square(phi), self._table
        with np.errstate(all="ignore"):
            sizes = np.sqrt((table * table).sum(axis=1))
            leave = self._policy.choose(budget.Crowd(sizes, np.array(self._squares), near, own, self._gram))
            place, part = leave.place, table[leave.place]
            table = np.delete(table + np.outer(leave.shares, part), place, axis=0)
            near = np.delete(near, place)
            if leave.newcomer is not None:
                table, near = np.vstack([table, leave.newcomer * part]), np.append(near, own)
            lost = self.lost + leave.rest
        if not (np.isfinite(table).all() and math.isfinite(lost)):
            raise ValueError("a coefficient would not be finite; nothing was learned")
        self._gives_way(leave, phi)
        if self._block is not None:
            self._mirror().remove(place)
        self._dense = None
        del self._vectors[place], self._squares[place]
        if leave.newcomer is not None:
            self._seat(phi)
        self._table, self.lost = table, lost
        self._guest, self._seated = (phi, near), leave.newcomer is not None

    def _gives_way(self, leave: budget.Leave, phi: Features) -> None:
        """What else must know who is about to give way to phi."""

    def _gram(self) -> Array:
        rows = np.array([self.similarities(vector) for vector in self._vectors])
        gram: Array = (rows + rows.T) / 2.0
        return gram


def _sum(left: Array, right: Array) -> Array:
    """The sum of two rows, the shorter one with zeros after it."""
    if len(left) < len(right):
        left, right = right, left
    total = left.copy()
    total[:len(right)] += right
    return total


def of(store: Any) -> SupportStore:
    """Return `store` if it holds support vectors; else `AttributeError`, as of an attribute that is not there."""
    if not isinstance(store, SupportStore):
        raise AttributeError("a model without a kernel has no support vectors, but weights: {name: weight}")
    return store


def batch(store: Any, phis: Sequence[Any]) -> contextlib.AbstractContextManager[None]:
    """Return `store.batch(phis)` for support vectors; nothing to prepare for other stores."""
    return store.batch(phis) if isinstance(store, SupportStore) else contextlib.nullcontext()


def lost(store: Any) -> float:
    """Return the summed length of all that the budget of a store dropped; 0.0 without one."""
    return store.lost if isinstance(store, SupportStore) else 0.0


def _vectors(values: dict[str, Any]) -> list[Features]:
    names = state.unpack_names(values["names"])
    lengths, places = _whole(values["lengths"]), _whole(values["places"])
    numbers = state.finite_vector(values["values"]).tolist()
    if not (sum(lengths) == len(places) == len(numbers)) or any(place >= len(names) for place in places):
        raise state.StateError("the support vectors do not add up")
    vectors: list[Features] = []
    begin = 0
    for length in lengths:
        end = begin + length
        vector = {names[place]: value for place, value in zip(places[begin:end], numbers[begin:end])}
        if len(vector) != length:
            raise state.StateError("a support vector holds a feature twice")
        vectors.append(vector)
        begin = end
    return vectors


def _whole(value: Any) -> list[int]:
    if not (isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim == 1) or (value < 0).any():
        raise state.StateError("an array of whole numbers was expected")
    numbers: list[int] = value.tolist()
    return numbers
