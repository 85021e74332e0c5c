"""The compiled store of one weight a name and label, as the learners' and the batches' loops use it."""

from libc.stdint cimport int32_t, uint32_t

from pa_river._lines cimport ColumnSlots, Lines
from pa_river._names cimport Names

# The weights of one name: `length` of them stand in the pool, from `begin` on, with room for more.
ctypedef struct Row:
    size_t begin
    uint32_t length, room


cdef class RowArena(Names):
    cdef Row *rows  # by slot of the name
    cdef size_t rows_room
    cdef double *pool
    cdef size_t used, size
    cdef double *intercepts
    cdef uint32_t intercept_count, intercept_room, labels  # labels: how many a new row has room for

    cdef ColumnSlots columns
    cdef void *journal  # the latest `Undo` that still listens, a borrowed reference

    cdef Lines lines_of(self, object X)
    cdef int note(self, int32_t cell) except -1
    cdef double *score_seen(self, Py_ssize_t count) except NULL
    cdef int move_seen(self, Py_ssize_t terms, const double *signs, const int32_t *slots, double length,
                       double norm) except -1
    cdef int make_way(self, uint32_t length) except -1
    cdef int reserve_rows(self, size_t names, size_t numbers) except -1
    cdef int put_intercept(self, int32_t slot, double weight) noexcept
    cdef int reserve_intercepts(self, uint32_t count) except -1
    cdef swap(self, RowArena other)
    cdef int widen(self, int32_t name, uint32_t length) noexcept
    cdef int lengthen(self, int32_t name, uint32_t length) noexcept
    cdef size_t wanted(self, int32_t name, uint32_t length) noexcept
    cdef int truncate(self, uint32_t count) except -1
    cdef int look_up(self, object names, Py_ssize_t width, int32_t *slots) except -1
    cdef int bring(self, object names, const int32_t *order, Py_ssize_t fresh, int32_t *slots) except -1


cdef inline double number_at(RowArena store, int32_t name, int32_t at) noexcept:
    """What the row of a name (-1: one that is not there) holds at a place."""
    if name < 0 or <uint32_t>at >= store.rows[name].length:
        return 0.0
    return store.pool[store.rows[name].begin + at]


cdef inline int put_number(RowArena store, int32_t name, int32_t at, double number) noexcept:
    if <uint32_t>at >= store.rows[name].length:
        store.lengthen(name, at + 1)
    store.pool[store.rows[name].begin + at] = number
    return 0


cdef inline Py_ssize_t best_of(const double *scores, Py_ssize_t count, Py_ssize_t without) noexcept:
    """The slot with the highest score, the first among equals; the slot `without` does not count."""
    cdef Py_ssize_t slot, best = -1
    for slot in range(count):
        if slot != without and (best < 0 or scores[slot] > scores[best]):
            best = slot
    return best
