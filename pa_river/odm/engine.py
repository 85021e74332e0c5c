"""What every engine shares: end-point pivoting on top of insert and delete, refinement, and the way back when lost."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pa_river.odm.newton import newton
from pa_river.odm.problem import GONE, Problem

Array = NDArray[np.float64]

#: Sweeps of end-point pivoting before a globalised Newton method takes over; one or two are usual.
SWEEPS = 30

#: Pivots between two looks at the accuracy of the factors.
CHECK_EVERY = 256


class Lost(ArithmeticError):
    """A pivot that is positive on paper is not: rounding has eaten the factors."""


class Engine(abc.ABC):
    """Keeps `problem.alpha` and `problem.side` optimal while instances come and leave.

    The problem holds the solution; an engine holds only factors of Q_S that make the next change cheap, and can build
    them again from the problem at any time. Invariant between changes: alpha_S = Q_S^{-1} d_S, and zero elsewhere.
    """

    name: str

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.pivots = 0  # inserts and deletes so far
        self.sweeps = 0  # end-point sweeps that changed something
        self.refits = 0  # solutions from scratch
        self._checked = 0
        self.rebuild()

    @abc.abstractmethod
    def rebuild(self) -> None:
        """Factor Q_S for the sets of the problem. O(|S|^3)."""

    @abc.abstractmethod
    def insert(self, slot: int, side: int) -> None:
        """Take an instance of C into S on that side, alpha_S following. `Lost` if the pivot is not positive."""

    @abc.abstractmethod
    def delete(self, slot: int, side: int) -> None:
        """Take an instance out of S, alpha_S following; `side` is 0 for C and GONE for one that leaves."""

    def release(self, slots: Sequence[int]) -> None:
        """Free the slots of instances that are out of the solution."""
        self.problem.release(slots)

    @abc.abstractmethod
    def correct(self, rest: Array) -> Array:
        """Return Q_S^{-1} rest, both by slot; only the entries of S are read and only they may differ from 0."""

    @abc.abstractmethod
    def inverse_diagonal(self) -> Array:
        """Return the diagonal of Q_S^{-1} by slot, 0 outside S."""

    def change(self, added: Sequence[int], removed: Sequence[int], release: bool = True) -> None:
        """Bring the solution to the optimum with `added` (fresh slots, inside so far) and without `removed`.

        The slots of `removed` are freed, now or when this engine has no more use for their rows; not if `release` is
        False, where the caller keeps them for later.
        """
        try:
            self._change(added, removed)
        except (Lost, np.linalg.LinAlgError):
            self.problem.side[list(removed)] = GONE
            self.refit()
        if self.pivots - self._checked >= self.patience():
            self._checked = self.pivots
            self._maintain()
        if release:
            self.release(removed)

    def _change(self, added: Sequence[int], removed: Sequence[int]) -> None:
        problem = self.problem
        for slot in removed:
            if problem.side[slot] == 0:
                problem.side[slot] = GONE
            else:
                self.delete(slot, GONE)
        for slot in added:
            gamma = self.margin(slot)
            if gamma < problem.low:
                self.insert(slot, 1)
            elif gamma > problem.high:
                self.insert(slot, -1)
        self.settle()

    def settle(self) -> None:
        """Go to the optimum by pivots: a semismooth Newton step done with rank-one updates, repeated until it holds."""
        problem = self.problem
        for _ in range(SWEEPS):
            moved = self._drop_crossed()
            slack = self.slack()
            for slot in self._suspects(slack):
                gamma = self.margin(slot)  # once more: the inserts before this one moved it
                if gamma < problem.low - slack:
                    self.insert(slot, 1)
                elif gamma > problem.high + slack:
                    self.insert(slot, -1)
                else:
                    continue
                moved = True
            if not moved:
                return
            self.sweeps += 1
        self.refit()

    def _drop_crossed(self) -> bool:
        """Delete what sits in S with a multiplier of the wrong sign; return whether there was any."""
        problem, moved = self.problem, False
        outside = problem.outside()
        crossed = outside[problem.alpha[outside] * problem.side[outside] < 0.0]
        for slot in crossed.tolist():
            if problem.alpha[slot] * problem.side[slot] < 0.0:
                if problem.alike(slot):
                    problem.side[slot] = -problem.side[slot]  # same equation on both sides: nothing to solve
                else:
                    self.delete(slot, 0)
                    moved = True
        return moved

    def _suspects(self, slack: float) -> list[int]:
        """Return the slots of C whose margins are not in the strip; a superset does no harm."""
        problem = self.problem
        inside = problem.inside()
        if not len(inside):
            return []
        gamma = problem.H[inside, : problem.count] @ problem.alpha[: problem.count]
        found: list[int] = inside[(gamma < problem.low - slack) | (gamma > problem.high + slack)].tolist()
        return found

    def margin(self, slot: int) -> float:
        """Return gamma of one instance."""
        problem = self.problem
        return float(problem.H[slot, : problem.count] @ problem.alpha[: problem.count])

    def slack(self) -> float:
        """Return how far beyond the strip a margin of C may be by rounding alone."""
        problem = self.problem
        corner = float(problem.H.diagonal()[: problem.count].max(initial=0.0))
        return 1e-13 + 4e-16 * float(np.abs(problem.alpha[: problem.count]).sum()) * corner

    def patience(self) -> int:
        """Return how many pivots may pass between two looks at the accuracy of the factors."""
        return CHECK_EVERY

    def forget(self) -> None:
        """Give up what the engine holds beside the solution; another one takes the problem over."""

    def refit(self) -> None:
        """Solve from scratch, and factor anew."""
        self.problem.solve()
        self.refits += 1
        self.rebuild()

    def residual(self, alpha: Array) -> Array:
        """Return d_S - Q_S alpha_S by slot, 0 outside S."""
        problem = self.problem
        outside = problem.outside()
        rest = np.zeros(problem.count)
        gamma = problem.margins(alpha)
        rest[outside] = problem.right_side(outside) - gamma[outside] - alpha[outside] * problem.diagonal(outside)
        return rest

    def refined(self) -> Array:
        """Return the multipliers by slot after iterative refinement; the problem's own stay as they are.

        If that shows an instance on the wrong side of the strip, which only rounding at an edge can bring about, the
        sets are settled once more by Newton's method on a copy.
        """
        problem = self.problem
        alpha = problem.alpha[: problem.count].copy()
        last = np.inf
        for _ in range(4):
            rest = self.residual(alpha)
            size = float(np.abs(rest).max(initial=0.0))
            if not size < 0.5 * last:  # at the level of rounding, or no contraction
                break
            alpha, last = alpha + self.correct(rest), size
        live = problem.live()
        wanted = problem.wanted(problem.margins(alpha), live)
        scale = np.maximum(1.0, problem.costs[:, live].max(axis=0, initial=1.0))
        error = float((np.abs(wanted - alpha[live]) / scale).max(initial=0.0))
        if error > 1e-9 + 1e3 * self.slack():
            H, below, above = problem.H[np.ix_(live, live)], problem.costs[0, live], problem.costs[1, live]
            alpha[live] = newton(H, below, above, problem.theta, alpha[live])[0]
        return alpha

    def _maintain(self) -> None:
        """Refine the multipliers in place; factor anew where the factors no longer contract the residual."""
        problem = self.problem
        before = self.residual(problem.alpha[: problem.count])
        problem.alpha[: problem.count] += self.correct(before)
        after = self.residual(problem.alpha[: problem.count])
        first, second = (float(np.abs(rest).max(initial=0.0)) for rest in (before, after))
        if second > 1e-9 or second > 0.1 * first and first > 1e-10:
            self.refit()
