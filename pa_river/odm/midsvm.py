"""MID-SVM: multiple incremental and decremental learning of a support vector machine, the paper's comparator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pa_river.odm import loops
from pa_river.odm.problem import GONE, Problem

Array = NDArray[np.float64]

# The three sets of a support vector machine, who is on the way in or out, and slots without an instance.
_OUT, _MARGIN, _IN, _COMES, _LEAVES, _NOBODY = range(6)

#: Residual at which a solution is certified; beyond it the machine is trained again.
_CERTIFIED = 1e-6

#: Breakpoints in a row at one point of the path, beyond which ties are taken to go round in a circle.
_STILL = 100


class MIDSVM:
    """Hinge loss with cost C and a free bias; follows the path along which all that comes and leaves moves at once.

    What comes inside the margin goes to alpha = C, what leaves to 0, in one straight line; the margin set M
    compensates, and the path stops wherever an instance changes sets. Each change ends with a check of the optimality
    conditions; where they fail, which ties and rounding at large C bring about, the machine is trained again, and
    `retrained` counts it.

    Parameters
    ----------
    problem
        Holds instances and signed kernel values; its own multipliers are not used.
    C
        The largest multiplier.

    Notes
    -----
    Source: Karasuyama and Takeuchi, Multiple Incremental Decremental Learning of Support Vector Machines, NIPS 2009.

    """

    def __init__(self, problem: Problem, C: float) -> None:
        self.problem, self.C = problem, C
        self.bias = 0.0
        self.breakpoints = 0
        self.retrained = 0
        self.alpha: Array = np.zeros(problem.capacity)
        self.sets = np.full(problem.capacity, _NOBODY, np.int8)
        self.train()

    def train(self) -> None:
        """Solve from scratch by sequential minimal optimisation, then exactly on the sets that finds."""
        problem = self.problem
        self._reach()
        live = problem.live()
        self.alpha[:] = 0.0
        for tol in (1e-4, 1e-7, 1e-10):
            loops.smo(problem.H, live, problem.y, self.alpha, self.C, tol, 200 * len(live) + 100_000)
            edge = 1e-9 * self.C
            inside = (self.alpha > edge) & (self.alpha < self.C - edge)
            sets = np.where(inside, _MARGIN, np.where(self.alpha >= self.C - edge, _IN, _OUT))
            self.sets[:] = _NOBODY
            self.sets[live] = sets[live]
            smooth = self.alpha.copy()
            if self._polish() <= _CERTIFIED:
                return
            self.alpha[:] = smooth
        self._bias_of(live)

    def change(self, added: Sequence[int], removed: Sequence[int]) -> None:
        """Take in `added` (fresh slots) and give up `removed`, whose slots are freed."""
        problem = self.problem
        self._reach()
        gamma = self._gamma()
        self.alpha[list(added)] = 0.0
        self.sets[list(added)] = np.where(gamma[list(added)] > 1.0, _OUT, _COMES)
        self.sets[list(removed)] = _LEAVES
        done = self._follow()
        problem.side[list(removed)] = GONE
        self.alpha[list(removed)], self.sets[list(removed)] = 0.0, _NOBODY
        problem.release(removed)
        if not done or self.residual() > _CERTIFIED:
            self.retrained += 1
            self.train()

    def decision(self, rows: Array) -> Array:
        """Return the scores of examples, given their kernel values (n, slots) with the instances."""
        n = self.problem.count
        return np.asarray(rows[:, :n] @ (self.alpha[:n] * self.problem.y[:n]) + self.bias)

    def residual(self) -> float:
        """Return the largest violation of the optimality conditions, in units of the margin and of C."""
        live = self.problem.live()
        if not len(live):
            return 0.0
        gamma, alpha = self._gamma()[live], self.alpha[live]
        below, above = np.maximum(1.0 - gamma, 0.0), np.maximum(gamma - 1.0, 0.0)
        worst = np.maximum(np.where(alpha < self.C, below, 0.0), np.where(alpha > 0.0, above, 0.0)).max()
        box = max(float((-alpha).max()), float((alpha - self.C).max()), 0.0) / self.C
        balance = abs(float(self.problem.y[live] @ alpha)) / (self.C * len(live))
        return max(float(worst), box, balance)

    def _gamma(self) -> Array:
        n = self.problem.count
        gamma: Array = self.problem.H[:n, :n] @ self.alpha[:n] + self.problem.y[:n] * self.bias
        return gamma

    def _reach(self) -> None:
        more = self.problem.capacity - len(self.alpha)
        if more > 0:
            self.alpha = np.append(self.alpha, np.zeros(more))
            self.sets = np.append(self.sets, np.full(more, _NOBODY, np.int8))

    def _solve(self, right: Array, balance: float, margin: NDArray[np.intp]) -> tuple[float, Array]:
        """Solve [0 y'; y H_MM] [b; a] = [balance; right] on the margin set."""
        y, n = self.problem.y[margin], len(margin)
        system = np.zeros((n + 1, n + 1))
        system[0, 1:] = system[1:, 0] = y
        system[1:, 1:] = self.problem.H[np.ix_(margin, margin)]
        system[np.arange(1, n + 1), np.arange(1, n + 1)] += 1e-10  # copies of one x in M make it singular
        found = np.linalg.solve(system, np.append(balance, right))
        return float(found[0]), found[1:]

    def _polish(self) -> float:
        """Solve exactly on the sets there are; move out of M what leaves the box; return the residual."""
        for _ in range(50):
            margin = np.flatnonzero(self.sets == _MARGIN)
            self.alpha[self.sets == _IN] = self.C
            self.alpha[self.sets == _OUT] = 0.0
            if not len(margin):
                self._bias_of(self.problem.live())
                return self.residual()
            full = np.flatnonzero(self.sets == _IN)
            pull = self.problem.H[np.ix_(margin, full)].sum(axis=1) * self.C
            self.bias, found = self._solve(1.0 - pull, -self.C * float(self.problem.y[full].sum()), margin)
            self.alpha[margin] = np.clip(found, 0.0, self.C)
            low, high = margin[found < 0.0], margin[found > self.C]
            if not len(low) and not len(high):
                return self.residual()
            self.sets[low], self.sets[high] = _OUT, _IN
        return np.inf

    def _bias_of(self, live: NDArray[np.intp]) -> None:
        """Put the bias in the middle of what the optimality conditions leave open."""
        self.bias = 0.0
        slack = self.problem.y[live] * (1.0 - self._gamma()[live])
        up = (self.problem.y[live] > 0) == (self.alpha[live] < self.C)
        down = (self.problem.y[live] > 0) == (self.alpha[live] > 0.0)
        least, most = slack[up].max(initial=-np.inf), slack[down].min(initial=np.inf)
        ends = [end for end in (least, most) if np.isfinite(end)]
        self.bias = float(np.mean(ends)) if ends else 0.0

    def _follow(self) -> bool:
        """Follow the path to its end; False where it does not get there."""
        problem = self.problem
        n = problem.count
        H, y, sets, alpha = problem.H[:n, :n], problem.y[:n], self.sets[:n], self.alpha[:n]
        gamma = self._gamma()
        still = 0  # breakpoints in a row at one point of the path
        for _ in range(20 * n + 100):
            comes = np.flatnonzero(sets == _COMES)
            leaves = np.flatnonzero((sets == _LEAVES) & (alpha > 0.0))
            if not len(comes) and not len(leaves):
                return True
            move = np.zeros(n)
            move[comes], move[leaves] = self.C - alpha[comes], -alpha[leaves]
            base, balance = H @ move, float(y @ move)
            margin = np.flatnonzero(sets == _MARGIN)
            if len(margin):
                try:
                    turn, found = self._solve(-base[margin], -balance, margin)
                except np.linalg.LinAlgError:
                    return False
                move[margin] = found
                drift = base + H[:, margin] @ found + y * turn
            elif abs(balance) > 1e-12 * self.C:
                # Nobody can compensate: the bias moves until somebody who could reaches the margin.
                sign = float(np.sign(balance))
                waiting = np.flatnonzero(
                    (sets == _OUT) & (y * sign < 0) | ((sets == _IN) | (sets == _COMES)) & (y * sign > 0)
                )
                if not len(waiting):
                    return False
                gaps = np.maximum(np.where(sets[waiting] == _OUT, gamma[waiting] - 1.0, 1.0 - gamma[waiting]), 0.0)
                nearest = waiting[np.argmin(gaps)]
                self.bias += sign * float(gaps.min())
                gamma += y * sign * float(gaps.min())
                sets[nearest] = _MARGIN
                self.breakpoints += 1
                continue
            else:
                turn, drift = 0.0, base
            length, slot, to = self._next(margin, move, gamma, drift)
            alpha += length * move
            gamma += length * drift
            self.bias += length * turn
            if slot < 0:
                alpha[comes], sets[comes] = self.C, _IN
                alpha[leaves] = 0.0
                return True
            self.breakpoints += 1
            still = 0 if length > 0.0 else still + 1
            if still > _STILL:
                return False
            sets[slot] = to
            if to != _MARGIN:
                alpha[slot] = 0.0 if to == _OUT else self.C
        return False

    def _next(self, margin: NDArray[np.intp], move: Array, gamma: Array, drift: Array) -> tuple[float, int, int]:
        n = len(gamma)
        alpha, sets = self.alpha[:n], self.sets[:n]
        best, slot, to = 1.0, -1, _OUT
        out, inner = np.flatnonzero(sets == _OUT), np.flatnonzero((sets == _IN) | (sets == _COMES))
        down, up = margin[move[margin] < -1e-14], margin[move[margin] > 1e-14]
        falls, rises = out[drift[out] < -1e-14], inner[drift[inner] > 1e-14]
        for slots, lengths, goal in (
            (down, alpha[down] / -move[down], _OUT), (up, (self.C - alpha[up]) / move[up], _IN),
            (falls, (gamma[falls] - 1.0) / -drift[falls], _MARGIN),
            (rises, (1.0 - gamma[rises]) / drift[rises], _MARGIN),
        ):
            if len(slots):
                nearest = int(np.argmin(lengths))
                if lengths[nearest] < best:
                    best, slot, to = max(float(lengths[nearest]), 0.0), int(slots[nearest]), goal
        return best, slot, to
