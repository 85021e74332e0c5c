"""Rows of a plain table, in the form in which a store of rows takes them in hand."""

from libc.stdint cimport int32_t, uint64_t

from pa_river._names cimport Names


cdef class ColumnSlots:
    cdef int32_t *slots  # by column: the slot of its name + 1, or 0 where it was not found yet
    cdef Py_ssize_t width
    cdef uint64_t identity  # of the store, when the slots were found


cdef class Lines:
    cdef Names store
    cdef ColumnSlots columns
    cdef uint64_t identity
    cdef object names
    cdef const double[::1] data
    cdef const int32_t[::1] indices, indptr
    cdef const double[:, ::1] dense
    cdef Py_ssize_t count, width
    cdef bint sparse
    cdef int32_t *fresh  # places and columns of the names of the last row that were not found
    cdef Py_ssize_t fresh_count, fresh_room
    cdef uint64_t stamp  # of the last row

    cdef int take(self, Py_ssize_t row) except -1
    cdef int make_room(self, Py_ssize_t size) except -1


cdef class Line:
    cdef Lines table
    cdef Py_ssize_t row

    cdef dict record(self)

cdef Lines lines_of(Names store, ColumnSlots known, object X)
