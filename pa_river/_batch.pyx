# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""Whole batches on a flat store, compiled: the exact sequential steps of `learn_many`; dense ones here.

A dense batch works on its own copy of the weights of its columns, which goes back only when every row was good; so a
refused row costs no second pass over X, and a good batch none before it. Narrow rows are summed in the order of
`learn_one`, and so give its bits; wide rows in eight sums at once.
"""

from libc.math cimport fabs
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

from pa_river._arena cimport ArenaStore
from pa_river._laws cimport (
    GOOD, INTERCEPT, LARGEST_NORM, LEAST_NORM, NARROW, NEAR_OVERFLOW, SCORE, VALUE, WEIGHT, Law, finite, judged,
)
from pa_river._sparse cimport learn_sparse, score_sparse
from pa_river._tables cimport Table, importance, lawful, same_length, signs, sized, table, targets

import numpy as np

from pa_river.batch import one_each

cdef extern from "_rows.h" nogil:
    double rows_move_dot(double *w, double tau, const double *last, const double *x, Py_ssize_t n, double *square)
    double rows_dot(const double *w, const double *x, Py_ssize_t n, double *square)
    double rows_dot_in_order(const double *w, const double *x, Py_ssize_t n, double *square)


cdef int slow_step(const Law *law, const double *x, Py_ssize_t n, double norm, double length, double *w,
                   double *intercept) noexcept nogil:
    """A step at extreme scales, as `_loops.moved` takes it; every weight is looked at."""
    cdef double tau = length / norm
    cdef Py_ssize_t j
    for j in range(n):
        if x[j] != 0.0:
            w[j] += tau * x[j] if LEAST_NORM <= norm <= LARGEST_NORM else length * (x[j] / norm)
            if not finite(w[j]):
                return WEIGHT
    if law.extra:
        intercept[0] += tau
    return GOOD if finite(intercept[0]) else INTERCEPT


cdef int dense_rows(const Law *law, const double[:, ::1] X, const double[::1] y, const double[::1] weights, double *own,
                    double *intercept, int32_t *new, Py_ssize_t open, int32_t *order, Py_ssize_t *at) noexcept nogil:
    """Learn rows until one is refused; `at` tells which. `new[:open]`: columns without a name yet, in `order` as they come.

    The step along a wide row is taken while the next row is read: `tau` and `last` are what is still to be done.
    """
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], i, j, kept, arrived = 0
    cdef const double *x
    cdef const double *last = NULL
    cdef double score, square, norm = 1.0, length = 0.0, tau = 0.0, bound = fabs(intercept[0])
    cdef int refused
    for j in range(d):
        bound = max(bound, fabs(own[j]))
    for i in range(n):
        at[0] = i
        x = &X[i, 0] if d else NULL
        if d <= NARROW:
            score = rows_dot_in_order(own, x, d, &square)
        elif last == NULL:
            score = rows_dot(own, x, d, &square)
        else:
            score = rows_move_dot(own, tau, last, x, d, &square)
            last = NULL
        score += intercept[0]
        refused = judged(law, y[i], score, square, x, d, 1.0 if weights is None else weights[i], &norm, &length)
        if refused != GOOD:
            return refused
        if length == 0.0:
            continue
        bound += fabs(length)
        if LEAST_NORM <= norm <= LARGEST_NORM and bound < NEAR_OVERFLOW:
            tau = length / norm
            intercept[0] += law.extra * tau
            if d > NARROW:
                last = x
            else:
                for j in range(d):
                    own[j] += tau * x[j]
        else:
            refused = slow_step(law, x, d, norm, length, own, intercept)
            if refused != GOOD:
                return refused
            bound = fabs(intercept[0])
            for j in range(d):
                bound = max(bound, fabs(own[j]))
        if open:  # a name is stored from the first step that moves it on
            kept = 0
            for j in range(open):
                if x[new[j]] != 0.0:
                    order[arrived] = new[j]
                    arrived += 1
                else:
                    new[kept] = new[j]
                    kept += 1
            open = kept
    if last != NULL:
        for j in range(d):
            own[j] += tau * last[j]
    at[0] = arrived
    return GOOD


def learn(ArenaStore store, rule, eps, X, y, w):
    """Learn a batch, all or nothing, and return how many examples counted; -1: not plain, nothing was done.

    `eps` is None for a margin, else the half width of the tube.
    """
    cdef Law law
    cdef Table plain
    cdef Py_ssize_t at = 0
    cdef int refused
    law.eps, law.extra = (-1.0 if eps is None else eps), store._extra
    if not lawful(rule, &law):
        return -1
    plain = table(X)
    if plain is None:
        return -1
    y, w = sized(y), sized(one_each(w, plain.rows))
    same_length(plain, y, w)
    goals, weights = (signs(y) if eps is None else targets(y)), (None if w is None else importance(w))
    if plain.rows:
        refused = (dense if plain.csr is None else learn_sparse)(store, &law, plain, goals, weights, &at)
        if refused != GOOD:
            plain.refuse(at, refused)
    return plain.rows if weights is None else int(np.count_nonzero(weights))


cdef int dense(ArenaStore store, const Law *law, Table plain, object goals, object weights, Py_ssize_t *at) except -2:
    cdef Py_ssize_t width = plain.width, j, unnamed = 0
    cdef double *own = <double *>malloc((width + 1) * (sizeof(double) + 3 * sizeof(int32_t)))
    cdef int32_t *slots = <int32_t *>(own + width + 1)
    cdef int32_t *new = slots + width
    cdef double intercept = store.intercept
    cdef int refused
    if own == NULL:
        raise MemoryError()
    try:
        store.gather(plain.names, width, own, slots)
        for j in range(width):
            if slots[j] < 0:
                new[unnamed] = j
                unnamed += 1
        refused = dense_rows(law, plain.array, goals, weights, own, &intercept, new, unnamed, new + width, at)
        if refused == GOOD:
            store.scatter(plain.names, width, own, slots, new + width, at[0])
            store.intercept = intercept
    finally:
        free(own)
    return refused


def scores(ArenaStore store, X):
    """Return the raw score of every row, or None where X is not plain."""
    cdef Table plain = table(X)
    cdef const double[:, ::1] rows
    cdef int32_t[::1] slots
    cdef double[::1] own, result
    cdef double score = 0.0, square
    cdef Py_ssize_t i
    if plain is None:
        return None
    result = np.empty(plain.rows)
    if plain.csr is not None:
        score_sparse(store, plain, result)
    else:
        own, slots, rows = np.zeros(plain.width + 1), np.empty(plain.width + 1, np.int32), plain.array
        store.gather(plain.names, plain.width, &own[0], &slots[0])
        for i in range(plain.rows):
            if plain.width:
                score = rows_dot_in_order(&own[0], &rows[i, 0], plain.width, &square) if plain.width <= NARROW \
                    else rows_dot(&own[0], &rows[i, 0], plain.width, &square)
            result[i] = score + store.intercept
    for i in range(plain.rows):
        if not finite(result[i]):
            record = plain.record(i)
            plain.refuse(i, SCORE if all(map(np.isfinite, record.values())) else VALUE)
    return result.base
