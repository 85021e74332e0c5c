"""What a job sets for every key: the model, the times to live, the order, the bounds; checked when it is built."""

from __future__ import annotations

import zlib
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
    """Where a key is found that the engine holds nothing of; the snapshot store is one."""

    def newest(self, key: str) -> Snapshot | None:
        """The newest snapshot of a key, or None."""


class Settings:
    """The checked parameters of a cell; `CellSpec` documents them and opens cells."""

    def __init__(
        self, model: Any, *, label_ttl: float | None = None, idle_ttl: float | None = None, order: str = "arrival",
        shards: int | None = None, detector: Any = None, action: str = "none", at_end: str = "flush",
        on_return: str = "fresh", dedupe_size: int = 1024, max_pending: int = 10_000,
        max_pending_bytes: int = 4_000_000, max_rejected: int | None = None, snapshot_every: int | None = None,
        keep_every: int | None = 1_000, reader: SnapshotReader | None = None, lateness: float | None = None,
        keep_marks: bool = False,
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
        self.shards = None if shards is None else _count("shards", shards)
        self.lateness = None if lateness is None else _seconds("lateness", lateness, least=0)
        if lateness is not None and order != "event_time":
            raise ValueError("CellSpec(lateness=...) is for order='event_time' alone: no other order looks at it")
        self.keep_marks = keep_marks
        if detector is not None or action != "none":
            raise ValueError("CellSpec(detector=..., action=...): drift handling is not supported yet")
        if on_return == "restore" and reader is None:
            raise ValueError("CellSpec(on_return='restore') needs a snapshot reader")
        if reader is not None and on_return == "fresh" and idle_ttl is not None and not keep_marks:
            raise ValueError("CellSpec(reader=..., idle_ttl=...) needs keep_marks=True, or a key that left would come "
                             "back as the reader knows it, or on_return='restore', if that is what it is to do")
        self.detector = detector
        self.reader = reader
        try:
            self.kind = Kind(model)
        except ValueError as error:
            raise ValueError(f"CellSpec(model={type(model).__name__}) cannot be kept in a cell: {error}") from error


def engine_key(key: str, shards: int | None) -> str:
    """Under which key an engine holds the cell of `key`: its own, or with `shards` that of many.

    Examples
    --------
    >>> engine_key("de-17", None), engine_key("de-17", 4)
    ('de-17', 'shard 3 of 4')

    """
    if shards is None:
        return key
    return f"shard {zlib.crc32(key.encode('utf-8', 'surrogatepass')) % shards} of {shards}"


def _seconds(name: str, value: Any, least: float | None = None) -> float | None:
    if value is None:
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not (0 < value <= MAX_TIME or value == least):
        bound = "> 0" if least is None else f">= {least}"
        raise ValueError(f"CellSpec({name}=...) must be a finite number of seconds {bound}, or None, got {value!r}")
    return float(value)


def _count(name: str, value: Any, least: int = 1) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"CellSpec({name}=...) must be an integer >= {least}, got {value!r}")
    return value


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"CellSpec({name}=...) must be one of {', '.join(allowed)}, got {value!r}")
    return str(value)
