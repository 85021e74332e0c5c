# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""Batches for stores of rows: each row of a plain table goes in hand as a record would, with no dict and no hash a name.

What a store then does with the record in hand is what it does with any, so a batch gives the bits of `learn_one`. The
slot of a column's name is found once a batch.
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from pa_river._names cimport Names, Seen, hand, open_hand
from pa_river._tables cimport Table, table

from collections.abc import Mapping

import numpy as np

cdef extern from "Python.h":
    void xdecref "Py_XDECREF"(void *)

# A table may be far wider than what stands in it, as hashed features are. Beyond this, columns are numbered anew.
cdef Py_ssize_t WIDE = 1 << 22


cdef class Lines:
    """The rows of a table of finite numbers, for one store."""

    def __dealloc__(self):
        free(self.slots)

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t row):
        if not 0 <= row < self.count:
            raise IndexError(row)
        cdef Line line = Line.__new__(Line)
        line.table, line.row = self, row
        return line

    def __iter__(self):
        cdef Py_ssize_t row
        return iter([self[row] for row in range(self.count)])

    cdef int put(self, Py_ssize_t i, Py_ssize_t column, double value) except -1:
        """Put a feature in the i-th place of the hand."""
        cdef Seen *f = &hand.seen[i]
        if self.slots[column]:
            if f.key != NULL:  # of another record
                xdecref(f.key)
                f.key = NULL
            f.slot = self.slots[column] - 1
        else:
            self.slots[column] = self.store.seat(i, column if self.names is None else self.names[column]) + 1
        f.value = value
        return 0

    cdef int take(self, Py_ssize_t row) except -1:
        """Take a row in hand, zeros left out."""
        cdef Py_ssize_t at, end, count = 0
        cdef const double *x
        cdef double square = 0.0
        if self.sparse:
            at, end = self.indptr[row], self.indptr[row + 1]
            open_hand(end - at)
            for at in range(at, end):
                if self.data[at] != 0.0:
                    self.put(count, self.indices[at], self.data[at])
                    square += self.data[at] * self.data[at]
                    count += 1
        elif self.width:
            open_hand(self.width)
            x = &self.dense[row, 0]
            for at in range(self.width):
                if x[at] != 0.0:
                    self.put(count, at, x[at])
                    square += x[at] * x[at]
                    count += 1
        else:
            open_hand(0)
        hand.count, hand.square = count, square
        return 0


cdef class Line:
    """A row of `Lines`: a record, which becomes a dict only where somebody reads it."""

    cdef dict record(self):
        cdef Lines table = self.table
        if table.sparse:
            part = slice(table.indptr[self.row], table.indptr[self.row + 1])
            columns, values = np.asarray(table.indices[part]), np.asarray(table.data[part])
        else:
            columns, values = np.arange(table.width), np.asarray(table.dense[self.row])[:table.width]
        kept = values != 0.0
        names = columns[kept].tolist()
        if table.names is not None:
            names = [table.names[column] for column in names]
        return dict(zip(names, values[kept].tolist()))

    def __getitem__(self, name):
        return self.record()[name]

    def __iter__(self):
        return iter(self.record())

    def __len__(self):
        return len(self.record())

    def __repr__(self):
        return repr(self.record())

    def get(self, name, default=None):
        return self.record().get(name, default)

    def keys(self):
        return self.record().keys()

    def values(self):
        return self.record().values()

    def items(self):
        return self.record().items()


Mapping.register(Line)


cdef Lines lines_of(Names store, object X):
    """Return the rows of X for a store; None where it is no plain table of finite numbers: then dicts are the way."""
    cdef Lines lines
    cdef Table plain = table(X)
    if plain is None:
        return None
    lines = Lines.__new__(Lines)
    lines.store, lines.identity, lines.count, lines.width = store, store.identity, plain.rows, plain.width
    if plain.csr is not None:
        data, indices, indptr = plain.csr
        used = data[:indptr[-1]], indices[:indptr[-1]]
        if not sound(used[1], indptr, plain.width) or not np.isfinite(used[0]).all():
            return None
        if plain.width > max(WIDE, 4 * len(used[1])):
            numbers, indices = np.unique(used[1], return_inverse=True)
            lines.names, lines.width, indices = numbers.tolist(), len(numbers), indices.astype(np.int32)
        lines.sparse, lines.data, lines.indices, lines.indptr = True, data, indices, indptr
    else:
        if not np.isfinite(plain.array).all() or not all(map(spellable, plain.names)):
            return None
        if type(plain.names) is not range:
            lines.names = plain.names
        if plain.width:
            lines.dense = plain.array
    lines.slots = <int32_t *>calloc(lines.width + 1, sizeof(int32_t))  # pages that nobody asks for cost nothing
    if lines.slots == NULL:
        raise MemoryError()
    return lines


cdef bint sound(object indices, object indptr, Py_ssize_t width):
    """Whether a sparse table stays within its bounds, which scipy does not check by itself."""
    return bool(len(indptr) and indptr[0] >= 0 and (np.diff(indptr) >= 0).all()
                and (not len(indices) or (indices.min() >= 0 and indices.max() < width)))


def spellable(name):
    """Whether a name is one that the scan of a record takes as it is: no lone surrogates, no int beyond 64 bits."""
    if type(name) is int:
        return -(2**63) <= name < 2**63
    return name.isascii() or name.encode(errors="ignore").decode() == name


def lines(store, X):
    """`lines_of`, for Python."""
    return lines_of(store, X)
