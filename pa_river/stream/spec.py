"""What a job sets for every key: the model, the times to live, the order, the bounds; checked when it is built."""

from __future__ import annotations

from typing import Any, Protocol

from pa_river.stream.parsing import MAX_TIME
from pa_river.stream.records import Snapshot
from pa_river.stream.serving import Kind

ORDERS = ("arrival", "sequence", "event_time")
AT_END = ("flush", "snapshot")
ON_RETURN = ("fresh", "restore")
ACTIONS = ("none", "reset", "raise_C", "shadow", "rollback")
OLD_MODELS = 3  # in the ring that a rollback takes from


class SnapshotReader(Protocol):
    """Where `on_return="restore"` finds a key again; the snapshot store is one."""

    def newest(self, key: str) -> Snapshot | None:
        """The newest snapshot of a key, or None."""


class Settings:
    """The checked parameters of a cell; `CellSpec` documents them and opens cells."""

    def __init__(
        self, model: Any, *, label_ttl: float | None = None, idle_ttl: float | None = None, order: str = "arrival",
        shards: int | None = None, detector: Any = None, action: str = "none", at_end: str = "flush",
        on_return: str = "fresh", dedupe_size: int = 1024, max_pending: int = 10_000,
        max_pending_bytes: int = 4_000_000, max_rejected: int | None = None, snapshot_every: int | None = None,
        keep_every: int | None = 1_000, reader: SnapshotReader | None = None,
    ) -> None:
        self.label_ttl = _seconds("label_ttl", label_ttl)
        self.idle_ttl = _seconds("idle_ttl", idle_ttl)
        self.order = _one_of("order", order, ORDERS)
        self.action = _one_of("action", action, ACTIONS)
        self.at_end = _one_of("at_end", at_end, AT_END)
        self.on_return = _one_of("on_return", on_return, ON_RETURN)
        self.dedupe_size = _count("dedupe_size", dedupe_size)
        self.max_pending = _count("max_pending", max_pending)
        self.max_pending_bytes = _count("max_pending_bytes", max_pending_bytes)
        self.max_rejected = None if max_rejected is None else _count("max_rejected", max_rejected, least=0)
        self.snapshot_every = None if snapshot_every is None else _count("snapshot_every", snapshot_every)
        self.keep_every = None if keep_every is None else _count("keep_every", keep_every)
        if order == "event_time":
            raise ValueError("CellSpec(order='event_time') is not supported yet: use 'arrival' or 'sequence'")
        if shards is not None:
            raise ValueError("CellSpec(shards=...) is not supported yet: each key has an engine key of its own")
        if detector is not None or action != "none":
            raise ValueError("CellSpec(detector=..., action=...): drift handling is not supported yet")
        if (on_return == "restore") != (reader is not None):
            raise ValueError("CellSpec(on_return='restore') needs a snapshot reader, and only it takes one")
        self.shards = shards
        self.detector = detector
        self.reader = reader
        try:
            self.kind = Kind(model)
        except ValueError as error:
            raise ValueError(f"CellSpec(model={type(model).__name__}) cannot be kept in a cell: {error}") from error


def _seconds(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MAX_TIME:
        raise ValueError(f"CellSpec({name}=...) must be a finite number of seconds > 0, or None, got {value!r}")
    return float(value)


def _count(name: str, value: Any, least: int = 1) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"CellSpec({name}=...) must be an integer >= {least}, got {value!r}")
    return value


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"CellSpec({name}=...) must be one of {', '.join(allowed)}, got {value!r}")
    return str(value)
