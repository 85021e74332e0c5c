"""The paper's path, made rigorous: the strip moves for what comes, and alpha shrinks for what leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pa_river.odm.inverse import InverseEngine
from pa_river.odm.problem import GONE, Problem

Array = NDArray[np.float64]

#: Events at one point of the path before end-point pivoting takes over. Ties are rare and short.
_TIED = 64


class Event(NamedTuple):
    """A breakpoint: an instance reaches zero or the edge of its strip after `length` of the path."""

    length: float
    slot: int
    side: int  # where it goes: 1 or -1 into S, 0 into C


class PathEngine(InverseEngine):
    """Follows the optimum from the old data (t = 0) to the new (t = 1), one breakpoint at a time.

    An instance that comes below the strip has its own strip, whose lower edge rises from the margin it starts with to
    1 - theta; above it the upper edge falls to 1 + theta. The multiplier of one that leaves goes straight to 0. At
    every t that is a strongly convex problem with data affine in t, so the optimum is unique and piecewise affine in
    t, each pattern of sets holds on one interval, and the path ends. Newcomers are ordinary instances of S: they may
    cross too, which the paper's own batch rule does not see.
    """

    name = "path"

    def __init__(self, problem: Problem) -> None:
        self.trace: list[Event] = []  # the breakpoints of the last change
        super().__init__(problem)

    def _change(self, added: Sequence[int], removed: Sequence[int]) -> None:
        problem = self.problem
        self.trace = []
        low, high = np.full(problem.count, problem.low), np.full(problem.count, problem.high)
        rise, fall = np.zeros(problem.count), np.zeros(problem.count)  # speed of the lower and the upper edge
        leaving = [slot for slot in removed if problem.side[slot] != 0]
        for slot in removed:
            if problem.side[slot] == 0:
                problem.side[slot] = GONE
        moving = False
        gammas = {slot: self.margin(slot) for slot in added}
        for slot, gamma in gammas.items():
            if gamma < problem.low:
                low[slot], rise[slot] = gamma, problem.low - gamma
                self.border(slot, 1)
            elif gamma > problem.high:
                high[slot], fall[slot] = gamma, problem.high - gamma
                self.border(slot, -1)
            else:
                continue
            moving = True
        for slot in leaving:
            self.unborder(slot, GONE)
        if moving or leaving:
            done = self._follow(low, high, rise, fall, leaving)
            problem.alpha[leaving] = 0.0
            if not done:
                self._resolve()
                self.settle()

    def _follow(self, low: Array, high: Array, rise: Array, fall: Array, leaving: list[int]) -> bool:
        problem = self.problem
        n = problem.count
        alpha, H = problem.alpha, problem.H
        load = alpha[leaving].copy()
        gamma = problem.margins()
        places = self.base[: self.n]
        right = np.where(problem.side[places] > 0, rise[places], fall[places])
        if leaving:
            right = right + H[np.ix_(places, np.array(leaving))] @ load
        speed = self.B[: self.n, : self.n] @ right
        t, tied, back = 0.0, 0, (-1, GONE)
        while True:
            places = self.base[: self.n]
            direction = np.zeros(n)
            direction[places] = speed
            direction[leaving] = -load
            inside = problem.inside()
            drift = H[inside, :n] @ direction
            event = self._next(1.0 - t, places, speed, inside, gamma, drift, (low, high, rise, fall), back)
            length = 1.0 - t if event is None else event.length
            alpha[places] += length * speed
            alpha[leaving] -= length * load
            gamma[inside] += length * drift
            low += length * rise
            high += length * fall
            t += length
            if event is None:
                self._relabel()
                return True
            self.trace.append(event)
            tied = tied + 1 if length <= 1e-15 else 0
            if tied > _TIED:
                return False
            slot = event.slot
            back = (slot, 0 if event.side else int(problem.side[slot]))
            if event.side == 0:
                gamma[slot] = low[slot] if problem.side[slot] > 0 else high[slot]
                alpha[slot] = 0.0
                p = int(self.place[slot])
                own = float(speed[p])
                b = self.unborder(slot, 0)
                speed[p] = speed[-1]
                speed = speed[:-1] - b[:-1] * (own / b[-1])
            else:
                edge = rise[slot] if event.side > 0 else fall[slot]
                gap = float(edge - drift[np.searchsorted(inside, slot)])
                u, s = self.border(slot, event.side)
                alpha[slot] = 0.0
                speed = np.append(speed - u * (gap / s), gap / s)

    def _next(
        self, rest: float, places: NDArray[np.int64], speed: Array, inside: NDArray[np.intp], gamma: Array,
        drift: Array, strip: tuple[Array, Array, Array, Array], back: tuple[int, int],
    ) -> Event | None:
        """Return the nearest breakpoint within `rest`, the lowest slot where several tie; None if the end is nearer.

        `back` is the way back of the last breakpoint's instance: by the paper's Theorem 1 it is not taken at once, so a
        length of zero there is rounding.
        """
        problem = self.problem
        low, high, rise, fall = strip
        events = []
        alpha, side = problem.alpha[places], problem.side[places]
        crossing = np.flatnonzero(side * speed < 0.0)
        for lengths, slots, to in (
            (-alpha[crossing] / speed[crossing], places[crossing], 0),
            _reach(gamma[inside] - low[inside], rise[inside] - drift, inside, 1),
            _reach(high[inside] - gamma[inside], drift - fall[inside], inside, -1),
        ):
            if to == 0 and problem.theta == 0.0:  # no event where both sides of a strip without width are one
                settled = (rise[slots] == 0.0) & (fall[slots] == 0.0)
                mixed = ~(settled & (problem.costs[0, slots] == problem.costs[1, slots]))
                lengths, slots = lengths[mixed], slots[mixed]
            if to == back[1]:
                lengths = np.where((slots == back[0]) & (lengths <= 1e-12), np.inf, lengths)
            lengths = np.maximum(lengths, 0.0)
            if len(lengths):
                nearest = lengths.min()
                if nearest < rest:
                    events.append(Event(float(nearest), int(slots[lengths == nearest].min()), to))
        return min(events, key=lambda event: event[:2], default=None)

    def _relabel(self) -> None:
        """Name the sides by the signs where a crossing was no event, see `Problem.alike`."""
        problem = self.problem
        if problem.theta == 0.0:
            outside = problem.outside()
            same = outside[problem.costs[0, outside] == problem.costs[1, outside]]
            problem.side[same] = np.where(problem.alpha[same] < 0.0, -1, 1)

    def _resolve(self) -> None:
        """Give alpha_S its final value for the sets the path had reached: what end-point pivoting starts from."""
        problem = self.problem
        problem.alpha[: problem.count] = 0.0
        problem.alpha[: problem.count] += self.correct(self.residual(problem.alpha[: problem.count]))


def _reach(distance: Array, closing: Array, slots: NDArray[np.intp], to: int) -> tuple[Array, NDArray[np.intp], int]:
    near = closing > 0.0
    return distance[near] / closing[near], slots[near], to
