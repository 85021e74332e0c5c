"""Whole batches: `learn_many` against scikit-learn's exact sequential PA-I, at 1,000 rows a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pa_river
from benchmarks import data
from benchmarks.measure import Contestant, Row, compare, needs

CALL = 1000


def calls(learn: Callable[[], Callable[[Any, Any], Any]], X: Any, y: Any) -> Contestant:
    """Feed the table, CALL rows a call, to what `learn` prepares. It is cut up before: scipy's slices take long."""
    parts = [(X[begin:begin + CALL], y[begin:begin + CALL]) for begin in range(0, X.shape[0], CALL)]

    def prepare() -> Callable[[], int]:
        feed = learn()

        def run() -> int:
            for part in parts:
                feed(*part)
            return int(X.shape[0])
        return run
    return prepare


def trained(learn: Callable[[], Callable[[Any, Any], Any]], X: Any, y: Any) -> Callable[[], Callable[[Any, Any], Any]]:
    """Return what prepares the same, once it has seen the table."""
    def prepare() -> Callable[[Any, Any], Any]:
        feed = learn()
        for begin in range(0, X.shape[0], CALL):
            feed(X[begin:begin + CALL], y[begin:begin + CALL])
        return feed
    return prepare


def _sklearn() -> Callable[[Any, Any], Any]:
    from sklearn.linear_model import SGDClassifier  # type: ignore[import-untyped]

    model = SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=1.0, shuffle=False)
    return lambda X, y: model.partial_fit(X, y, classes=[False, True])


def learn_many(turns: int) -> list[Row]:
    """PAClassifier.learn_many against SGDClassifier(learning_rate="pa1").partial_fit."""
    def ours() -> Callable[[Any, Any], Any]:
        return pa_river.PAClassifier().learn_many

    rows = []
    for width, count in ((10, 20_000), (100, 20_000), (1000, 5_000)):
        X, y = data.dense_table(count, width)
        rows.append(compare(f"learn_many, d={width}, {CALL} rows a call", "ours", {
            "ours": calls(ours, X, y), "sklearn pa1": needs("sklearn", lambda: calls(_sklearn, X, y))}, turns))
    X, y = data.sparse_table(10_000)
    rows.append(compare(f"learn_many, CSR ~100 of 1M, {CALL} rows a call, names new to the model", "ours", {
        "ours": calls(ours, X, y), "sklearn pa1": needs("sklearn", lambda: calls(_sklearn, X, y))}, turns))
    rows.append(compare(f"learn_many, CSR ~100 of 1M, {CALL} rows a call, names known", "ours", {
        "ours": calls(trained(ours, X, y), X, y),
        "sklearn pa1": needs("sklearn", lambda: calls(trained(_sklearn, X, y), X, y))}, turns))
    return rows


BENCHMARKS = {"learn_many": learn_many}
