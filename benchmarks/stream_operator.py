"""CPU of the whole operator against the same pipeline with less in its state: `python -m benchmarks operator`.

All read the same JSON lines, parse and key them, and write the same two records an example; one holds a cell a key
(model, open predictions, known ids), one a number, one a River model and the open features in a pickle.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import apache_beam as beam
from apache_beam.coders import BytesCoder, VarIntCoder
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec
from river import linear_model

from beam_pipelines import learn, run, summary
from benchmarks.measure import Contestant, Row, compare, needs
from pa_river.stream import Event, Outcome, Output, Prediction


#: Events of one run, labels included.
EVENTS = 20_000


class CountFn(beam.DoFn):
    """What `LearnPerKeyFn` costs without a cell: the same elements in and out, and a counter as state."""

    COUNT = ReadModifyWriteStateSpec("count", VarIntCoder())

    def __init__(self, spec: Any, bounded: bool, placing: Any):
        self._placing = placing

    def process(self, element: Any, count: Any = beam.DoFn.StateParam(COUNT)) -> Iterator[Any]:
        _, batch = element
        number = count.read() or 0
        lines: dict[str, list[tuple[bytes, bytes]]] = {}
        for position, event in batch:
            number += 1
            output = record(event, number)
            lines.setdefault(output.tag, []).append(self._placing(position, 0, output))
        count.write(number)
        for tag, placed in lines.items():
            yield beam.pvalue.TaggedOutput(tag, placed)


def record(event: Event, number: int) -> Output:
    """The record that the operator would put out, with the counter in the model's place."""
    if event.y is None:
        return Prediction(event.key, event.id, event.time, False, 0.5, number)
    return Outcome(event.key, event.id, event.time, event.segment, False, event.y, 0.0, 60.0, number)


def write(path: Path, events: int, features: int, keys: int) -> None:
    """Examples with late labels: each label comes a hundred examples after its features."""
    draw = random.Random(7)
    names = [f"feature_{number}" for number in range(features)]
    with open(path, "w") as file:
        for step in range(events // 2 + 100):
            if step < events // 2:
                x = {name: round(draw.gauss(0.0, 1.0), 6) for name in names}
                event = {"key": f"key-{step % keys}", "id": f"id-{step}", "time": float(step), "x": x}
                file.write(json.dumps(event) + "\n")
            if (late := step - 100) >= 0:
                event = {"key": f"key-{late % keys}", "id": f"id-{late}", "time": float(step), "y": draw.random() < 0.5}
                file.write(json.dumps(event) + "\n")


def cost(given: list[str], folder: Path, fn: Any) -> tuple[float, float]:
    """CPU seconds of one run, threads included, imports and report left out; and seconds of the wall clock."""
    shutil.rmtree(folder, ignore_errors=True)
    with mock.patch.object(learn, "LearnPerKeyFn", fn), mock.patch.object(summary, "table", lambda *_: ""):
        begun, at = time.process_time(), time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            assert run.main([*given, "--output", str(folder), "--no_report"]) == 0
        return time.process_time() - begun, time.perf_counter() - at


class RiverFn(beam.DoFn):
    """What one would write with River alone: a PAClassifier and the open features, cloudpickled into the state."""

    MODEL = ReadModifyWriteStateSpec("model", BytesCoder())

    def __init__(self, spec: Any, bounded: bool, placing: Any):
        self._placing = placing

    def process(self, element: Any, held: Any = beam.DoFn.StateParam(MODEL)) -> Iterator[Any]:
        import cloudpickle  # type: ignore[import-untyped]

        _, batch = element
        data = held.read()
        model, waiting, number = cloudpickle.loads(data) if data else (linear_model.PAClassifier(C=1.0, mode=1), {}, 0)
        lines: dict[str, list[tuple[bytes, bytes]]] = {}
        for position, event in batch:
            number += 1
            if event.y is None:
                waiting[event.id] = event.x, model.predict_one(event.x)
            elif event.id in waiting:
                x, _ = waiting.pop(event.id)
                model.learn_one(x, event.y)
            output = record(event, number)
            lines.setdefault(output.tag, []).append(self._placing(position, 0, output))
        held.write(cloudpickle.dumps((model, waiting, number)))
        for tag, placed in lines.items():
            yield beam.pvalue.TaggedOutput(tag, placed)


def contestants(given: list[str], folder: Path, events: int) -> dict[str, Contestant | str]:
    """Return the operator and what it is held against, over the same input."""
    def pipeline(fn: Any) -> Contestant:
        def prepare() -> Callable[[], int]:
            def run_it() -> int:
                cost(given, folder / "out", fn)
                return events
            return run_it
        return prepare

    return {"ours": pipeline(learn.LearnPerKeyFn), "counter": pipeline(CountFn),
            "river, cloudpickle": needs("cloudpickle", lambda: pipeline(RiverFn))}


def operator(turns: int) -> list[Row]:
    """CPU an event of a whole run; `ours over the counter` is what a cell costs, a bare counter being 1."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for features, keys in ((100, 1), (100, 100), (10, 2_000)):
            write(folder / "events.jsonl", EVENTS, features, keys)
            what, given = f"operator, {features} features, {keys} keys", ["--input", str(folder / "events.jsonl")]
            rows.append(compare(what, "ours", contestants(given, folder, EVENTS), turns))
        given = ["--job", "flights"]
        cost(given, folder / "out", CountFn)
        events = sum(1 for tag in (Prediction.tag, Outcome.tag) for _ in open(folder / "out" / f"{tag}.jsonl"))
        rows.append(compare("operator, a month of flights", "ours", contestants(given, folder, events), turns))
    for row in rows:
        row.figures["ours over the counter"] = 1.0 / row.ratios["counter"]
    return rows


BENCHMARKS = {"operator": operator}
