"""What `_codec.pyx` needs of a compiled learner: its store, its version, its rule."""

from libc.stdint cimport int64_t

from pa_river._arena cimport ArenaStore


cdef class ScoreCore:
    cdef object store
    cdef ArenaStore arena  # the store, if it is one
    cdef public int64_t _version
    cdef object chosen  # the rule, checked

    cdef int move(self, ArenaStore store, object x, double loss, double sign, double weight) except -1
    cdef object width(self)
