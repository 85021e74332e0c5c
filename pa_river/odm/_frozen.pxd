# cython: language_level=3
"""What `_path.pyx` needs of the end-point pivots: it ends with them where it cannot go on."""

from libc.stdint cimport int64_t

from pa_river.odm._border cimport Border


cdef class FrozenCore(Border):
    cdef double[:, ::1] F, corner
    cdef double[::1] limit, offset, seen, missed, c, length
    cdef int64_t[::1] marks, todo
    cdef double low, high, theta, drift, top
    cdef int r
    cdef public long long sweeps, looks, asked

    cdef void admit(self, Py_ssize_t slot) noexcept
    cdef int insert(self, Py_ssize_t slot, int side, double gamma) except -1
    cdef int delete(self, Py_ssize_t slot, int side) except -1
    cdef int _let_in(self, const int64_t *slots, int count, double slack) except -1
    cdef int _settle(self) except -1
    cdef int _suspects(self, double slack) except -1
    cdef int _locate(self, int asked) noexcept
    cdef void _describe(self, Py_ssize_t slot) noexcept
