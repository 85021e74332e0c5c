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
    """The last `size` ids, the oldest leaving first."""

    __slots__ = ("ids", "_size", "_ttl", "_blob")

    def __init__(self, size: int, ttl: float | None, blob: bytes = b"") -> None:
        self.ids: OrderedDict[str, Seen] = OrderedDict()
        self._size = size
        self._ttl = float("inf") if ttl is None else ttl
        self._blob: bytes | None = blob
        if blob:
            self._open(blob)

    def get(self, id: str, clock: float) -> Seen | None:
        """What is known of an id, if it ended no longer ago than the label's time to live."""
        seen = self.ids.get(id)
        return seen if seen is not None and clock - seen[3] <= self._ttl else None

    def add(self, id: str, how: int, x: int, y: int, time: float) -> None:
        """Remember an id; the oldest and those beyond the time to live make room."""
        ids = self.ids
        if id in ids:
            del ids[id]
        ids[id] = (how, x, y, time)
        if len(ids) > self._size:
            ids.popitem(last=False)
        while time - next(iter(ids.values()))[3] > self._ttl:  # stops at the new one at the latest
            ids.popitem(last=False)
        self._blob = None

    def encode(self) -> bytes:
        """The section's bytes; b"" if no id is known."""
        if self._blob is None:
            if self.ids:
                how, x, y, time = zip(*self.ids.values())
                digests = np.array((x, y), np.int64)
                self._blob = pack((pack_ids(tuple(self.ids)), bytes(how), digests, np.array(time, np.float64)))
            else:
                self._blob = b""
        return self._blob

    def _open(self, blob: bytes) -> None:
        ids, how, digests, times = unpack(blob)
        names = unpack_ids(ids)
        if digests.shape != (2, len(names)) or not len(names) == len(how) == len(times):
            raise StateError("the columns of the seen ids differ in length")
        self.ids = OrderedDict(zip(names, zip(how, digests[0].tolist(), digests[1].tolist(), times.tolist())))


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
