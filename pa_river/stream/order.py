"""Which events of a source a cell has handled, and, under order="sequence", which wait for their predecessor."""

from __future__ import annotations

import bisect
from collections import deque
from typing import Any

import numpy as np

from pa_river.state import StateError, pack, unpack
from pa_river.stream.records import Event
from pa_river.stream.sections import pack_ids, unpack_ids

WINDOW = 1_024  # sequence numbers kept a source
MAX_SOURCES = 1_024  # a key hears from

NEW, DUPLICATE, TOO_OLD = "new", "duplicates", "too_old"


class Marks:
    """Orders "arrival" and "event_time": the last 1,024 sequence numbers of each source, in rising order."""

    __slots__ = ("_numbers", "_blob")

    def __init__(self, blob: bytes = b"") -> None:
        self._blob: bytes | None = blob
        self._numbers: dict[str, deque[int]] = {}
        for source, kept in (unpack(blob) if blob else {}).items():
            if type(kept) is int:
                raise StateError("the marks of a cell are those of order='sequence'")
            self._numbers[source] = deque(_numbers(*kept), WINDOW)

    def admit(self, source: str, seq: int) -> str:
        """Mark a number: NEW, DUPLICATE (in the window, seen) or TOO_OLD (below it); `ValueError`: too many sources."""
        numbers = self._numbers.get(source)
        if numbers is None:
            _require_room(self._numbers)
            numbers = self._numbers[source] = deque(maxlen=WINDOW)
        if numbers and seq <= numbers[-1]:
            at = bisect.bisect_left(numbers, seq)
            if numbers[at] == seq:
                return DUPLICATE
            if len(numbers) == WINDOW:
                if at == 0:
                    return TOO_OLD
                numbers.popleft()
                at -= 1
            numbers.insert(at, seq)
        else:
            numbers.append(seq)
        self._blob = None
        return NEW

    def look(self, source: str, seq: int) -> str:
        """What `admit` would say, without marking."""
        numbers = self._numbers.get(source)
        if numbers is None:
            _require_room(self._numbers)
        elif numbers and seq <= numbers[-1]:
            if numbers[bisect.bisect_left(numbers, seq)] == seq:
                return DUPLICATE
            if len(numbers) == WINDOW and seq < numbers[0]:
                return TOO_OLD
        return NEW

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def encode(self) -> bytes:
        """The section's bytes: a first number and the steps after it, four bytes each where they fit."""
        if self._blob is None:
            packed: dict[str, tuple[int, Any]] = {}
            for source, numbers in self._numbers.items():
                steps = np.diff(np.array(numbers, np.int64), prepend=numbers[0])
                packed[source] = (numbers[0], steps if steps.max() >= 2**32 else steps.astype("<u4").tobytes())
            self._blob = pack(packed)
        return self._blob


class InOrder:
    """Order "sequence": the next number of each source, and what came before its turn."""

    __slots__ = ("bytes", "_next", "_waiting", "_marks_blob", "_waiting_blob")

    def __init__(self, marks: bytes = b"", waiting: bytes = b"") -> None:
        self._marks_blob: bytes | None = marks
        self._waiting_blob: bytes | None = waiting
        self._next: dict[str, int] = unpack(marks) if marks else {}
        if not all(type(number) is int for number in self._next.values()):
            raise StateError("the marks of a cell are not those of order='sequence'")
        self._waiting: dict[str, dict[int, tuple[int, Event | bytes]]] = {}
        self.bytes = 0
        if waiting:
            ids, seqs, sizes, lengths, blob = unpack(waiting)
            at = 0
            for source, seq, size, length in zip(unpack_ids(ids), seqs.tolist(), sizes.tolist(), lengths.tolist()):
                self._waiting.setdefault(source, {})[seq] = (size, blob[at:at + length])
                self.bytes += size
                at += length
            if at != len(blob):
                raise StateError("the lengths of waiting events do not add up")

    def __bool__(self) -> bool:
        return bool(self._next or self._waiting)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def admit(self, source: str, seq: int) -> str:
        """NEW (it is this number's turn, or it is ahead) or DUPLICATE; `ValueError`: too many sources."""
        if source not in self._next:
            _require_room(self._next)
            self._next[source] = 0
            self._marks_blob = None
        if seq < self._next[source] or seq in self._waiting.get(source, ()):
            return DUPLICATE
        return NEW

    def is_turn(self, source: str, seq: int) -> bool:
        """Whether the number is the next one of its source."""
        return self._next[source] == seq

    def done(self, source: str) -> None:
        """The next number was handled."""
        self._next[source] += 1
        self._marks_blob = None

    def wait(self, source: str, seq: int, size: int, event: Event) -> None:
        """Keep an event until its turn."""
        self._waiting.setdefault(source, {})[seq] = (size, event)
        self.bytes += size
        self._waiting_blob = None

    def take(self, source: str) -> Event | None:
        """The event whose turn it is, if it waits."""
        waiting = self._waiting.get(source)
        entry = waiting.pop(self._next[source], None) if waiting else None
        if entry is None:
            return None
        if not waiting:
            del self._waiting[source]
        self.bytes -= entry[0]
        self._waiting_blob = None
        return event_of(entry[1])

    def skip(self, source: str | None = None) -> tuple[str, int] | None:
        """Go on to the lowest waiting number of a source (None: of the first one): (source, numbers passed over)."""
        if source is None:
            source = min(self._waiting, default=None)
        if source is None or source not in self._waiting:
            return None
        lowest = min(self._waiting[source])
        missing, self._next[source] = lowest - self._next[source], lowest
        self._marks_blob = None
        return source, missing

    def encode(self) -> bytes:
        """The section of marks."""
        if self._marks_blob is None:
            self._marks_blob = pack(self._next)
        return self._marks_blob

    def encode_waiting(self) -> bytes:
        """The section of waiting events; b"" if none waits. Events become bytes, so that each is encoded once."""
        if self._waiting_blob is None:
            rows = []
            for source, waiting in self._waiting.items():
                for seq, (size, event) in waiting.items():
                    blob = event if type(event) is bytes else pack(tuple(event))
                    waiting[seq] = (size, blob)
                    rows.append((source, seq, size, blob))
            self._waiting_blob = b""
            if rows:
                sources, seqs, sizes, blobs = zip(*rows)
                lengths = np.fromiter(map(len, blobs), np.int64, len(blobs))
                columns = np.array(seqs, np.int64), np.array(sizes, np.int64), lengths
                self._waiting_blob = pack((pack_ids(sources), *columns, b"".join(blobs)))
        return self._waiting_blob


def highest(marks: bytes) -> dict[str, int]:
    """The highest number handled of each source, from a section of marks of either order."""
    high: dict[str, int] = {}
    for source, kept in unpack(marks).items():
        high[source] = kept - 1 if type(kept) is int else _numbers(*kept)[-1]
    return high


def _numbers(first: int, steps: Any) -> list[int]:
    numbers = np.frombuffer(steps, "<u4").astype(np.int64) if isinstance(steps, bytes) else steps
    return (first + np.cumsum(numbers)).tolist()  # type: ignore[no-any-return]


def event_of(kept: Event | bytes) -> Event:
    """The event itself; `StateError` if these bytes are none."""
    if isinstance(kept, Event):
        return kept
    fields = unpack(kept)
    if type(fields) is not tuple or len(fields) != len(Event._fields):
        raise StateError("a waiting event is not what was written")
    return Event(*fields)


def _require_room(sources: dict[str, Any]) -> None:
    if len(sources) >= MAX_SOURCES:
        raise ValueError(f"a key hears from at most {MAX_SOURCES} sources")
