"""What one key puts out in one bundle, as one element on its way to a sink that drops second copies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
from apache_beam import coders
from apache_beam.coders.typecoders import registry

from pa_river.stream import Orphan, Outcome, Output, Prediction, Snapshot

#: What happens once to an id; whatever may rightly happen again is told apart by its content.
_ONCE = ("unlabelled", "no_features")

#: The engine key of heartbeats: no events, but they go through every stage of the job, from its source to its file.
BEAT = "\0beat"


class Record(NamedTuple):
    """One line out, with the name under which a second copy of it is dropped: (key, id, kind).

    `key` is the event's, where it is known: with shards, one of many in the unit's engine key.
    """

    tag: str
    id: str
    kind: str
    line: str
    key: str = ""


class Unit(NamedTuple):
    """All that one engine key put out between two of its serial numbers; a sink stores it whole or not at all.

    Parameters
    ----------
    key
        The engine key; "" for what no cell saw (records that could not be read), which is in no chain.
    serial
        1, 2, 3 ... since the key's state was opened in this run of the job; 0: in no chain, for nothing changed.
    records, snapshots
        The lines, and the fields of each `Snapshot`.
    handled
        (source, first, after the last) numbers that need not come again once `blob`, or a later one, is stored.
    blob
        The whole engine key after all this, to go on from; None: not this time.
    is_new
        Whether the state changed: False where every event was known already.

    """

    key: str
    serial: int
    records: list[Record]
    snapshots: list[tuple[Any, ...]]
    handled: list[tuple[str, int, int]]
    blob: bytes | None
    is_new: bool


def record(output: Output) -> Record:
    """The line of an output and its name.

    Examples
    --------
    >>> record(Prediction("k", "7", 0.0, True, 1.5, 3))[:3]
    ('predictions', '7', 'prediction')

    """
    line = output.to_json()
    if isinstance(output, Prediction) and output.id is not None:
        kind = "prediction"
    elif isinstance(output, Outcome) and output.id is not None:
        kind = "outcome"
    elif isinstance(output, Orphan) and output.kind in _ONCE:
        kind = output.kind
    else:
        about = output.kind if isinstance(output, Orphan) else output.tag
        kind = f"{about}:{hashlib.blake2b(line.encode(), digest_size=12).hexdigest()}"
    return Record(output.tag, getattr(output, "id", None) or "", kind, line, output.key or "")


def unit(
    key: str, serial: int, outputs: Iterable[Output], handled: list[tuple[str, int, int]], blob: bytes | None,
    is_new: bool,
) -> Unit:
    """A unit of these outputs."""
    records: list[Record] = []
    snapshots: list[tuple[Any, ...]] = []
    for output in outputs:
        if isinstance(output, Snapshot):
            snapshots.append(tuple(output))
        else:
            records.append(record(output))
    return Unit(key, serial, records, snapshots, handled, blob, is_new)


def spans(source: str, numbers: Iterable[int]) -> list[tuple[str, int, int]]:
    """Rising numbers of a source as spans, neighbours joined.

    Examples
    --------
    >>> spans("t-0", [3, 4, 5, 9])
    [('t-0', 3, 6), ('t-0', 9, 10)]

    """
    found: list[tuple[str, int, int]] = []
    for number in numbers:
        if found and found[-1][2] == number:
            found[-1] = (source, found[-1][1], number + 1)
        else:
            found.append((source, number, number + 1))
    return found


class UnitCoder(coders.Coder):
    """A unit as MessagePack: text, numbers and bytes, all of them made here."""

    def encode(self, value: Unit) -> bytes:
        return msgspec.msgpack.encode(value)

    def decode(self, encoded: bytes) -> Unit:
        return _decoder.decode(encoded)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return Unit


_decoder = msgspec.msgpack.Decoder(Unit)
registry.register_coder(Unit, UnitCoder)
