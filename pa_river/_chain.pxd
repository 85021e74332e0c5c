"""What `_tagger.pyx` needs of the loops that learn."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from pa_river._lattice cimport Decoder

# One joint feature in which two paths differ, and by how much. `place` is 2 slot for the emission of a feature (`row`
# is its row, or -1 - the place of an unseen name), 2 slot + 1 for a move (`row` is that of the previous tag).
ctypedef struct Cell:
    double value
    int32_t row, place
    int32_t next  # the number, from 1, of the next cell of the same row
    int32_t seat  # of the row in the table
    uint8_t lost, inexact

# What stood at a place of the emissions, or, at -1 - place, of the moves.
ctypedef struct Change:
    int64_t at
    double now, past


cdef class Loops(Decoder):
    # how the model learns
    cdef object rule
    cdef int law
    cdef double C
    cdef bint max_loss, costly
    cdef Py_ssize_t slots
    # memory to work in
    cdef Cell *cells
    cdef int32_t *table
    cdef Py_ssize_t cells_room, table_room, count
    # what stood where the last step moved, or a batch: changes up to `held`, then `copies` of what they led to
    cdef Change *log
    cdef Py_ssize_t log_room, logged, held
    cdef bint in_batch
    cdef tuple copies

    cdef int ask(self, object model) except -1
    cdef int rival(self, const int32_t *gold) except -1
    cdef int learn(self, object model, const int32_t *gold, double weight, dict known) except -1
    cdef int unchanged(self, tuple arrays) except -1
    cdef int differ(self, const int32_t *gold, const int32_t *rival) except -1
    cdef int32_t row_of(self, Py_ssize_t f) noexcept
    cdef double exact(self, Cell *cell, const int32_t *gold, const int32_t *rival) except? -1.0
    cdef double score(self, double *square) except? -1.0
    cdef double norm(self, double square) noexcept
    cdef int step(self, double length, double norm) except -1
    cdef int take_back(self, Py_ssize_t begin) noexcept
    cdef int give_rows(self, double length, double norm, bint average) except -1
    cdef int begin_batch(self) except -1
    cdef int hold(self) except -1
    cdef int put_back(self) except -1
