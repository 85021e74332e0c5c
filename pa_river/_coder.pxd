"""What `_chain.pyx` needs of coded sentences."""

from libc.stdint cimport int32_t, int64_t


cdef class Coder:
    cdef int32_t *codes  # of each feature: its row, or -1 - its place in `names`
    cdef double *values
    cdef int64_t *ends  # of each token, one for the beginning
    cdef Py_ssize_t features, tokens, room_features, room_tokens
    cdef bint ones  # whether every value is 1
    cdef dict rows, numbers
    cdef readonly list names

    cdef int forget(self) except -1
    cdef int read(self, object tokens) except -1
    cdef int read_token(self, object token) except -1
    cdef int read_mapping(self, dict phi) except -1
    cdef int read_names(self, object token) except -1
    cdef int add(self, object name, double value) except -1
    cdef int make_room(self, Py_ssize_t features) except -1
    cdef int32_t[::1] unplaced(self)
