"""Columns of the base inverse that are kept; see `_kept.pyx`."""

from libc.stdint cimport int64_t

cdef extern from "odm/_symm.h":
    enum:
        SYMM_MOST  # how many right sides one pass over the base takes


cdef class Kept:
    # of the problem
    cdef double[:, ::1] H, costs
    cdef double[::1] alpha
    cdef signed char[::1] side
    # the base inverse, and who is in it
    cdef double[::1, :] B
    cdef int64_t[::1] base, place
    # columns B0 h of instances that may come
    cdef double[:, ::1] Y, h, out
    cdef int64_t[::1] whom, column, age
    cdef int hand
    cdef double steepest
    cdef public int n
    cdef public long long passes

    cdef void note(self, Py_ssize_t slot) noexcept
    cdef int prepare(self, const int64_t *slots, int count) except -1
    cdef int _pass(self, int64_t *who, int count) except -1
    cdef int _keep(self, Py_ssize_t slot, int64_t age) noexcept
    cdef void drop(self, Py_ssize_t slot) noexcept
    cdef void _gather(self, Py_ssize_t slot, double *h) noexcept
