# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""CSR batches, compiled: the steps of `learn_many` over an array of weights by column (`_columns.h`).

The weights move in place, with a log of what stood there before, so a refused row costs no second pass over X. Rows are
summed in the order of `learn_one`, and so give its bits. The arena learns of it when somebody asks it something.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pa_river._arena cimport ArenaStore, Columns
from pa_river._laws cimport GOOD, INTERCEPT, LARGEST_NORM, LEAST_NORM, WEIGHT, Law, finite, judged
from pa_river._names cimport SEED, Arena
from pa_river._tables cimport Table

import numpy as np

cdef extern from "_columns.h" nogil:
    ctypedef struct ColumnNote:
        double weight
        int32_t column

    double columns_dot(const double *own, const int32_t *column, const double *x, Py_ssize_t n, double *square)
    int columns_read(Columns *, const Arena *, uint64_t seed, const int32_t *column, const double *x, Py_ssize_t n,
                     double *dot)
    Py_ssize_t columns_move(Columns *, const int32_t *column, const double *x, Py_ssize_t n, double tau, double length,
                            double norm, bint ordinary, ColumnNote *note, Py_ssize_t *notes)
    int columns_widen(Columns *, size_t width)
    int columns_settle(Columns *, Arena *, uint64_t seed)
    void columns_close(Columns *)

# A table may be far wider than what stands in it, as hashed features are. Beyond this, columns are numbered anew.
cdef Py_ssize_t WIDE = 1 << 22


# What the batch in hand did; kept from one to the next, as fresh pages would cost more than all the rest.
cdef ColumnNote *log = NULL
cdef size_t log_room = 0
cdef size_t LARGE_LOG = 1 << 22


cdef int reserve(size_t notes) except -1:
    global log, log_room
    cdef void *more
    if notes > log_room:
        more = realloc(log, notes * 2 * sizeof(ColumnNote))
        if more == NULL:
            raise MemoryError()
        log, log_room = <ColumnNote *>more, notes * 2
    return 0


cdef void clear() noexcept:
    global log, log_room
    if log_room > LARGE_LOG:
        free(log)
        log, log_room = NULL, 0


cdef class Rows:
    """The rows of a CSR table, and the weights of its columns."""

    cdef const double[::1] data
    cdef const int32_t[::1] indices, indptr
    cdef Columns *columns
    cdef Columns own  # where the store's columns do not do
    cdef const int64_t[::1] numbers
    cdef ArenaStore store
    cdef size_t notes

    def __cinit__(self, ArenaStore store, Table plain):
        memset(&self.own, 0, sizeof(self.own))
        data, indices, self.indptr = plain.csr
        if not len(data):
            data, indices = np.zeros(1), np.zeros(1, np.int32)
        self.store = store
        if plain.width > max(WIDE, 4 * len(data)):
            store.settle()
            numbers, indices = np.unique(indices, return_inverse=True)
            self.numbers, indices = numbers.astype(np.int64), indices.astype(np.int32)
            self.own.numbers = &self.numbers[0]
            self.columns = &self.own
            if columns_widen(&self.own, len(numbers)) < 0:
                raise MemoryError()
        else:
            self.columns = store.open_columns(plain.width)
        self.data, self.indices = data, indices

    def __dealloc__(self):
        columns_close(&self.own)

    cdef int settle(self) except -1:
        if self.columns == &self.own and columns_settle(&self.own, &self.store.arena, SEED) < 0:
            raise MemoryError("the model has no room for more feature names")
        return 0

    cdef void undo(self, size_t news) noexcept:
        cdef ColumnNote *note
        while self.notes:
            self.notes -= 1
            note = &log[self.notes]
            self.columns.weights[note.column] = note.weight
        self.columns.news = news

    cdef int score(self, Py_ssize_t row, double *score, double *square) except -1:
        """w . x of a row, without the intercept, and x . x."""
        cdef Py_ssize_t begin = self.indptr[row], size = self.indptr[row + 1] - begin
        cdef const double *x = &self.data[0] + begin
        cdef const int32_t *column = &self.indices[0] + begin
        score[0] = columns_dot(self.columns.weights, column, x, size, square)
        if score[0] != score[0] and columns_read(self.columns, &self.store.arena, SEED, column, x, size, score) < 0:
            raise MemoryError()
        return 0

    cdef int learn(self, const Law *law, const double[::1] y, const double[::1] weights, Py_ssize_t *at) except -2:
        """Learn the rows in order until one is refused; `at` tells which."""
        cdef Py_ssize_t i, begin, size, moved, notes
        cdef const double *x
        cdef double score, square, tau, norm = 1.0, length = 0.0, intercept
        cdef int refused
        for i in range(self.indptr.shape[0] - 1):
            at[0] = i
            begin, size = self.indptr[i], self.indptr[i + 1] - self.indptr[i]
            x = &self.data[0] + begin
            self.score(i, &score, &square)
            score += self.store.intercept
            refused = judged(law, y[i], score, square, x, size, 1.0 if weights is None else weights[i], &norm, &length)
            if refused != GOOD:
                return refused
            if length == 0.0:
                continue
            tau = length / norm
            intercept = self.store.intercept + tau if law.extra else self.store.intercept
            if not finite(intercept):
                return INTERCEPT
            reserve(self.notes + size)
            moved = columns_move(self.columns, &self.indices[0] + begin, x, size, tau, length, norm,
                                 LEAST_NORM <= norm <= LARGEST_NORM, log + self.notes, &notes)
            self.notes += notes
            if moved == -2:
                raise MemoryError()
            if moved < 0:
                return WEIGHT
            self.store.intercept = intercept
        return GOOD


cdef int learn_sparse(ArenaStore store, const Law *law, Table plain, object goals, object weights, Py_ssize_t *at) except -2:
    """Learn the rows of a sparse table, all or none; why one was refused, or GOOD."""
    cdef Rows rows = Rows(store, plain)
    cdef double intercept = store.intercept
    cdef size_t news = rows.columns.news
    cdef int refused = WEIGHT
    try:
        refused = rows.learn(law, goals, weights, at)
        if refused == GOOD:
            rows.settle()
    finally:
        if refused != GOOD:
            rows.undo(news)
            store.intercept = intercept
        clear()
    return refused


cdef int score_sparse(ArenaStore store, Table plain, double[::1] result) except -1:
    """Write the raw score of every row, intercept included, to `result`."""
    cdef Rows rows = Rows(store, plain)
    cdef double score, square
    cdef Py_ssize_t i
    for i in range(plain.rows):
        rows.score(i, &score, &square)
        result[i] = score + store.intercept
    return 0
