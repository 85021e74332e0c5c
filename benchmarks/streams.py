"""More learners one example at a time: the fused scaler against River's pipeline, second order, and CapyMOA's PA."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

from river import linear_model, preprocessing

import pa_river
from benchmarks import data
from benchmarks.measure import Contestant, Row, compare
from benchmarks.online import ROWS, SHORT, both, fused


def scaled(turns: int) -> list[Row]:
    """ScaledPA, predict_one + learn_one, and step, against River's StandardScaler | PAClassifier."""
    rows = []
    for kind in (10, 100):
        stream = data.records(ROWS[kind], kind)
        rows.append(compare(f"scaler and PA, predict + learn, {SHORT[kind]}, shared keys", "ours", {
            "ours": both(pa_river.ScaledPA, stream), "ours, step": fused(pa_river.ScaledPA, stream),
            "river": both(lambda: preprocessing.StandardScaler() | linear_model.PAClassifier(C=1.0, mode=1), stream),
        }, turns))
    return rows


def second_order(turns: int) -> list[Row]:
    """AROW and SCW against River's PA: no peer that is installed from a wheel has them."""
    rows = []
    theirs: Callable[[], Any] = partial(linear_model.PAClassifier, C=1.0, mode=1)
    for kind in (10, 100):
        stream = data.records(ROWS[kind], kind)
        rows.append(compare(f"second order, predict + learn, {SHORT[kind]}, shared keys", "AROW", {
            "AROW": both(pa_river.AROWClassifier, stream), "SCW": both(pa_river.SCWClassifier, stream),
            "river PA": both(theirs, stream)}, turns))
    return rows


def capymoa(turns: int) -> list[Row]:
    """PAClassifier, predict_one + learn_one, against CapyMOA's PassiveAggressiveClassifier, an instance at a time."""
    rows = []
    for kind in (10, 100):
        stream = data.records(300, kind)
        rows.append(compare(f"predict + learn against CapyMOA, {SHORT[kind]}", "ours", {
            "ours": both(pa_river.PAClassifier, stream), "capymoa": _moa(stream, int(kind))}, turns))
    return rows


def _moa(stream: list[tuple[Any, Any]], width: int) -> Contestant | str:
    if importlib.util.find_spec("capymoa") is None:
        return "capymoa is not installed"
    if shutil.which("java") is None:
        return "capymoa needs a Java machine, and there is none"
    try:
        from capymoa.classifier import PassiveAggressiveClassifier
        from capymoa.core import LabeledInstance
        from capymoa.stream import Schema
    except Exception as error:  # its Java half may fail in any way
        return f"capymoa does not start: {type(error).__name__}"
    schema = Schema.from_custom(
        features=[*[f"f{j}" for j in range(width)], "y"], target="y", categories={"y": ["0", "1"]}, name="stream")
    import numpy as np

    instances = [LabeledInstance.from_array(schema, np.array(list(x.values())), int(y)) for x, y in stream]

    def prepare() -> Callable[[], int]:
        model = PassiveAggressiveClassifier(schema)

        def run() -> int:
            for instance in instances:
                model.predict(instance)
                model.train(instance)
            return len(instances)
        return run
    return prepare


BENCHMARKS = {"scaled": scaled, "second_order": second_order, "capymoa": capymoa}
