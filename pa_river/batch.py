"""Tables of examples -> checked rows (numpy arrays, scipy sparse matrices, pandas frames), and results back."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pa_river import _validate
from pa_river._row import Row
from pa_river.features import name_of, features, short
from pa_river.terms import Features, Name

#: Rows of a dense table that are turned into records in one go.
_STRIP = 1024


class Table(list[Features]):
    """The rows of a table as checked features and, where it was dense, as one matrix with a name a column."""

    matrix: npt.NDArray[np.float64] | None = None
    names: Sequence[Name] = ()

    def part(self, begin: int, end: int) -> Table:
        """Return the rows from `begin` up to `end`."""
        part = Table(self[begin:end])
        if self.matrix is not None:
            part.matrix, part.names = self.matrix[begin:end], self.names
        return part


def rows(X: Any, lazy: bool = False) -> Table:
    """Return the rows of X as checked features; `ValueError` that names row and column.

    A table of plain numbers is checked whole, at the speed of C, and only what is not 0 gets into the records; the
    rest goes record by record through `features`. `lazy`: who asks reads few of the rows of a dense table, which then
    are views of it.
    """
    dense = _dense(X)
    if dense is not None:
        return _from_dense(*dense, lazy)
    if hasattr(X, "tocsr") and _plain(X.dtype):
        return _from_sparse(X)
    return Table(numbered(_records(X), features))


def whole_rows(X: Any) -> Table:
    """Return the rows of X as checked features, the zeros of a dense table too: for models to which 0 is a value."""
    _dense(X)  # what is no table is refused there
    return Table(numbered(_records(X), features))


def table(inputs: Iterable[Any]) -> Table:
    """Return `inputs` as a table, as they are if they are one."""
    return inputs if isinstance(inputs, Table) else Table(inputs)


def numbered(records: Iterable[Any], read: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield what `read` makes of each record; its `ValueError` gets the number of the row."""
    for number, record in enumerate(records):
        try:
            yield read(record)
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from error


def examples(
    inputs: Iterable[Any], y: Any, w: Any, normalise_y: Callable[[Any], Any],
) -> list[tuple[Any, Any, float]]:
    """Return the checked rows of a batch with their labels and weights; `ValueError` before anything is learned."""
    phis = list(inputs)
    labels, w = listed(y), one_each(w, len(phis))
    weights = [1.0] * len(phis) if w is None else listed(w)
    if not len(phis) == len(labels) == len(weights):
        raise ValueError(f"X has {len(phis)} rows, y has {len(labels)}, w has {len(weights)}")
    checked = []
    for number, (phi, label, weight) in enumerate(zip(phis, labels, weights)):
        try:
            checked.append((phi, normalise_y(label), _validate.example_weight(weight)))
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from error
    return checked


def one_each(w: Any, count: int) -> Any:
    """Return the weights of so many rows as they came, None for 1 each; one number stands for that many."""
    if isinstance(w, (numbers.Number, np.generic)) or (isinstance(w, np.ndarray) and w.ndim == 0):
        return [_validate.example_weight(w[()] if isinstance(w, np.ndarray) else w)] * count
    return w


def listed(values: Any) -> list[Any]:
    """Return labels or weights as a list; `ValueError` if they are not many."""
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"a label or weight a row was expected, got {short(values)}") from None


