"""A batch of examples against all support vectors and against itself: one Gram block, then only small corrections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pa_river._block import AgainstMany, Block, with_room
from pa_river._row import Row
from pa_river.kernels import Array, Kernel
from pa_river.terms import Features, Name

#: Support vectors in one product of matrices: the block of kernel values stays in the cache until it is used up.
_STRIP = 1024


class DenseRows:
    """Records whose names are the columns of a table, as the rows of a matrix that grows."""

    def __init__(self, names: Sequence[Name], dtype: str):
        self.names = names
        self._columns = {name: column for column, name in enumerate(names)}
        self._room: npt.NDArray[Any] = np.zeros((0, len(names)), dtype)
        self._count = 0

    @property
    def matrix(self) -> npt.NDArray[Any]:
        """The records, a row each."""
        return self._room[:self._count]

    def fits(self, records: Sequence[Features]) -> bool:
        """Whether every record has a place for each of its names."""
        return all(
            isinstance(record, Row) and record.names == self.names or all(name in self._columns for name in record)
            for record in records
        )

    def append(self, record: Features) -> None:
        """Add a record that fits."""
        if isinstance(record, Row) and record.names == self.names:
            self.take(record.array)
            return
        self._room = with_room(self._room, self._count + 1)
        self._room[self._count, [self._columns[name] for name in record]] = list(record.values())
        self._count += 1

    def take(self, row: npt.NDArray[Any]) -> None:
        """Add a record that is a row of a table already."""
        self._room = with_room(self._room, self._count + 1)
        self._room[self._count] = row
        self._count += 1


class Batch:
    """The scores of a batch of examples, kept right while the examples are learned one after the other.

    `scores` holds what the support vectors at the start say, `near` the kernel of each example with each. An example
    that becomes a support vector changes the scores of all of them by its row of `near`: no kernel is called again.
    """

    def __init__(
        self, phis: Sequence[Features], scores: Array, near: Array, matrix: npt.NDArray[Any] | None = None,
    ):
        self._phis = phis  # keeps them alive, and so their ids their own
        self._rows = {id(phi): row for row, phi in enumerate(phis)}
        self._scores = scores
        self._near = near
        self._matrix = matrix

    def row(self, phi: Features) -> int | None:
        """Return the row of phi in the batch; None if it is of no batch."""
        return self._rows.get(id(phi))

    def dense_row(self, phi: Features) -> npt.NDArray[Any] | None:
        """Return the row that phi is in a dense table, if the batch came as one."""
        row = None if self._matrix is None else self.row(phi)
        return None if self._matrix is None or row is None else self._matrix[row]

    def square(self, phi: Features) -> float:
        """Return k of phi with itself where it is a row of a dense batch; else infinity."""
        row = None if self._matrix is None else self._rows.get(id(phi))
        return math.inf if row is None else float(self._near[row, row])

    def scores(self, row: int, slots: int) -> list[float]:
        """Return the scores of a row in the first `slots` slots, or as many as there are."""
        found: list[float] = self._scores[row, :slots].tolist()
        return found

    def move(self, phi: Features, coefficients: Array, keep: float) -> None:
        """Take in that phi, of the batch, is the newest support vector, and that the others kept a share."""
        row = self.row(phi)
        assert row is not None, "a batch learns its own examples"
        missing = len(coefficients) - self._scores.shape[1]
        if missing > 0:
            self._scores = np.pad(self._scores, ((0, 0), (0, missing)))
        if keep != 1.0:
            self._scores *= keep
        with np.errstate(all="ignore"):
            self._scores += self._near[row][:, None] * coefficients


def sparse(phis: Sequence[Features], kernel: Kernel, extra: float, block: Block, table: Array) -> Batch:
    """Return the batch of any records: products with sparse support vectors."""
    with np.errstate(all="ignore"):
        scores = (kernel.of(AgainstMany(block, phis)) + extra).T @ table
        return Batch(phis, scores, kernel.of(AgainstMany(Block(phis), phis)) + extra)


def dense(
    phis: Sequence[Features], matrix: Array, kernel: Kernel, extra: float, rows: DenseRows, table: Array,
) -> Batch:
    """Return the batch of the rows of a matrix: products at the speed of BLAS, in the precision of the kernel.

    A kernel value of either precision is multiplied by its coefficient and summed in float64.
    """
    with np.errstate(over="ignore"):  # too large for float32: infinite, and its row is refused when it is scored
        X = matrix.astype(kernel.dtype, copy=False)
    vectors = rows.matrix
    scores = np.zeros((len(X), table.shape[1]))
    with np.errstate(all="ignore"):
        for begin in range(0, len(vectors), _STRIP):
            values = kernel.matrix(X, vectors[begin:begin + _STRIP]).astype(np.float64, copy=False)
            scores += values @ table[begin:begin + _STRIP]
        if extra:
            scores += extra * table.sum(axis=0)
        near = kernel.matrix(X, X).astype(np.float64, copy=False) + extra
    return Batch(phis, scores, near, X)
