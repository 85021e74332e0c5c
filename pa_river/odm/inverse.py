"""The explicit inverse of Q_S, bordered and shrunk by one row at a time: O(|S|^2) a pivot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from pa_river.odm import loops
from pa_river.odm.engine import Engine, Lost

Array = NDArray[np.float64]


class InverseEngine(Engine):
    """Engines that hold Q_S^{-1} whole. Memory: 8 cap^2 bytes beside the problem's own."""

    def rebuild(self) -> None:
        problem = self.problem
        outside = problem.outside()
        n = len(outside)
        capacity = max(problem.capacity, 16)
        self.n = n
        self.base = np.zeros(capacity, np.int64)  # place in the inverse -> slot
        self.place = np.full(capacity, -1, np.int64)  # slot -> place, -1 outside S
        self.B = np.zeros((capacity, capacity))
        self.base[:n], self.place[outside] = outside, np.arange(n)
        if n:
            Q = problem.H[np.ix_(outside, outside)]
            Q[np.diag_indices(n)] += problem.diagonal(outside)
            factor, failed = linalg.lapack.dpotrf(Q, lower=1)
            if failed:
                raise np.linalg.LinAlgError("the matrix of the instances outside the strip is not positive definite")
            half, _ = linalg.lapack.dpotri(factor, lower=1)
            self.B[:n, :n] = np.tril(half) + np.tril(half, -1).T

    def border(self, slot: int, side: int) -> tuple[Array, float]:
        """Take a slot into the inverse; return u = Q_S^{-1} h and the Schur complement. alpha is left alone."""
        problem = self.problem
        if len(self.place) < problem.capacity:
            self._grow()
        n = self.n
        h = problem.H[slot, self.base[:n]]
        u = self.B[:n, :n] @ h
        diagonal = 1.0 / problem.cost(slot, side)
        s = float(problem.H[slot, slot]) + diagonal - float(h @ u)
        if not s > 0.5 * diagonal:
            raise Lost
        loops.grow_inverse(self.B, n, u, s)
        self.base[n], self.place[slot] = slot, n
        self.n = n + 1
        problem.side[slot] = side
        self.pivots += 1
        return u, s

    def unborder(self, slot: int, side: int) -> Array:
        """Take a slot out of the inverse; return its row, reordered to the new places, its own entry last."""
        p, last = int(self.place[slot]), self.n - 1
        b = loops.shrink_inverse(self.B, self.n, p)
        if not b[last] > 0.0:
            raise Lost
        moved = self.base[last]
        self.base[p], self.place[moved], self.place[slot] = moved, p, -1
        self.n = last
        self.problem.side[slot] = side
        self.pivots += 1
        return b

    def insert(self, slot: int, side: int) -> None:
        gamma = self.margin(slot)
        u, s = self.border(slot, side)
        alpha = self.problem.alpha
        value = (self.problem.bound(side) - gamma) / s
        alpha[self.base[: self.n - 1]] -= u * value
        alpha[slot] = value

    def delete(self, slot: int, side: int) -> None:
        alpha = self.problem.alpha
        value = float(alpha[slot])
        b = self.unborder(slot, side)
        alpha[self.base[: self.n]] -= b[:-1] * (value / b[-1])
        alpha[slot] = 0.0

    def correct(self, rest: Array) -> Array:
        places = self.base[: self.n]
        result = np.zeros(self.problem.count)
        result[places] = self.B[: self.n, : self.n] @ rest[places]
        return result

    def inverse_diagonal(self) -> Array:
        result = np.zeros(self.problem.count)
        result[self.base[: self.n]] = self.B.diagonal()[: self.n]
        return result

    def _grow(self) -> None:
        n, capacity = self.n, self.problem.capacity
        B, base, place = np.zeros((capacity, capacity)), np.zeros(capacity, np.int64), np.full(capacity, -1, np.int64)
        B[:n, :n], base[:n], place[: len(self.place)] = self.B[:n, :n], self.base[:n], self.place
        self.B, self.base, self.place = B, base, place


class PivotEngine(InverseEngine):
    """End-point pivoting: straight to the new data, then pivots until the sets are right. No path is followed."""

    name = "pivot"
