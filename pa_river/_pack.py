"""Plain values <-> bytes: typed, length-checked, bounded; no pickle, so no code runs on the way back."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pa_river.terms import Name

#: Containers nest no deeper than this; a hostile input cannot exhaust the stack.
MAX_DEPTH = 64

_SIZE = struct.Struct("<I")
_INT = struct.Struct("<q")
_FLOAT = struct.Struct("<d")

#: A name that is no str opens with a byte that UTF-8 never uses, so that str names are stored as their bare UTF-8.
_NOT_TEXT = b"\xff"


class StateError(ValueError):
    """Bytes that are not a state: damaged, truncated, hostile, of an unknown format or an unlisted class."""


def pack(value: Any, encode_object: Callable[[Any], tuple[str, Any]] | None = None) -> bytes:
    """Return `value` as bytes: None, bool, int, float, str, bytes, tuple, list, dict, float64 and int64 numpy arrays.

    `encode_object` turns anything else into a (class name, plain value) pair. `StateError` for a value of another type.
    The same value always gives the same bytes; O(size).
    """
    out = bytearray()
    _write(out, value, encode_object, 0)
    return bytes(out)


def unpack(data: bytes | memoryview, decode_object: Callable[[str, Any], Any] | None = None) -> Any:
    """Return the value that `pack` stored; `StateError` on anything else, before anything large is allocated."""
    reader = _Reader(memoryview(data), decode_object)
    value = reader.value(0)
    if reader.at != len(reader.data):
        raise StateError(f"{len(reader.data) - reader.at} bytes too many")
    return value


def pack_names(names: Sequence[Name]) -> bytes:
    """Return feature names as one block: a count, the length of each, the bytes of all."""
    try:
        blobs = [name_bytes(name) for name in names]
        lengths = np.fromiter(map(len, blobs), "<u4", len(blobs))
    except (OverflowError, UnicodeEncodeError) as error:
        raise StateError(f"a feature name cannot be stored: {error}") from error
    return b"".join([_SIZE.pack(len(blobs)), lengths.tobytes(), *blobs])


def unpack_names(block: Any) -> list[Name]:
    """Return the names that `pack_names` stored; `StateError` if the block is not one."""
    if not isinstance(block, bytes) or len(block) < 4:
        raise StateError("a block of names is missing")
    (count,) = _SIZE.unpack_from(block)
    if count > (len(block) - 4) // 4:
        raise StateError(f"{count} names in a block of {len(block)} bytes")
    ends = np.cumsum(np.frombuffer(block, "<u4", count, 4), dtype=np.int64)
    begin = 4 + 4 * count
    if (int(ends[-1]) if count else 0) != len(block) - begin:
        raise StateError("the lengths of the names do not add up")
    bounds = [begin, *(ends + begin).tolist()]
    return [name_of(block[first:last]) for first, last in zip(bounds, bounds[1:])]


def finite_float(value: Any) -> float:
    """`value`, a finite float; `StateError` if it is anything else."""
    if not (isinstance(value, float) and math.isfinite(value)):
        raise StateError(f"a finite float was expected, found {type(value).__name__}")
    return value


def finite_vector(value: Any, ndim: int = 1) -> npt.NDArray[np.float64]:
    """`value`, a finite float64 array of `ndim` dimensions; `StateError` if it is anything else."""
    if not (isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == ndim):
        raise StateError("an array of floats was expected")
    if not np.isfinite(value).all():
        raise StateError("a stored number is not finite")
    return value


def name_bytes(name: Name) -> bytes:
    if isinstance(name, str):
        return name.encode("utf-8", "surrogatepass")
    return _NOT_TEXT + pack(name)


def name_of(blob: bytes) -> Name:
    if blob[:1] != _NOT_TEXT:
        return _text(blob)
    name = unpack(memoryview(blob)[1:])
    if not _is_name(name):
        raise StateError("a feature name has a type that no name has")
    return name  # type: ignore[no-any-return]


def _is_name(name: Any) -> bool:
    if type(name) is tuple:
        return all(map(_is_name, name))
    return type(name) in (str, bytes, int)


def _text(blob: bytes) -> str:
    try:
        return blob.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise StateError("a text is not UTF-8") from None


def _write(out: bytearray, value: Any, encode_object: Callable[[Any], tuple[str, Any]] | None, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise StateError(f"values nested deeper than {MAX_DEPTH} cannot be stored")
    kind = type(value)
    if value is None:
        out += b"N"
    elif kind is bool:
        out += b"T" if value else b"F"
    elif kind is float:
        out += b"f"
        out += _FLOAT.pack(value)
    elif kind is int:
        if -(2**63) <= value < 2**63:
            out += b"i"
            out += _INT.pack(value)
        else:
            _blob(out, b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
    elif kind is str:
        _blob(out, b"s", value.encode("utf-8", "surrogatepass"))
    elif kind is bytes:
        _blob(out, b"b", value)
    elif kind is tuple or kind is list:
        out += b"t" if kind is tuple else b"l"
        out += _size(len(value))
        for item in value:
            _write(out, item, encode_object, depth + 1)
    elif kind is dict:
        out += b"d"
        out += _size(len(value))
        for key, item in value.items():
            _write(out, key, encode_object, depth + 1)
            _write(out, item, encode_object, depth + 1)
    elif kind is np.ndarray and value.dtype in (np.float64, np.int64):
        little = np.ascontiguousarray(value, "<f8" if value.dtype == np.float64 else "<i8")
        out += b"a" if value.dtype == np.float64 else b"j"
        out += _size(value.ndim)
        for length in value.shape:
            out += _size(length)
        out += little.tobytes()
    elif isinstance(value, np.generic):
        _write(out, value.item(), encode_object, depth)
    elif encode_object is not None:
        name, content = encode_object(value)
        out += b"o"
        _write(out, name, encode_object, depth + 1)
        _write(out, content, encode_object, depth + 1)
    else:
        raise StateError(f"{kind.__name__} cannot be stored: {str(value)[:80]}")


def _size(length: int) -> bytes:
    if length >= 2**32:
        raise StateError(f"a value of length {length} is too long to store")
    return _SIZE.pack(length)


def _blob(out: bytearray, tag: bytes, blob: bytes) -> None:
    out += tag
    out += _size(len(blob))
    out += blob


class _Reader:
    """A cursor over packed bytes: every length is checked against what is left before it is used."""

    def __init__(self, data: memoryview, decode_object: Callable[[str, Any], Any] | None):
        self.data = data
        self.at = 0
        self._decode_object = decode_object

    def take(self, count: int) -> memoryview:
        if count > len(self.data) - self.at:
            raise StateError(f"{count} bytes were announced, {len(self.data) - self.at} are left")
        self.at += count
        return self.data[self.at - count:self.at]

    def size(self) -> int:
        return int(_SIZE.unpack(self.take(4))[0])

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise StateError(f"values are nested deeper than {MAX_DEPTH}")
        tag = bytes(self.take(1))
        read = self._READERS.get(tag)
        if read is None:
            raise StateError(f"unknown type mark {tag!r}")
        return read(self, depth)

    def _items(self, depth: int) -> list[Any]:
        count = self.size()
        if count > len(self.data) - self.at:  # an item takes at least a byte
            raise StateError(f"{count} items were announced, {len(self.data) - self.at} bytes are left")
        return [self.value(depth + 1) for _ in range(count)]

    def _mapping(self, depth: int) -> dict[Any, Any]:
        count = self.size()
        if count > (len(self.data) - self.at) // 2:
            raise StateError(f"{count} entries were announced, {len(self.data) - self.at} bytes are left")
        result: dict[Any, Any] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            try:
                result[key] = self.value(depth + 1)
            except TypeError:
                raise StateError("a key has a type that no key has") from None
        if len(result) != count:
            raise StateError("a key is stored twice")
        return result

    def _array(self, dtype: str) -> npt.NDArray[Any]:
        dimensions = self.size()
        if dimensions > 8:
            raise StateError(f"an array of {dimensions} dimensions")
        shape = [self.size() for _ in range(dimensions)]
        data = self.take(math.prod(shape) * 8)
        # a fresh array of the machine's own byte order, whatever the stored one
        return np.frombuffer(data, dtype).reshape(shape).astype(dtype[1:], copy=True)

    def _object(self, depth: int) -> Any:
        name, content = self.value(depth + 1), self.value(depth + 1)
        if self._decode_object is None or not isinstance(name, str):
            raise StateError("an object where plain values were expected")
        return self._decode_object(name, content)

    _READERS: dict[bytes, Callable[[_Reader, int], Any]] = {
        b"N": lambda self, depth: None,
        b"T": lambda self, depth: True,
        b"F": lambda self, depth: False,
        b"f": lambda self, depth: _FLOAT.unpack(self.take(8))[0],
        b"i": lambda self, depth: _INT.unpack(self.take(8))[0],
        b"I": lambda self, depth: int.from_bytes(self.take(self.size()), "little", signed=True),
        b"s": lambda self, depth: _text(bytes(self.take(self.size()))),
        b"b": lambda self, depth: bytes(self.take(self.size())),
        b"t": lambda self, depth: tuple(self._items(depth)),
        b"l": lambda self, depth: self._items(depth),
        b"d": lambda self, depth: self._mapping(depth),
        b"a": lambda self, depth: self._array("<f8"),
        b"j": lambda self, depth: self._array("<i8"),
        b"o": lambda self, depth: self._object(depth),
    }
