"""The compiled store of weights with a variance each, as the learners' loops use it."""

from libc.stdint cimport int32_t

from pa_river._rowarena cimport RowArena


cdef class ConfidenceArena(RowArena):
    cdef double deviation_seen(self, Py_ssize_t slot) noexcept
    cdef int tilt_seen(self, Py_ssize_t terms, const double *signs, const int32_t *slots, double length, double deviation,
                       double left) except -1
