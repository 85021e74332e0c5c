"""What `_chain.pyx` and `_tagger.pyx` need of the lattice."""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport realloc


cdef inline void *roomy(void *held, Py_ssize_t *room, Py_ssize_t wanted, size_t size) except NULL:
    """Return `held` with room for that many items."""
    cdef void *more
    if wanted <= room[0] and held != NULL:
        return held
    more = realloc(held, (wanted + wanted // 2 + 16) * size)
    if more == NULL:
        raise MemoryError()
    room[0] = wanted + wanted // 2 + 16
    return more


cdef class Decoder:
    cdef object store
    cdef dict rows
    cdef tuple arrays  # the store's, of which these are the addresses
    cdef double *emit
    cdef double *move
    cdef double *past_emit  # NULL where nothing is averaged
    cdef double *past_move
    cdef Py_ssize_t stride, room, known, tags, width
    # the sentence in hand
    cdef const int32_t *codes
    cdef const double *values  # NULL stands for ones
    cdef const int64_t *ends
    cdef Py_ssize_t tokens
    cdef list names  # what codes below 0 stand for
    cdef int32_t *place  # the row of each of them, once it has one
    cdef int32_t *path
    cdef int64_t examples  # learned so far
    # memory to work in
    cdef double *scores
    cdef double *best
    cdef double *mean_move
    cdef double *into  # the moves from `into_start` on, a row for each tag to go to
    cdef const double *into_start
    cdef Py_ssize_t scores_room, best_room, path_room, mean_room, into_room, into_tags

    cdef int bind(self, Py_ssize_t tags, Py_ssize_t rows) except -1
    cdef int consider(self, Py_ssize_t tags) noexcept
    cdef int take(self, const int32_t *codes, const double *values, const int64_t *ends, Py_ssize_t tokens) except -1
    cdef int emissions(self, const double *block, double *out) except -1
    cdef int decode(self, const double *start) except -1
    cdef int turn(self, const double *start) except -1
    cdef int decode_now(self) except -1
    cdef int prepare_mean(self) except -1
    cdef int decode_mean(self) except -1
    cdef list answer(self, list tags)
