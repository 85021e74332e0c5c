"""What `_native.pyx` needs of the arena: the C struct and the store's methods that take no Python call."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "_arena.h" nogil:
    ctypedef struct ArenaEntry:
        uint32_t begin
        uint32_t hash
        double weight

    ctypedef struct Arena:
        ArenaEntry *entries
        uint8_t *blob
        uint32_t count
        size_t used
    size_t arena_length(const Arena *, uint32_t slot)


cdef class ArenaStore:
    cdef Arena arena
    cdef uint64_t identity
    cdef readonly double _extra
    cdef public double intercept
    cdef object columns  # an int32 array, or None; see `column_slots`

    cdef void renew(self) noexcept
    cdef int measure(self, object x) except -1
    cdef int scan(self, dict x, list texts) except -1
    cdef uint64_t stamp(self) noexcept
    cdef double finite_score(self) except? -1.0
    cdef double length_of_seen(self) noexcept
    cdef int move(self, double length, double norm) except -1
    cdef int refuse(self, bint weight) except -1
    cdef restore(self, double intercept, dict before, uint32_t count)
    cdef object name(self, uint32_t slot)
    cdef int fill(self, const uint8_t *block, uint32_t count, const char *weights) except -1
    cdef int32_t column(self, int64_t number) noexcept
    cdef int32_t add_column(self, int64_t number) noexcept
    cdef int reserve_columns(self, size_t count) except -1
    cdef int32_t[::1] column_slots(self, Py_ssize_t width)
    cdef int gather(self, object names, double[::1] weights, int32_t[::1] slots) except -1
    cdef int scatter(self, object names, double[::1] weights, int32_t[::1] slots, int32_t[::1] order) except -1
    cdef int forget(self, uint32_t count, double intercept) except -1
