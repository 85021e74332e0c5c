"""What waits in a cell under an id: bounded, oldest out first, bytes until it is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pa_river.state import StateError, pack, unpack
from pa_river.stream.sections import pack_ids, unpack_ids

_NUMBERS = frozenset((float, int))
_PLAIN = frozenset((float, int, bool, str, type(None)))


class Buffer:
    """Entries by id, in order of arrival: (event time, size, content), the content a tuple or still bytes.

    `size` is an estimate from names and text alone: the same for an entry that is live and one that came out of
    bytes, so that the bound on it cuts at the same event wherever a stream is split into bundles.
    """

    __slots__ = ("entries", "bytes", "_blob")

    def __init__(self, blob: bytes = b"") -> None:
        self.entries: dict[str, tuple[float, int, Any]] = {}
        self.bytes = 0
        self._blob: bytes | None = blob
        if blob:
            self._open(blob)

    def add(self, id: str, time: float, size: int, content: tuple[Any, ...]) -> None:
        """Put an entry behind all others."""
        self.entries[id] = (time, size, content)
        self.bytes += size
        self._blob = None

    def content(self, id: str) -> tuple[Any, ...]:
        """An entry's content, decoded if it is not yet."""
        content = self.entries[id][2]
        return content if type(content) is tuple else _decoded(content)

    def remove(self, id: str) -> None:
        """Take an entry out."""
        self.bytes -= self.entries.pop(id)[1]
        self._blob = None

    def oldest(self) -> Iterator[str]:
        """The ids, in order of arrival."""
        return iter(self.entries)

    def encode(self) -> bytes:
        """The section's bytes; b"" if nothing waits. Entries become bytes, so that each is encoded once."""
        if self._blob is None:
            entries = self.entries
            for id, (time, size, content) in entries.items():
                if type(content) is tuple:
                    entries[id] = (time, size, pack(content))
            if entries:
                times, sizes, contents = zip(*entries.values())
                self._blob = pack((
                    pack_ids(tuple(entries)), np.array(times, np.float64), np.array(sizes, np.int64),
                    np.fromiter(map(len, contents), np.int64, len(contents)), b"".join(contents),
                ))
            else:
                self._blob = b""
        return self._blob

    def _open(self, blob: bytes) -> None:
        ids, times, sizes, lengths, contents = unpack(blob)
        ends = np.cumsum(lengths)
        bounds = [0, *ends.tolist()]
        if bounds[-1] != len(contents) or (len(lengths) and lengths.min() < 0):
            raise StateError("the lengths of waiting entries do not add up")
        blobs = [contents[first:last] for first, last in zip(bounds, bounds[1:])]
        names = unpack_ids(ids)
        if not len(names) == len(times) == len(sizes) == len(blobs):
            raise StateError("the columns of waiting entries differ in length")
        self.entries = dict(zip(names, zip(times.tolist(), sizes.tolist(), blobs)))
        self.bytes = int(sizes.sum())


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


def _decoded(content: bytes) -> tuple[Any, ...]:
    value = unpack(content)
    if type(value) is not tuple:
        raise StateError("a waiting entry is not what was written")
    return value
