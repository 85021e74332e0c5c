"""The ids that a cell has answered or given up: what tells a duplicate, a correction and a late label apart."""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from typing import Any, TypeAlias

import numpy as np

from pa_river.state import StateError, pack, unpack
from pa_river.stream.sections import pack_ids, unpack_ids

#: How an id ended: with its label; without one; its label without features; as a control event.
ANSWERED, UNLABELLED, NO_FEATURES, CONTROL = range(4)

_NUMERIC = frozenset((bool, int, float))


#: What is kept of an id: how it ended, digests of its features and its label, the cell's time then.
Seen: TypeAlias = tuple[int, int, int, float]


class SeenRing:
    """The last `size` ids, the oldest leaving first: stored ones stay columns, new ones are tuples."""

    __slots__ = ("_size", "_ttl", "_blob", "_new", "_rows", "_names", "_how", "_digests", "_times", "_first")

    def __init__(self, size: int, ttl: float | None, blob: bytes = b"") -> None:
        self._size = size
        self._ttl = float("inf") if ttl is None else ttl
        self._blob: bytes | None = blob
        self._new: OrderedDict[str, Seen] = OrderedDict()
        self._rows: dict[str, int] = {}  # stored ids that were not seen again since
        self._names: list[str] = []
        self._first = 0  # the stored rows before this one have left
        if blob:
            self._open(blob)

    def __len__(self) -> int:
        return len(self._rows) + len(self._new)

    def get(self, id: str, clock: float) -> Seen | None:
        """What is known of an id, if it ended no longer ago than the label's time to live."""
        seen = self._new.get(id)
        if seen is None:
            row = self._rows.get(id)
            if row is None:
                return None
            seen = self._stored(row)
        return seen if clock - seen[3] <= self._ttl else None

    def add(self, id: str, how: int, x: int, y: int, time: float) -> None:
        """Remember an id; the oldest and those beyond the time to live make room."""
        new = self._new
        if id in self._rows:
            del self._rows[id]
        elif id in new:
            del new[id]
        new[id] = (how, x, y, time)
        self._blob = None
        if len(new) + len(self._rows) > self._size:
            self._drop_oldest()
        if self._ttl != float("inf"):
            while time - self._oldest_time() > self._ttl:  # stops at the new one at the latest
                self._drop_oldest()

    def ids(self) -> list[str]:
        """The ids, the oldest first."""
        rows, names = self._rows, self._names
        if len(rows) == len(names) - self._first:
            return names[self._first:] + list(self._new)
        return [*rows, *self._new]

    def encode(self) -> bytes:
        """The section's bytes; b"" if no id is known."""
        if self._blob is None:
            self._blob = self._encoded()
        return self._blob

    def _encoded(self) -> bytes:
        ids = self.ids()
        if not ids:
            return b""
        how, x, y, time = zip(*self._new.values()) if self._new else ((), (), (), ())
        digests, times, hows = np.array((x, y), np.int64), np.array(time, np.float64), bytes(how)
        if self._rows:
            rows = np.fromiter(self._rows.values(), np.int64, len(self._rows))
            digests = np.concatenate((self._digests[:, rows], digests), axis=1)
            times = np.concatenate((self._times[rows], times))
            hows = bytes([self._how[row] for row in self._rows.values()]) + hows
        return pack((pack_ids(ids), hows, digests, times))

    def _open(self, blob: bytes) -> None:
        ids, self._how, self._digests, self._times = unpack(blob)
        self._names = unpack_ids(ids)
        if self._digests.shape != (2, len(self._names)) or not len(self._names) == len(self._how) == len(self._times):
            raise StateError("the columns of the seen ids differ in length")
        self._rows = dict(zip(self._names, range(len(self._names))))

    def _stored(self, row: int) -> Seen:
        return self._how[row], int(self._digests[0, row]), int(self._digests[1, row]), float(self._times[row])

    def _oldest_time(self) -> float:
        row = self._oldest_row()
        return float(self._times[row]) if row is not None else next(iter(self._new.values()))[3]

    def _drop_oldest(self) -> None:
        row = self._oldest_row()
        if row is None:
            self._new.popitem(last=False)
        else:
            del self._rows[self._names[row]]
            self._first = row + 1

    def _oldest_row(self) -> int | None:
        names, rows = self._names, self._rows
        if not rows:
            return None
        while names[self._first] not in rows:  # seen again since: it is among the new ones
            self._first += 1
        return self._first


def digest_x(x: Any) -> int:
    """A digest of features that no order of names, no process and no spelling (1, 1.0, True) changes."""
    if type(x) is dict:
        try:
            names = sorted(x)
            values = struct.pack("<%dd" % len(names), *map(x.__getitem__, names))
            return zlib.crc32(values, zlib.crc32("\n".join(names).encode("utf-8", "surrogatepass")))
        except (TypeError, OverflowError, struct.error):  # not all names text, or not all values numbers
            pass
    return zlib.crc32(pack(_canonical(x)))


def digest_y(y: Any) -> int:
    """A digest of a normalised label; equal labels have equal ones."""
    if type(y) in _NUMERIC:
        return hash(y)  # of a number: the same in every process, and 1, 1.0 and True agree
    return zlib.crc32(pack(_canonical(y)))


def _canonical(value: Any) -> Any:
    """Equal values as one value: mappings sorted, numbers as floats, tuples as lists."""
    if isinstance(value, dict):
        pairs = [(pack(_canonical(name)), _canonical(item)) for name, item in value.items()]
        return sorted(pairs, key=lambda pair: pair[0])
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        try:
            return float(value)
        except OverflowError:
            return value
    return value
