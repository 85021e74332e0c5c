"""Tables of examples -> checked rows (numpy arrays, scipy sparse matrices, pandas frames), and results back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from pa_river import _validate
from pa_river.features import features
from pa_river.terms import Features


def rows(X: Any) -> Iterator[Features]:
    """Yield the rows of X as checked features; `ValueError` that names row and column."""
    return numbered(_records(X), features)


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
    labels = list(y)
    weights = [1.0] * len(phis) if w is None else list(w)
    if not len(phis) == len(labels) == len(weights):
        raise ValueError(f"X has {len(phis)} rows, y has {len(labels)}, w has {len(weights)}")
    checked = []
    for number, (phi, label, weight) in enumerate(zip(phis, labels, weights)):
        try:
            checked.append((phi, normalise_y(label), _validate.example_weight(weight)))
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from error
    return checked


def like(X: Any, values: list[Any]) -> Any:
    """Return `values` as X came: a pandas Series with its index for a frame, else a numpy array."""
    frame = pandas_frame(X)
    if frame is not None:
        return sys.modules["pandas"].Series(values, index=frame.index)
    if {type(value) for value in values} in ({bool}, {float}):  # numpy would make one type, text even, of a mixture
        return np.array(values)
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
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(f"X must have two dimensions (rows, features), got {array.ndim}")
        for row in array.tolist():
            yield dict(enumerate(row))
