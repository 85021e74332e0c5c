"""Order "event_time": what waits in a cell until nothing earlier is to come; bytes until its turn."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np

from pa_river.state import StateError, pack, unpack
from pa_river.stream.order import event_of
from pa_river.stream.records import Event

#: What events go by: time, labels before the rest, source, seq (-1: none), id, and the event's bytes as the last word.
Place: TypeAlias = tuple[float, int, str, int, str, bytes]

_OVERHEAD = 96  # of an entry, in the estimate that `max_pending_bytes` bounds


class ByTime:
    """Events in the order of their `Place`, in whatever order they came.

    Stored events are columns and one piece of bytes, in order; those that came since are a heap. Nothing stored is
    decoded before it leaves, but for a tie.
    """

    __slots__ = (
        "bytes", "newest", "_heap", "_arrivals", "_blob", "_names", "_times", "_ranks", "_sources", "_seqs", "_bounds",
        "_contents", "_first", "_known",
    )

    def __init__(self, blob: bytes = b"") -> None:
        self.bytes = 0
        self.newest = -math.inf  # the largest time of any that waits
        self._blob: bytes | None = blob
        self._heap: list[tuple[float, int, str, int, str, bytes, int, Event]] = []
        self._arrivals = 0
        self._first = 0  # the stored rows before this one have left
        self._names: list[str] = []
        self._contents = memoryview(b"")
        self._times, self._ranks, self._sources, self._seqs = (np.zeros(0, kind) for kind in _KINDS)
        self._bounds = np.zeros(1, np.int64)
        self._known: dict[str, set[int]] = {}  # numbers that wait, of each source that was asked for
        if blob:
            self._open(blob)

    def __len__(self) -> int:
        return len(self._heap) + len(self._times) - self._first

    def add(self, event: Event) -> None:
        """Let an event wait; `StateError` (a ValueError) if it cannot be stored."""
        packed = pack(tuple(event))
        source, seq = event.source or "", -1 if event.seq is None else event.seq
        rank = 0 if event.x is None and event.op is None else 1
        self._arrivals += 1
        heappush(self._heap, (event.time, rank, source, seq, event.id or "", packed, self._arrivals, event))
        if source in self._known:
            self._known[source].add(seq)
        self.bytes += _OVERHEAD + len(packed)
        self.newest = max(self.newest, event.time)
        self._blob = None

    def holds(self, source: str, seq: int) -> bool:
        """Whether the event of this number waits."""
        known = self._known.get(source)
        if known is None:
            rows = self._seqs[self._first:]
            if source in self._names:
                known = set(rows[self._sources[self._first:] == self._names.index(source)].tolist())
            else:
                known = set()
            known.update(entry[3] for entry in self._heap if entry[2] == source)
            self._known[source] = known
        return seq in known

    def earliest(self) -> float:
        """The time of the first one; inf if none waits."""
        stored = float(self._times[self._first]) if self._first < len(self._times) else math.inf
        return min(stored, self._heap[0][0]) if self._heap else stored

    def pop(self) -> Event:
        """Take out the first one."""
        self._blob = None
        if self._is_stored_first():
            row, self._first = self._first, self._first + 1
            packed = bytes(self._content(row))
            event = event_of(packed)
        else:
            *_, packed, _, event = heappop(self._heap)
        source = event.source or ""
        if event.seq is not None and source in self._known:
            self._known[source].discard(event.seq)
        self.bytes -= _OVERHEAD + len(packed)
        return event

    def _is_stored_first(self) -> bool:
        if self._first == len(self._times) or not self._heap:
            return self._first < len(self._times)
        stored, live = self._times[self._first], self._heap[0][0]
        return bool(stored < live or (stored == live and self._place(self._first) < self._heap[0][:6]))

    def encode(self) -> bytes:
        """The section's bytes; b"" if none waits."""
        if self._blob is None:
            self._blob = self._encoded() if len(self) else b""
        return self._blob

    def _encoded(self) -> bytes:
        live = sorted(self._heap)
        names = {name: number for number, name in enumerate(self._names)}
        columns = (
            [entry[0] for entry in live], [entry[1] for entry in live],
            [names.setdefault(entry[2], len(names)) for entry in live], [entry[3] for entry in live],
            [len(entry[5]) for entry in live],
        )
        first, count = self._first, len(self._times)
        at = [self._where(entry[:6]) for entry in live]
        lengths = np.diff(self._bounds)[first:]
        stored = (self._times[first:], self._ranks[first:], self._sources[first:], self._seqs[first:], lengths)
        merged = [
            np.insert(column, np.array(at, np.int64) - first, np.array(values, column.dtype))
            for column, values in zip(stored, columns)
        ]
        pieces: list[bytes | memoryview] = []
        for entry, row in zip(live, at):
            pieces.append(self._contents[self._bounds[first]:self._bounds[row]])
            pieces.append(entry[5])
            first = row
        pieces.append(self._contents[self._bounds[first]:self._bounds[count]])
        return pack((list(names), *merged, b"".join(pieces)))

    def _where(self, place: Place) -> int:
        """The stored row that an event of this place goes before."""
        low, high = self._first, len(self._times)
        if low < high:
            low += int(np.searchsorted(self._times[low:], place[0], "left"))
            high = self._first + int(np.searchsorted(self._times[self._first:], place[0], "right"))
        while low < high:
            middle = (low + high) // 2
            if self._place(middle) < place:
                low = middle + 1
            else:
                high = middle
        return low

    def _place(self, row: int) -> Place:
        packed = bytes(self._content(row))
        time, seq = float(self._times[row]), int(self._seqs[row])
        source = self._names[self._sources[row]]
        return time, int(self._ranks[row]), source, seq, event_of(packed).id or "", packed

    def _content(self, row: int) -> memoryview:
        return self._contents[self._bounds[row]:self._bounds[row + 1]]

    def _open(self, blob: bytes) -> None:
        fields: Any = unpack(blob)
        if not (isinstance(fields, tuple) and len(fields) == 2 + len(_KINDS) + 1):
            raise StateError("the events that wait for their time are not what was written")
        self._names, self._times, self._ranks, self._sources, self._seqs, lengths, contents = fields
        self._contents = memoryview(contents)
        self._bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        columns = (self._times, self._ranks, self._sources, self._seqs, lengths)
        if len({len(column) for column in columns}) != 1 or not len(lengths) or lengths.min() < 0:
            raise StateError("the columns of events that wait for their time differ in length")
        if self._bounds[-1] != len(contents) or self._sources.max() >= len(self._names):
            raise StateError("the lengths of events that wait for their time do not add up")
        self.bytes = len(contents) + _OVERHEAD * len(lengths)
        self.newest = float(self._times[-1])


_KINDS = (np.float64, np.int64, np.int64, np.int64)
