"""Tables of examples -> checked rows (numpy arrays, scipy sparse matrices, pandas frames), and results back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pa_river import _validate
from pa_river.features import features
from pa_river.terms import Features


def rows(X: Any) -> Iterator[Features]:
    """Yield the rows of X as checked features; `ValueError` that names row and column."""
    for number, record in enumerate(_records(X)):
        try:
            yield features(record)
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from error


def examples(X: Any, y: Any, w: Any, normalise_y: Callable[[Any], Any]) -> list[tuple[Features, Any, float]]:
    """Return the checked rows of a batch with their labels and weights; `ValueError` before anything is learned."""
    phis = list(rows(X))
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
    frame = _pandas_frame(X)
    if frame is not None:
        return sys.modules["pandas"].Series(values, index=frame.index)
    if values and isinstance(values[0], (bool, float)):
        return np.array(values)
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def proba_like(X: Any, values: list[dict[Any, float]]) -> Any:
    """Return probabilities as a DataFrame, one column a label; with the index of X where it is a frame."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("predict_proba_many returns a pandas DataFrame: pip install pandas") from None
    frame = _pandas_frame(X)
    return pd.DataFrame(values, index=None if frame is None else frame.index)


def _pandas_frame(X: Any) -> Any:
    pandas = sys.modules.get("pandas")  # who passes a frame has imported it; nobody else waits for the import
    return X if pandas is not None and isinstance(X, pandas.DataFrame) else None


def _records(X: Any) -> Iterator[dict[Any, Any]]:
    frame = _pandas_frame(X)
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
