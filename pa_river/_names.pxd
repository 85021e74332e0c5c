"""What stores over an arena share: the map of names, and the record in hand."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

cdef extern from "_arena.h" nogil:
    ctypedef struct ArenaEntry:
        uint32_t begin
        double weight

    ctypedef struct Arena:
        ArenaEntry *entries
        uint8_t *blob
        uint32_t count, mask
        size_t used
    size_t arena_length(const Arena *, uint32_t slot)
    uint32_t arena_hash(const uint8_t *text, size_t length, uint64_t seed)
    int32_t arena_find(const Arena *, const uint8_t *text, size_t length, uint32_t hash)
    int32_t arena_insert(Arena *, const uint8_t *text, size_t length, uint32_t hash, double weight)
    int32_t arena_add(Arena *, const uint8_t *text, size_t length, uint32_t hash, double weight)
    int arena_reserve(Arena *, size_t names, size_t bytes, int exact, uint64_t seed)
    void arena_open(Arena *)
    void arena_close(Arena *)
    void arena_truncate(Arena *, uint32_t count, uint64_t seed)
    int arena_copy(Arena *to, const Arena *source, uint64_t seed)
    int arena_fill(Arena *, const uint8_t *lengths, uint32_t count, const uint8_t *text, size_t bytes,
                   const uint8_t *weights, uint64_t seed)
    uint8_t *arena_spill_names(const Arena *, uint8_t *to)
    uint8_t *arena_spill_weights(const Arena *, uint8_t *to)
    size_t arena_bytes(const Arena *)
    double arena_weight(const Arena *, int32_t slot)
    bint arena_named(const Arena *, uint32_t slot, const uint8_t *text, size_t length)
    int32_t arena_first(const Arena *, uint32_t hash)
    void arena_ask_place(const Arena *, uint32_t hash)
    void arena_ask_entry(const Arena *, int32_t slot)
    void arena_ask_name(const Arena *, int32_t slot)
    void prefetch "ARENA_PREFETCH"(const void *)

# One feature of the record in hand. `key` is a strong reference to a str or int, or NULL.
ctypedef struct Seen:
    PyObject *key
    double value
    uint32_t hash
    int32_t slot

# The record in hand, for all models: a table a model would double the memory of small ones. The i-th key of a record
# is first compared by pointer with the i-th key of the last one, which saves hashing; slots are good only for
# `owner`, and only the first `known` of them.
ctypedef struct Hand:
    Seen *seen
    double *before  # the weights before a step, for as long as it may still be refused
    int32_t *fresh  # which of the record's names are new, as `reserve_seen` found
    Py_ssize_t count, known, room, news, absent
    uint32_t names  # how many the owner had: a name that it had not is still new while it has no more
    uint64_t owner, stamp
    double square, score

cdef Hand hand
cdef uint64_t SEED


cdef class Names:
    cdef Arena arena
    cdef uint64_t identity
    cdef readonly double _extra
    cdef bint loose  # whether `settle` has anything to do

    cdef void renew(self) noexcept
    cdef int settle(self) except -1
    cdef int measure(self, object x) except -1
    cdef int scan(self, dict x, list texts) except -1
    cdef int find_far(self) noexcept
    cdef uint64_t stamp(self) noexcept
    cdef double length_of_seen(self) noexcept
    cdef int32_t seat(self, Py_ssize_t i, object name) except -2
    cdef size_t reserve_seen(self, bint zeros) except? 1
    cdef int insert_seen(self, Py_ssize_t i, double weight) noexcept
    cdef object name_seen(self, Py_ssize_t i)
    cdef object name(self, uint32_t slot)
    cdef object block(self)
    cdef int fill(self, const uint8_t *block, uint32_t count, const uint8_t *weights) except -1
    cdef int fill_spelled(self, const uint8_t *block, uint32_t count, const uint8_t *weights, size_t left) except -1
    cdef int copy_names(self, Names source) except -1

cdef int open_hand(Py_ssize_t count) except -1
