# cython: language_level=3
"""What the engines' cores share: status and sides of instances, level-1 loops, and the bordered inverse they pivot on."""

from libc.stdint cimport int64_t
from scipy.linalg.cython_blas cimport daxpy, ddot

from pa_river.odm._kept cimport Kept

cdef enum:
    # status of a change, as the Python side reads it
    DONE = 0
    LOST = 1
    UNSETTLED = 2
    # `Problem.side` of slots without an instance in the problem
    FREE = 2
    GONE = 3
    SWEEPS = 30
    PENDING = 32


cdef inline double dot(int n, const double *a, const double *b) noexcept nogil:
    cdef int one = 1
    return ddot(&n, <double *>a, &one, <double *>b, &one)


cdef inline void axpy(int n, double a, const double *x, double *y) noexcept nogil:
    cdef int one = 1
    daxpy(&n, &a, <double *>x, &one, y, &one)


cdef class Border(Kept):
    # what is pending beside the base inverse
    cdef double[:, ::1] Z, small
    cdef int64_t[::1] queued, of, spent
    cdef signed char[::1] sides, active, comes
    # of the pivot at hand
    cdef double[::1] u, sigma, e
    cdef double pivot, value
    cdef public int k, count
    cdef public long long pivots, folds

    cdef double margin(self, Py_ssize_t slot) noexcept
    cdef double diagonal(self, Py_ssize_t slot, int side) noexcept
    cdef int enter(self, Py_ssize_t slot, int side, double *along, double gap) except -1
    cdef int leave(self, Py_ssize_t slot, int side, double *along, double target) except -1
    cdef int _take_back(self, Py_ssize_t slot, int64_t p, int side, double *along, double gap) except -1
    cdef void _move(self, double *along, double length, const double *direction) noexcept
    cdef void _append(self, const double *z, double pivot, int64_t of, int comes) noexcept
    cdef void _withdraw(self, int q) noexcept
    cdef void _small_times(self, const double *v) noexcept
    cdef void _against(self, const double *h, double *out) noexcept
    cdef void _spread(self, double *out) noexcept
    cpdef int fold(self) except -1
    cdef void _update_columns(self, const double *A, int la) noexcept
