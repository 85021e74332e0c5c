"""What waits in a cell under an id: bounded, oldest out first, bytes until it is touched."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from pa_river.state import StateError, pack, unpack
from pa_river.stream.sections import pack_ids, unpack_ids

_NUMBERS = frozenset((float, int))
_PLAIN = frozenset((float, int, bool, str, type(None)))

_HEAD = struct.Struct("<I")  # bytes of the packed columns; the contents follow them, unpacked, in one piece


class Buffer:
    """Entries by id, in order of arrival: rows of the columns they came in, or (event time, size, content).

    `size` is an estimate from names and text alone: the same for an entry that is live and one that came out of
    bytes, so that the bound on it cuts at the same event wherever a stream is split into bundles. Stored rows stay as
    they are: an id is looked for by its CRC-32 among them, and only a bundle that asks for many gets a table of them.
    With `timed`, the earliest entry is known too: stored rows are walked in order of time, live ones leave a heap.
    """

    __slots__ = (
        "bytes", "_new", "_timed", "_blob", "_ids", "_hashes", "_times", "_sizes", "_bounds", "_contents", "_alive",
        "_left", "_lines", "_rows", "_asked", "_order", "_next", "_heap", "_arrivals",
    )

    def __init__(self, blob: bytes | memoryview = b"", timed: bool = False) -> None:
        self.bytes = 0
        self._new: dict[str, tuple[float, int, tuple[Any, ...] | bytes]] = {}  # what came since
        self._timed = timed
        self._blob: bytes | memoryview | None = blob
        self._ids = b""
        self._contents = memoryview(b"")
        self._left = 0  # stored rows that are still there
        self._lines: Any = None  # where each stored id ends, once one was read
        self._rows: dict[str, int] | None = {}  # id -> stored row, once many were asked for
        self._asked = 0
        self._order: Iterator[int] = iter(())
        self._next: int | None = None  # the stored row whose time is the earliest
        self._heap: list[tuple[float, int, str]] = []
        self._arrivals = 0
        if blob:
            self._open(blob)

    def __len__(self) -> int:
        return self._left + len(self._new)

    def __contains__(self, id: str) -> bool:
        return id in self._new or (self._left > 0 and self._row(id) >= 0)

    def ids(self) -> list[str]:
        """The ids, in order of arrival."""
        names = unpack_ids(self._ids) if self._left else []
        return [*[names[row] for row in np.flatnonzero(self._alive).tolist()], *self._new] if names else [*self._new]

    def add(self, id: str, time: float, size: int, content: tuple[Any, ...]) -> None:
        """Put an entry behind all others."""
        self._new[id] = (time, size, content)
        self.bytes += size
        self._blob = None
        if self._timed:
            self._arrivals += 1
            heappush(self._heap, (time, self._arrivals, id))
            if len(self._heap) > 64 + 2 * len(self._new):
                self._sweep()

    def time(self, id: str) -> float:
        """The event time of an entry."""
        entry = self._new.get(id)
        return float(self._times[self._row(id)]) if entry is None else entry[0]

    def content(self, id: str) -> tuple[Any, ...]:
        """An entry's content, decoded if it still is bytes."""
        entry = self._new.get(id)
        content = self._stored(self._row(id)) if entry is None else entry[2]
        if isinstance(content, tuple):
            return content
        value = unpack(content)
        if type(value) is not tuple:
            raise StateError("a waiting entry is not what was written")
        return value

    def remove(self, id: str) -> None:
        """Take an entry out."""
        entry = self._new.pop(id, None)
        if entry is None:
            row = self._row(id)
            self._alive[row] = False
            self._left -= 1
            if self._rows is not None:
                del self._rows[id]
            self.bytes -= int(self._sizes[row])
        else:
            self.bytes -= entry[1]
        self._blob = None

    def oldest(self) -> str:
        """The id that arrived first."""
        return self._id(int(self._alive.argmax())) if self._left else next(iter(self._new))

    def earliest(self) -> tuple[float, str] | None:
        """Time and id of the earliest entry, of equal ones that which arrived first; entries taken out are passed."""
        new, heap = self._new, self._heap
        while self._next is not None and not self._alive[self._next]:
            self._next = next(self._order, None)
        while heap:
            time, _, id = heap[0]
            entry = new.get(id)
            if entry is not None and entry[0] == time:
                break
            heappop(heap)
        if self._next is not None and not (heap and heap[0][0] < self._times[self._next]):
            return float(self._times[self._next]), self._id(self._next)
        return (heap[0][0], heap[0][2]) if heap else None

    def encode(self) -> bytes | memoryview:
        """The section's bytes; b"" if nothing waits. Contents become bytes, so that each is encoded once."""
        if self._blob is None:
            self._blob = self._encoded()
        return self._blob

    def _encoded(self) -> bytes:
        if not len(self):
            return b""
        times: list[float] = []
        sizes: list[int] = []
        contents: list[bytes | memoryview] = []
        for id, (time, size, content) in self._new.items():
            packed = pack(content) if isinstance(content, tuple) else content
            self._new[id] = (time, size, packed)
            times.append(time)
            sizes.append(size)
            contents.append(packed)
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        hashes = np.fromiter(map(_hash, self._new), np.uint32, len(contents))
        columns: list[Any] = [hashes, np.array(times, np.float64), np.array(sizes, np.int64), lengths]
        ids = pack_ids(tuple(self._new)) if self._new else b""
        if self._left:
            runs = self._runs()
            bounds = self._bounds.tolist() if len(runs) > 64 else self._bounds
            kept = [self._contents[bounds[first]:bounds[last]] for first, last in runs]
            contents = [*kept, *contents]
            stored = [self._hashes, self._times, self._sizes, np.diff(self._bounds)]
            if self._left < len(self._times):
                stored = [column[self._alive] for column in stored]
            columns = [np.concatenate(pair) for pair in zip(stored, columns)]
            ids = self._ids_of(runs, ids)
        head = pack((ids, columns[0].astype("<u4").tobytes(), *columns[1:]))
        return b"".join([_HEAD.pack(len(head)), head, *contents])

    def _runs(self) -> list[tuple[int, int]]:
        """The stored rows that are left, as unbroken runs (first, after the last), which are copied as one."""
        if self._left == len(self._times):
            return [(0, self._left)]
        edges = np.flatnonzero(np.diff(self._alive, prepend=False, append=False))
        return [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2])]

    def _ids_of(self, runs: list[tuple[int, int]], new: bytes) -> bytes:
        """The ids of these stored rows and of the new ones, by cutting and joining lines where they are lines."""
        if self._ids[:1] != b"\n" or new[:1] == b"*":
            return pack_ids(tuple(self.ids()))
        if self._left == len(self._times):
            return bytes(self._ids) + new
        lines = self._ends()
        parts = [self._ids[lines[first - 1] if first else 0:lines[last - 1]] for first, last in runs]
        return b"".join([*parts, new])

    def _open(self, blob: bytes | memoryview) -> None:
        start = _HEAD.size + (_HEAD.unpack_from(blob)[0] if len(blob) >= _HEAD.size else len(blob))
        view = memoryview(blob)
        ids, *columns, self._times, self._sizes, lengths = unpack(view[_HEAD.size:start])
        self._contents = view[start:]
        count = len(lengths)
        self._ids = ids
        if len(columns) == 1:
            self._hashes = np.frombuffer(columns[0], "<u4")
        else:  # as version 0.1 wrote it before ids were looked for by their hashes
            self._hashes = np.fromiter(map(_hash, unpack_ids(ids)), np.uint32, count)
        self._bounds = np.zeros(count + 1, np.int64)
        np.cumsum(lengths, out=self._bounds[1:])
        if self._bounds[-1] != len(self._contents) or (count and lengths.min() < 0):
            raise StateError("the lengths of waiting entries do not add up")
        if not len(self._hashes) == len(self._times) == len(self._sizes) == count:
            raise StateError("the columns of waiting entries differ in length")
        self._left, self._alive, self._rows = count, np.ones(count, bool), None
        self.bytes = int(self._sizes.sum())
        if self._timed:
            times = self._times
            self._order = iter(
                range(count) if (times[1:] >= times[:-1]).all() else np.argsort(times, kind="stable").tolist()
            )
            self._next = next(self._order, None)

    def _row(self, id: str) -> int:
        """The stored row of an id; -1: there is none."""
        if self._rows is None:
            self._asked += 1
            if self._asked <= _FEW < len(self._times) // 8:
                for row in np.flatnonzero(self._hashes == _hash(id)).tolist():
                    if self._alive[row] and self._id(row) == id:
                        return int(row)
                return -1
            names = unpack_ids(self._ids)
            self._rows = {names[row]: row for row in np.flatnonzero(self._alive).tolist()}
        return self._rows.get(id, -1)

    def _id(self, row: int) -> str:
        if self._ids[:1] != b"\n":
            return unpack_ids(self._ids)[row]
        lines = self._ends()
        return unpack_ids(self._ids[lines[row - 1] if row else 0:lines[row]])[0]

    def _ends(self) -> Any:
        """Where each line of the stored ids ends; each begins with its line feed."""
        if self._lines is None:
            feeds = np.flatnonzero(np.frombuffer(self._ids, np.uint8) == 10)
            self._lines = np.append(feeds[1:], len(self._ids))
            if len(self._lines) != len(self._times):
                raise StateError("the columns of waiting entries differ in length")
        return self._lines

    def _stored(self, row: int) -> memoryview:
        return self._contents[self._bounds[row]:self._bounds[row + 1]]

    def _sweep(self) -> None:
        """The heap from what really waits: entries taken out leave it late otherwise."""
        self._heap = [(entry[0], number, id) for number, (id, entry) in enumerate(self._new.items())]
        self._arrivals = len(self._new)
        heapify(self._heap)


_FEW = 32  # ids that one bundle asks long columns for: more are worth a table, and so are short columns


def _hash(id: str) -> int:
    return zlib.crc32(id.encode("utf-8", "surrogatepass"))


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
