"""The two byte formats of the cell: one key's checksummed sections, and an engine key's directory of cells."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from pa_river.state import StateError, pack_names, unpack_names

#: Sections by their number in the format; a number is never used again for something else.
HEAD, MARKS, MODEL, DETECTOR, CHALLENGER, RING, SEEN, OUTBOX, PENDING, EARLY, WAITING = range(11)

_CELL_MAGIC, _HOLDER_MAGIC = b"PARC", b"PARH"
_VERSION = 1
_HEADER = struct.Struct("<4sHHI")  # magic, format version, entries, CRC-32 of the table
_ROW = struct.Struct("<III")  # section, length, CRC-32
_HOLDER = struct.Struct("<4sHHIIdI")  # magic, format version, reserved, cells, bytes of keys, armed timer, CRC-32
_CELL = struct.Struct("<dIQ")  # next deadline, bytes of the key, bytes of the cell


class Section(NamedTuple):
    """Bytes of one section as they came, with the checksum they came with; checked when they are opened."""

    blob: bytes | memoryview
    checksum: int

    def open(self) -> bytes | memoryview:
        """The bytes; `StateError` if they are not what was written."""
        if zlib.crc32(self.blob) != self.checksum:
            raise StateError("a section of a cell was changed or damaged: its checksum does not fit")
        return self.blob


def section(blob: bytes | memoryview) -> Section:
    """Fresh bytes with their checksum."""
    return Section(blob, zlib.crc32(blob))


def join(sections: dict[int, Section]) -> bytes:
    """A cell's bytes; sections in the order of their numbers, empty ones left out."""
    return b"".join(pieces(sections))


def pieces(sections: dict[int, Section]) -> list[bytes | memoryview]:
    """What `join` joins: large sections are copied once, into what the engine gets."""
    present = [(number, part) for number, part in sorted(sections.items()) if part.blob]
    table = b"".join([_ROW.pack(number, len(part.blob), part.checksum) for number, part in present])
    header = _HEADER.pack(_CELL_MAGIC, _VERSION, len(present), zlib.crc32(table))
    return [header, table, *[part.blob for _, part in present]]


def split(data: bytes | memoryview) -> dict[int, Section]:
    """The sections that `join` wrote, unopened; `StateError` on anything else."""
    view = _require(data, _HEADER.size, "cell")
    magic, version, count, checksum = _HEADER.unpack_from(view)
    _require_format(magic, _CELL_MAGIC, version, "cell")
    at = _HEADER.size + count * _ROW.size
    table = view[_HEADER.size:at]
    if len(table) != count * _ROW.size or zlib.crc32(table) != checksum:
        raise StateError("the table of a cell's sections is damaged")
    parts: dict[int, Section] = {}
    for number, length, crc in _ROW.iter_unpack(table):
        if number > WAITING or number in parts or length > len(view) - at:
            raise StateError(f"section {number} of a cell is unknown, doubled or longer than what is left")
        part = view[at:at + length]
        parts[number] = Section(part if number in (PENDING, EARLY) else bytes(part), crc)  # those two may be megabytes
        at += length
    if at != len(view):
        raise StateError(f"{len(view) - at} bytes too many after a cell's sections")
    return parts


def join_cells(cells: Sequence[tuple[str, float, Sequence[bytes | memoryview]]], armed: float) -> bytes:
    """The directory of an engine key: (key, next deadline or inf, pieces of the cell) each; the armed timer or inf."""
    keys = [key.encode() for key, _, _ in cells]
    rows = b"".join([_CELL.pack(due, len(key), sum(map(len, parts))) for (_, due, parts), key in zip(cells, keys)])
    table = b"".join([rows, *keys])
    size = sum(map(len, keys))
    plain = _HOLDER.pack(_HOLDER_MAGIC, _VERSION, 0, len(cells), size, armed, 0)
    header = plain[:-4] + struct.pack("<I", zlib.crc32(table, zlib.crc32(plain)))
    return b"".join([header, table, *[piece for _, _, parts in cells for piece in parts]])


def split_cells(data: bytes) -> tuple[list[tuple[str, float, memoryview]], float]:
    """What `join_cells` wrote, the cells unopened, as views of these bytes; `StateError` on anything else."""
    view = _require(data, _HOLDER.size, "directory of cells")
    magic, version, reserved, count, size, armed, checksum = _HOLDER.unpack_from(view)
    _require_format(magic, _HOLDER_MAGIC, version, "directory of cells")
    first = _HOLDER.size + count * _CELL.size
    at = first + size
    if at > len(view):
        raise StateError("a directory of cells is cut short")
    plain = bytes(view[:_HOLDER.size - 4]) + bytes(4)
    if reserved or zlib.crc32(view[_HOLDER.size:at], zlib.crc32(plain)) != checksum:
        raise StateError("a directory of cells is damaged")
    cells: list[tuple[str, float, memoryview]] = []
    for due, key_length, length in _CELL.iter_unpack(view[_HOLDER.size:first]):
        if length > len(view) - at:
            raise StateError("a directory of cells is cut short")
        cells.append((bytes(view[first:first + key_length]).decode(), due, view[at:at + length]))
        first += key_length
        at += length
    if at != len(view):
        raise StateError(f"{len(view) - at} bytes too many after a directory of cells")
    return cells, armed


def pack_ids(ids: Sequence[str]) -> bytes:
    """Many ids as one block: lines where no id holds a line feed, which opens ten times as fast as lengths."""
    lines = "\n".join(ids)
    if lines.count("\n") == len(ids) - 1:
        return b"\n" + lines.encode("utf-8", "surrogatepass")
    return b"*" + pack_names(ids)


def unpack_ids(block: bytes) -> list[str]:
    """The ids that `pack_ids` wrote; `StateError` if the block is not one."""
    if block[:1] == b"\n":
        try:
            return block[1:].decode("utf-8", "surrogatepass").split("\n")
        except UnicodeDecodeError:
            raise StateError("an id is not UTF-8") from None
    ids = unpack_names(block[1:])
    if block[:1] != b"*" or not all(isinstance(id, str) for id in ids):
        raise StateError("a block of ids is damaged")
    return ids  # type: ignore[return-value]


def _require(data: bytes | memoryview, least: int, what: str) -> memoryview:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise StateError(f"the bytes of a {what} were expected, got {type(data).__name__}")
    if len(data) < least:
        raise StateError(f"{len(data)} bytes are too few for a {what}")
    return memoryview(data)


def _require_format(magic: bytes, expected: bytes, version: int, what: str) -> None:
    if magic != expected:
        raise StateError(f"these bytes are no {what}")
    if version != _VERSION:
        raise StateError(f"format version {version} of a {what} is not known here (this is version {_VERSION})")
