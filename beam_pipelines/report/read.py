"""Read what a run left behind, line by line: outcomes become columns of numbers, the rest is counted as it passes."""

from __future__ import annotations

import enum
import json
import re
import sqlite3
import sys
from array import array
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Progress = Callable[[str], None]

LINES = ("predictions", "outcomes", "rejected", "orphans", "drift")
MAX_LABELS = 10_000  # distinct labels kept by name; beyond, a report by label says nothing to anyone
MAX_ALARMS = 500
MAX_REASONS = 1_000
NO_SEGMENT = -1


class ReportError(ValueError):
    """The directory does not hold what a finished run leaves; the message says which file and line."""


class Kind(enum.Enum):
    """What the outcomes are, found from the outcomes themselves."""

    EMPTY = "empty"
    BINARY = "binary"  # y is a bool, loss is 0 or 1
    MULTICLASS = "multiclass"  # y is a label, loss is 0 or 1
    COST = "cost"  # y is a label, loss is what the mistake costs
    REGRESSION = "regression"  # y is a number, loss is |prediction - y|
    DETECTOR = "detector"  # no loss: the prediction is a score
    OTHER = "other"  # tags, label sets, or a mixture: only the loss as it was recorded


class Names:
    """Texts numbered in the order they are first seen."""

    def __init__(self) -> None:
        self.codes: dict[Hashable, int] = {}

    def code(self, name: Hashable) -> int:
        return self.codes.setdefault(name, len(self.codes))

    def __len__(self) -> int:
        return len(self.codes)

    def all(self) -> list[Any]:
        return list(self.codes)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """One row an outcome, in the order of the file. `y`, `p`: codes of label and prediction, -1 for none; `number`,
    `guess`: the same two as numbers, NaN for none. `asked`: when the question was; `known`: when its label was there.
    `example`: the hash of key and id; `identity`: of key, id and version, which a prediction has too."""

    kind: Kind
    labels: list[Hashable]
    segments: list[str]
    key: Ints
    segment: Ints
    asked: Floats
    known: Floats
    delay: Floats
    loss: Floats
    y: Ints
    p: Ints
    number: Floats
    guess: Floats
    version: Ints
    example: Ints
    identity: Ints

    def __len__(self) -> int:
        return len(self.key)

    def holds(self, label: Hashable) -> Bools:
        """Return where y equals a label."""
        code = self.labels.index(label) if label in self.labels else len(self.labels)
        return np.equal(self.y, code)


@dataclass(slots=True)
class Predictions:
    """Counts, and the columns that join a score to its outcome by `identity`."""

    key: Ints
    time: Floats
    score: Floats
    identity: Ints


@dataclass(slots=True)
class Tally:
    """Records counted by what they have in common, with one example each, and by key."""

    total: int = 0
    groups: dict[tuple[str, ...], int] = field(default_factory=dict)
    examples: dict[tuple[str, ...], str] = field(default_factory=dict)
    keys: dict[int, int] = field(default_factory=dict)

    def add(self, group: tuple[str, ...], key: int | None, example: str) -> None:
        self.total += 1
        if group not in self.groups and len(self.groups) >= MAX_REASONS:
            group = (*group[:-1], "(other reasons)")
        self.groups[group] = self.groups.get(group, 0) + 1
        self.examples.setdefault(group, example)
        if key is not None:
            self.keys[key] = self.keys.get(key, 0) + 1


@dataclass(frozen=True, slots=True)
class Stored:
    """The newest snapshot of a key: sizes in bytes."""

    key: int
    version: int
    model: int
    cell: int


