# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled change of `PrimalEngine`: recursive least squares over the features, same steps as `primal.py`."""

import numpy as np

from libc.math cimport fabs, sqrt
from libc.stdint cimport int64_t
from scipy.linalg.cython_blas cimport dgemv, dsymv, dsyr, dtrsv

from pa_river.odm._border cimport DONE, FREE, GONE, LOST, SWEEPS, UNSETTLED, axpy, dot

cdef int ONE = 1
cdef double PLUS = 1.0
cdef double ZERO = 0.0


cdef class PrimalCore:
    """The state of `PrimalEngine` and its change as one call. P holds the triangle that `dsyr` keeps."""

    cdef double[:, ::1] H, costs, F, P, corner
    cdef double[::1] alpha, w, z, gamma
    cdef signed char[::1] side
    cdef int64_t[::1] marks
    cdef double low, high, theta, top
    cdef int r, count
    cdef public long long pivots, sweeps

    def __init__(self, double theta):
        self.theta, self.low, self.high = theta, 1.0 - theta, 1.0 + theta

    def bind(self, H, alpha, side, costs, F, P, corner, w, marks, double top):
        """Work on these arrays of the problem and the engine."""
        self.H, self.alpha, self.side, self.costs = H, alpha, side, costs
        self.F, self.P, self.corner, self.w, self.marks = F, P, corner, w, marks
        self.r, self.top = len(marks), top
        self.z, self.gamma = np.zeros(F.shape[1] + 1), np.zeros(len(alpha) + 1)

    cdef inline double margin(self, Py_ssize_t slot) noexcept:
        return dot(self.r, &self.F[slot, 0], &self.w[0])

    cdef int _pivot(self, Py_ssize_t slot, int side, double sign) noexcept:
        cdef char low = b"L"
        cdef int r = self.r, ld = <int>self.P.shape[1]
        cdef double cost = sign * self.costs[0 if side > 0 else 1, slot], s, scale
        cdef double *f = &self.F[slot, 0]
        dsymv(&low, &r, &PLUS, &self.P[0, 0], &ld, f, &ONE, &ZERO, &self.z[0], &ONE)
        s = 1.0 + cost * dot(r, f, &self.z[0])
        if not s > 0.0:
            return LOST
        scale = cost * ((self.low if side > 0 else self.high) - dot(r, f, &self.w[0])) / s
        axpy(r, scale, &self.z[0], &self.w[0])
        scale = -cost / s
        dsyr(&low, &r, &scale, &self.z[0], &ONE, &self.P[0, 0], &ld)
        self.pivots += 1
        return DONE

    cdef int insert(self, Py_ssize_t slot, int side) noexcept:
        if self._pivot(slot, side, 1.0):
            return LOST
        self.side[slot] = side
        return DONE

    cdef int delete(self, Py_ssize_t slot, int side) noexcept:
        if self._pivot(slot, self.side[slot], -1.0):
            return LOST
        self.alpha[slot], self.side[slot] = 0.0, side
        return DONE

    def express(self, Py_ssize_t slot):
        """Features of a newcomer from its kernel values with the landmarks; what they miss of its norm."""
        cdef int i, r = self.r, ld = <int>self.corner.shape[1]
        cdef char up = b"U", trans = b"T", plain = b"N"
        cdef double *f = &self.F[slot, 0]
        for i in range(r):
            f[i] = self.H[slot, self.marks[i]]
        for i in range(r, <int>self.F.shape[1]):
            f[i] = 0.0
        if r:
            dtrsv(&up, &trans, &plain, &r, &self.corner[0, 0], &ld, f, &ONE)
        return self.H[slot, slot] - dot(r, f, f)

    def change(self, added, removed, int count):
        """Bring the solution to the optimum; DONE, LOST or UNSETTLED."""
        cdef Py_ssize_t slot
        cdef double gamma
        self.count = count
        for slot in removed:
            if self.side[slot] == 0:
                self.side[slot] = GONE
            elif self.delete(slot, GONE):
                return LOST
        for slot in added:
            gamma = self.margin(slot)
            if gamma < self.low:
                if self.insert(slot, 1):
                    return LOST
            elif gamma > self.high:
                if self.insert(slot, -1):
                    return LOST
        return self._settle()

    cdef int _settle(self) noexcept:
        cdef int sweep, i, moved, status, ld = <int>self.F.shape[1], r = self.r, m = self.count, side
        cdef char trans = b"T"
        cdef double slack = 0.0, g
        for i in range(r):
            slack += fabs(self.w[i])
        slack = 1e-13 + 4e-16 * slack * sqrt(self.top)
        for sweep in range(SWEEPS):
            if r and m:
                dgemv(&trans, &r, &m, &PLUS, &self.F[0, 0], &ld, &self.w[0], &ONE, &ZERO, &self.gamma[0], &ONE)
            else:
                self.gamma[:] = 0.0
            moved = 0
            for i in range(m):
                side, g = self.side[i], self.gamma[i]
                if side >= FREE:
                    continue
                if side >= 0 and g > (self.low if side > 0 else self.high) + slack or (
                    side <= 0 and g < (self.high if side < 0 else self.low) - slack
                ):
                    status = self._place(i, slack)
                    if status < 0:
                        return LOST
                    moved |= status
            if not moved:
                for i in range(m):
                    side = self.side[i]
                    if side == 1:
                        self.alpha[i] = (self.low - self.gamma[i]) * self.costs[0, i]
                    elif side == -1:
                        self.alpha[i] = (self.high - self.gamma[i]) * self.costs[1, i]
                    else:
                        self.alpha[i] = 0.0
                return DONE
            self.sweeps += 1
        return UNSETTLED

    cdef int _place(self, Py_ssize_t slot, double slack) noexcept:
        """1 if an equation changed, 0 if not, -1 if lost."""
        cdef double g = self.margin(slot)
        cdef int old = self.side[slot], new = 0
        if g < self.low - slack:
            new = 1
        elif g > self.high + slack:
            new = -1
        if new == old or old > 0 and g <= self.low + slack or old < 0 and g >= self.high - slack:
            return 0
        if new and old and self.theta == 0.0 and self.costs[0, slot] == self.costs[1, slot]:
            self.side[slot] = new
            return 0
        if old and self.delete(slot, 0):
            return -1
        if new:
            g = self.margin(slot)
            if g < self.low:
                if self.insert(slot, 1):
                    return -1
            elif g > self.high:
                if self.insert(slot, -1):
                    return -1
        return 1
