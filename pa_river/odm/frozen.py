"""A base inverse that stays as it is, a small block of what changed since, and one level-3 update to fold that in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from pa_river.odm.engine import Engine, Lost
from pa_river.odm.problem import Problem

Array = NDArray[np.float64]

#: Pending changes before they are folded into the base inverse.
PENDING = 32


class FrozenEngine(Engine):
    """Base set S0 with B0 = Q_S0^{-1}, and pending columns W: h_c for an insert, e_p for a delete from the base.

    With Z = B0 W and Sigma = N - W'Z (N: Q among the pending inserts, 0 elsewhere) every solve with the current Q_S is
    one with B0 and one with Sigma. So an insert reads B0 once, a delete only copies a column of it, and after `PENDING`
    of them B0 gains Z Sigma^{-1} Z'. In this reference B0 is kept whole; the compiled core keeps its lower triangle.

    An instance that has left the base keeps its slot, and so its true row, until the fold. Any row would do on paper,
    since the multiplier of x_p = 0 takes it up; but with a false one the pivots lose a factor of lambda in accuracy.
    Memory: 8 (|S| + 64)^2 bytes beside the problem's own.
    """

    name = "frozen"
    n: int  # order of the base
    k: int  # pending changes

    def __init__(self, problem: Problem) -> None:
        self.folds = 0
        self.gone: list[int] = []  # slots that have left and still have a place in the base
        super().__init__(problem)

    def rebuild(self) -> None:
        problem = self.problem
        self._let_go()
        outside = problem.outside()
        n = len(outside)
        self._allot(n + n // 4 + 2 * PENDING)
        self.n, self.k = n, 0
        self.base[:n], self.sides[:n] = outside, problem.side[outside]
        self.place = np.full(problem.capacity, -1, np.int64)  # slot -> place in the base
        self.queued = np.full(problem.capacity, -1, np.int64)  # slot -> pending insert
        self.place[outside] = np.arange(n)
        self.active[:n] = True
        if n:
            Q = problem.H[np.ix_(outside, outside)]
            Q[np.diag_indices(n)] += problem.diagonal(outside)
            factor, failed = linalg.lapack.dpotrf(Q, lower=1)
            if failed:
                raise np.linalg.LinAlgError("the matrix of the instances outside the strip is not positive definite")
            half, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
            self._fill(half)

    def _fill(self, half: Array) -> None:
        """Take over the lower triangle of an inverse."""
        n = len(half)
        self.B[:n, :n] = np.tril(half) + np.tril(half, -1).T

    def _allot(self, capacity: int) -> None:
        self.B = np.zeros((capacity, capacity))
        self.base = np.full(capacity, -1, np.int64)  # place -> slot
        self.sides = np.zeros(capacity, np.int8)  # the side, and so the diagonal, with which it entered the base
        self.active = np.zeros(capacity, bool)  # False where a delete is pending
        self.Z = np.zeros((PENDING, capacity))
        self.small = np.zeros((PENDING, PENDING))  # Sigma^{-1}
        self.of = np.zeros(PENDING, np.int64)  # the slot of a pending insert, the place of a pending delete
        self.comes = np.zeros(PENDING, bool)

    def insert(self, slot: int, side: int) -> None:
        problem = self.problem
        self._room()
        place = int(self.place[slot])
        if place >= 0:
            if problem.cost(slot, side) == problem.cost(slot, int(self.sides[place])):
                return self._take_back(slot, place, side)
            self.place[slot] = -1  # another diagonal: a new column, the old place stays deleted
        n, k = self.n, self.k
        gamma = self.margin(slot)
        h = problem.H[slot, self.base[:n]]
        own = np.where(self.comes[:k], problem.H[slot, np.where(self.comes[:k], self.of[:k], 0)], 0.0)
        diagonal = 1.0 / problem.cost(slot, side)
        z = self.B[:n, :n] @ h
        sigma = own - self.Z[:k, :n] @ h
        e = self.small[:k, :k] @ sigma
        s = float(problem.H[slot, slot]) + diagonal - float(h @ z) - float(sigma @ e)
        if not s > 0.5 * diagonal:
            raise Lost
        value = (problem.bound(side) - gamma) / s
        self._move(-value, z - e @ self.Z[:k, :n], e)
        self._append(z, e, s, slot, True)
        self.queued[slot] = k
        problem.alpha[slot], problem.side[slot] = value, side

    def delete(self, slot: int, side: int) -> None:
        problem = self.problem
        self._room()
        n, k = self.n, self.k
        value = float(problem.alpha[slot])
        queued = int(self.queued[slot])
        if queued >= 0:
            e = self.small[:k, queued].copy()
            if not e[queued] > 0.0:
                raise Lost
            self._move(-value / e[queued], -(e @ self.Z[:k, :n]), e)
            self._withdraw(queued)
            self.queued[slot] = -1
        else:
            place = int(self.place[slot])
            z = self.B[place, :n].copy()
            e = self.small[:k, :k] @ -self.Z[:k, place]
            b = z - e @ self.Z[:k, :n]
            pivot = float(b[place])
            if not pivot > 0.0:
                raise Lost
            self._move(-value / pivot, b, e)
            self._append(z, e, -pivot, place, False)
            self.active[place] = False
        problem.alpha[slot], problem.side[slot] = 0.0, side

    def release(self, slots: Sequence[int]) -> None:
        free = [slot for slot in slots if slot >= len(self.place) or self.place[slot] < 0]
        if len(free) < len(slots):
            self.gone.extend(slot for slot in slots if slot not in free)
        super().release(free)

    def correct(self, rest: Array) -> Array:
        n, k = self.n, self.k
        result = np.zeros(self.problem.count)
        active = np.flatnonzero(self.active[:n])
        places, slots = self.base[active], self.of[:k][self.comes[:k]]
        right, own = np.zeros(n), np.zeros(k)
        right[active], own[self.comes[:k]] = rest[places], rest[slots]
        e = self.small[:k, :k] @ (own - self.Z[:k, :n] @ right)
        result[places] = (self.B[:n, :n] @ right - e @ self.Z[:k, :n])[active]
        result[slots] = e[self.comes[:k]]
        return result

    def inverse_diagonal(self) -> Array:
        self.fold()
        result = np.zeros(self.problem.count)
        result[self.base[: self.n]] = self.B.diagonal()[: self.n]
        return result

    def fold(self) -> None:
        """Bring the pending changes into the base: B0 += Z Sigma^{-1} Z', newcomers into the places of the deleted."""
        n, k = self.n, self.k
        if not k:
            return
        self.folds += 1
        small, Z = self.small[:k, :k], self.Z[:k, :n]
        A = small @ Z
        self.B[:n, :n] += Z.T @ A
        coming = np.flatnonzero(self.comes[:k])
        holes = sorted(self.of[:k][~self.comes[:k]].tolist())
        for place in holes:
            if self.place[self.base[place]] == place:
                self.place[self.base[place]] = -1
        targets = holes[: len(coming)] + list(range(n, n + max(0, len(coming) - len(holes))))
        size = n + max(0, len(coming) - len(holes))
        block = np.zeros((len(coming), size))
        block[:, :n] = -A[coming]
        block[:, targets] = small[np.ix_(coming, coming)]
        self.B[targets, :size], self.B[:size, targets] = block, block.T
        slots = self.of[coming]
        self.base[targets], self.active[targets], self.sides[targets] = slots, True, self.problem.side[slots]
        self.place[slots], self.queued[slots] = targets, -1
        for place in reversed(holes[len(coming) :]):  # places left over are filled from the end
            size -= 1
            if place != size:
                self.B[place, : size + 1] = self.B[size, : size + 1]
                self.B[: size + 1, place] = self.B[: size + 1, size]
                self.B[place, place] = self.B[size, size]
                self.base[place], self.sides[place] = self.base[size], self.sides[size]
                self.active[place] = True
                self.place[self.base[place]] = place
        self.n, self.k = size, 0
        self.active[size:] = False
        self._let_go()

    def forget(self) -> None:
        self._let_go()

    def _let_go(self) -> None:
        gone, self.gone = self.gone, []
        self.problem.release(gone)

    def _room(self) -> None:
        if self.k == PENDING:
            self.fold()
        if self.k == 0 and self.n + PENDING > len(self.base):
            n, B, base, sides, active = self.n, self.B, self.base, self.sides, self.active
            self._allot(n + n // 4 + 2 * PENDING)
            self.B[:n, :n], self.base[:n], self.sides[:n], self.active[:n] = B[:n, :n], base[:n], sides[:n], active[:n]
        missing = self.problem.capacity - len(self.place)
        if missing > 0:
            unset = np.full(missing, -1, np.int64)
            self.place, self.queued = np.append(self.place, unset), np.append(self.queued, unset)

    def _move(self, length: float, along: Array, pending: Array) -> None:
        """alpha_S += length * (a direction over the base, the same over the pending)."""
        alpha = self.problem.alpha
        active = self.active[: self.n]
        alpha[self.base[: self.n][active]] += length * along[active]
        comes = self.comes[: self.k]
        alpha[self.of[: self.k][comes]] += length * pending[comes]

    def _append(self, z: Array, e: Array, pivot: float, of: int, comes: bool) -> None:
        k = self.k
        self.Z[k, : self.n] = z
        self.small[:k, :k] += np.outer(e, e / pivot)
        self.small[k, :k] = self.small[:k, k] = -e / pivot
        self.small[k, k] = 1.0 / pivot
        self.of[k], self.comes[k] = of, comes
        self.k = k + 1
        self.pivots += 1

    def _withdraw(self, q: int) -> None:
        """Take a pending change back, the last one in its place."""
        last = self.k - 1
        column = self.small[: self.k, q].copy()
        self.small[: self.k, : self.k] -= np.outer(column, column / column[q])
        if q != last:
            self.Z[q, : self.n] = self.Z[last, : self.n]
            self.small[q, :last] = self.small[last, :last]
            self.small[:last, q] = self.small[:last, last]
            self.small[q, q] = self.small[last, last]
            self.of[q], self.comes[q] = self.of[last], self.comes[last]
            if self.comes[q]:
                self.queued[self.of[q]] = q
        self.k = last
        self.pivots += 1

    def _take_back(self, slot: int, place: int, side: int) -> None:
        """Undo a pending delete from the base: its multiplier gives the step."""
        problem, k = self.problem, self.k
        q = int(np.flatnonzero(~self.comes[:k] & (self.of[:k] == place))[0])
        gamma = self.margin(slot)
        e = self.small[:k, q].copy()
        if not e[q] < 0.0:
            raise Lost
        value = (problem.bound(side) - gamma) / -e[q]
        self._move(value, -(e @ self.Z[:k, : self.n]), e)
        self._withdraw(q)
        self.active[place] = True
        problem.alpha[slot], problem.side[slot] = value, side
