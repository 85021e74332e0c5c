# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""Whole batches of `multiclass.PAMulticlass`, compiled: exact sequential steps over dense tables.

A batch works on its own copy of the prototypes of its columns, one row a label, which goes back only when every row was
good. Where that copy outgrows the cache, the scores of a block of rows come from one matrix product, and each step
corrects those of the rows behind it by the product of the two rows: the same numbers, but for the order of sums.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pa_river._laws cimport (
    GOOD, INTERCEPT, LARGEST_NORM, LARGEST_SQUARE, LEAST_NORM, NARROW, NEAR_OVERFLOW, SCORE, VALUE, WEIGHT, Law, all_finite,
    finite, length_of, norm_of,
)
from pa_river._rowarena cimport Row, RowArena
from pa_river._tables cimport Table, importance, lawful, same_length, sized, table

import numpy as np

from pa_river import labels
from pa_river.batch import listed, one_each

cdef extern from "_rows.h" nogil:
    double rows_dot_in_order(const double *w, const double *x, Py_ssize_t n, double *square)
    double rows_dot(const double *w, const double *x, Py_ssize_t n, double *square)
    void rows_products(const double *W, Py_ssize_t k, const double *x, Py_ssize_t n, double *out)
    void rows_products_in_order(const double *W, Py_ssize_t k, const double *x, Py_ssize_t n, double *out)
    void rows_add(double *totals, double value, const double *row, Py_ssize_t n)

# Beyond this, sums in another order could lose what the plain order keeps; such blocks go row by row.
cdef double TAME = 1e100
cdef double ROOT = sqrt(2.0)
cdef Py_ssize_t LINE = 8  # columns that are copied together: a cache line of floats

#: Prototypes of more bytes than this go by blocks of rows; and how many rows a block has.
BLOCKS_FROM = 512 * 1024
BLOCK = 64


