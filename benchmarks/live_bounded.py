"""What `benchmarks.live` measures without a broker: the bounded job on FnApiRunner, and the bytes of a cell."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from beam_pipelines import learn
from benchmarks import stream_operator
from pa_river import PA1, PAClassifier, dumps
from pa_river.stream import CellSpec, Event
from tests.integration import rig

_FEATURES = [f"feature_{number}" for number in range(10)]
_LATE = 100  # examples that a label comes after its features


def log(count: int, keys: int, features: int = 10) -> Iterator[tuple[str, str]]:
    """So many records, (key, event): ten features each, a random label a hundred examples later: the dearest case."""
    draw, made, step = random.Random(7), 0, 0
    while made < count:
        x = {name: round(draw.gauss(0.0, 1.0), 6) for name in _FEATURES[:features]}
        yield rig.event(f"key-{step % keys}", f"id-{step}", float(step), x=x)
        made += 1
        if step >= _LATE and made < count:
            old = step - _LATE
            yield rig.event(f"key-{old % keys}", f"id-{old}", float(step), y=draw.random() < 0.5)
            made += 1
        step += 1


def pace(keys: int, events: int, variants: Sequence[str], shards: int, folder: Path) -> list[dict[str, Any]]:
    """The bounded job over a file, variants in turns; the least of two each, less the cost of a run over two events."""
    path, none, out = folder / f"{keys}.jsonl", folder / "none.jsonl", folder / "bounded"
    path.write_text("".join(value + "\n" for _, value in log(events, keys)))
    none.write_text("".join(value + "\n" for _, value in log(2, 1)))
    taken: dict[str, list[tuple[float, float]]] = {variant: [] for variant in variants}
    for _ in range(2):
        for variant, costs in taken.items():
            fn = stream_operator.CountFn if variant == "counter" else learn.LearnPerKeyFn
            more = ["--shards", str(shards)] if variant == "sharded" else []
            whole = stream_operator.cost(["--input", str(path), *more], out, fn)
            fixed = stream_operator.cost(["--input", str(none), *more], out, fn)
            costs.append((whole[0] - fixed[0], whole[1] - fixed[1]))
    rows = []
    for variant, costs in taken.items():
        cpu, wall = min(costs)
        rows.append({"runner": "FnApiRunner, file", "keys": keys, "variant": variant, "records": events,
                     "per_second": round(events / wall), "worker_us": round(cpu / events * 1e6, 1),
                     "runner_us": None})  # fmt: skip
        print(json.dumps(rows[-1]), flush=True)
    return rows


def sizes() -> list[dict[str, int]]:
    """Bytes of a key's state by features: after one example, with all its ids known, and for each open prediction."""
    rows = []
    for features in (10, 100):
        names = [f"feature_{number}" for number in range(features)]
        draw = random.Random(7)
        holder = CellSpec(PAClassifier(PA1(1.0)), keep_every=None).open("key-1", None)

        def example(number: int) -> Event:
            x = {name: round(draw.gauss(0.0, 1.0), 6) for name in names}
            return Event("key-1", f"id-{number}", float(number), x)

        holder.on_event(example(0)._replace(y=True))
        one = len(holder.dumps() or b"")
        for number in range(1, 1_100):
            holder.on_event(example(number)._replace(y=draw.random() < 0.5))
        whole = len(holder.dumps() or b"")
        for number in range(2_000, 2_100):
            holder.on_event(example(number))
        waiting = len(holder.dumps() or b"") - whole
        model = len(dumps(holder.model()))
        rows.append({"features": features, "after_one_example": one, "after_1100_examples": whole,
                     "of_it_the_model": model, "each_open_prediction": round(waiting / 100)})  # fmt: skip
    return rows
