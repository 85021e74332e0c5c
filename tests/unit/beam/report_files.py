"""Output files of a run made by hand for the tests of the report: River's `simulate_qa` decides what was known when."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from river import stream

NAMES = ("predictions", "outcomes", "rejected", "orphans", "drift")


class Case(NamedTuple):
    """One labelled question."""

    key: str
    id: str
    asked: float
    delay: float
    y: Any
    x: dict[str, float]
    guess: Any


def cases(count: int, seed: int, *, regression: bool = False, keys: int = 3) -> list[Case]:
    """Random questions, many at one time, many labels at the time of another question."""
    rng = random.Random(seed)
    found, at = [], 1_000_000_000.0
    for i in range(count):
        at += rng.choice([0.0, 0.0, 1.0, 5.0])
        y: Any = rng.gauss(0.0, 10.0) if regression else rng.random() < 0.4
        guess: Any = rng.gauss(0.0, 3.0) if regression else rng.random() < 0.5
        x = {"a": rng.gauss(0.0, 1.0) + (0.1 * y if regression else y), "b": rng.gauss(0.0, 1.0)}
        found.append(Case(f"k{rng.randrange(keys)}", str(i), at, float(rng.choice([1, 2, 5, 40])), y, x, guess))
    return found


def moments(found: Iterable[Case]) -> Iterator[tuple[Case, bool]]:
    """Every question (False) and answer (True) in River's order."""
    asked = [({"asked": case.asked, "delay": case.delay, "case": case}, True) for case in found]
    for _, record, answer in stream.simulate_qa(asked, "asked", lambda x, y: x["delay"]):
        yield record["case"], answer is not None


def loss(case: Case) -> float:
    """What the model's guess costs."""
    return abs(case.guess - case.y) if isinstance(case.y, float) else int(case.guess != case.y)


def write(directory: Path, found: Iterable[Case] = (), **more: list[dict[str, Any]]) -> Path:
    """Write the five files of a run that asked and answered these cases; `more` is put behind them."""
    directory.mkdir(exist_ok=True)
    lines: dict[str, list[dict[str, Any]]] = {name: [] for name in NAMES}
    updates: dict[str, int] = {}
    versions: dict[str, int] = {}
    for case, answered in moments(found):
        about = {"key": case.key, "id": case.id}
        if not answered:
            versions[case.id] = updates.get(case.key, 0)
            said = {"prediction": case.guess, "score": float(case.guess) - 0.5, "version": versions[case.id]}
            lines["predictions"].append(about | {"time": case.asked} | said)
        else:
            updates[case.key] = updates.get(case.key, 0) + 1
            judged = {"prediction": case.guess, "y": case.y, "loss": loss(case), "delay": case.delay}
            where = {"time": case.asked + case.delay, "segment": f"s{int(case.id) % 2}", "version": versions[case.id]}
            lines["outcomes"].append(about | where | judged)
    for name in NAMES:
        rows = lines[name] + more.get(name, [])
        (directory / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def outcome(key: str, id: str | None, y: Any, prediction: Any, cost: float | None, **more: Any) -> dict[str, Any]:
    """An outcome record."""
    plain = {"time": 1e9, "segment": None, "delay": 0.0, "version": 0}
    return {"key": key, "id": id, "y": y, "prediction": prediction, "loss": cost} | plain | more


def store(directory: Path, rows: list[tuple[str, int, int, float, bytes, bytes]]) -> None:
    """Write a snapshot store: key, generation, version, time, model, cell."""
    with sqlite3.connect(directory / "snapshots.db") as found:
        found.execute("CREATE TABLE snapshots(key TEXT, generation INTEGER, version INTEGER, time REAL, reason TEXT,"
                      " model BLOB, cell BLOB)")
        found.executemany("INSERT INTO snapshots VALUES (?, ?, ?, ?, 'end', ?, ?)", rows)
    found.close()
