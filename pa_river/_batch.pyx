# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""Whole batches, compiled: the exact sequential steps of `learn_many` over numpy arrays, CSR and plain frames.

A dense batch works on its own copy of the weights of its columns, which goes back only when every row was good. A
sparse one moves the store in place and keeps a log of what stood there before. So a refused row costs no second pass
over X, and a good batch none before it. Narrow rows and sparse ones are summed in the order of `learn_one`, and so give
its bits; wide rows in eight sums at once.
"""

from libc.float cimport DBL_MAX
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport free, realloc

from pa_river._arena cimport ArenaEntry, ArenaStore

import sys

import numpy as np

from pa_river import _validate, features, labels, steps

cdef extern from "_rows.h" nogil:
    double rows_dot(const double *w, const double *x, Py_ssize_t n, double *square)
    double rows_dot_in_order(const double *w, const double *x, Py_ssize_t n, double *square)

cdef enum:
    GOOD = -1  # why a row was refused: a value, the score, a weight, the intercept
    VALUE = 0
    SCORE = 1
    WEIGHT = 2
    INTERCEPT = 3

_REASONS = {
    SCORE: "the score would not be finite; nothing was learned",
    WEIGHT: "the weight of a feature would not be finite; nothing was learned",
    INTERCEPT: "the intercept would not be finite; nothing was learned",
}
# Rows up to this width are summed in order. An example on the very edge of its margin is then passive in the batch
# exactly where it is in the loop; in wide rows the edge is one rounding wide, and a step there moves nothing to speak of.
cdef Py_ssize_t NARROW = 32

# A bound on every weight grows by the largest move of each step; only beyond this are weights looked at one by one.
cdef double NEAR_OVERFLOW = 1e300
cdef double LEAST_SQUARE = 1e-280, LARGEST_SQUARE = 1e280, LEAST_NORM = 1e-140, LARGEST_NORM = 1e140

# How an example is judged and how far the step goes: `eps` < 0 stands for a margin of 1; `rule` is 0 for PA, 1, 2.
ctypedef struct Law:
    double eps, C, extra
    int rule


cdef inline double loss_of(const Law *law, double y, double score, double *sign) noexcept nogil:
    cdef double error
    if law.eps < 0.0:
        sign[0] = y
        return 1.0 - y * score
    error = y - score
    sign[0] = 1.0 if error > 0.0 else -1.0
    return fabs(error) - law.eps


cdef double norm_of(const double *x, Py_ssize_t n, double extra) noexcept nogil:
    """The length of a row whose sum of squares left the floats; see `_loops.norm`."""
    cdef double largest = 1.0 if extra else 0.0, square = 0.0, part
    cdef Py_ssize_t j
    for j in range(n):
        largest = max(largest, fabs(x[j]))
    if largest == 0.0:
        return 0.0
    for j in range(n):
        part = x[j] / largest
        square += part * part
    return largest * sqrt(square + extra / largest / largest)


cdef inline double length_of(const Law *law, double loss, double norm, double weight) noexcept nogil:
    if norm <= 0.0:
        return 0.0
    if law.rule == 0:
        return loss / norm
    if law.rule == 1:
        return min(law.C * weight * norm, loss / norm)
    return loss / (norm + 0.5 / law.C / weight / norm)


cdef inline bint finite(double value) noexcept nogil:
    return fabs(value) <= DBL_MAX


cdef inline bint all_finite(const double *values, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        if not finite(values[j]):
            return False
    return True


cdef int slow_step(const Law *law, const double *x, Py_ssize_t n, double loss, double signed_one, double weight,
                   double *w, double *intercept) noexcept nogil:
    """A step at extreme scales, as `_loops.moves` takes it; every weight is looked at."""
    cdef double norm = norm_of(x, n, law.extra), length = length_of(law, loss, norm, weight), tau
    cdef Py_ssize_t j
    if not length > 0.0:
        return GOOD
    length *= signed_one
    tau = length / norm
    for j in range(n):
        if x[j] != 0.0:
            w[j] += tau * x[j] if LEAST_NORM <= norm <= LARGEST_NORM else length * (x[j] / norm)
            if not finite(w[j]):
                return WEIGHT
    if law.extra:
        intercept[0] += tau
    return GOOD if finite(intercept[0]) else INTERCEPT


cdef int dense_rows(const Law *law, const double[:, ::1] X, const double[::1] y, const double[::1] weights, double[::1] w,
                    double *intercept, int32_t[::1] new, Py_ssize_t open, int32_t[::1] order, Py_ssize_t *at) noexcept nogil:
    """Learn rows until one is refused; `at` tells which. `new[:open]`: columns without a name yet, in `order` as they come."""
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], i, j, kept, arrived = 0
    cdef const double *x
    cdef double score, square, loss, sign, norm, length, tau, weight = 1.0, bound = fabs(intercept[0])
    cdef double *own = &w[0]
    cdef int refused
    for j in range(d):
        bound = max(bound, fabs(own[j]))
    for i in range(n):
        at[0] = i
        x = &X[i, 0]
        score = (rows_dot_in_order(own, x, d, &square) if d <= NARROW else rows_dot(own, x, d, &square)) + intercept[0]
        if not square <= LARGEST_SQUARE and not all_finite(x, d):
            return VALUE
        if weights is not None:
            weight = weights[i]
            if weight == 0.0:
                continue
        if not finite(score):
            return SCORE
        loss = loss_of(law, y[i], score, &sign)
        if loss <= 0.0:
            continue
        square += law.extra
        if LEAST_SQUARE <= square <= LARGEST_SQUARE and bound < NEAR_OVERFLOW:
            norm = sqrt(square)
            length = length_of(law, loss, norm, weight)
            tau = length / norm
            bound += length
            if not bound < NEAR_OVERFLOW:
                refused = slow_step(law, x, d, loss, sign, weight, own, intercept)
                if refused != GOOD:
                    return refused
            else:
                tau *= sign
                for j in range(d):
                    own[j] += tau * x[j]
                intercept[0] += law.extra * tau
        else:
            refused = slow_step(law, x, d, loss, sign, weight, own, intercept)
            if refused != GOOD:
                return refused
        if not bound < NEAR_OVERFLOW:
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
    at[0] = arrived
    return GOOD


# What a sparse batch did, for taking it back: (slot or -1, weight before).
ctypedef struct Note:
    double weight
    int32_t slot


cdef class Log:
    cdef Note *notes
    cdef size_t count, room

    def __dealloc__(self):
        free(self.notes)

    cdef int reserve(self, size_t more) except -1:
        cdef void *notes
        if self.count + more > self.room:
            self.room = (self.count + more) * 2
            notes = realloc(self.notes, self.room * sizeof(Note))
            if notes == NULL:
                raise MemoryError()
            self.notes = <Note *>notes
        return 0


cdef int sparse_rows(const Law *law, ArenaStore store, const double[::1] data, const int32_t[::1] indices,
                     const int32_t[::1] indptr, const double[::1] y, const double[::1] weights, int32_t[::1] columns,
                     int32_t[::1] slots, Log log, Py_ssize_t *at) except -2:
    """Learn the rows of a CSR matrix in place. `columns`: the slot of each column, or -1 where none is known."""
    cdef Py_ssize_t n = indptr.shape[0] - 1, i, j, begin, size
    cdef const double *x
    cdef const int32_t *column
    cdef double score, square, loss, sign, tau, weight = 1.0, norm, length, intercept
    cdef int32_t slot
    cdef int32_t *slot_of = &columns[0] if columns.shape[0] else NULL
    cdef bint missing, ordinary, good
    cdef ArenaEntry *entries
    cdef Note *note
    for i in range(n):
        at[0] = i
        begin, size = indptr[i], indptr[i + 1] - indptr[i]
        x, column = &data[0] + begin, &indices[0] + begin
        entries = store.arena.entries
        score, square, missing = 0.0, 0.0, False
        for j in range(size):
            slot = slot_of[column[j]]
            if slot < 0:
                slot = slot_of[column[j]] = store.column(column[j])
            slots[j] = slot
            square += x[j] * x[j]
            if slot >= 0:
                score += entries[slot].weight * x[j]
            else:
                missing = True
        score += store.intercept
        if not square <= LARGEST_SQUARE and not all_finite(x, size):
            return VALUE
        if not finite(score) and missing and not all_finite(x, size):
            return VALUE
        if weights is not None:
            weight = weights[i]
            if weight == 0.0:
                continue
        if not finite(score):
            return SCORE
        loss = loss_of(law, y[i], score, &sign)
        if loss <= 0.0:
            continue
        square += law.extra
        ordinary, length = True, 0.0
        if LEAST_SQUARE <= square <= LARGEST_SQUARE:
            norm = sqrt(square)
            tau = sign * length_of(law, loss, norm, weight) / norm
        else:
            norm = norm_of(x, size, law.extra)
            length = length_of(law, loss, norm, weight)
            if not length > 0.0:
                continue
            length *= sign
            tau, ordinary = length / norm, LEAST_NORM <= norm <= LARGEST_NORM
        intercept = store.intercept + tau if law.extra else store.intercept
        if not finite(intercept):
            return INTERCEPT
        log.reserve(size)
        if missing:
            store.reserve_columns(size)
            entries = store.arena.entries
        good, note = True, log.notes + log.count
        log.count += size
        for j in range(size):
            note.slot = slot = slots[j]
            if slot < 0:
                if x[j] != 0.0:
                    slot = slot_of[column[j]] = store.add_column(column[j])
                else:
                    note += 1
                    continue
            note.weight = entries[slot].weight
            entries[slot].weight += tau * x[j] if ordinary else length * (x[j] / norm)
            good &= finite(entries[slot].weight)
            note += 1
        if not good:
            return WEIGHT
        store.intercept = intercept
    return GOOD


cdef class Table:
    """A table of numbers in a form that the loops take: dense float64 rows, or CSR; with the names of its columns."""

    cdef object array, csr, names, frame
    cdef Py_ssize_t rows, width

    cdef dict record(self, Py_ssize_t row):
        """The row as `learn_one` would get it."""
        if self.csr is None:
            return dict(zip(self.names, self.array[row].tolist()))
        data, indices, indptr = self.csr
        part = slice(indptr[row], indptr[row + 1])
        return dict(zip(indices[part].tolist(), data[part].tolist()))

    cdef refuse(self, Py_ssize_t row, int reason):
        if reason == VALUE:
            try:
                features.canonical(self.record(row))
            except ValueError as error:
                raise ValueError(f"row {row}: {error}") from error
        raise ValueError(f"row {row}: {_REASONS[reason]}")


cdef Table table(object X):
    """Return X as a table, or None where it is not plain: then the loop of `learn_one` is the way."""
    cdef Table plain = Table.__new__(Table)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(X, pandas.DataFrame):
        names = list(X.columns)
        if not all(type(name) is str or type(name) is int for name in names) or len(set(names)) < len(names):
            return None
        if not all(isinstance(kind, np.dtype) and numeric(kind) for kind in X.dtypes):
            return None
        array = X.to_numpy()
        if not numeric(array.dtype):  # bools beside numbers
            return None
        plain.frame, plain.names = X, names
    elif hasattr(X, "tocsr"):
        matrix = X.tocsr()
        if not numeric(matrix.dtype) or max(matrix.shape[1], matrix.nnz) >= 2**31:
            return None
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        plain.rows, plain.width = matrix.shape
        plain.csr = (np.ascontiguousarray(matrix.data, np.float64), np.ascontiguousarray(matrix.indices, np.int32),
                     np.ascontiguousarray(matrix.indptr, np.int32))
        return plain
    elif type(X) is np.ndarray and X.ndim == 2 and numeric(X.dtype):
        array, plain.names = X, range(X.shape[1])
    else:
        return None
    plain.array = np.ascontiguousarray(array, np.float64)
    plain.rows, plain.width = plain.array.shape
    return plain


def numeric(kind):
    return kind.kind in "fiub" and kind.itemsize <= 8


cdef object numbers(object values, bint flags):
    """Return labels or weights as a float64 array, or None where one is not plainly a number. `flags`: bools count."""
    if type(values) is not np.ndarray and hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if type(values) is not np.ndarray:
        if not set(map(type, values)) <= ({float, int, bool} if flags else {float, int}):
            return None
        try:
            values = np.array(values, np.float64)
        except OverflowError:
            return None
    if values.ndim != 1 or not numeric(values.dtype) or (values.dtype.kind == "b" and not flags):
        return None
    return np.ascontiguousarray(values, np.float64)


cdef object one_by_one(object check, object values):
    """Return the checked values as floats; ValueError naming the row."""
    checked = []
    for row, value in enumerate(values):
        try:
            checked.append(check(value))
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from error
    return np.array(checked, np.float64)


cdef object signs(object y):
    """+1 for a positive label, -1 for a negative one."""
    array = numbers(y, True)
    if array is None or not (np.abs(array) * (np.abs(array) - 1.0) == 0.0).all():
        array = one_by_one(labels.binary, y)
    return np.where(array == 1.0, 1.0, -1.0)


cdef object targets(object y):
    array = numbers(y, False)
    return array if array is not None and np.isfinite(array).all() else one_by_one(labels.target, y)


cdef object importance(object w):
    array = numbers(w, False)
    if array is None or not ((array >= 0.0) & (array < np.inf)).all():
        array = one_by_one(_validate.example_weight, w)
    return array


def learn(ArenaStore store, rule, eps, X, y, w):
    """Learn a batch, all or nothing, and return how many examples counted; -1: not plain, nothing was done.

    `eps` is None for a margin, else the half width of the tube.
    """
    cdef Law law
    cdef Table plain
    cdef Py_ssize_t at = 0
    cdef int refused
    rule = rule if rule is not None else steps.DEFAULT
    if type(rule) not in (steps.PA, steps.PA1, steps.PA2):
        return -1
    plain = table(X)
    if plain is None:
        return -1
    law.eps, law.extra = (-1.0 if eps is None else eps), store._extra
    law.rule, law.C = (steps.PA, steps.PA1, steps.PA2).index(type(rule)), getattr(rule, "C", 0.0)
    y, w = (y if hasattr(y, "__len__") else list(y)), (w if w is None or hasattr(w, "__len__") else list(w))
    if not plain.rows == len(y) == (plain.rows if w is None else len(w)):
        raise ValueError(f"X has {plain.rows} rows, y has {len(y)}, w has {plain.rows if w is None else len(w)}")
    goals, weights = (signs(y) if eps is None else targets(y)), (None if w is None else importance(w))
    if plain.rows:
        refused = (dense if plain.csr is None else sparse)(store, &law, plain, goals, weights, &at)
        if refused != GOOD:
            plain.refuse(at, refused)
    return plain.rows if weights is None else int(np.count_nonzero(weights))


cdef int dense(ArenaStore store, const Law *law, Table plain, object goals, object weights, Py_ssize_t *at) except -2:
    cdef double[::1] own = np.zeros(max(plain.width, 1))
    cdef int32_t[::1] slots = np.full(plain.width, -1, np.int32)
    cdef double intercept = store.intercept
    cdef int refused
    store.gather(plain.names, own, slots)
    new = np.flatnonzero(np.asarray(slots) < 0).astype(np.int32)
    order = np.empty(len(new), np.int32)
    array = plain.array if plain.width else np.zeros((plain.rows, 1))
    refused = dense_rows(law, array, goals, weights, own, &intercept, new, len(new), order, at)
    if refused == GOOD:
        store.scatter(plain.names, own, slots, order[:at[0]])
        store.intercept = intercept
    return refused


cdef int sparse(ArenaStore store, const Law *law, Table plain, object goals, object weights, Py_ssize_t *at) except -2:
    cdef uint32_t count = store.arena.count
    cdef double intercept = store.intercept
    cdef Log log = Log.__new__(Log)
    cdef int refused = WEIGHT
    cdef Note *note
    data, indices, indptr = plain.csr
    if not len(data):
        data, indices = np.zeros(1), np.zeros(1, np.int32)
    widest = int(np.diff(indptr).max(initial=1))
    try:
        refused = sparse_rows(law, store, data, indices, indptr, goals, weights, store.column_slots(plain.width),
                              np.empty(widest, np.int32), log, at)
    finally:
        if refused != GOOD:
            while log.count:
                log.count -= 1
                note = &log.notes[log.count]
                if note.slot >= 0:  # else a name that the batch brought, or a zero
                    store.arena.entries[note.slot].weight = note.weight
            store.forget(count, intercept)
    return refused


def scores(ArenaStore store, X):
    """Return the raw score of every row, or None where X is not plain."""
    cdef Table plain = table(X)
    cdef const double[:, ::1] rows
    cdef const double[::1] data
    cdef const int32_t[::1] indices, indptr
    cdef int32_t[::1] slots
    cdef double[::1] own, result
    cdef double score = 0.0, square
    cdef int32_t slot
    cdef Py_ssize_t i, j
    if plain is None:
        return None
    result = np.empty(plain.rows)
    if plain.csr is None:
        own, slots, rows = np.zeros(plain.width), np.empty(plain.width, np.int32), plain.array
        store.gather(plain.names, own, slots)
        for i in range(plain.rows):
            if plain.width:
                score = rows_dot_in_order(&own[0], &rows[i, 0], plain.width, &square) if plain.width <= NARROW \
                    else rows_dot(&own[0], &rows[i, 0], plain.width, &square)
            result[i] = score + store.intercept
    else:
        data, indices, indptr = plain.csr
        slots = store.column_slots(plain.width)
        for i in range(plain.rows):
            score = 0.0
            for j in range(indptr[i], indptr[i + 1]):
                slot = slots[indices[j]]
                if slot < 0:
                    slot = slots[indices[j]] = store.column(indices[j])
                # a name that never moved weighs 0, and 0 times NaN or inf tells of them
                score += data[j] * (store.arena.entries[slot].weight if slot >= 0 else 0.0)
            result[i] = score + store.intercept
    for i in range(plain.rows):
        if not finite(result[i]):
            record = plain.record(i)
            plain.refuse(i, SCORE if all(map(np.isfinite, record.values())) else VALUE)
    return result.base
