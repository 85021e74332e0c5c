"""The compiled flat store, as the learners' and the batches' loops use it."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pa_river._names cimport Arena, Names

cdef extern from "_columns.h" nogil:
    ctypedef struct Columns:
        double *weights
        size_t width, reads, news
        const int64_t *numbers


cdef class ArenaStore(Names):
    cdef public double intercept
    cdef Columns columns  # the weights of int names by column, where a sparse batch asked for them

    cdef double finite_score(self) except? -1.0
    cdef int move(self, double length, double norm) except -1
    cdef int refuse(self, bint weight) except -1
    cdef restore(self, double intercept, dict before, uint32_t count)
    cdef Columns *open_columns(self, size_t width) except NULL
    cdef int gather(self, object names, Py_ssize_t width, double *weights, int32_t *slots) except -1
    cdef int scatter(self, object names, Py_ssize_t width, const double *weights, const int32_t *slots,
                     const int32_t *order, Py_ssize_t fresh) except -1
    cdef int forget(self, uint32_t count, double intercept) except -1