def each(path: Path, take: Callable[[dict[str, Any]], None], progress: Progress) -> None:
    """Give every record of a file to `take`; `ReportError` naming a line that is not as it should be."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    with path.open("rb") as lines:
        for count, line in enumerate(lines, 1):
            try:
                take(decode(line))
            except msgspec.DecodeError as error:
                raise ReportError(
                    f"{path.name} line {count} is no JSON object ({error}); was the run cut off?"
                ) from None
            except KeyError as error:
                raise ReportError(f"{path.name} line {count} has no field {error}") from None
            except (TypeError, ValueError, OverflowError) as error:
                raise ReportError(f"{path.name} line {count}: {error}") from None
            if not count % 50_000:
                progress(f"{path.name}: {count:,} lines")


def check(directory: Path) -> None:
    """Raise `ReportError` unless the directory holds the five files of a finished run."""
    if not directory.is_dir():
        raise ReportError(f"{directory} is not a directory")
    missing = [f"{name}.jsonl" for name in LINES if not (directory / f"{name}.jsonl").is_file()]
    if missing:
        raise ReportError(
            f"{directory} has no {', '.join(missing)}; a finished run leaves all of "
            f"{', '.join(f'{name}.jsonl' for name in LINES)}, empty or not"
        )


class _Rows:
    """The columns of `Outcomes` while they grow, and what is still possible as their kind."""

    def __init__(self, keys: Names):
        self.keys, self.segments, self.labels = keys, Names(), Names()
        self.ints = {name: array("q") for name in ("key", "segment", "y", "p", "version", "example", "identity")}
        self.floats = {name: array("d") for name in ("asked", "known", "delay", "loss", "number", "guess")}
        self.lossless = self.bools = self.numbers = self.distance = self.zero_one = self.whole = self.plain = True
        self.overflow = False

    def add(self, record: dict[str, Any]) -> None:
        y, p, loss, delay, time = (record[name] for name in ("y", "prediction", "loss", "delay", "time"))
        key, segment, version = record["key"], record["segment"], record["version"]
        number, guess = _number(y), _number(p)
        asked, known = moments(float(time), 0.0 if delay is None else float(delay))
        ints, floats = self.ints, self.floats
        ints["key"].append(self.keys.code(key))
        ints["segment"].append(NO_SEGMENT if segment is None else self.segments.code(str(segment)))
        ints["y"].append(self._label(y))
        ints["p"].append(self._label(p))
        ints["version"].append(int(version))
        ident = record["id"]
        ints["example"].append(hash((key, asked if ident is None else ident)))
        ints["identity"].append(hash((key, ident, version)))
        floats["asked"].append(asked)
        floats["known"].append(known)
        floats["delay"].append(float("nan") if delay is None else float(delay))
        floats["loss"].append(float("nan") if loss is None else float(loss))
        floats["number"].append(number)
        floats["guess"].append(guess)

        self.bools = self.bools and type(y) is bool
        self.plain = self.plain and not isinstance(y, dict)
        self.numbers = self.numbers and number == number and guess == guess
        self.whole = self.whole and type(y) is int and type(p) is int
        if loss is not None:
            self.lossless = False
            self.zero_one = self.zero_one and loss in (0, 1)
            self.distance = (
                self.distance
                and self.numbers
                and abs(loss - abs(guess - number)) <= 1e-9 * max(1.0, abs(guess), abs(number))
            )

    def _label(self, value: Any) -> int:
        if value is None:
            return -1
        if type(value) is list or type(value) is dict:
            value = _hashable(value)
        if len(self.labels) < MAX_LABELS or value in self.labels.codes:
            return self.labels.code(value)
        self.overflow = True
        return -1

    def kind(self) -> Kind:
        if not self.ints["key"]:
            return Kind.EMPTY
        if self.lossless:
            return Kind.DETECTOR
        if self.bools and self.zero_one:
            return Kind.BINARY
        if self.numbers and self.distance and not (self.whole and self.zero_one):
            return Kind.REGRESSION
        if self.overflow or not self.plain:
            return Kind.OTHER
        if self.zero_one:
            return Kind.MULTICLASS
        return Kind.OTHER if any(isinstance(label, tuple) for label in self.labels.codes) else Kind.COST

    def freeze(self) -> Outcomes:
        columns = {name: np.array(column) for name, column in (*self.ints.items(), *self.floats.items())}
        return Outcomes(kind=self.kind(), labels=self.labels.all(), segments=self.segments.all(), **columns)


def moments(time: float, delay: float) -> tuple[float, float]:
    """Return when an outcome's question was asked and when its label was known.

    An outcome's `time` is that of the event which completed it: the label's, or the features' where the label came
    first (and then it was of no use before).

    """
    return time - max(delay, 0.0), time


def _number(value: Any) -> float:
    return float(value) if type(value) is float or type(value) is int else float("nan")


def _hashable(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(_hashable(part) for part in value)
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return value  # type: ignore[no-any-return]


def read_outcomes(path: Path, keys: Names, progress: Progress) -> Outcomes:
    """Read the outcomes into columns: 104 bytes a row."""
    rows = _Rows(keys)
    each(path, rows.add, progress)
    return rows.freeze()


def read_predictions(path: Path, keys: Names, progress: Progress) -> Predictions:
    """Read times, scores and identities of the predictions; a detector's score is its prediction."""
    key, time, score, identity = array("q"), array("d"), array("d"), array("q")

    def take(record: dict[str, Any]) -> None:
        name, version, value = record["key"], record["version"], record["score"]
        time.append(record["time"])
        key.append(keys.code(name))
        score.append(_number(record["prediction"] if value is None else value))
        identity.append(hash((name, record["id"], version)))

    each(path, take, progress)
    return Predictions(np.array(key), np.array(time), np.array(score), np.array(identity))


