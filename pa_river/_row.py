"""A record that is a row of a table and becomes a mapping only where somebody reads it."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView

import numpy as np
import numpy.typing as npt

from pa_river.terms import Name


class Row(Mapping[Name, float]):
    """The features of a row of numbers, named by the table's columns; a 0 is no feature, as in every record.

    Nothing is built until it is read: a row costs one small object, where a dict of 784 features costs as much time
    as hundreds of inner products. The numbers are the table's own: `kept()` has its own.
    """

    __slots__ = ("array", "names", "_record")

    def __init__(self, array: npt.NDArray[np.float64], names: Sequence[Name]):
        self.array = array
        self.names = names
        self._record: dict[Name, float] | None = None  # once a single feature was asked for

    def __getitem__(self, name: Name) -> float:
        if self._record is None:
            self._record = self._read()
        return self._record[name]

    def __iter__(self) -> Iterator[Name]:
        return iter(self._read())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.array))

    def items(self) -> ItemsView[Name, float]:
        return self._read().items()

    def values(self) -> ValuesView[float]:
        return self._read().values()

    def __repr__(self) -> str:
        return repr(self._read())

    def kept(self) -> Row:
        """Return the row with a copy of its numbers, whatever becomes of the table."""
        return Row(self.array.copy(), self.names)

    def _read(self) -> dict[Name, float]:
        if self._record is not None:
            return self._record
        columns = self.array.nonzero()[0]
        numbers = columns.tolist()
        names = numbers if isinstance(self.names, range) else [self.names[column] for column in numbers]
        return dict(zip(names, self.array[columns].tolist()))
