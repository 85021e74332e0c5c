"""One example at a time: predict and learn, `step`, regression, and the reference, against River's own PA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from river import linear_model

import pa_river
from benchmarks import data
from benchmarks.measure import Contestant, Row, compare
from pa_river import _compiled

ROWS: dict[int | str, int] = {10: 4000, 100: 1500, "sparse": 3000}
SHORT: dict[int | str, str] = {10: "d=10", 100: "d=100", "sparse": "~100 of 1M"}


def both(build: Callable[[], Any], stream: list[tuple[Any, Any]]) -> Contestant:
    """`predict_one`, then `learn_one`."""
    def prepare() -> Callable[[], int]:
        model = build()
        predict, learn = model.predict_one, model.learn_one

        def run() -> int:
            for x, y in stream:
                predict(x)
                learn(x, y)
            return len(stream)
        return run
    return prepare


def fused(build: Callable[[], Any], stream: list[tuple[Any, Any]]) -> Contestant:
    """`step`: both in one pass."""
    def prepare() -> Callable[[], int]:
        step = build().step

        def run() -> int:
            for x, y in stream:
                step(x, y)
            return len(stream)
        return run
    return prepare


def on_reference(build: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: _compiled.on_reference(build())


THEIRS: Callable[[], Any] = partial(linear_model.PAClassifier, C=1.0, mode=1)


def predict_learn(turns: int) -> list[Row]:
    """PAClassifier, predict_one + learn_one, against River's."""
    rows = []
    for kind, count in ROWS.items():
        stream = data.records(count, kind)
        for keys, records in (("shared", stream), ("fresh", data.fresh(stream))):
            rows.append(compare(f"predict + learn, {SHORT[kind]}, {keys} keys", "ours", {
                "ours": both(pa_river.PAClassifier, records), "river": both(THEIRS, records)}, turns))
    return rows


def step(turns: int) -> list[Row]:
    """PAClassifier.step against River's two calls."""
    rows = []
    for kind, count in ROWS.items():
        stream = data.records(count, kind)
        for keys, records in (("shared", stream), ("fresh", data.fresh(stream))):
            rows.append(compare(f"step, {SHORT[kind]}, {keys} keys", "ours", {
                "ours": fused(pa_river.PAClassifier, records), "river": both(THEIRS, records)}, turns))
    return rows


def regression(turns: int) -> list[Row]:
    """PARegressor, predict_one + learn_one, against River's."""
    rows = []
    theirs: Callable[[], Any] = partial(linear_model.PARegressor, C=1.0, mode=1, eps=0.1)
    for kind in (10, 100):
        stream = [(x, sum(x.values()) + (1.0 if y else -1.0)) for x, y in data.records(ROWS[kind], kind)]
        rows.append(compare(f"PARegressor predict + learn, {SHORT[kind]}, shared keys", "ours", {
            "ours": both(pa_river.PARegressor, stream), "river": both(theirs, stream)}, turns))
    return rows


def reference(turns: int) -> list[Row]:
    """The reference, as it runs where there is no compiler, against River's PA."""
    rows = []
    for kind in (10, 100):
        stream = data.records(ROWS[kind], kind)
        plain = on_reference(pa_river.PAClassifier) if pa_river.NATIVE else pa_river.PAClassifier
        rows.append(compare(f"reference, predict + learn, {SHORT[kind]}, shared keys", "ours", {
            "ours": both(plain, stream), "ours, step": fused(plain, stream), "river": both(THEIRS, stream)}, turns))
    return rows


BENCHMARKS = {"predict_learn": predict_learn, "step": step, "regression": regression, "reference": reference}
