"""LIBSVM sets as the paper's protocol takes them: features in [0, 1], 4:1 split, 75 % history, the rest varying."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: From the smallest to the largest; the paper's own nine are not legible in its text.
SETS = (
    "sonar", "heart", "ionosphere", "australian", "breast-cancer", "diabetes", "fourclass", "german.numer", "splice",
    "svmguide3", "a1a", "svmguide1", "mushrooms", "phishing", "a9a", "w8a",
)


@dataclass(frozen=True)
class Split:
    """One partition of a set: what is there, what comes and leaves, what is tested on."""

    history: tuple[Array, Array]
    varying: tuple[Array, Array]
    test: tuple[Array, Array]

    @property
    def width(self) -> int:
        """Return the number of features, d."""
        return int(self.history[0].shape[1])


def read(folder: Path, name: str) -> tuple[Array, Array]:
    """Return the features of a set, each scaled to [0, 1], and its labels as 1 and -1."""
    labels: list[float] = []
    rows: list[list[tuple[int, float]]] = []
    with gzip.open(folder / "libsvm" / f"{name}.svm.gz", "rt", encoding="ascii") as lines:
        for line in lines:
            label, *pairs = line.split()
            labels.append(1.0 if float(label) > 0 else -1.0)
            rows.append([(int(index), float(value)) for index, value in (pair.split(":") for pair in pairs)])
    X = np.zeros((len(rows), max(index for row in rows for index, _ in row)))
    for i, row in enumerate(rows):
        for index, value in row:
            X[i, index - 1] = value
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0), np.array(labels)


def partition(X: Array, y: Array, seed: int, most: int) -> Split:
    """Return a random partition: 4:1 into training and test, 3:1 of the training part into history and varying.

    Sets of more than `most` rows are cut to a random `most` of them first.
    """
    order = np.random.default_rng(seed).permutation(len(y))[:most]
    train = len(order) * 4 // 5
    history = train * 3 // 4
    parts = order[:history], order[history:train], order[train:]
    return Split(*((X[part], y[part]) for part in parts))
