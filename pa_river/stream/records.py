"""What enters and leaves a cell: the event and the six records out, each with its strict JSON line.

All are named tuples: immutable, without a dict a record, and several times cheaper to build than a frozen
dataclass, of which a stream builds two or three an event.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

OPS = ("query", "rollback", "reset", "forget")
MAX_PAYLOAD = 64_000  # bytes of the input kept in a rejected record


class Event(NamedTuple):
    """One thing that happened to a key: features, a label, both, or an operation.

    Parameters
    ----------
    key
        Whose model this is about.
    id
        What a late label refers to; None only where features and label come together.
    time
        Event time in epoch seconds.
    x
        Features, or the tokens of a sequence; None: this is a label.
    y
        Label, or the tags of a sequence, or {label: bool}; None: not known yet.
    w
        Weight of the example; None: not given (the label's wins over the features', else 1).
    segment
        A group that reports split by.
    seq, source
        Place of this event in what it was read from.
    op, target, checksum
        "query", "rollback", "reset" or "forget"; the version or id it is about; what the version must hash to.

    Examples
    --------
    >>> Event("k", "id1", 0.0, x={"a": 1.0}).y is None
    True

    """

    key: str
    id: str | None
    time: float
    x: Any = None
    y: Any = None
    w: float | None = None
    segment: str | None = None
    seq: int | None = None
    source: str | None = None
    op: str | None = None
    target: str | int | None = None
    checksum: str | None = None

    def to_json(self) -> str:
        """The event as one JSON line that `parse` reads back; absent fields are left out."""
        present = {name: value for name, value in zip(self._fields, self) if value is not None}
        return _encode(present)


class _Prediction(NamedTuple):
    key: str
    id: str | None
    time: float
    prediction: Any
    score: float | None
    version: int


class Prediction(_Prediction):
    """What the model said for x; `version` counts the updates before it."""

    __slots__ = ()
    tag: ClassVar[str] = "predictions"

    def to_json(self) -> str:
        """One strict JSON object."""
        return _line(self._fields, self)


class _Outcome(NamedTuple):
    key: str
    id: str | None
    time: float
    segment: str | None
    prediction: Any
    y: Any
    loss: float | None
    delay: float
    version: int


class Outcome(_Outcome):
    """A stored prediction met its label; `delay` is label time less feature time."""

    __slots__ = ()
    tag: ClassVar[str] = "outcomes"

    def to_json(self) -> str:
        """One strict JSON object."""
        return _line(self._fields, self)


class _Rejected(NamedTuple):
    key: str | None
    id: str | None
    payload: str
    stage: str
    reason: str


class Rejected(_Rejected):
    """An input that could not be used; `stage`: parse, validate, predict, learn or control."""

    __slots__ = ()
    tag: ClassVar[str] = "rejected"

    def to_json(self) -> str:
        """One strict JSON object."""
        return _line(self._fields, self)


class _Orphan(NamedTuple):
    key: str
    id: str | None
    time: float
    kind: str
    y: Any
    prediction: Any


class Orphan(_Orphan):
    """Half of an example; `kind`: no_features, unlabelled, late or corrected."""

    __slots__ = ()
    tag: ClassVar[str] = "orphans"

    def to_json(self) -> str:
        """One strict JSON object."""
        return _line(self._fields, self)


class _Drift(NamedTuple):
    key: str
    time: float
    detector: str | None
    action: str
    evidence: Any
    version: int


class Drift(_Drift):
    """An alarm, or the answer to a control event (detector None, action = the op)."""

    __slots__ = ()
    tag: ClassVar[str] = "drift"

    def to_json(self) -> str:
        """One strict JSON object."""
        return _line(self._fields, self)


class _Snapshot(NamedTuple):
    key: str
    generation: int
    version: int
    time: float
    reason: str
    model: bytes
    cell: bytes


class Snapshot(_Snapshot):
    """A key's model and whole cell as bytes; `generation` is in whole milliseconds of event time."""

    __slots__ = ()
    tag: ClassVar[str] = "snapshots"

    def to_json(self) -> str:
        """One strict JSON object, the two blobs in base64."""
        return _line(self._fields, self)


Output: TypeAlias = Prediction | Outcome | Rejected | Orphan | Drift | Snapshot
OUTPUTS: tuple[type[Output], ...] = (Prediction, Outcome, Rejected, Orphan, Drift, Snapshot)


def payload(source: Event | Mapping[str, Any] | str | bytes) -> str:
    """The text of an input for a rejected record, cut at 64 kB."""
    if isinstance(source, Event):
        source = {name: value for name, value in zip(source._fields, source) if value is not None}
    if isinstance(source, Mapping):
        try:
            source = json.dumps(dict(source), default=str, skipkeys=True)
        except (ValueError, RecursionError) as error:  # a cycle, or nested too deep: no text to give
            source = f"<{type(error).__name__}: {error}>"
    if isinstance(source, str):
        source = source[:MAX_PAYLOAD].encode(errors="replace")
    return source[:MAX_PAYLOAD].decode(errors="replace")


def _line(names: tuple[str, ...], values: tuple[Any, ...]) -> str:
    return "{" + ",".join([f'"{name}":{_json(value)}' for name, value in zip(names, values)]) + "}"


def _json(value: Any) -> str:
    """One value; the usual types without the set-up that a JSONEncoder pays a call."""
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is float and math.isfinite(value) or kind is int:
        return repr(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    return _encode(value)


def _jsonable(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {name if isinstance(name, str) else _json(name): _jsonable(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _encode(value: Any) -> str:
    return _strict.encode(_jsonable(value))


_strict = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
