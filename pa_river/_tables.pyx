# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""What a batch is given, in a form that compiled loops take: numbers by row, labels, targets and weights.

Whatever is not plain gives None, and the loop of `learn_one`, which takes anything, is the way.
"""

from pa_river._laws cimport INTERCEPT, SCORE, VALUE, WEIGHT, Law

import sys

import numpy as np

from pa_river import _validate, batch, features, labels, steps

RULES = (steps.PA, steps.PA1, steps.PA2)

_REASONS = {
    SCORE: "the score would not be finite; nothing was learned",
    WEIGHT: "the weight of a feature would not be finite; nothing was learned",
    INTERCEPT: "the intercept would not be finite; nothing was learned",
}


cdef class Table:
    """A table of numbers in a form that the loops take: dense float64 rows, or CSR; with the names of its columns."""

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
    if type(X) is np.ndarray:
        if X.ndim != 2 or not numeric(X.dtype):
            return None
        array, plain.names = X, range(X.shape[1])
    elif pandas is not None and isinstance(X, pandas.DataFrame):
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
    else:
        return None
    plain.array = np.ascontiguousarray(array, np.float64)
    plain.rows, plain.width = plain.array.shape
    return plain


cdef bint lawful(object rule, Law *law):
    """Write a rule to `law`; False for one that is none of the three known ones."""
    if rule is None:
        rule = steps.DEFAULT
    if type(rule) not in RULES:
        return False
    law.rule, law.C = RULES.index(type(rule)), getattr(rule, "C", 0.0)
    return True


cdef object sized(object values):
    """Return labels or weights as they are, but what can be read only once as a list."""
    return values if values is None or hasattr(values, "__len__") else batch.listed(values)


cdef int same_length(Table plain, object y, object w) except -1:
    """`ValueError` unless there is a label, and a weight if there are weights, for each row."""
    weights = plain.rows if w is None else len(w)
    if not plain.rows == len(y) == weights:
        raise ValueError(f"X has {plain.rows} rows, y has {len(y)}, w has {weights}")
    return 0


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
    cdef const unsigned char[::1] flags
    cdef double[::1] result
    cdef double value
    cdef Py_ssize_t i
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype == bool:
        flags, result = np.ascontiguousarray(y).view(np.uint8), np.empty(len(y))
        for i in range(flags.shape[0]):
            result[i] = 1.0 if flags[i] else -1.0
        return result.base
    array = numbers(y, True)
    if array is not None:
        result = np.array(array)  # the caller's own is not ours to write
        for i in range(result.shape[0]):
            value = result[i]
            if value != 1.0 and value != 0.0 and value != -1.0:
                break
            result[i] = 1.0 if value == 1.0 else -1.0
        else:
            return result.base
    return np.where(one_by_one(labels.binary, y) == 1.0, 1.0, -1.0)


cdef object targets(object y):
    array = numbers(y, False)
    return array if array is not None and np.isfinite(array).all() else one_by_one(labels.target, y)


cdef object importance(object w):
    array = numbers(w, False)
    if array is None or not ((array >= 0.0) & (array < np.inf)).all():
        array = one_by_one(_validate.example_weight, w)
    return array
