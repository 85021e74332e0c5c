"""Many labels: PAMulticlass against Vowpal Wabbit's `--oaa` and scikit-learn's one-versus-all PA-I."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import pa_river
from benchmarks import data
from benchmarks.batches import CALL, calls, trained
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
    return _vw_lines(labels, [[(f"f{j}", value) for j, value in enumerate(row)] for row in X.tolist()], y)


def _vw_lines(
    labels: int, records: list[list[tuple[str, float]]], y: Any, bits: int = 18, passes: int = 1,
) -> Contestant:
    """Time the last of so many passes."""
    from vowpalwabbit import pyvw

    def prepare() -> Callable[[], int]:
        workspace = pyvw.Workspace(f"--oaa {labels} --loss_function hinge --sgd --quiet -b {bits}")
        examples = [
            workspace.parse(f"{label + 1} | " + " ".join(f"{name}:{value:.6g}" for name, value in record))
            for record, label in zip(records, y.tolist())
        ]
        for _ in range(passes - 1):
            for example in examples:
                workspace.learn(example)

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
        _over_the_better(row)
        rows.append(row)
    return rows


def _over_the_better(row: Row) -> None:
    peers = [ratio for name, ratio in row.ratios.items() if not name.startswith("ours")]
    if peers:
        row.figures["over the better peer"] = min(peers)


def sparse_labels(labels: int, rows: int) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return sparse rows, about 100 of 100,000 features each, and the best of random linear scores as their labels."""
    names = 100_000
    X, _ = data.sparse_table(rows, names)
    scores = X @ np.random.default_rng(3).normal(size=(names, labels))
    return X, np.asarray(scores.argmax(axis=1))


def _named(X: Any) -> list[list[tuple[str, float]]]:
    """The rows of a CSR matrix as VW reads them."""
    return [[(f"f{j}", value) for j, value in zip(X.indices[begin:end].tolist(), X.data[begin:end].tolist())]
            for begin, end in zip(X.indptr, X.indptr[1:])]


def multiclass_sparse(turns: int) -> list[Row]:
    """PAMulticlass.learn_many on CSR tables, against scikit-learn's OvA and VW's oaa; with names that all know, too."""
    rows = []
    for labels, count in ((10, 5_000), (100, 2_000)):
        X, y = sparse_labels(labels, count)
        few = min(count, 1000)

        def ours(labels: int = labels) -> Callable[[Any, Any], Any]:
            return pa_river.PAMulticlass(labels=list(range(labels))).learn_many

        def vw(known: bool, labels: int = labels, X: Any = X[:few], y: Any = y[:few]) -> Contestant | str:
            return needs("vowpalwabbit", lambda: _vw_lines(labels, _named(X), y, bits=20, passes=1 + known))

        what = f"multiclass, CSR ~100 of 100,000, k={labels}, {CALL} rows a call"
        for names, contestants in (
            ("names new to the model", {
                "ours": calls(ours, X, y.tolist()),
                "sklearn OvA": needs("sklearn", lambda: calls(_sklearn(labels), X, y)),
                "vw oaa": vw(False)}),
            ("names known", {
                "ours": calls(trained(ours, X, y.tolist()), X, y.tolist()),
                "sklearn OvA": needs("sklearn", lambda: calls(trained(_sklearn(labels), X, y), X, y)),
                "vw oaa": vw(True)}),
        ):
            row = compare(f"{what}, {names}", "ours", contestants, turns)
            _over_the_better(row)
            rows.append(row)
    return rows


BENCHMARKS = {"multiclass": multiclass, "multiclass_sparse": multiclass_sparse}
