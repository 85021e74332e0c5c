"""What `_codec.pyx` and the other cores need of a compiled learner: its store, its version, its rule."""

from libc.stdint cimport int64_t

from pa_river._arena cimport ArenaStore


cdef class Core:
    cdef object store
    cdef public int64_t _version
    cdef bint is_native  # whether the store is one that the methods work on

    cdef void take(self) noexcept
    cdef object answer(self, object x, object y, object w, bint ask)


cdef class Ruled(Core):
    cdef object chosen  # the rule, checked


cdef class ScoreCore(Ruled):
    cdef ArenaStore arena  # the store, if it is one

    cdef int move(self, ArenaStore store, object x, double loss, double sign, double weight) except -1
    cdef object width(self)

cdef double weight_of(object w) except? -1.0
cdef double length_by(object rule, double loss, double norm, double weight) except? -1.0
