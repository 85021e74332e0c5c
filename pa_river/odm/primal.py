"""Where the kernel is numerically of low rank r: the primal problem in r dimensions, O(r^2 + m r) a change."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from pa_river.odm.engine import SWEEPS, Engine, Lost
from pa_river.odm.problem import FREE, Problem

Array = NDArray[np.float64]

#: Largest kernel value that the features may miss, relative to the largest on the diagonal.
TOLERANCE = 1e-13

#: Features beyond this are no low rank, for "auto"; who asks for this engine by name gets as many as it takes.
WIDEST, UNLIMITED = 768, 2**30


class TooWide(Exception):
    """The kernel needs more features than pay."""


class PrimalEngine(Engine):
    """Features F by pivoted Cholesky, kappa = F F' up to 1e-13; w by recursive least squares over S.

    With P = (I + sum_S cost_i F_i F_i')^{-1} and w = P sum_S cost_i d_i F_i the margins are F w and
    alpha_i = cost_i (d_i - gamma_i). An instance that the features cannot express to the tolerance adds one.
    The pivots are landmarks: their slots stay while the features live, since a newcomer's features come from their
    rows.
    `TooWide` where more than `limit` features would be needed. Memory: 8 m r + 16 r^2 bytes beside the problem's own.
    """

    name = "primal"

    def __init__(self, problem: Problem, limit: int = UNLIMITED) -> None:
        self.limit = limit
        self.gone: list[int] = []  # landmarks whose instances have left: their rows of H are still asked for
        super().__init__(problem)

    def rebuild(self) -> None:
        problem = self.problem
        self.forget()
        live = problem.live()
        self.top = float(problem.H.diagonal()[live].max(initial=0.0))
        found, chosen = pivoted_cholesky(problem.H, live, TOLERANCE * self.top, self.limit)
        if found is None:
            raise TooWide
        r = self.r = len(chosen)
        self._allot(r + r // 4 + 16)
        self.F[live, :r] = found
        self.corner[:r, :r] = found[np.searchsorted(live, chosen)]
        self.marks = np.asarray(chosen, dtype=np.int64)
        outside = problem.outside()
        G, cost = self.F[outside, :r], 1.0 / problem.diagonal(outside)
        A = np.eye(r) + G.T @ (cost[:, None] * G)
        self.P[:r, :r] = np.linalg.inv(A)
        self.P[:r, :r] = 0.5 * (self.P[:r, :r] + self.P[:r, :r].T)
        right = G.T @ (cost * problem.right_side(outside))
        w = self.P[:r, :r] @ right
        self.w[:r] = w + self.P[:r, :r] @ (right - A @ w)
        self._read_off()

    def _allot(self, width: int) -> None:
        self.F = np.zeros((self.problem.capacity, width))  # by slot, signed by y as H is
        self.P, self.corner, self.w = np.zeros((width, width)), np.zeros((width, width)), np.zeros(width)

    def _read_off(self) -> None:
        """Write alpha of S from the margins."""
        problem = self.problem
        outside = problem.outside()
        gamma = self.F[outside, : self.r] @ self.w[: self.r]
        problem.alpha[: problem.count] = 0.0
        problem.alpha[outside] = (problem.right_side(outside) - gamma) / problem.diagonal(outside)

    def release(self, slots: Sequence[int]) -> None:
        kept = [slot for slot in slots if slot in self.marks]
        self.gone.extend(kept)
        super().release([slot for slot in slots if slot not in kept])

    def forget(self) -> None:
        gone, self.gone = self.gone, []
        self.problem.release(gone)

    def margin(self, slot: int) -> float:
        return float(self.F[slot, : self.r] @ self.w[: self.r])

    def insert(self, slot: int, side: int) -> None:
        self._pivot(slot, side, 1.0)
        self.problem.side[slot] = side

    def delete(self, slot: int, side: int) -> None:
        self._pivot(slot, int(self.problem.side[slot]), -1.0)
        self.problem.alpha[slot], self.problem.side[slot] = 0.0, side

    def _pivot(self, slot: int, side: int, sign: float) -> None:
        r, problem = self.r, self.problem
        f, P, w = self.F[slot, :r], self.P[:r, :r], self.w[:r]
        cost = sign * problem.cost(slot, side)
        z = P @ f
        s = 1.0 + cost * float(f @ z)
        if not s > 0.0:
            raise Lost
        w += z * (cost * (problem.bound(side) - float(f @ w)) / s)
        P -= (z * (cost / s))[:, None] * z
        self.pivots += 1

    def _change(self, added: Sequence[int], removed: Sequence[int]) -> None:
        for slot in added:
            self._express(slot)
        super()._change(added, removed)

    def settle(self) -> None:
        problem = self.problem
        slack = self.slack()
        for _ in range(SWEEPS):
            side = problem.side[: problem.count]
            gamma = self.F[: problem.count, : self.r] @ self.w[: self.r]
            wrong = (side >= 0) & (gamma > np.where(side > 0, problem.low, problem.high) + slack)
            wrong |= (side <= 0) & (gamma < np.where(side < 0, problem.high, problem.low) - slack)
            wrong &= side < FREE
            moved = False
            for slot in np.flatnonzero(wrong).tolist():
                moved |= self._place(slot, slack)
            if not moved:
                self._read_off()
                return
            self.sweeps += 1
        self.refit()

    def _place(self, slot: int, slack: float) -> bool:
        """Bring one instance to the side its margin asks for; return whether that changed an equation."""
        problem = self.problem
        gamma, old = self.margin(slot), int(problem.side[slot])
        new = 1 if gamma < problem.low - slack else -1 if gamma > problem.high + slack else 0
        if new == old or old > 0 and gamma <= problem.low + slack or old < 0 and gamma >= problem.high - slack:
            return False
        if problem.alike(slot) and new and old:
            problem.side[slot] = new
            return False
        if old:
            self.delete(slot, 0)
        if new and (gamma := self.margin(slot)) and not problem.low <= gamma <= problem.high:
            self.insert(slot, 1 if gamma < problem.low else -1)
        return True

    def slack(self) -> float:
        return 1e-13 + 4e-16 * float(np.abs(self.w[: self.r]).sum() * np.sqrt(self.top))

    def correct(self, rest: Array) -> Array:
        problem, r = self.problem, self.r
        outside = problem.outside()
        G, cost = self.F[outside, :r], 1.0 / problem.diagonal(outside)
        scaled = cost * rest[outside]
        result = np.zeros(problem.count)
        result[outside] = scaled - cost * (G @ (self._whole() @ (G.T @ scaled)))
        return result

    def inverse_diagonal(self) -> Array:
        problem, r = self.problem, self.r
        outside = problem.outside()
        G, cost = self.F[outside, :r], 1.0 / problem.diagonal(outside)
        result = np.zeros(problem.count)
        result[outside] = cost - cost * cost * np.einsum("ij,ij->i", G @ self._whole(), G)
        return result

    def _express(self, slot: int) -> None:
        """Give a new instance its features, and the features one more where it is not in their span."""
        problem, r = self.problem, self.r
        if len(self.F) < problem.capacity:
            self.F = np.vstack([self.F, np.zeros((problem.capacity - len(self.F), self.F.shape[1]))])
        values = problem.H[slot, self.marks]
        f = linalg.solve_triangular(self.corner[:r, :r], values, lower=True, check_finite=False) if r else values
        self.F[slot, :r], self.F[slot, r:] = f, 0.0
        missed = float(problem.H[slot, slot]) - float(f @ f)
        if missed > self.tolerance(slot):
            self._widen(slot, f, math.sqrt(missed))

    def tolerance(self, slot: int) -> float:
        """Return what the features may miss of an instance's squared norm."""
        return TOLERANCE * max(self.top, float(self.problem.H[slot, slot]))

    def _whole(self) -> Array:
        """Return P with both triangles right."""
        return self.P[: self.r, : self.r]

    def _widen(self, slot: int, f: Array, size: float) -> None:
        problem, r = self.problem, self.r
        if r >= self.limit:
            raise TooWide
        if r == len(self.w):
            old = self.F, self.P, self.corner, self.w
            self._allot(r + r // 4 + 16)
            self.F[:, :r], self.P[:r, :r], self.corner[:r, :r], self.w[:r] = old
        count = problem.count
        column = (problem.H[slot, :count] - self.F[:count, :r] @ f) / size
        column[problem.side[:count] >= FREE] = 0.0
        column[slot] = size
        self.F[:count, r] = column
        self.corner[r, :r], self.corner[r, r] = f, size
        self.marks = np.append(self.marks, slot)
        outside = problem.outside()
        g, cost = self.F[outside, r], 1.0 / problem.diagonal(outside)
        a = self.F[outside, :r].T @ (cost * g)
        u = self._whole() @ a
        s = 1.0 + float(g @ (cost * g)) - float(a @ u)
        value = (float(g @ (cost * problem.right_side(outside))) - float(a @ self.w[:r])) / s
        self.P[:r, :r] += np.outer(u, u / s)
        self.P[r, :r] = self.P[:r, r] = -u / s
        self.P[r, r] = 1.0 / s
        self.w[:r] -= u * value
        self.w[r] = value
        self.top = max(self.top, float(problem.H[slot, slot]))
        self.r = r + 1


def pivoted_cholesky(
    H: Array, slots: NDArray[np.intp], tolerance: float, limit: int, partial: bool = False
) -> tuple[Array | None, NDArray[np.intp]]:
    """Return F with H = F F' on `slots` up to `tolerance`, and the slots of its pivots.

    Where `limit` columns are too few: what there is if `partial`, else None, and that as early as the remainder is seen
    to fall too slowly. O(m r^2).
    """
    m = len(slots)
    rest = H.diagonal()[slots].copy()
    top = float(rest.max(initial=0.0))
    F = np.zeros((m, min(limit, m)), order="F")
    chosen: list[int] = []
    for r in range(min(limit, m) + 1):
        p = int(np.argmax(rest)) if m else 0
        if not m or rest[p] <= tolerance or partial and r == min(limit, m):
            return np.ascontiguousarray(F[:, :r]), slots[chosen].astype(np.intp)
        if r == min(limit, m) or not partial and r in (32, 64, 128, 256) and rest[p] > top * 10.0 ** (-6.5 * r / limit):
            break
        column = H[slots[p], slots] - F[:, :r] @ F[p, :r]
        F[:, r] = column / math.sqrt(rest[p])
        rest -= F[:, r] ** 2
        rest[chosen] = 0.0
        rest[p] = 0.0
        chosen.append(p)
    return None, np.empty(0, np.intp)
