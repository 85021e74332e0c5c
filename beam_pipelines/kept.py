"""Whether models that a file holds can go on under the model that a job was given; refused in words if they cannot."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from beam_pipelines.command import ArgumentError
from pa_river.state import StateError, unpack
from pa_river.stream import CellSpec, Snapshot, SnapshotStore, sections


def check_fit(spec: CellSpec, stored: bytes, about: str, *, is_meant: bool) -> None:
    """`ArgumentError` if a stored model is of another kind than the job's, or, unless `is_meant`, of other parameters.

    How a cell asks its model, and what it takes for a label, follows from the job's model: one of another class would
    have every event rejected.
    """
    try:
        kept, given = spec.kind.load(stored), spec.kind.fresh()
    except StateError as error:
        raise ArgumentError(f"{about} holds a model that cannot be read: {error}") from None
    if str(kept) != str(given):
        raise ArgumentError(f"{about} holds models of the kind {kept}, and --model is of the kind {given}")
    if _parameters(kept) != _parameters(given) and not is_meant:
        raise ArgumentError(f"{about} holds {_parameters(kept)}, and --model is another: give that one, or --on_change "
                            "keep to let its keys go on with theirs")


def check_warm(spec: CellSpec, path: Path, *, is_meant: bool) -> None:
    """The same of the snapshots that a job starts warm from."""
    try:
        snapshot = next(SnapshotStore(path).newest_of_all(), None)
    except (ValueError, sqlite3.Error) as error:
        raise ArgumentError(f"--warm_start: {error}") from None
    if snapshot is None:
        raise ArgumentError(f"--warm_start {path} holds no snapshot")
    check_fit(spec, snapshot.model, f"--warm_start {path}", is_meant=is_meant)


def model_of(blob: bytes) -> bytes | None:
    """The first model in an engine key's bytes; None if none has learned."""
    for _, _, cell in sections.split_cells(blob)[0]:
        parts = sections.split(cell)
        if sections.MODEL in parts:
            return bytes(parts[sections.MODEL].open())
    return None


class Before:
    """The snapshots of a bounded run over earlier events, as a job over a broker goes on from them."""

    def __init__(self, path: Path) -> None:
        self._snapshots = SnapshotStore(path)

    def newest(self, key: str) -> Snapshot | None:
        """The newest snapshot of a key, or None."""
        found = self._snapshots.newest(key)
        return found if found is None or not found.cell else found._replace(cell=warm(found.cell))


def warm(cell: bytes) -> bytes:
    """A snapshot's cell as a job over a broker opens it: without the marks of order="sequence".

    They count the events of files, which this job does not read. Those of other orders stay: a file that was written
    from the topic, with `source` and `seq` as the job names them, need not be left out of what the job reads.
    """
    parts = sections.split(cell)
    marks = unpack(parts[sections.MARKS].open()) if sections.MARKS in parts else {}
    if any(type(mark) is int for mark in marks.values()):
        del parts[sections.MARKS]
    return sections.join(parts)


def _parameters(model: Any) -> str:
    return " ".join(repr(model).split())
