"""Many labels: PAMulticlass against Vowpal Wabbit's `--oaa` and scikit-learn's one-versus-all PA-I."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import pa_river
from benchmarks.batches import CALL, calls
from benchmarks.measure import Contestant, Row, compare, needs

#: labels, features, rows: what a turn takes some tenths of a second for
SIZES = ((10, 100, 10_000), (100, 784, 2_000), (1000, 100, 2_000), (1000, 784, 1_000))
#: How far the labels' centres lie apart, in deviations of a row around its own.
APART = 4.0


def table(labels: int, width: int, rows: int, seed: int = 0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return Gaussian rows around a centre a label, and their labels; each label comes early."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(labels), rng.integers(0, labels, max(0, rows - labels))])[:rows]
    centres = rng.normal(size=(labels, width)) * APART / np.sqrt(width)
    return rng.normal(size=(rows, width)) + centres[y], y


def _sklearn(labels: int) -> Callable[[], Callable[[Any, Any], Any]]:
    def prepare() -> Callable[[Any, Any], Any]:
        from sklearn.linear_model import SGDClassifier  # type: ignore[import-untyped]

        model = SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0, shuffle=False)
        classes = np.arange(labels)
        return lambda X, y: model.partial_fit(X, y, classes=classes)
    return prepare


def _vw(labels: int, X: Any, y: Any) -> Contestant:
    """Learn examples that were parsed before the clock starts: the best case for it."""
    from vowpalwabbit import pyvw

    def prepare() -> Callable[[], int]:
        workspace = pyvw.Workspace(f"--oaa {labels} --loss_function hinge --sgd --quiet")
        examples = [
            workspace.parse(f"{label + 1} | " + " ".join(f"f{j}:{value:.6g}" for j, value in enumerate(row)))
            for row, label in zip(X.tolist(), y.tolist())
        ]

        def run() -> int:
            for example in examples:
                workspace.learn(example)
            return len(examples)
        return run
    return prepare


def _single(X: Any, y: Any) -> Contestant:
    records = [({f"f{j}": value for j, value in enumerate(row)}, label) for row, label in zip(X.tolist(), y.tolist())]

    def prepare() -> Callable[[], int]:
        step = pa_river.PAMulticlass().step

        def run() -> int:
            for x, label in records:
                step(x, label)
            return len(records)
        return run
    return prepare


def multiclass(turns: int) -> list[Row]:
    """PAMulticlass.learn_many, and step on records, against scikit-learn's OvA and VW's oaa, k binary problems."""
    rows = []
    for labels, width, count in SIZES:
        X, y = table(labels, width, count)
        row = compare(f"multiclass, k={labels}, d={width}, {CALL} rows a call", "ours", {
            "ours": calls(lambda: pa_river.PAMulticlass(labels=list(range(labels))).learn_many, X, y.tolist()),
            "ours, step": _single(X[:500], y[:500]),
            "sklearn OvA": needs("sklearn", lambda: calls(_sklearn(labels), X, y)),
            "vw oaa": needs("vowpalwabbit", lambda: _vw(labels, X[:500], y[:500])),
        }, turns)
        peers = [ratio for name, ratio in row.ratios.items() if not name.startswith("ours")]
        if peers:
            row.figures["over the better peer"] = min(peers)
        rows.append(row)
    return rows


BENCHMARKS = {"multiclass": multiclass}
