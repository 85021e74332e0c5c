# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled change of `FrozenEngine`: end-point pivots, and margins inside the strip looked at where they must be."""

import numpy as np

from libc.math cimport fabs, fmax, sqrt
from libc.stdint cimport int64_t
from scipy.linalg.cython_blas cimport dtrsv

from pa_river.odm._border cimport DONE, GONE, LOST, SWEEPS, UNSETTLED, Border, axpy, dot
from pa_river.odm._kept cimport SYMM_MOST

cdef int ONE = 1
#: Error that an estimated margin may have beside the movement that the landmarks miss: rounding of multipliers.
cdef double _ALLOWED = 1e-7


cdef class FrozenCore(Border):
    """The state of `FrozenEngine`, and its change as one call."""

    def __init__(self, double theta):
        super().__init__(theta)
        self.theta, self.low, self.high = theta, 1.0 - theta, 1.0 + theta
        self.r = 0
        self.drift = 0.0

    def bind(self, H, alpha, side, costs):
        super().bind(H, alpha, side, costs)
        self.todo = np.zeros(len(alpha), np.int64)
        squares = H.diagonal()
        self.length, self.top = np.sqrt(np.maximum(squares, 1e-300)), squares.max(initial=0.0)

    def screen(self, F, corner, marks, limit, offset, seen, missed):
        """Screen margins inside the strip by these features; no features, no screening."""
        self.F, self.corner, self.marks = F, corner, marks
        self.limit, self.offset, self.seen, self.missed = limit, offset, seen, missed
        self.r = <int>len(marks)
        self.c = np.zeros(max(1, self.r))

    cdef void admit(self, Py_ssize_t slot) noexcept:
        """Take note of an instance that has come."""
        cdef double square = self.H[slot, slot]
        self.note(slot)
        self.length[slot], self.top = sqrt(fmax(square, 1e-300)), fmax(self.top, square)
        if self.r:
            self._describe(slot)

    cdef int insert(self, Py_ssize_t slot, int side, double gamma) except -1:
        """Take an instance of C into S, the multipliers following."""
        if self.enter(slot, side, &self.alpha[0], (self.low if side > 0 else self.high) - gamma):
            return LOST
        self.drift += fabs(self.value) * sqrt(fmax(self.pivot - self.diagonal(slot, side), 0.0))
        return DONE

    cdef int delete(self, Py_ssize_t slot, int side) except -1:
        """Take an instance out of S, the multipliers following."""
        cdef double diagonal = self.diagonal(slot, self.side[slot])
        if self.leave(slot, side, &self.alpha[0], 0.0):
            return LOST
        self.drift += fabs(self.value) * sqrt(fmax(1.0 / self.pivot - diagonal, 0.0))
        if side == 0 and self.r:
            self.limit[slot] = -1.0  # to be looked at
            self.seen[slot] = -1.0
        return DONE

    def change(self, added, removed, int count):
        """Bring the solution to the optimum; DONE, LOST or UNSETTLED."""
        cdef Py_ssize_t slot
        cdef int found = 0
        self.count = count
        for slot in removed:
            if self.side[slot] == 0:
                self.side[slot] = GONE
                self.drop(slot)
            elif self.delete(slot, GONE):
                return LOST
        for slot in added:
            self.admit(slot)
            self.todo[found] = slot
            found += 1
        if found and self._let_in(&self.todo[0], found, 0.0) < 0:
            return LOST
        return self._settle()

    def settle(self):
        """Go from these sets to the optimum by pivots; DONE, LOST or UNSETTLED."""
        return self._settle()

    cdef int _let_in(self, const int64_t *slots, int count, double slack) except -1:
        """Insert those whose margins are outside the strip by more than `slack`; how many, or -2 if the factors are lost."""
        cdef int begin, i, g, wanted, moved = 0
        cdef int64_t who[SYMM_MOST]
        cdef double gamma
        for begin in range(0, count, SYMM_MOST):
            g = min(SYMM_MOST, count - begin)
            if g > 1:
                wanted = 0
                for i in range(g):
                    gamma = self.margin(slots[begin + i])
                    if gamma < self.low - slack or gamma > self.high + slack:
                        who[wanted] = slots[begin + i]
                        wanted += 1
                self.prepare(who, wanted)
            for i in range(g):
                who[0] = slots[begin + i]
                gamma = self.margin(who[0])  # once more: the inserts before this one moved it
                if self.low - slack <= gamma <= self.high + slack:
                    continue
                if g == 1:
                    self.prepare(who, 1)
                if self.insert(who[0], 1 if gamma < self.low else -1, gamma):
                    return -2
                moved += 1
        return moved

    cdef int _settle(self) except -1:
        cdef int sweep, i, found, moved, let_in
        cdef Py_ssize_t slot
        cdef double slack, total
        for sweep in range(SWEEPS):
            moved = 0
            found = 0
            total = 0.0
            for i in range(self.count):
                if self.side[i] == 1 or self.side[i] == -1:
                    total += fabs(self.alpha[i])
                    if self.alpha[i] * self.side[i] < 0.0:
                        self.todo[found] = i
                        found += 1
            for i in range(found):
                slot = self.todo[i]
                if self.alpha[slot] * self.side[slot] < 0.0:
                    if self.theta == 0.0 and self.costs[0, slot] == self.costs[1, slot]:
                        self.side[slot] = -self.side[slot]  # same equation on both sides: nothing to solve
                    else:
                        if self.delete(slot, 0):
                            return LOST
                        moved = 1
            slack = 1e-13 + 4e-16 * total * self.top
            found = self._suspects(slack)
            if found:
                let_in = self._let_in(&self.todo[0], found, slack)
                if let_in < 0:
                    return LOST
                moved |= let_in > 0
            if not moved:
                return DONE
            self.sweeps += 1
        return UNSETTLED

    cdef int _suspects(self, double slack) except -1:
        """Collect in self.todo the slots of C whose margins are not surely in the strip; return how many."""
        cdef int i, found = 0, kept = 0, r = self.r, j, known
        cdef double gamma, room, estimate, error
        for i in range(self.count):
            if self.side[i] == 0 and (r == 0 or self.limit[i] <= self.drift):
                self.todo[found] = i
                found += 1
        if found == 0:
            return 0
        self.asked += found
        known = self._locate(found)
        for j in range(found):
            i = <int>self.todo[j]
            if known and self.seen[i] >= 0.0:
                estimate = self.offset[i] + dot(r, &self.F[i, 0], &self.c[0])
                error = self.missed[i] * (self.drift - self.seen[i]) + _ALLOWED
                room = min(estimate - self.low, self.high - estimate) - error
                if room > 0.0:
                    self.limit[i] = self.drift + room / self.length[i]
                    continue
            gamma = self.margin(i)
            self.looks += 1
            if known:
                self.offset[i] = gamma - dot(r, &self.F[i, 0], &self.c[0])
                self.seen[i] = self.drift
            if r:
                room = min(gamma - self.low, self.high - gamma) - 1e-12
                self.limit[i] = self.drift + room / self.length[i]
            if gamma < self.low - slack or gamma > self.high + slack:
                if r:
                    self.limit[i] = -1.0  # once more after the inserts before it
                self.todo[kept] = i
                kept += 1
        return kept

    cdef int _locate(self, int asked) noexcept:
        """Set c to what the landmarks say of w; return 0 where to look at those asked for costs less.

        With F F' the kernel values of the landmarks, c solves F c = their margins, and in S a margin is known from the
        multiplier: gamma_i = d_i - alpha_i / cost_i. Only landmarks that have left S are looked at.
        """
        cdef int i, r = self.r, left = 0, ld
        cdef Py_ssize_t slot
        cdef char up = b"U", trans = b"T", plain = b"N"
        for i in range(r):
            left += self.side[self.marks[i]] not in (1, -1)
        if r == 0 or <long long>(asked - left) * self.count <= <long long>r * (asked + r // 2):
            return 0
        for i in range(r):
            slot = self.marks[i]
            if self.side[slot] == 1:
                self.c[i] = self.low - self.alpha[slot] * self.diagonal(slot, 1)
            elif self.side[slot] == -1:
                self.c[i] = self.high - self.alpha[slot] * self.diagonal(slot, -1)
            else:
                self.c[i] = self.margin(slot)
        ld = <int>self.corner.shape[1]
        # the lower triangle by rows is the upper one by columns, transposed
        dtrsv(&up, &trans, &plain, &r, &self.corner[0, 0], &ld, &self.c[0], &ONE)
        return 1

    cdef void _describe(self, Py_ssize_t slot) noexcept:
        """Features of a newcomer: corner f = its kernel values with the landmarks."""
        cdef int i, r = self.r
        cdef char up = b"U", trans = b"T", plain = b"N"
        cdef int ld = <int>self.corner.shape[1]
        cdef double *f = &self.F[slot, 0]
        for i in range(r):
            f[i] = self.H[slot, self.marks[i]]
        # the lower triangle by rows is the upper one by columns, transposed
        dtrsv(&up, &trans, &plain, &r, &self.corner[0, 0], &ld, f, &ONE)
        self.missed[slot] = sqrt(fmax(self.H[slot, slot] - dot(r, f, f), 0.0)) + 1e-7 * self.length[slot]
        self.limit[slot] = self.seen[slot] = -1.0