def like(X: Any, values: list[Any], kind: type = object) -> Any:
    """Return `values` as X came: a pandas Series with its index for a frame, else a numpy array.

    `kind`: the type that all have, where a learner knows it: so no values are of the type of any.
    """
    frame, kinds = pandas_frame(X), {type(value) for value in values} or {kind}
    if frame is not None:  # pandas would make NaN of the None among labels
        dtype = kind if not values else None if len(kinds) == 1 else object
        return sys.modules["pandas"].Series(values, index=frame.index, dtype=dtype)
    if kinds in ({bool}, {float}):  # numpy would make one type, text even, of a mixture
        return np.array(values, dtype=kinds.pop())
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def proba_like(X: Any, values: list[Any]) -> Any:
    """Return probabilities as a DataFrame, one column a label; with the index of X where it is a frame."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("predict_proba_many returns a pandas DataFrame: pip install pandas") from None
    frame = pandas_frame(X)
    return pd.DataFrame(values, index=None if frame is None else frame.index)


def pandas_frame(X: Any) -> Any:
    """Return X if it is a pandas DataFrame, else None."""
    pandas = sys.modules.get("pandas")  # who passes a frame has imported it; nobody else waits for the import
    return X if pandas is not None and isinstance(X, pandas.DataFrame) else None


def require_distinct(frame: Any) -> None:
    """`ValueError` if two columns of a frame have the same name."""
    doubled = frame.columns[frame.columns.duplicated()]
    if len(doubled):
        raise ValueError(f"the column {doubled[0]!r} appears twice")


def _dense(X: Any) -> tuple[npt.NDArray[np.float64], Sequence[Name]] | None:
    """Return X as floats with the names of its columns, if it is a dense table of plain numbers; else None."""
    frame = pandas_frame(X)
    if frame is not None:
        require_distinct(frame)
        if not all(map(_plain, frame.dtypes)):
            return None
        return frame.to_numpy(np.float64), list(map(name_of, frame.columns))
    if hasattr(X, "tocsr"):
        return None
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, features), got {array.ndim}")
    return (array.astype(np.float64, copy=False), range(array.shape[1])) if _plain(array.dtype) else None


def _plain(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "fiub" and dtype.itemsize <= 8


def _from_dense(matrix: npt.NDArray[np.float64], names: Sequence[Name], lazy: bool) -> Table:
    result = Table()
    for begin in range(0, len(matrix), _STRIP):
        strip = matrix[begin:begin + _STRIP]
        finite = np.isfinite(strip)
        if not finite.all():
            row, column = np.argwhere(~finite)[0].tolist()
            raise _not_finite(begin + row, names[column], strip[row, column])
        if lazy:
            result += [Row(row, names) for row in strip]
            continue
        kept = strip != 0.0
        if kept.all():
            result += [dict(zip(names, row)) for row in strip.tolist()]
            continue
        columns = np.nonzero(kept)[1].tolist()
        held = columns if isinstance(names, range) else [names[column] for column in columns]
        result += _cut(held, strip[kept].tolist(), kept.sum(axis=1).cumsum().tolist())
    result.matrix, result.names = matrix, names
    return result


def _from_sparse(X: Any) -> Table:
    matrix = X.tocsr(copy=True)
    matrix.sum_duplicates()
    values = matrix.data.astype(np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        place = int(np.argmin(finite))
        row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
        raise _not_finite(row, int(matrix.indices[place]), values[place])
    return Table(_cut(matrix.indices.tolist(), values.tolist(), matrix.indptr[1:].tolist()))


def _cut(names: list[Any], values: list[float], ends: list[int]) -> Iterator[Features]:
    begin = 0
    for end in ends:
        yield dict(zip(names[begin:end], values[begin:end]))
        begin = end


def _not_finite(row: int, name: Name, value: Any) -> ValueError:
    return ValueError(f"row {row}: feature {name!r} must be a finite number, got {short(float(value))}")


def _records(X: Any) -> Iterator[dict[Any, Any]]:
    frame = pandas_frame(X)
    if frame is not None:
        columns = list(frame.columns)
        yield from (dict(zip(columns, row)) for row in frame.itertuples(index=False, name=None))
    elif hasattr(X, "tocsr"):
        matrix = X.tocsr(copy=True)
        matrix.sum_duplicates()
        for begin, end in zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist()):
            yield dict(zip(matrix.indices[begin:end].tolist(), matrix.data[begin:end].tolist()))
    else:
        for row in np.asarray(X).tolist():
            yield dict(enumerate(row))