cdef class Batch:
    """A batch of rows, and a copy of the prototypes of their columns: `W[label, column]`, intercepts beside it."""

    cdef Law law
    cdef RowArena store
    cdef const double[:, ::1] X
    cdef double[:, ::1] W
    cdef double[::1] intercepts, scores
    cdef const double[::1] weights
    cdef int32_t[::1] own, counts  # by row: the label's slot; how many slots have a score
    cdef int32_t[::1] names, high, order  # by column: slot of the name, highest label moved; new names as they come
    cdef object array, prototypes, title
    cdef Py_ssize_t width, fresh, moved_everywhere, highest, open
    cdef double bound

    def __cinit__(self, RowArena store, Table plain, Py_ssize_t slots):
        cdef Py_ssize_t j, c, t
        cdef Row *row
        self.store, self.array, self.width, self.title = store, plain.array, plain.width, plain.names
        self.X = plain.array if plain.width else np.zeros((plain.rows, 1))
        self.prototypes = np.zeros((slots, max(plain.width, 1)))
        self.W, self.intercepts, self.scores = self.prototypes, np.zeros(slots), np.empty(slots)
        self.names = np.full(max(plain.width, 1), -1, np.int32)
        self.high = np.full(max(plain.width, 1), -1, np.int32)
        self.order = np.empty(max(plain.width, 1), np.int32)
        store.look_up(plain.names, plain.width, &self.names[0])
        for j in range(plain.width):
            self.open += self.names[j] < 0
        for j in range(0, plain.width, LINE):
            for c in range(slots):
                for t in range(j, min(j + LINE, plain.width)):
                    if self.names[t] >= 0:
                        row = &store.rows[self.names[t]]
                        if <uint32_t>c < row.length:
                            self.W[c, t] = store.pool[row.begin + c]
        for c in range(min(<Py_ssize_t>store.intercept_count, slots)):
            self.intercepts[c] = store.intercepts[c]
        self.moved_everywhere = self.highest = -1
        self.bound = max(float(np.abs(self.prototypes).max(initial=0.0)), float(np.abs(self.intercepts).max(initial=0.0)))

    cdef void score(self, Py_ssize_t row, Py_ssize_t count) noexcept nogil:
        """Write the scores of a row for the first `count` slots."""
        cdef Py_ssize_t c
        if self.width <= NARROW:
            rows_products_in_order(&self.W[0, 0], count, &self.X[row, 0], self.width, &self.scores[0])
        else:
            rows_products(&self.W[0, 0], count, &self.X[row, 0], self.width, &self.scores[0])
        for c in range(count):
            self.scores[c] += self.intercepts[c]

    cdef double square(self, Py_ssize_t row) noexcept nogil:
        cdef double square
        if self.width <= NARROW:
            rows_dot_in_order(&self.X[row, 0], &self.X[row, 0], self.width, &square)
        else:
            rows_dot(&self.X[row, 0], &self.X[row, 0], self.width, &square)
        return square

    cdef int judge(self, Py_ssize_t row, double *scores, double square, double *length, double *norm,
                   int32_t *rival) noexcept nogil:
        """How far a row moves its pair, 0 where it is passive; or why it is refused."""
        cdef Py_ssize_t own = self.own[row], c
        cdef double weight = 1.0 if self.weights is None else self.weights[row], loss
        cdef int32_t best = -1
        length[0] = 0.0
        if not square <= LARGEST_SQUARE and not all_finite(&self.X[row, 0], self.width):
            return VALUE
        if weight == 0.0:
            return GOOD
        for c in range(self.counts[row]):
            if not finite(scores[c]):
                return SCORE
            if c != own and (best < 0 or scores[c] > scores[best]):
                best = <int32_t>c
        loss = 1.0 - (scores[own] - scores[best])
        if loss <= 0.0:
            return GOOD
        norm[0] = ROOT * norm_of(square, &self.X[row, 0], self.width, self.law.extra)
        length[0] = length_of(&self.law, loss, norm[0], weight)
        rival[0] = best
        return GOOD

    cdef int move(self, Py_ssize_t row, double length, double norm, int32_t rival) noexcept nogil:
        """Move the pair of a row; why it is refused, or GOOD."""
        cdef Py_ssize_t own = self.own[row], j, t, slot
        cdef const double *x = &self.X[row, 0]
        cdef double *w
        cdef double tau, signed_length
        cdef int32_t top = max(<int32_t>own, rival), least
        cdef bint all_well
        self.bound += length
        for t in range(2):
            slot = own if t == 0 else rival
            signed_length = length if t == 0 else -length
            tau, w = signed_length / norm, &self.W[slot, 0]
            if LEAST_NORM <= norm <= LARGEST_NORM and self.bound < NEAR_OVERFLOW:
                rows_add(w, tau, x, self.width)
            else:
                for j in range(self.width):
                    if x[j] != 0.0:
                        w[j] += tau * x[j] if LEAST_NORM <= norm <= LARGEST_NORM else signed_length * (x[j] / norm)
                        if not finite(w[j]):
                            return WEIGHT
                self.bound = self.largest()
            if self.law.extra:
                self.intercepts[slot] += tau
                if not finite(self.intercepts[slot]):
                    return INTERCEPT
        self.highest = max(self.highest, <Py_ssize_t>top)
        if self.open or top > self.moved_everywhere:  # which names are stored, and how long their rows are
            least = top
            for j in range(self.width):
                if x[j] != 0.0:
                    if self.names[j] < 0 and self.high[j] < 0:
                        self.order[self.fresh] = <int32_t>j
                        self.fresh += 1
                        self.open -= 1
                    self.high[j] = max(self.high[j], top)
                least = min(least, self.high[j])
            self.moved_everywhere = least
        return GOOD

    cdef double largest(self) noexcept nogil:
        cdef double bound = 0.0
        cdef Py_ssize_t c, j
        for c in range(self.W.shape[0]):
            bound = max(bound, fabs(self.intercepts[c]))
            for j in range(self.width):
                bound = max(bound, fabs(self.W[c, j]))
        return bound

    cdef int row_by_row(self, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t *at) noexcept nogil:
        cdef Py_ssize_t row
        cdef double length, norm
        cdef int32_t rival
        cdef int refused
        for row in range(begin, end):
            at[0] = row
            self.score(row, self.counts[row])
            refused = self.judge(row, &self.scores[0], self.square(row), &length, &norm, &rival)
            if refused == GOOD and length > 0.0:
                refused = self.move(row, length, norm, rival)
            if refused != GOOD:
                return refused
        return GOOD

    cdef int by_block(self, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t *at) except -2:
        """Learn some rows: their scores by one product, corrected as the steps come; then the steps themselves."""
        cdef Py_ssize_t row, behind, size = end - begin, c
        cdef double[:, ::1] S, G
        cdef double length, tau, move
        cdef double norm = 1.0
        cdef int32_t rival
        cdef int refused
        block = self.array[begin:end]
        with np.errstate(all="ignore"):
            products, scores = block @ block.T, block @ self.prototypes.T
        if not (np.abs(scores).max() < TAME and self.bound < TAME and np.diagonal(products).max() < TAME
                and np.diagonal(products).min() > 1.0 / TAME):
            return self.row_by_row(begin, end, at)
        scores += self.intercepts
        S, G = scores, products
        for row in range(size):
            at[0] = begin + row
            refused = self.judge(begin + row, &S[row, 0], G[row, row], &length, &norm, &rival)
            if refused == GOOD and length > 0.0:
                refused = self.move(begin + row, length, norm, rival)
                tau, c = length / norm, self.own[begin + row]
                for behind in range(row + 1, size):
                    move = tau * (G[row, behind] + self.law.extra)
                    S[behind, c] += move
                    S[behind, rival] -= move
            if refused != GOOD:
                return refused
        return GOOD

    cdef int put_back(self) except -1:
        """Write the prototypes that moved to the store, with the names that are new."""
        cdef Py_ssize_t j, c, t
        cdef size_t numbers = 0
        cdef Row *row
        cdef RowArena store = self.store
        if self.highest < 0:
            return 0
        store.labels = max(store.labels, <uint32_t>self.highest + 1)
        store.reserve_intercepts(<uint32_t>self.highest + 1)
        store.bring(self.title, &self.order[0], self.fresh, &self.names[0])
        for j in range(self.width):
            if self.high[j] >= 0:
                numbers += store.wanted(self.names[j], self.high[j] + 1)
        store.reserve_rows(0, numbers)
        for j in range(self.width):
            if self.high[j] >= 0:
                store.lengthen(self.names[j], max(<uint32_t>self.high[j] + 1, store.rows[self.names[j]].length))
        for j in range(0, self.width, LINE):
            for c in range(self.W.shape[0]):
                for t in range(j, min(j + LINE, self.width)):
                    if self.high[t] >= 0:
                        row = &store.rows[self.names[t]]
                        if <uint32_t>c < row.length:
                            store.pool[row.begin + c] = self.W[c, t]
        if self.law.extra:
            for c in range(self.highest + 1):
                store.put_intercept(<int32_t>c, self.intercepts[c])
        return 0


