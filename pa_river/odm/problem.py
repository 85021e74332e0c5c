"""The optimal margin distribution problem: instances in slots, optimality conditions, certificate."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pa_river.odm import loops
from pa_river.odm.newton import newton
from pa_river.odm.rows import Rows

Array = NDArray[np.float64]

#: Values of `Problem.side` beside 1 (below the strip), -1 (above it) and 0 (inside): the slot is empty, or holds an
#: instance that is out of the solution already and only waits until an engine has no more use for its row.
FREE, GONE = 2, 3

#: Kernel values beyond this are refused: their products would leave the floats.
_LARGEST = 1e100
_WILD = f"the kernel gives a value that is not finite, or beyond {_LARGEST:g}, for this example"

#: Up to this many instances are admitted one by one.
_FEW = 8

#: Cost times kernel value bounds the condition of Q_S; beyond this a solution in doubles would be no solution.
_STEEPEST = 1e12
_STEEP = "lam times the kernel value is beyond what finite precision can solve: scale the features or lower lam"


class Certificate(NamedTuple):
    """How far a solution can be from the optimum.

    `gap` is the duality gap, an upper bound on what the objective can still fall; `residual` the largest violation of
    the optimality conditions, in units of the margin.
    """

    gap: float
    residual: float
    primal: float
    dual: float


class Problem:
    """min 1/2 |w|^2 + 1/2 sum_i below_i xi_i^2 + above_i eps_i^2, with xi, eps the distances to the strip 1 +- theta.

    Its dual has one signed multiplier an instance: alpha_i > 0 below the strip, < 0 above it, 0 inside, and at the
    optimum alpha_i = below_i (1 - theta - gamma_i)_+ - above_i (gamma_i - 1 - theta)_+ with the margins
    gamma = H alpha, H_ij = y_i y_j kappa(x_i, x_j). With S the instances outside the strip this is a linear system
    Q_S alpha_S = d_S, Q_S = H_SS + diag(1 / cost), d = 1 - theta below and 1 + theta above.

    Memory: 8 cap^2 bytes for H, cap at most twice the largest number of instances there was.
    """

    H: Array  # (capacity, stride >= capacity), signed kernel values; rows and columns of free slots mean nothing
    y: Array  # 1 or -1
    alpha: Array
    costs: Array  # (2, capacity): below and above the strip
    side: NDArray[np.int8]

    def __init__(self, theta: float, rows: Rows) -> None:
        self.theta = theta
        self.low, self.high = 1.0 - theta, 1.0 + theta
        self.rows = rows
        self.count = 0  # slots in use are all below
        self._free: list[int] = []
        self._waiting: Sequence[Any] = ()
        self._allot(0)

    def _allot(self, capacity: int) -> None:
        # An odd number of cache lines a row: writing a column then does not fall into one cache set.
        stride = (capacity + 7) // 8 * 8
        H = np.zeros((capacity, stride + (8 if stride // 8 % 2 == 0 else 0)))
        y, alpha = np.zeros(capacity), np.zeros(capacity)
        costs, side = np.ones((2, capacity)), np.full(capacity, FREE, np.int8)
        if self.count:
            n = self.count
            H[:n, :n], y[:n], alpha[:n] = self.H[:n, :n], self.y[:n], self.alpha[:n]
            costs[:, :n], side[:n] = self.costs[:, :n], self.side[:n]
        self.H, self.y, self.alpha, self.costs, self.side = H, y, alpha, costs, side

    def reserve(self, capacity: int) -> None:
        """Make room for that many slots at once."""
        if capacity > self.capacity:
            self._allot(capacity)

    @property
    def capacity(self) -> int:
        """How many slots there are without growing."""
        return len(self.y)

    def live(self) -> NDArray[np.intp]:
        """Return the slots that hold an instance, ascending."""
        return np.flatnonzero(self.side[: self.count] < FREE)

    def outside(self) -> NDArray[np.intp]:
        """Return the slots of S, the instances outside the strip, ascending."""
        return np.flatnonzero(np.abs(self.side[: self.count]) == 1)

    def inside(self) -> NDArray[np.intp]:
        """Return the slots of C, the instances inside the strip, ascending."""
        return np.flatnonzero(self.side[: self.count] == 0)

    def cost(self, slot: int, side: int) -> float:
        """Return what a squared unit of distance costs this instance on that side."""
        return float(self.costs[0 if side > 0 else 1, slot])

    def bound(self, side: int) -> float:
        """Return the edge of the strip on that side."""
        return self.low if side > 0 else self.high

    def alike(self, slot: int) -> bool:
        """Return whether the two sides of the strip are one for this instance: no width, one cost."""
        return self.theta == 0.0 and self.costs[0, slot] == self.costs[1, slot]

    def admit(
        self, xs: Sequence[Any], ys: Sequence[float], below: Sequence[float], above: Sequence[float]
    ) -> list[int]:
        """Give encoded instances slots and rows of H, with alpha = 0 and inside the strip; all of them or none.

        Raises
        ------
        ValueError
            If a kernel value is not finite or beyond 1e100, or one times its cost beyond 1e12.

        """
        n, held = len(xs), self.count
        if n <= _FEW:
            return self._admit_few(xs, ys, below, above)
        blocks, corner = list(self.rows.cross(list(xs), held)), self.rows.gram(list(xs))
        reused = min(n, len(self._free))
        slots = self._free[len(self._free) - reused :] + list(range(held, held + n - reused))
        if not (np.abs(corner) <= _LARGEST).all() or not all(
            loops.tame(values, self.side, held, _LARGEST) for values in blocks
        ):
            raise ValueError(_WILD)
        if n and max(c * max(b, a) for c, b, a in zip(corner.diagonal().tolist(), below, above)) > _STEEPEST:
            raise ValueError(_STEEP)
        if held + n - reused > self.capacity:
            self._allot(max(32, 2 * self.capacity, held + n - reused))
        del self._free[len(self._free) - reused :]
        for i, slot in enumerate(slots):
            loops.enter(self.H, self.y, slot, held, blocks[i], ys[i])
            self.y[slot], self.alpha[slot], self.side[slot] = ys[i], 0.0, 0
            self.costs[0, slot], self.costs[1, slot] = below[i], above[i]
            self.rows.put(slot, xs[i])
            for j in range(i + 1):
                self.H[slot, slots[j]] = self.H[slots[j], slot] = corner[i, j] * ys[i] * ys[j]
        self.count = held + n - reused
        return slots

    def _admit_few(
        self, xs: Sequence[Any], ys: Sequence[float], below: Sequence[float], above: Sequence[float]
    ) -> list[int]:
        """Admit one after the other, which is faster than blocks of kernel values; all of them or none."""
        slots: list[int] = []
        try:
            for instance in zip(xs, ys, below, above):
                slots.append(self._admit_one(*instance))
        except ValueError:
            self.release(slots[::-1])
            raise
        return slots

    def _admit_one(self, x: Any, y: float, below: float, above: float) -> int:
        held, rows = self.count, self.rows
        values, corner = rows.row(x, held), rows.norm(x)
        if not (-_LARGEST <= corner <= _LARGEST and loops.tame(values, self.side, held, _LARGEST)):
            raise ValueError(_WILD)
        if corner * max(below, above) > _STEEPEST:
            raise ValueError(_STEEP)
        if held == self.capacity and not self._free:
            self._allot(max(32, 2 * held))
        slot = self._free.pop() if self._free else held
        loops.enter(self.H, self.y, slot, held, values, y)
        self.H[slot, slot] = corner
        self.y[slot], self.alpha[slot], self.side[slot] = y, 0.0, 0
        self.costs[0, slot], self.costs[1, slot] = below, above
        rows.put(slot, x)
        self.count = max(held, slot + 1)
        return slot

    def adopt(
        self, xs: Sequence[Any], ys: Sequence[float], below: Sequence[float], above: Sequence[float], alpha: Array
    ) -> list[int]:
        """Fill an empty problem with instances and their multipliers; H waits until `ready`."""
        n = len(xs)
        self._allot(max(32, n))
        self.count = n
        self.y[:n], self.costs[0, :n], self.costs[1, :n], self.alpha[:n] = ys, below, above, alpha
        self.side[:n] = np.sign(self.alpha[:n]).astype(np.int8)
        for slot, x in enumerate(xs):
            self.rows.put(slot, x)
        self._waiting = xs
        return list(range(n))

    def ready(self) -> None:
        """Compute H where `adopt` left that for later."""
        if self._waiting:
            n = len(self._waiting)
            self.H[:n, :n] = self.rows.gram(list(self._waiting)) * np.outer(self.y[:n], self.y[:n])
            self._waiting = ()

    def release(self, slots: Sequence[int]) -> None:
        """Free slots whose instances an engine has taken out of the solution."""
        for slot in slots:
            self.side[slot], self.alpha[slot] = FREE, 0.0
            self.rows.drop(slot)
            self._free.append(slot)
        if self.count and self.side[self.count - 1] == FREE:
            while self.count and self.side[self.count - 1] == FREE:
                self.count -= 1
            self._free = [slot for slot in self._free if slot < self.count]

    def restore(self, alpha: Array, side: NDArray[np.int8], admitted: Sequence[int]) -> None:
        """Put back a solution that was copied before `admitted` came; engines are to be built anew after this."""
        n = len(alpha)
        self.alpha[:n], self.side[:n] = alpha, side
        self.side[n:] = FREE
        self.side[list(admitted)] = GONE
        self.side[self._free] = FREE  # an engine may have let go of some that waited
        self.release(np.flatnonzero(self.side[: self.count] == GONE).tolist())

    def solve(self) -> None:
        """Bring every instance to the optimum by Newton's method, O(|S|^3) a step, from the multipliers there are."""
        live = self.live()
        H, below, above = self.H[np.ix_(live, live)], self.costs[0, live], self.costs[1, live]
        found, _, _ = newton(H, below, above, self.theta, self.alpha[live])
        self.alpha[: self.count] = 0.0
        self.alpha[live] = found
        self.side[live] = np.sign(found).astype(np.int8)

    def shadow(self) -> Problem:
        """Return a problem of its own solution over the same instances; neither may admit or release meanwhile."""
        twin = copy.copy(self)
        twin.alpha, twin.side = self.alpha.copy(), self.side.copy()
        return twin

    def margins(self, alpha: Array | None = None) -> Array:
        """Return gamma = H alpha by slot; what free slots get means nothing."""
        n = self.count
        gamma: Array = self.H[:n, :n] @ (self.alpha[:n] if alpha is None else alpha)
        return gamma

    def wanted(self, gamma: Array, slots: NDArray[np.intp]) -> Array:
        """Return the multipliers that the margins ask for: equal to alpha exactly at the optimum."""
        xi, eps = np.maximum(self.low - gamma[slots], 0.0), np.maximum(gamma[slots] - self.high, 0.0)
        return np.asarray(self.costs[0, slots] * xi - self.costs[1, slots] * eps)

    def right_side(self, slots: NDArray[np.intp]) -> Array:
        """Return d of the linear system on S."""
        return np.where(self.side[slots] > 0, self.low, self.high)

    def diagonal(self, slots: NDArray[np.intp]) -> Array:
        """Return 1 / cost of the side each instance of S is on."""
        cost: Array = np.where(self.side[slots] > 0, self.costs[0, slots], self.costs[1, slots])
        return 1.0 / cost

    def certificate(self, alpha: Array) -> Certificate:
        """Return the duality gap and the largest residual of multipliers by slot. O(m^2)."""
        live = self.live()
        if not len(live):
            return Certificate(0.0, 0.0, 0.0, 0.0)
        gamma, a = self.margins(alpha), alpha[live]
        g = gamma[live]
        below, above = self.costs[0, live], self.costs[1, live]
        xi, eps = np.maximum(self.low - g, 0.0), np.maximum(g - self.high, 0.0)
        norm = float(a @ g)
        primal = 0.5 * norm + 0.5 * float(below @ (xi * xi) + above @ (eps * eps))
        own = np.where(a > 0.0, below, above)
        dual = float(a.sum() - self.theta * np.abs(a).sum()) - 0.5 * norm - 0.5 * float(a @ (a / own))
        residual = np.abs(a - (below * xi - above * eps)) / np.maximum(1.0, np.where(g < 1.0, below, above))
        return Certificate(primal - dual, float(residual.max()), primal, dual)
