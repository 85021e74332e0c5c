"""The streams that benchmarks run on: dense records, sparse ones of a million names, tables of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Record = dict[str, float]
NOISE = 0.05


def dense_table(rows: int, width: int, seed: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return Gaussian rows and the side of a random plane they lie on, 5 % of the labels turned."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width))
    return X, (X @ rng.normal(size=width) > 0.0) ^ (rng.random(rows) < NOISE)


def sparse_ids(rows: int, names: int = 1_000_000, draws: int = 108, seed: int = 0) -> list[npt.NDArray[np.int64]]:
    """Return for each row about 100 distinct ids, log-uniform: a few come often, most hardly ever."""
    rng = np.random.default_rng(seed)
    return [np.unique(np.exp(rng.uniform(0.0, np.log(names), draws)).astype(np.int64)) for _ in range(rows)]


def sparse_table(rows: int, names: int = 1_000_000, seed: int = 0) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return the sparse rows as a scipy CSR matrix, with labels by a random plane."""
    import scipy.sparse

    rng, ids = np.random.default_rng(seed + 1), sparse_ids(rows, names, seed=seed)
    ends = np.cumsum([0, *map(len, ids)])
    indices = np.concatenate(ids).astype(np.int32)
    X = scipy.sparse.csr_matrix((rng.normal(size=len(indices)), indices, ends), (rows, names))
    return X, (X @ rng.normal(size=names) > 0.0) ^ (rng.random(rows) < NOISE)


def records(rows: int, kind: int | str) -> list[tuple[Record, bool]]:
    """Return records with labels: `kind` is a number of features, or "sparse". All records share their key strings."""
    if kind == "sparse":
        ids = sparse_ids(rows)
        rng = np.random.default_rng(2)
        plane = rng.normal(size=1_000_000)
        keys = {int(i): f"feature{i}" for i in np.unique(np.concatenate(ids))}
        stream = []
        for row in ids:
            values = rng.normal(size=len(row))
            y = bool(values @ plane[row] > 0.0) ^ bool(rng.random() < NOISE)
            stream.append((dict(zip([keys[i] for i in row.tolist()], values.tolist())), y))
        return stream
    X, labels = dense_table(rows, int(kind))
    names = [f"feature{j}" for j in range(int(kind))]
    return [(dict(zip(names, row)), y) for row, y in zip(X.tolist(), labels.tolist())]


def fresh(stream: list[tuple[Record, bool]]) -> list[tuple[Record, bool]]:
    """Return the same records with key strings of their own, as each decoded JSON or Kafka record has them."""
    return [({(name + "_")[:-1]: value for name, value in x.items()}, y) for x, y in stream]