def learn(RowArena store, rule, list known, dict slots, X, y, w):
    """Learn a batch, all or nothing, and return how many examples counted; -1: not plain, nothing was done."""
    cdef Law law
    cdef Table plain
    cdef Batch batch
    cdef Py_ssize_t row, at = 0, begin
    cdef int refused = GOOD
    cdef int32_t[::1] own, counts
    law.eps, law.extra = -1.0, store._extra
    if not lawful(rule, &law):
        return -1
    plain = table(X)
    if plain is None or plain.csr is not None:
        return -1
    y, w = listed(y), sized(one_each(w, plain.rows))
    same_length(plain, y, w)
    weights = None if w is None else importance(w)
    own, counts = np.empty(plain.rows, np.int32), np.empty(plain.rows, np.int32)
    arriving = {}
    total = len(known)
    for row in range(plain.rows):
        label = y[row]
        if type(label) is not str and type(label) is not int:
            try:
                label = labels.label(label)
            except ValueError as error:
                raise ValueError(f"row {row}: {error}") from error
        place = slots.get(label)
        if place is None:
            place = arriving.get(label)
        if place is None:
            place = total
            if weights is None or weights[row]:
                arriving[label] = total
                total += 1
        own[row], counts[row] = place, max(2, total, <Py_ssize_t>place + 1)
    batch = Batch(store, plain, max(2, total + 1))
    batch.own, batch.counts, batch.weights, batch.law = own, counts, weights, law
    if plain.width and batch.prototypes.nbytes > BLOCKS_FROM:
        for begin in range(0, plain.rows, BLOCK):
            refused = batch.by_block(begin, min(begin + <Py_ssize_t>BLOCK, plain.rows), &at)
            if refused != GOOD:
                break
    elif plain.rows:
        refused = batch.row_by_row(0, plain.rows, &at)
    if refused != GOOD:
        plain.refuse(at, refused)
    batch.put_back()
    for label, place in arriving.items():
        slots[label] = place
        known.append(label)
    return plain.rows if weights is None else int(np.count_nonzero(weights))


def best(RowArena store, Py_ssize_t known, X):
    """Return the winning slot of every row, or None where X is not plain."""
    cdef Table plain = table(X)
    cdef Batch batch
    cdef Py_ssize_t row, c
    cdef Py_ssize_t count = max(2, known)
    cdef list found = []
    cdef double[:, ::1] S
    cdef int32_t winner
    if plain is None or plain.csr is not None:
        return None
    batch = Batch(store, plain, count)
    if plain.width and batch.prototypes.nbytes > BLOCKS_FROM:
        with np.errstate(all="ignore"):
            scores = batch.array @ batch.prototypes.T
        scores += batch.intercepts
    else:
        scores = np.empty((plain.rows, count))
        S = scores
        for row in range(plain.rows):
            batch.score(row, count)
            for c in range(count):
                S[row, c] = batch.scores[c]
    S = scores
    for row in range(plain.rows):
        winner = 0
        for c in range(count):
            if not finite(S[row, c]):
                plain.refuse(row, SCORE if all_finite(&batch.X[row, 0], batch.width) else VALUE)
            if c < known and S[row, c] > S[row, winner]:
                winner = <int32_t>c
        found.append(winner)
    return found
