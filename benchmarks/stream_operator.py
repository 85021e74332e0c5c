"""CPU of the whole operator against the same pipeline with a bare counter in its state: a ratio within one run.

    python -m benchmarks.stream_operator --events 20000 --features 100 --keys 100 --repeats 5
    python -m benchmarks.stream_operator --flights nycflights13.csv.gz --repeats 2

Both read the same JSON lines, parse and key them, and write the same two records an example; one holds a cell a key
(model, open predictions, known ids), the other a number.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import apache_beam as beam
from apache_beam.coders import VarIntCoder
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec

from beam_pipelines import learn, run, summary
from pa_river.stream import Event, Outcome, Output, Prediction


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


def main() -> None:
    """Interleave the two, so that the machine's drift hits both alike; take the least of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("events", 20_000), ("features", 100), ("keys", 100), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--flights", metavar="FILE", help="the flights of this file instead of made events")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "events.jsonl"), Path(folder, "out")
        if args.flights:
            given, about = ["--job", "flights", "--input", args.flights], {"flights": Path(args.flights).name}
        else:
            write(path, args.events, args.features, args.keys)
            given, about = ["--input", str(path)], {"features": args.features, "keys": args.keys}
        ours, bare = [], []
        for _ in range(args.repeats):
            bare.append(cost(given, out, CountFn)[0])
            ours.append(cost(given, out, learn.LearnPerKeyFn)[0])
        events = sum(1 for tag in (Prediction.tag, Outcome.tag) for _ in open(out / f"{tag}.jsonl"))
    print(json.dumps({
        **about,
        "events": events,
        "us_per_event": round(min(ours) / events * 1e6, 1),
        "bare_us_per_event": round(min(bare) / events * 1e6, 1),
        "vs_counter": round(min(ours) / min(bare), 2),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
