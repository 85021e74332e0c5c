"""Lines in a stated order from any number of bundles: sorted runs on disk, merged once all bundles are in."""

from __future__ import annotations

import heapq
import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

_AT_ONCE = 64  # files open at a time in a merge
_MAX_BYTES = 8_000_000  # lines that wait for their place in memory
_BREAK = b"\n"
_TAB = b"\t"
_LAST = b"f" * 16  # above every position


def place(position: int, index: int) -> bytes:
    """Where a line belongs: after what earlier positions of the source put out; `index` counts within one.

    Examples
    --------
    >>> place(9, 0) < place(9, 1) < place(10, 0) < place_at_end(0.0, "a", "")
    True

    """
    return b"%016x%08x" % (position, index)


def place_at_end(time: float, key: str, id: str | None) -> bytes:
    """Where a line flushed at the end of the input belongs: behind all others, by time, key and id.

    Examples
    --------
    >>> places = [place_at_end(-1.5, "b", "x"), place_at_end(-1.0, "a", None), place_at_end(2.0, "a", "1"),
    ...           place_at_end(2.0, "a", "12"), place_at_end(2.0, "a-", "1")]
    >>> places == sorted(places)
    True

    """
    # Hexadecimal keeps the order of UTF-8, which is that of code points, and the comma sorts before every digit.
    return b",".join((_LAST, _sortable(time), _hex(key), _hex(id or "")))


def _hex(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").hex().encode()


def _sortable(number: float) -> bytes:
    """Sixteen hexadecimal digits in the order of the floats."""
    bits = int.from_bytes(struct.pack(">d", number + 0.0), "big")  # + 0.0: -0.0 and 0.0 are one time
    return b"%016x" % (bits ^ (0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else 0x8000_0000_0000_0000))


class RunWriter:
    """The lines of one bundle, written as few runs as their order allows.

    Lines that come in order go straight to one open file; when one comes too early, lines are collected and sorted up
    to a bound of memory, and each filled buffer is a run of its own.
    """

    def __init__(self, folder: Path, name: str):
        self._folder, self._name = folder, name
        self._runs: list[str] = []
        self._open: IO[bytes] | None = None
        self._last = b""
        self._waiting: list[bytes] = []
        self._bytes = 0

    def add(self, at: bytes, line: bytes) -> None:
        """Take one line (without a line break in it) and its place."""
        if not self._waiting and at >= self._last:
            if self._open is None:
                self._open = self._new()
            self._open.write(at + _TAB + line + _BREAK)
            self._last = at
            return
        self._waiting.append(at + _TAB + line + _BREAK)
        self._bytes += len(line) + 64
        if self._bytes >= _MAX_BYTES:
            self._spill()

    def close(self) -> list[str]:
        """Return the names of the runs, in the order in which they began."""
        if self._waiting:
            self._spill()
        if self._open is not None:
            self._open.close()
            self._open = None
        return self._runs

    def _new(self) -> IO[bytes]:
        # A random name: a bundle that is retried, or run twice at once, must not write over another's file. No result
        # depends on it: runs are merged by the places of their lines.
        name = f"{self._name}-{uuid.uuid4().hex}.run"
        self._runs.append(name)
        return open(self._folder / name, "wb")

    def _spill(self) -> None:
        self._waiting.sort()
        with self._new() as file:
            file.writelines(self._waiting)
        self._waiting, self._bytes = [], 0


def merge(folder: Path, runs: Sequence[str], target: Path, head: Path | None = None) -> int:
    """Write the lines of all runs to `target` in order, behind those of `head`; return how many the runs had.

    Reads each run once (in rounds of 64 files when there are more) and holds one line of each.
    """
    names = sorted(runs)
    while len(names) > _AT_ONCE:
        writer_names = []
        for start in range(0, len(names), _AT_ONCE):
            name = f"merged-{uuid.uuid4().hex}.run"
            with ExitStack() as stack, open(folder / name, "wb") as file:
                file.writelines(_merged(stack, folder, names[start:start + _AT_ONCE]))
            writer_names.append(name)
        names = writer_names
    count = 0
    with ExitStack() as stack, open(target, "wb") as file:
        if head is not None and head.exists():
            with open(head, "rb") as before:
                while chunk := before.read(1 << 20):
                    file.write(chunk)
        for line in _merged(stack, folder, names):
            file.write(line[line.index(_TAB) + 1:])
            count += 1
    return count


def _merged(stack: ExitStack, folder: Path, names: Sequence[str]) -> Iterator[bytes]:
    files: list[Iterable[bytes]] = [stack.enter_context(open(folder / name, "rb")) for name in names]
    return iter(files[0]) if len(files) == 1 else heapq.merge(*files)
