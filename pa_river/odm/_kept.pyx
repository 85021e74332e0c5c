# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns B0 h of instances that may come, made several at a time by one pass over the base inverse, and kept."""

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport dsymv

cdef extern from "odm/_symm.h":
    ctypedef void symm_pass(const double *B, long ld, long n, const double *h, double *out, long stride) noexcept nogil
    symm_pass *symm_for(int count) nogil

cdef enum:
    _LARGE = 1024  # order from which the base is in no near cache, and further right sides cost nothing

cdef int ONE = 1
cdef double PLUS = 1.0
cdef double ZERO = 0.0


cdef class Kept:
    """The base inverse B0, and the columns B0 h that were made of it.

    To make a column is the only product that reads all of B0: several are made in one pass, and what comes back from S
    keeps its own. Where there is no room for another, the oldest gives way.
    """

    cdef void note(self, Py_ssize_t slot) noexcept:
        """Take note of an instance that has come."""
        self.steepest = max(self.steepest, max(self.costs[0, slot], self.costs[1, slot]) * self.H[slot, slot])

    cdef int prepare(self, const int64_t *slots, int count) except -1:
        """Have the columns of at most `SYMM_MOST` instances that are about to enter, by one pass over the base."""
        cdef int64_t who[SYMM_MOST]
        cdef int i, wanted = 0
        for i in range(count):
            if self.column[slots[i]] < 0 and self.place[slots[i]] < 0:
                who[wanted] = slots[i]
                wanted += 1
        if wanted:
            self._pass(who, wanted)
        return 0

    def warm(self, slots):
        """Make the columns of these instances of C."""
        cdef int64_t who[SYMM_MOST]
        cdef int wanted = 0
        for slot in slots:
            if self.column[slot] < 0 and self.place[slot] < 0:
                who[wanted] = slot
                wanted += 1
                if wanted == SYMM_MOST:
                    self._pass(who, wanted)
                    wanted = 0
        if wanted:
            self._pass(who, wanted)

    cdef int _pass(self, int64_t *who, int count) except -1:
        """Make columns by one pass over the base."""
        cdef int r, n = self.n, ld = <int>self.B.shape[0], stride = <int>self.h.shape[1]
        cdef char low = b"L"
        cdef symm_pass *at_once
        if n:
            self.passes += 1
            for r in range(count):
                self._gather(who[r], &self.h[r, 0])
            at_once = symm_for(count)
            if at_once != NULL and (count > 1 or n >= _LARGE):
                at_once(&self.B[0, 0], ld, n, &self.h[0, 0], &self.out[0, 0], stride)
            else:
                for r in range(count):
                    dsymv(&low, &n, &PLUS, &self.B[0, 0], &ld, &self.h[r, 0], &ONE, &ZERO, &self.out[r, 0], &ONE)
        for r in range(count):
            memcpy(&self.Y[self._keep(who[r], 0), 0], &self.out[r, 0], n * sizeof(double))
        return 0

    cdef void _gather(self, Py_ssize_t slot, double *h) noexcept:
        """h = an instance's row of H over the base."""
        cdef int i
        cdef double *row = &self.H[slot, 0]
        for i in range(self.n):
            h[i] = row[self.base[i]]

    cdef int _keep(self, Py_ssize_t slot, int64_t age) noexcept:
        """Return a row of Y for the column of an instance; where all are taken, the oldest gives way."""
        cdef int y = self.hand
        self.hand = (y + 1) % <int>self.Y.shape[0]
        if self.whom[y] >= 0:
            self.column[self.whom[y]] = -1
        self.whom[y], self.column[slot], self.age[y] = slot, y, age
        return y

    cdef void drop(self, Py_ssize_t slot) noexcept:
        """Forget the column of an instance."""
        if self.column[slot] >= 0:
            self.whom[self.column[slot]] = -1
            self.column[slot] = -1

    def columns(self):
        """Return the columns that are kept, by slot; for tests."""
        return {slot: np.array(self.Y[y, : self.n]) for y, slot in enumerate(self.whom) if slot >= 0}
