"""The engines whose whole change is one compiled call; arrays and bookkeeping are those of the references."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from pa_river.odm import loops
from pa_river.odm.engine import Engine, Lost
from pa_river.odm.frozen import PENDING, FrozenEngine
from pa_river.odm.path import Event
from pa_river.odm.primal import UNLIMITED, PrimalEngine, pivoted_cholesky
from pa_river.odm.problem import Problem

Array = NDArray[np.float64]

#: Features with which margins inside the strip are screened.
FEATURES = 128

#: Status of a compiled change beside 0, that it is done: rounding has eaten the factors; it does not come to an end.
_LOST, _UNSETTLED = 1, 2

#: Order of the base from which columns of instances that may come are made before they are asked for.
LARGE = 1024

#: Columns of the base inverse that are kept for instances that may come, and how many for a small problem.
COLUMNS, FEW_COLUMNS = 128, 16

#: Values of H that a pass over the margins inside the strip must read before screening pays.
_WORTH = 60_000


class BorderedEngine(FrozenEngine):
    """Arrays and bookkeeping of a compiled bordered inverse, whose core keeps the lower triangle of B0 only.

    Beside `FrozenEngine`'s memory, 8 (64 + 22) (|S| + 64) bytes for columns B0 h that are kept, and for work.
    """

    _core: Any  # the compiled class

    def __init__(self, problem: Problem) -> None:
        self.core: Any = self._core(problem.theta)
        self._bound: Array | None = None
        super().__init__(problem)

    @property
    def n(self) -> int:
        return int(self.core.n)

    @n.setter
    def n(self, value: int) -> None:
        self.core.n = value

    @property
    def k(self) -> int:
        return int(self.core.k)

    @k.setter
    def k(self, value: int) -> None:
        self.core.k = value

    def rebuild(self) -> None:
        super().rebuild()
        self._take(self.n, self.k)

    def _take(self, n: int, k: int) -> None:
        columns = FEW_COLUMNS if self.problem.capacity < LARGE else COLUMNS
        self.core.take(*self._arrays(), n, k, columns)
        self._bind()

    def _arrays(self) -> tuple[Any, ...]:
        return (
            self.B, self.base, self.sides, self.active.view(np.int8), self.place, self.queued, self.Z, self.small,
            self.of, self.comes.view(np.int8),
        )

    def _bind(self) -> None:
        problem = self.problem
        self._bound = problem.H
        self.core.bind(problem.H, problem.alpha, problem.side, problem.costs)

    def _allot(self, capacity: int) -> None:
        # S never has more members than there are slots; pages that are not touched cost nothing.
        capacity = self.problem.capacity + 2 * PENDING
        super()._allot(0)
        lines = (capacity + 7) // 8
        self.B = np.zeros((8 * (lines + 1 - lines % 2), capacity), order="F")
        self.base, self.sides, self.active = np.full(capacity, -1, np.int64), np.zeros(capacity, np.int8), np.zeros(
            capacity, bool
        )
        self.Z = np.zeros((PENDING, capacity))

    def _fill(self, half: Array) -> None:
        self.B[: len(half), : len(half)] = half

    def _regrow(self) -> None:
        """Follow the problem to larger arrays."""
        n, k, old = self.n, self.k, self._arrays()
        self._allot(0)
        rows = min(len(old[0]), len(self.B))
        self.B[:rows, : old[0].shape[1]] = old[0][:rows]
        size = len(old[1])
        self.base[:size], self.sides[:size], self.active[:size] = old[1], old[2], old[3]
        self.Z[:, : old[6].shape[1]] = old[6]
        self.small[:], self.of[:], self.comes[:] = old[7], old[8], old[9]
        unset = np.full(self.problem.capacity - len(self.place), -1, np.int64)
        self.place, self.queued = np.append(self.place, unset), np.append(self.queued, unset)
        self._take(n, k)

    def _run(self, call: Any, added: Sequence[int], removed: Sequence[int]) -> Any:
        """Make a change by a call of the core; return what it returns."""
        if self._bound is not self.problem.H:
            self._regrow()
        folds = self.core.folds
        found = call(added, removed, self.problem.count)
        self.pivots, self.sweeps, self.folds = self.core.pivots, self.core.sweeps, self.core.folds
        if self.core.folds != folds:
            self._folded()
        return found

    def _ended(self, status: int) -> None:
        if status == _LOST:
            raise Lost
        if status == _UNSETTLED:
            self.refit()

    def _folded(self) -> None:
        self._let_go()

    def patience(self) -> int:
        # a look reads H twice: at 4,000 instances, one every 1,000 pivots costs a fifth of what they do
        return max(super().patience(), self.problem.count // 4)

    def fold(self) -> None:
        self.core.fold()
        self._folded()

    def correct(self, rest: Array) -> Array:
        n, k = self.n, self.k
        result = np.zeros(self.problem.count)
        if n + k == 0:
            return result
        active, comes = np.flatnonzero(self.active[:n]), self.comes[:k]
        places, slots = self.base[active], self.of[:k][comes]
        right, own, out = np.zeros(max(n, 1)), np.zeros(PENDING), np.zeros(max(n, 1))
        right[active], own[:k][comes] = rest[places], rest[slots]
        pending = self.core.solve(right, own, out)
        result[places], result[slots] = out[active], pending[comes]
        return result


class CompiledFrozenEngine(BorderedEngine):
    """`FrozenEngine` with screened margins inside the strip.

    Screening is exact: with F the features of a partial pivoted Cholesky factor, gamma_i = offset_i + F_i . c(w) up to
    missed_i |w - w_then|, and |w - w_then| is at most the sum of the lengths of the pivots since. An instance is looked
    at again only where that does not rule out that it left the strip.
    """

    _core = loops.frozen_core and loops.frozen_core.FrozenCore

    def __init__(self, problem: Problem) -> None:
        self._marks: frozenset[int] = frozenset()  # slots of the landmarks
        self._features: tuple[Any, ...] = ()
        self._weighed = 0  # instances inside the strip when screening was last thought over
        super().__init__(problem)

    def rebuild(self) -> None:
        self._unscreen()
        super().rebuild()
        self._screen()
        if self.n >= LARGE:
            problem = self.problem
            inside = problem.inside()
            gamma = problem.H[inside, : problem.count] @ problem.alpha[: problem.count]
            room = np.minimum(gamma - problem.low, problem.high - gamma)
            self.core.warm(inside[np.argsort(room, kind="stable")][: COLUMNS // 2].tolist())

    def _change(self, added: Sequence[int], removed: Sequence[int]) -> None:
        self._ended(self._run(self.core.change, added, removed))

    def _folded(self) -> None:
        super()._folded()
        self._screen()

    def _regrow(self) -> None:
        super()._regrow()
        if self._marks:
            F, corner, chosen, *by_slot = self._features
            more = self.problem.capacity - len(F)
            self._features = (
                np.vstack([F, np.zeros((more, F.shape[1]))]), corner, chosen,
                *(np.append(values, np.zeros(more)) for values in by_slot),
            )
            self.core.screen(*self._features)

    def _screen(self) -> None:
        """Choose landmarks where looking at every margin inside the strip would cost more."""
        problem = self.problem
        inside = len(problem.inside())
        if self._marks:
            if 2 * sum(slot in self._marks for slot in self.gone) <= len(self._marks):
                return
        elif inside < 2 * self._weighed:
            return
        self._unscreen()
        self._weighed = max(inside, 16)
        if not inside or inside * problem.count < _WORTH:
            return
        live, outside = problem.live(), problem.outside()
        found, chosen, missed = landmarks(problem.H, live, outside, FEATURES)
        F, size = np.zeros((problem.capacity, len(chosen))), problem.capacity
        F[live] = found
        beyond = np.zeros(size)
        beyond[live] = np.sqrt(missed) + 1e-7 * np.sqrt(problem.H.diagonal()[live])
        corner = np.ascontiguousarray(F[chosen])
        self._marks = frozenset(chosen.tolist())
        self._features = (F, corner, chosen, np.full(size, -1.0), np.zeros(size), np.full(size, -1.0), beyond)
        self.core.screen(*self._features)

    def _unscreen(self) -> None:
        self._marks, self._features, self._weighed = frozenset(), (), 0
        self.core.screen(*_no_features())

    def release(self, slots: Sequence[int]) -> None:
        if self._marks:
            self.gone.extend(slot for slot in slots if slot in self._marks)
            slots = [slot for slot in slots if slot not in self._marks]
        super().release(slots)

    def _let_go(self) -> None:
        marked = [slot for slot in self.gone if slot in self._marks]
        if marked:
            self.gone = [slot for slot in self.gone if slot not in self._marks]
        super()._let_go()
        self.gone = marked

    def forget(self) -> None:
        self._unscreen()
        super().forget()


class CompiledPathEngine(BorderedEngine):
    """`PathEngine` on a bordered inverse; it looks only at instances that the way left can take to an edge."""

    name = "path"
    _core = loops.path_core and loops.path_core.PathCore

    def __init__(self, problem: Problem) -> None:
        self.trace: list[Event] = []  # the breakpoints of the last change
        super().__init__(problem)

    def _change(self, added: Sequence[int], removed: Sequence[int]) -> None:
        status, trace = self._run(self.core.follow, added, removed)
        self.trace = [Event(*event) for event in trace]
        if status == _UNSETTLED:  # too many events at one point: end-point pivots from the sets it had reached
            problem = self.problem
            problem.alpha[: problem.count] = 0.0
            problem.alpha[: problem.count] = self.correct(self.residual(problem.alpha[: problem.count]))
            status = self.core.settle()
            self.pivots, self.sweeps = self.core.pivots, self.core.sweeps
        self._ended(status)


class CompiledPrimalEngine(PrimalEngine):
    """`PrimalEngine` with one triangle of P kept up to date."""

    def __init__(self, problem: Problem, limit: int = UNLIMITED) -> None:
        self.core: Any = loops.primal_core.PrimalCore(problem.theta)
        self._bound: tuple[Any, ...] = ()
        super().__init__(problem, limit)

    def _change(self, added: Sequence[int], removed: Sequence[int]) -> None:
        problem, core = self.problem, self.core
        self._bind()
        for slot in added:
            missed = core.express(slot)
            if missed > self.tolerance(slot):
                self._widen(slot, self.F[slot, : self.r].copy(), math.sqrt(missed))
                self._bind()
        status = core.change(added, removed, problem.count)
        self.pivots, self.sweeps = core.pivots, core.sweeps
        if status == _LOST:
            raise Lost
        if status == _UNSETTLED:
            self.refit()

    def _bind(self) -> None:
        problem = self.problem
        if len(self.F) < problem.capacity:
            self.F = np.vstack([self.F, np.zeros((problem.capacity - len(self.F), self.F.shape[1]))])
        bound = (problem.H, self.F, self.P, self.marks)
        if len(self._bound) != len(bound) or any(a is not b for a, b in zip(self._bound, bound)):
            self._bound = bound
            self.core.bind(
                problem.H, problem.alpha, problem.side, problem.costs, self.F, self.P, self.corner, self.w, self.marks,
                self.top,
            )

    def _whole(self) -> Array:
        r = self.r
        upper = np.triu(self.P[:r, :r])  # the lower triangle by columns
        self.P[:r, :r] = upper + np.triu(upper, 1).T
        return self.P[:r, :r]


def landmarks(
    H: Array, live: NDArray[np.intp], outside: NDArray[np.intp], most: int
) -> tuple[Array, NDArray[np.int64], Array]:
    """Return features of `live` from a pivoted Cholesky factor of H on `outside`, its pivots, and what they miss."""
    found, chosen = pivoted_cholesky(H, outside, 1e-9 * float(H.diagonal()[live].max()), most, partial=True)
    assert found is not None
    corner = found[np.searchsorted(outside, chosen)]
    features = np.ascontiguousarray(linalg.solve_triangular(corner, H[np.ix_(chosen, live)], lower=True).T)
    missed = np.maximum(H.diagonal()[live] - np.einsum("ij,ij->i", features, features), 0.0)
    return features, chosen.astype(np.int64), missed


def _no_features() -> tuple[Any, ...]:
    empty = np.zeros(0)
    return np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0, np.int64), empty, empty, empty, empty


def engines(table: dict[str, type[Engine]]) -> dict[str, type[Engine]]:
    """Return the table with the compiled engines in the place of their references, where they were built."""
    if loops.native is None:
        return table
    return {**table, "path": CompiledPathEngine, "frozen": CompiledFrozenEngine, "primal": CompiledPrimalEngine}
