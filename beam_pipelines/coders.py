"""Events, records and cells <-> bytes between Beam's stages and in its state; never a pickle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import numpy as np
from apache_beam import coders
from apache_beam.coders.typecoders import registry
from apache_beam.runners.worker.statecache import CacheAware

from pa_river import state
from pa_river.stream import Drift, Event, Holder, Orphan, Outcome, Prediction, Rejected, Snapshot

_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.decode

#: MessagePack for what it says without loss (an array of 12 opens with 0x9c), or our own packing behind 0x00.
_PACKED = b"\x00"
_PLAIN = frozenset({type(None), bool, int, float, str})


class EventCoder(coders.Coder):
    """An event as MessagePack, which costs a third of Beam's own coder, or packed where that would lose a type."""

    def encode(self, value: Event) -> bytes:
        """Return the event's bytes; `StateError` (a `ValueError`) for a value that no event may hold."""
        if _survives(value.x) and type(value.y) in _PLAIN:
            try:
                return _encode(value)
            except (OverflowError, TypeError, UnicodeEncodeError):  # an int beyond 64 bits; a numpy scalar elsewhere
                pass
        return _PACKED + state.pack(_python(tuple(value)))

    def decode(self, encoded: bytes) -> Event:
        """Return the event; equal in value and type to the one encoded, but for numpy scalars, which are Python's."""
        return Event(*(state.unpack(memoryview(encoded)[1:]) if encoded[:1] == _PACKED else _decode(encoded)))

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return Event


class RecordCoder(coders.Coder):
    """One of the six records out, packed; a class for each, since Beam builds a registered coder without arguments."""

    record: ClassVar[type[Any]]

    def encode(self, value: Any) -> bytes:
        return state.pack(_python(tuple(value)))

    def decode(self, encoded: bytes) -> Any:
        return self.record(*state.unpack(encoded))

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return self.record


class PredictionCoder(RecordCoder):
    record = Prediction


class OutcomeCoder(RecordCoder):
    record = Outcome


class RejectedCoder(RecordCoder):
    record = Rejected


class OrphanCoder(RecordCoder):
    record = Orphan


class DriftCoder(RecordCoder):
    record = Drift


class SnapshotCoder(RecordCoder):
    record = Snapshot


class Live(CacheAware):
    """A live holder in Beam's state. The SDK weighs what it keeps by walking through it: here is nothing to walk."""

    __slots__ = ("holder",)

    def __init__(self, holder: Holder):
        self.holder = holder

    def get_referents_for_cache(self) -> list[Any]:
        return []


class CellCoder(coders.Coder):
    """What one engine key holds: encoded by itself, once a bundle, and handed back as bytes.

    It comes back as bytes because only `CellSpec.open` knows the key and the model to decode them for; within a bundle
    Beam hands back the live holder that was written.
    """

    def encode(self, value: Live | bytes) -> bytes:
        """Return the bytes of a holder that holds something: an empty one is cleared, never written."""
        if isinstance(value, bytes):
            return value
        data = value.holder.dumps()
        assert data is not None, "an empty holder is to be cleared"
        return data

    def decode(self, encoded: bytes) -> Live | bytes:
        return encoded

    def is_deterministic(self) -> bool:
        return False


def _survives(x: Any) -> bool:
    """Whether MessagePack gives x back as it is: None, or a plain dict of str to Python numbers."""
    if x is None:
        return True
    if type(x) is not dict:
        return False
    try:
        "".join(x)
        return type(sum(x.values(), 0.0)) is float  # numpy's scalars change the type of the sum, text fails it
    except (TypeError, OverflowError):
        return False


def _python(value: Any) -> Any:
    """`value` with Python's numbers for numpy's, and dicts for other mappings."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {_python(name): _python(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_python(item) for item in value) if type(value) in (list, tuple) else tuple(value)
    return value


# Which coder belongs to which record, so that no stage between two workers pickles one.
registry.register_coder(Event, EventCoder)
for _coder in (PredictionCoder, OutcomeCoder, RejectedCoder, OrphanCoder, DriftCoder, SnapshotCoder):
    registry.register_coder(_coder.record, _coder)