_DETAIL = re.compile(r"'[^']*'|\"[^\"]*\"|[-+]?\d[\d.,:]*(?:e[-+]?\d+)?")


def read_rejected(path: Path, keys: Names, progress: Progress) -> Tally:
    """Count rejected records by stage and reason, the reasons' quoted names and numbers aside."""
    tally = Tally()

    def take(record: dict[str, Any]) -> None:
        reason, payload, key = str(record["reason"])[:300], str(record["payload"])[:200], record["key"]
        group = (str(record["stage"]), _DETAIL.sub("\u2026", reason))
        tally.add(group, None if key is None else keys.code(key), f"{reason}\n{payload}")

    each(path, take, progress)
    return tally


def read_orphans(path: Path, keys: Names, progress: Progress) -> Tally:
    """Count orphans by kind."""
    tally = Tally()

    def take(record: dict[str, Any]) -> None:
        key, ident = record["key"], record["id"]
        tally.add((str(record["kind"]),), keys.code(key), f"key {str(key)[:80]}, id {str(ident)[:80]}")

    each(path, take, progress)
    return tally


def read_drift(path: Path, keys: Names, progress: Progress) -> tuple[Tally, list[dict[str, Any]]]:
    """Count alarms and control answers by detector and action; keep the first `MAX_ALARMS` of them."""
    tally = Tally()
    first: list[dict[str, Any]] = []

    def take(record: dict[str, Any]) -> None:
        tally.add((str(record["detector"] or "control event"), str(record["action"])), keys.code(record["key"]), "")
        if len(first) < MAX_ALARMS:
            first.append(
                {name: record[name] for name in ("key", "detector", "action", "evidence", "version")}
                | {"time": float(record["time"])}
            )

    each(path, take, progress)
    return tally, first


def read_snapshots(path: Path, keys: Names) -> list[Stored]:
    """Return the newest snapshot of each key; none if the store is absent."""
    if not path.is_file():
        return []
    try:
        store = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            rows = store.execute(
                "SELECT key, version, ifnull(length(model), 0), ifnull(length(cell), 0) FROM snapshots"
                " ORDER BY generation, version, time"
            )
            newest = {str(key): (int(version), int(model), int(cell)) for key, version, model, cell in rows}
        finally:
            store.close()
    except sqlite3.Error as error:
        raise ReportError(f"{path.name} cannot be read: {error}") from None
    return [Stored(keys.code(key), *sizes) for key, sizes in newest.items()]


def narrator(wanted: bool) -> Progress:
    """Return what tells a person at a terminal how far it is, on one line of stderr; an empty text clears it."""
    if not (wanted and sys.stderr.isatty()):
        return lambda text: None

    def tell(text: str) -> None:
        print(f"\r{f'report: {text}' if text else '':<70}", end="" if text else "\r", file=sys.stderr, flush=True)

    return tell
