"""Many records as one sparse block: the inner products and distances of one record with them all, at the speed of C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array  # River's own dependency

from pa_river.kernels import Array
from pa_river.terms import Features, Name

#: Where the part of |x|^2 that a row lacks is this small a share of the whole, a difference has lost too many digits.
_CANCELLED = 1e-6


class Block:
    """A copy of a list of records, one row each, in the records' own order of features.

    A row is summed in that order, whatever the column numbers are. So a result depends on the records alone, not on
    the history of the block: one that was rebuilt after loading gives the same bits.
    """

    def __init__(self, records: Sequence[Features]):
        self._records: list[Features] = []
        self._columns: dict[Name, int] = {}
        self._indices = np.empty(0, np.int32)
        self._values = np.empty(0)
        self._ends = np.zeros(1, np.int32)
        self._spread = np.zeros(0)  # one number a column, all 0 between two questions
        self._matrix: csr_array | None = None
        for phi in records:
            self.append(phi)

    def __len__(self) -> int:
        return len(self._records)

    def append(self, phi: Features) -> None:
        columns, rows = self._columns, len(self._records)
        begin = self._ends[rows]
        end = begin + len(phi)
        self._indices = with_room(self._indices, end)
        self._values = with_room(self._values, end)
        self._ends = with_room(self._ends, rows + 2)
        self._indices[begin:end] = [columns.setdefault(name, len(columns)) for name in phi]
        self._values[begin:end] = list(phi.values())
        self._ends[rows + 1] = end
        self._spread = with_room(self._spread, len(columns))
        self._records.append(phi)
        self._matrix = None

    def remove(self, row: int) -> None:
        rows = len(self._records)
        begin, end, last = self._ends[[row, row + 1, rows]]
        for array in (self._indices, self._values):
            array[begin:last - (end - begin)] = array[end:last].copy()
        self._ends[row:rows] = self._ends[row + 1:rows + 1] - (end - begin)
        del self._records[row]
        self._matrix = None
        if len(self._columns) > 64 + 2 * self._ends[rows - 1]:  # most columns belong to records that left
            self.__dict__.update(Block(self._records).__dict__)

    @property
    def values(self) -> Array:
        """The features' values, record by record."""
        return self._values[:self._ends[len(self._records)]]

    def against(self, phi: Features) -> Against:
        """Return the pairs of every record with `phi`, for a kernel."""
        return Against(self, phi)

    def dots(self, phi: Features) -> Array:
        """Return the inner product of every record with `phi`."""
        places = self._lay_out(phi)
        result: Array = self._rows(self.values) @ self._spread
        self._spread[places] = 0.0
        return result

    def beside(self, phi: Features) -> Array:
        """Return what `phi` holds at each place of `values`."""
        places = self._lay_out(phi)
        result: Array = self._spread[self._indices[:len(self.values)]]
        self._spread[places] = 0.0
        return result

    def many_dots(self, phis: Sequence[Features]) -> Array:
        """Return the inner product of every record with every one of `phis`: shape (records, phis)."""
        columns = self._columns
        laid_out = np.zeros((len(self._spread), len(phis)))
        for place, phi in enumerate(phis):
            known = [(columns[name], value) for name, value in phi.items() if name in columns]
            laid_out[[column for column, _ in known], place] = [value for _, value in known]
        result: Array = self._rows(self.values) @ laid_out
        return result

    def row_sums(self, values: Array) -> Array:
        """Return, for each record, the sum of its share of `values`."""
        result: Array = self._rows(values) @ np.ones(len(self._spread))
        return result

    def _lay_out(self, phi: Features) -> npt.NDArray[np.int64]:
        columns = self._columns
        known = [(columns[name], value) for name, value in phi.items() if name in columns]
        places = np.array([column for column, _ in known], np.int64)
        self._spread[places] = [value for _, value in known]
        return places

    def _rows(self, values: Array) -> csr_array:
        if self._matrix is None:
            rows, entries = len(self._records), len(values)
            content = (values, self._indices[:entries], self._ends[:rows + 1])
            self._matrix = csr_array(content, shape=(rows, len(self._spread)))
        self._matrix.data = values
        return self._matrix

    def without(self, row: int, phi: Features) -> float:
        """Return the sum of squares of phi's features that a record lacks."""
        record = self._records[row]
        return math.fsum(value * value for name, value in phi.items() if name not in record)


class Against:
    """Every record of a block with one other record."""

    def __init__(self, block: Block, phi: Features):
        self._block = block
        self._phi = {name: float(value) for name, value in phi.items() if value}

    def dots(self) -> Array:
        return self._block.dots(self._phi)

    def squares(self) -> Array:
        block, phi = self._block, self._phi
        theirs = block.beside(phi)
        gaps = block.values - theirs
        result = block.row_sums(gaps * gaps)
        # phi's features that a record lacks: what is left of |phi|^2, but summed anew where the difference cancels
        whole = sum(value * value for value in phi.values())
        rest = whole - block.row_sums(theirs * theirs)
        shared = block.row_sums((theirs != 0.0).astype(float))
        rest[shared == len(phi)] = 0.0
        for row in np.flatnonzero((shared < len(phi)) & ~(rest > _CANCELLED * whole)).tolist():
            rest[row] = block.without(row, phi)
        result += rest
        return result


class AgainstMany:
    """Every record of a block with each of some others: shape (records, others)."""

    def __init__(self, block: Block, phis: Sequence[Features]):
        self._block, self._phis = block, phis

    def dots(self) -> Array:
        return self._block.many_dots(self._phis)

    def squares(self) -> Array:
        return np.column_stack([self._block.against(phi).squares() for phi in self._phis])


def with_room(array: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Return `array`, or a copy of at least twice the length where it is shorter than `length`."""
    if length <= len(array):
        return array
    longer = np.zeros((2 * length, *array.shape[1:]), array.dtype)
    longer[:len(array)] = array
    return longer
