# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""Batches for stores of rows: each row of a plain table goes in hand as a record would, with no dict and no hash a name.

What a store then does with the record in hand is what it does with any, so a batch gives the bits of `learn_one`. The
slot of a column's name is found once, and kept for the batches that follow.
"""

from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy

from pa_river._names cimport Names, Seen, hand, open_hand
from pa_river._tables cimport Table, table

from collections.abc import Mapping

import numpy as np

cdef extern from "Python.h":
    void xdecref "Py_XDECREF"(void *)

# A table may be far wider than what stands in it, as hashed features are. Beyond this, columns are numbered anew.
cdef Py_ssize_t WIDE = 1 << 22


# Beyond so many columns a name of the model, and so many at all, slots are not kept from one batch to the next.
cdef Py_ssize_t SPARSE = 64, NARROW = 1 << 17


cdef class ColumnSlots:
    """Where the names of columns stand in a store, as far as somebody asked: kept from one batch to the next."""

    def __dealloc__(self):
        free(self.slots)

    def __sizeof__(self):
        return object.__sizeof__(self) + self.width * sizeof(int32_t)


cdef ColumnSlots slots_for(Names store, ColumnSlots known, Py_ssize_t width):
    """Room for the slots of so many columns: in `known`, if there is one, with those that still hold."""
    cdef int32_t *slots
    cdef ColumnSlots columns = ColumnSlots.__new__(ColumnSlots) if known is None else known
    if columns.width < width or columns.identity != store.identity:
        width = max(width, columns.width)
        slots = <int32_t *>calloc(width + 1, sizeof(int32_t))  # pages that nobody asks for cost nothing
        if slots == NULL:
            raise MemoryError()
        if columns.width and columns.identity == store.identity:
            memcpy(slots, columns.slots, columns.width * sizeof(int32_t))
        free(columns.slots)
        columns.slots, columns.width, columns.identity = slots, width, store.identity
    return columns


cdef class Lines:
    """The rows of a table of finite numbers, for one store."""

    def __dealloc__(self):
        free(self.fresh)

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

    cdef int make_room(self, Py_ssize_t size) except -1:
        cdef void *more
        if size > self.fresh_room:
            more = realloc(self.fresh, 4 * size * sizeof(int32_t))
            if more == NULL:
                raise MemoryError()
            self.fresh, self.fresh_room = <int32_t *>more, 2 * size
        return 0

    cdef int take(self, Py_ssize_t row) except -1:
        """Take a row in hand, zeros left out."""
        cdef Py_ssize_t at, size = self.width, column
        cdef const double *x
        cdef const int32_t *own = NULL
        cdef int32_t *slots = self.columns.slots
        cdef Seen *f
        cdef double square = 0.0
        if self.sparse:
            size = self.indptr[row + 1] - self.indptr[row]
            x, own = &self.data[0] + self.indptr[row], &self.indices[0] + self.indptr[row]
        elif size:
            x = &self.dense[row, 0]
        if hand.stamp == self.stamp:  # the last row is still in hand, and may have brought names since
            for at in range(self.fresh_count):
                slots[self.fresh[2 * at + 1]] = hand.seen[self.fresh[2 * at]].slot + 1
        self.make_room(size)
        self.fresh_count = 0
        open_hand(size)
        f = hand.seen
        for at in range(size):
            if x[at] == 0.0:
                continue
            column = at if own == NULL else own[at]
            f.value = x[at]
            square += x[at] * x[at]
            if slots[column]:
                if f.key != NULL:  # of another record
                    xdecref(f.key)
                    f.key = NULL
                f.slot = slots[column] - 1
            else:
                slots[column] = self.store.seat(f - hand.seen, column if self.names is None else self.names[column]) + 1
                if slots[column] == 0:
                    self.fresh[2 * self.fresh_count] = <int32_t>(f - hand.seen)
                    self.fresh[2 * self.fresh_count + 1] = <int32_t>column
                    self.fresh_count += 1
            f += 1
        hand.count, hand.absent, hand.square = f - hand.seen, self.fresh_count, square
        self.stamp = hand.stamp
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


cdef Lines lines_of(Names store, ColumnSlots known, object X):
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
        if not len(used[0]):  # nothing to point at
            data, indices = np.zeros(1), np.zeros(1, np.int32)
        lines.sparse, lines.data, lines.indices, lines.indptr = True, data, indices, indptr
    else:
        if not np.isfinite(plain.array).all() or not all(map(spellable, plain.names)):
            return None
        if type(plain.names) is not range:
            lines.names = plain.names
        if plain.width:
            lines.dense = plain.array
    if lines.names is not None or lines.width > max(NARROW, SPARSE * <Py_ssize_t>store.arena.count):
        known = None
    lines.columns = slots_for(store, known, lines.width)
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
