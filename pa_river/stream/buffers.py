"""What waits in a cell under an id: bounded, oldest out first, bytes until it is touched."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Any

import numpy as np

from pa_river.state import StateError, pack, unpack
from pa_river.stream.sections import pack_ids, unpack_ids

_NUMBERS = frozenset((float, int))
_PLAIN = frozenset((float, int, bool, str, type(None)))

_HEAD = struct.Struct("<I")  # bytes of the packed columns; the contents follow them, unpacked, in one piece


class Buffer:
    """Entries by id, in order of arrival: a row of the columns they came in, or (event time, size, content).

    `size` is an estimate from names and text alone: the same for an entry that is live and one that came out of
    bytes, so that the bound on it cuts at the same event wherever a stream is split into bundles. With `timed`, the
    earliest entry is known too: stored rows are walked in order of time, live ones leave a heap.
    """

    __slots__ = (
        "entries", "bytes", "_timed", "_blob", "_times", "_sizes", "_bounds", "_contents", "_order", "_at", "_next",
        "_heap", "_arrivals", "_live",
    )

    def __init__(self, blob: bytes = b"", timed: bool = False) -> None:
        self.entries: dict[str, int | tuple[float, int, tuple[Any, ...] | bytes]] = {}
        self.bytes = 0
        self._timed = timed
        self._blob: bytes | None = blob
        self._contents = memoryview(b"")
        self._order: Iterator[tuple[float, str, int]] = iter(())
        self._next: tuple[float, str, int] | None = None  # the stored row whose time is the earliest: time, id, row
        self._heap: list[tuple[float, int, str]] = []
        self._arrivals = 0
        self._live = 0  # entries that are no stored rows
        if blob:
            self._open(blob)

    def add(self, id: str, time: float, size: int, content: tuple[Any, ...]) -> None:
        """Put an entry behind all others."""
        entries = self.entries
        entries[id] = (time, size, content)
        self._live += 1
        self.bytes += size
        self._blob = None
        if self._timed:
            self._arrivals += 1
            heappush(self._heap, (time, self._arrivals, id))
            if len(self._heap) > 64 + 2 * len(entries):
                self._sweep()

    def time(self, id: str) -> float:
        """The event time of an entry."""
        entry = self.entries[id]
        return float(self._times[entry]) if isinstance(entry, int) else entry[0]

    def content(self, id: str) -> tuple[Any, ...]:
        """An entry's content, decoded if it still is bytes."""
        entry = self.entries[id]
        content = self._stored(entry) if isinstance(entry, int) else entry[2]
        if isinstance(content, tuple):
            return content
        value = unpack(content)
        if type(value) is not tuple:
            raise StateError("a waiting entry is not what was written")
        return value

    def remove(self, id: str) -> None:
        """Take an entry out."""
        entry = self.entries.pop(id)
        if isinstance(entry, int):
            self.bytes -= int(self._sizes[entry])
        else:
            self.bytes -= entry[1]
            self._live -= 1
        self._blob = None

    def oldest(self) -> str:
        """The id that arrived first."""
        return next(iter(self.entries))

    def earliest(self) -> tuple[float, str] | None:
        """Time and id of the earliest entry, of equal ones that which arrived first; entries taken out are passed."""
        entries, heap = self.entries, self._heap
        while self._next is not None and entries.get(self._next[1]) != self._next[2]:
            self._next = next(self._order, None)
        while heap:
            time, _, id = heap[0]
            entry = entries.get(id)
            if isinstance(entry, tuple) and entry[0] == time:
                break
            heappop(heap)
        if self._next is not None and not (heap and heap[0][0] < self._next[0]):
            return self._next[:2]
        return (heap[0][0], heap[0][2]) if heap else None

    def encode(self) -> bytes:
        """The section's bytes; b"" if nothing waits. Contents become bytes, so that each is encoded once."""
        if self._blob is None:
            self._blob = self._encoded()
        return self._blob

    def _encoded(self) -> bytes:
        if not self.entries:
            return b""
        times: list[float] = []
        sizes: list[int] = []
        contents: list[bytes | memoryview] = []
        live = list(islice(reversed(self.entries.items()), self._live))  # they all arrived after the stored ones
        for id, entry in reversed(live):
            assert isinstance(entry, tuple)
            time, size, content = entry
            packed = pack(content) if isinstance(content, tuple) else content
            self.entries[id] = (time, size, packed)
            times.append(time)
            sizes.append(size)
            contents.append(packed)
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        columns = [np.array(times, np.float64), np.array(sizes, np.int64), lengths]
        left = len(self.entries) - len(live)
        if left:
            stored = [self._times, self._sizes, np.diff(self._bounds)]
            if left < len(self._times):
                rows = np.fromiter(islice(self.entries.values(), left), np.int64, left)
                stored = [column[rows] for column in stored]
                breaks = np.flatnonzero(np.diff(rows) != 1)  # the last rows of unbroken runs, which are copied as one
                firsts, lasts = rows[np.concatenate(([0], breaks + 1))], rows[np.concatenate((breaks, [left - 1]))]
                runs = zip(self._bounds[firsts].tolist(), self._bounds[lasts + 1].tolist())
                contents = [*[self._contents[first:last] for first, last in runs], *contents]
            else:
                contents = [self._contents, *contents]
            columns = [np.concatenate(pair) for pair in zip(stored, columns)]
        head = pack((pack_ids(tuple(self.entries)), *columns))
        return b"".join([_HEAD.pack(len(head)), head, *contents])

    def _open(self, blob: bytes) -> None:
        start = _HEAD.size + (_HEAD.unpack_from(blob)[0] if len(blob) >= _HEAD.size else len(blob))
        view = memoryview(blob)
        ids, self._times, self._sizes, lengths = unpack(view[_HEAD.size:start])
        self._contents = view[start:]
        names = unpack_ids(ids)
        self._bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        if self._bounds[-1] != len(self._contents) or (len(lengths) and lengths.min() < 0):
            raise StateError("the lengths of waiting entries do not add up")
        if not len(names) == len(self._times) == len(self._sizes) == len(lengths):
            raise StateError("the columns of waiting entries differ in length")
        self.entries = dict(zip(names, range(len(names))))
        self.bytes = int(self._sizes.sum())
        if self._timed:
            times = self._times
            rows = range(len(names)) if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable").tolist()
            self._order = ((float(times[row]), names[row], row) for row in rows)
            self._next = next(self._order, None)

    def _stored(self, row: int) -> memoryview:
        return self._contents[self._bounds[row]:self._bounds[row + 1]]

    def _sweep(self) -> None:
        """The heap from what really waits: entries taken out leave it late otherwise."""
        live = [(entry[0], id) for id, entry in self.entries.items() if isinstance(entry, tuple)]
        self._heap = [(time, number, id) for number, (time, id) in enumerate(live)]
        self._arrivals = len(live)
        heapify(self._heap)


def size_of(value: Any) -> int:
    """About how many bytes a waiting entry of this content takes; `StateError` (a ValueError) if it cannot be stored.

    Exact types only: what is none of Python's own plain ones is packed to find out.
    """
    if type(value) is dict:
        try:
            size = 96 + len("".join(value)) + 16 * len(value)
        except TypeError:  # a name that is no str
            return 96 + len(pack(value))
        kinds = set(map(type, value.values()))
        if kinds <= _NUMBERS:
            return size
        if kinds <= _PLAIN:
            return size + sum([len(item) for item in value.values() if type(item) is str])
    elif type(value) in _PLAIN:
        return 104 + (len(value) if type(value) is str else 0)
    return 96 + len(pack(value))
