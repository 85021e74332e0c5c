# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled change of `PathEngine`: the same breakpoints, one pivot of the bordered inverse each."""

import numpy as np

from libc.math cimport fmax, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset

from pa_river.odm._border cimport DONE, GONE, LOST, UNSETTLED, axpy, dot
from pa_river.odm._frozen cimport FrozenCore
from pa_river.odm._kept cimport SYMM_MOST

cdef enum:
    _TIED = 64  # events at one point of the path before the end-point pivots take over


cdef class PathCore(FrozenCore):
    """Follows the optimum; a pivot moves the direction, by slot, and the multipliers go along it.

    An instance of C is looked at only where the way that is left could take it to an edge: its margin changes by at
    most |w - w'| sqrt(k_ii), and the length of dw/dt follows from the equations on S. `sure` is the length of the way,
    summed over all paths so far, up to which its margin is inside.
    """

    cdef double[::1] direction, floor, roof, rise, fall, sure
    cdef int64_t[::1] leaving
    cdef int leavers

    def bind(self, H, alpha, side, costs):
        super().bind(H, alpha, side, costs)
        size = len(alpha)
        self.direction, self.rise, self.fall = np.zeros(size), np.zeros(size), np.zeros(size)
        self.floor, self.roof = np.full(size, self.low), np.full(size, self.high)
        self.sure, self.leaving = np.full(size, -1.0), np.zeros(size, np.int64)

    def follow(self, added, removed, int count):
        """Follow the path of a change; DONE, LOST or UNSETTLED, and the breakpoints as (length, slot, side)."""
        cdef Py_ssize_t slot
        cdef int found = 0
        cdef list trace = []
        self.count = count
        self.leavers = 0
        memset(&self.direction[0], 0, count * sizeof(double))
        for slot in removed:
            if self.side[slot] == 0:
                self.side[slot] = GONE
                self.drop(slot)
            else:
                self.leaving[self.leavers] = slot
                self.leavers += 1
        for slot in added:
            self.admit(slot)
            self.sure[slot] = -1.0
            self.todo[found] = slot
            found += 1
        try:
            return self._follow(found, trace), trace
        finally:
            for slot in added:
                self.floor[slot], self.roof[slot], self.rise[slot], self.fall[slot] = self.low, self.high, 0.0, 0.0

    cdef int _start(self, int found) except -1:
        """Give what comes its own strip, and take what leaves out of S; 1 if there is a way to go."""
        cdef int begin, i, g, wanted
        cdef int64_t slot
        cdef int64_t who[SYMM_MOST]
        cdef double gamma
        cdef int moving = self.leavers > 0
        for i in range(found):
            slot = self.todo[i]
            gamma = self.margin(slot)
            if gamma < self.low:
                self.floor[slot], self.rise[slot] = gamma, self.low - gamma
            elif gamma > self.high:
                self.roof[slot], self.fall[slot] = gamma, self.high - gamma
        for begin in range(0, found, SYMM_MOST):
            g = min(SYMM_MOST, found - begin)
            wanted = 0
            for i in range(g):
                slot = self.todo[begin + i]
                if self.rise[slot] != 0.0 or self.fall[slot] != 0.0:
                    who[wanted] = slot
                    wanted += 1
            self.prepare(who, wanted)
            for i in range(wanted):
                slot = who[i]
                if self.rise[slot] != 0.0:
                    if self.enter(slot, 1, &self.direction[0], self.rise[slot] - self._pull(slot)):
                        return -2
                elif self.enter(slot, -1, &self.direction[0], self.fall[slot] - self._pull(slot)):
                    return -2
                moving = 1
        for i in range(self.leavers):
            slot = self.leaving[i]
            if self.leave(slot, GONE, &self.direction[0], -self.alpha[slot]):
                return -2
        return moving

    cdef inline double _pull(self, Py_ssize_t slot) noexcept:
        """How fast the margin of an instance changes."""
        return dot(self.count, &self.H[slot, 0], &self.direction[0])

    cdef double _speed(self) noexcept:
        """|dw/dt|, from Q_S v = d' - H_SI a' on S without a product with H."""
        cdef int i
        cdef int64_t slot
        cdef double square = 0.0, v, edge
        for i in range(self.count):
            if self.side[i] == 1 or self.side[i] == -1:
                v = self.direction[i]
                edge = self.rise[i] if self.side[i] > 0 else self.fall[i]
                square += v * (edge - v / self.costs[0 if self.side[i] > 0 else 1, i])
        for i in range(self.leavers):
            slot = self.leaving[i]
            square += self.direction[slot] * self._pull(slot)
        return sqrt(fmax(square, 0.0)) * (1.0 + 1e-9) + 1e-12

    cdef int _follow(self, int found, list trace) except -1:
        cdef double t = 0.0, best, speed, gap
        cdef int64_t who, other = -1
        cdef int to, tied = 0, back = GONE, i, old
        i = self._start(found)
        if i < 0:
            return LOST
        if not i:
            return DONE
        while True:
            speed = self._speed()
            best = 1.0 - t
            who = self._next(&best, &to, &gap, speed, other, back)
            axpy(self.count, best, &self.direction[0], &self.alpha[0])
            for i in range(found):
                self.floor[self.todo[i]] += best * self.rise[self.todo[i]]
                self.roof[self.todo[i]] += best * self.fall[self.todo[i]]
            t += best
            self.drift += best * speed
            if who < 0:
                break
            trace.append((best, who, to))
            tied = tied + 1 if best <= 1e-15 else 0
            if tied > _TIED:
                break
            old = self.side[who]
            self.alpha[who] = 0.0
            if to == 0:
                self.sure[who] = -1.0
                if self.leave(who, 0, &self.direction[0], 0.0):
                    return LOST
                back = old
            else:
                if self.enter(who, to, &self.direction[0], (self.rise[who] if to > 0 else self.fall[who]) - gap):
                    return LOST
                back = 0
            other = who
        for i in range(self.leavers):
            self.alpha[self.leaving[i]] = 0.0
        if who >= 0:
            return UNSETTLED
        if self.theta == 0.0:  # name the sides by the signs where a crossing was no event
            for i in range(self.count):
                if (self.side[i] == 1 or self.side[i] == -1) and self.costs[0, i] == self.costs[1, i]:
                    self.side[i] = -1 if self.alpha[i] < 0.0 else 1
        return DONE

    cdef int64_t _next(self, double *best, int *to, double *gap, double speed, int64_t other, int back) except -2:
        """The nearest breakpoint within `best`, which becomes its length, the lowest slot of several; -1 if there is none.

        `back` is the way back of the last breakpoint's instance, `other`, which is not taken at once: a length of zero
        there is rounding. `gap` becomes how fast the margin of an instance changes that comes from C.
        """
        cdef int i, side, fixed
        cdef int64_t who = -1
        cdef double length, v, gamma, pull, room
        for i in range(self.count):
            side = self.side[i]
            if side == 1 or side == -1:
                v = self.direction[i]
                if not side * v < 0.0:
                    continue
                if self.theta == 0.0 and self.rise[i] == 0.0 and self.fall[i] == 0.0 and (
                    self.costs[0, i] == self.costs[1, i]
                ):
                    continue  # no event where both sides of a strip without width are one
                length = -self.alpha[i] / v
                if i == other and back == 0 and length <= 1e-12:
                    continue
                length = fmax(length, 0.0)
                if length < best[0]:
                    best[0], who, to[0] = length, i, 0
        for i in range(self.count):
            if self.side[i] != 0:
                continue
            fixed = self.rise[i] == 0.0 and self.fall[i] == 0.0
            if fixed and self.sure[i] > self.drift + best[0] * speed:
                continue
            gamma, pull = self.margin(i), self._pull(i)
            self.looks += 1
            if fixed:
                room = min(gamma - self.low, self.high - gamma) - 1e-12
                self.sure[i] = self.drift + room / self.length[i]
            for side in range(1, -2, -2):
                if side > 0:
                    length, v = gamma - self.floor[i], self.rise[i] - pull
                else:
                    length, v = self.roof[i] - gamma, pull - self.fall[i]
                if not v > 0.0:
                    continue
                length /= v
                if i == other and back == side and length <= 1e-12:
                    continue
                length = fmax(length, 0.0)
                if length < best[0] or length == best[0] and who >= 0 and i < who:
                    best[0], who, to[0], gap[0] = length, i, side, pull
        return who
