"""From a line, a mapped row or a message to an event, or to the record that says why not; never an exception."""

from __future__ import annotations

import datetime
import importlib.util
import json
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from pa_river.features import short
from pa_river.stream.records import OPS, Event, Rejected, payload

MAX_LINE = 4_000_000  # bytes of one input line
MAX_FEATURES = 100_000  # of one event, nested values counted
MAX_DEPTH = 16  # of lists and objects in x or y
MAX_TEXT = 4_096  # characters of a key, an id, a segment, a source
MAX_TIME = 9e12  # seconds before or after 1970: what the clocks of engines hold, and a count of milliseconds


def parse(
    line: str | bytes, *, source: str | None = None, seq: int | None = None, key: str | None = None,
    time: float | None = None,
) -> Event | Rejected:
    """An event from one JSON line, or the record that says why not; never an exception, whatever the line.

    Notes
    -----
    Bounded: a line over 4 MB, over 100,000 values, or nested deeper than 16 is rejected. `source`, `seq`, `key` and
    `time` stand in where the line has none. Of two equal names in one object the last counts, as in Python's json.

    Examples
    --------
    >>> parse('{"key": "k", "id": "1", "time": "1970-01-01T00:01:00Z", "x": {"a": 1}}').time
    60.0
    >>> parse('{"key": "k", "time": NaN}').reason
    'not JSON: NaN is not a JSON number'

    """
    try:
        if len(line) > MAX_LINE:
            raise ValueError(f"the line has more than {MAX_LINE} bytes")
        text = line.decode() if isinstance(line, bytes) else line
        record = _decoded(text)
        if text is line and not text.isascii():
            text.encode()  # a lone surrogate would fail much later, in the state
        if "\\u" in text and _SURROGATE.search(text):
            _plain_text.encode(record).encode()
    except RecursionError:
        return Rejected(None, None, payload(line), "parse", "not JSON: nested too deep")
    except ValueError as error:
        return Rejected(None, None, payload(line), "parse", f"not JSON: {error}")
    if type(record) is not dict:
        return Rejected(None, None, payload(line), "parse", f"a JSON object is needed, got {type(record).__name__}")
    return event_from(record, text=line, source=source, seq=seq, key=key, time=time)


def event_from(
    record: Mapping[str, Any], *, text: str | bytes | None = None, source: str | None = None, seq: int | None = None,
    key: str | None = None, time: float | None = None,
) -> Event | Rejected:
    """An event from decoded fields (a JSON object, a mapped CSV row, a Kafka record), or why not.

    Parameters
    ----------
    record
        The fields of `Event` by name; None is absent. Key and id may be numbers or bools: 7, 7.0 -> "7",
        True -> "true". `time`: epoch seconds or RFC 3339, UTC where it names no offset.
    text
        The input as it came, for a rejected record's payload.
    source, seq, key, time
        Stand in where the record has none.

    """
    try:
        return _event(record, source, seq, key, time)
    except (ValueError, OverflowError) as error:
        whose, id = _text_or_none(record.get("key", key)), _text_or_none(record.get("id"))
        return Rejected(whose, id, payload(record if text is None else text), "validate", str(error))


def too_far_ahead(event: Event, wall: float, max_future: float = 3600.0) -> Rejected | None:
    """A live source's check of an event's time against the wall clock, before the event reaches a cell's clock."""
    if event.time <= wall + max_future:
        return None
    reason = f"time {event.time} is more than {max_future} s ahead of the wall clock"
    return Rejected(event.key, event.id, payload(event), "validate", reason)


def malformed(event: Event) -> str | None:
    """Why an event built by hand cannot be handled; None for what `parse` and `event_from` return.

    The types of its envelope only: what is in x and y is the model's to judge.
    """
    _, id, time, x, y, w, segment, _, _, op, target, check = event
    is_timed = type(time) is float and -MAX_TIME <= time <= MAX_TIME
    if is_timed and type(id) is str and w is None and segment is None and op is None:
        return None if x is not None or y is not None else "an event needs x or y"  # nearly every event
    if not (isinstance(time, (int, float)) and -MAX_TIME <= time <= MAX_TIME):
        return f"time must be a finite number of seconds, at most {MAX_TIME:g} either way, got {short(time)}"
    if w is not None and not (isinstance(w, (int, float)) and 0.0 <= w <= sys.float_info.max):
        return f"w must be a finite number >= 0, got {short(w)}"
    if not all(text is None or type(text) is str for text in (id, segment, op, check)):
        return "id, segment, op and checksum must be text"
    if op is not None and op not in OPS:
        return f"op must be one of {', '.join(OPS)}, got {op!r}"
    if not (target is None or type(target) in (str, int)):
        return f"target must be an id or a version, got {target!r}"
    if op in (None, "query") and x is None and (y is None or op is not None):
        return "an event needs x or y" if op is None else "a query needs x"
    if id is None and (op is not None or x is None or y is None):
        return "id is required unless x and y come together"
    return None


def check_values(what: str, value: Any) -> None:
    """Raise `ValueError` unless every number in x or y is finite and the whole is small and shallow."""
    if type(value) is dict and len(value) <= MAX_FEATURES:
        try:
            if all(map(math.isfinite, value.values())):
                return
        except (TypeError, OverflowError):  # some value is not a number: look at each
            pass
    level: list[tuple[Any, Any]] = [(what, value)]
    seen = 0
    for _ in range(MAX_DEPTH + 1):
        below: list[tuple[Any, Any]] = []
        for name, item in level:
            if item is None or isinstance(item, (str, bytes, bool)):
                continue
            if isinstance(item, (int, float, np.number)):
                _check_number(name, item)
            elif isinstance(item, Mapping):
                below.extend(item.items())
            elif isinstance(item, (list, tuple)):
                below.extend((name, part) for part in item)
            elif not isinstance(item, np.bool_):
                raise ValueError(f"{name!r} must be a number, text or bool, got {type(item).__name__}")
            if seen + len(below) > MAX_FEATURES:
                raise ValueError(f"{what} has more than {MAX_FEATURES} values")
        if not below:
            return
        seen += len(below)
        level = below
    raise ValueError(f"{what} is nested deeper than {MAX_DEPTH}")


def _event(
    record: Mapping[str, Any], source: str | None, seq: int | None, other_key: str | None, other_time: float | None
) -> Event:
    get = record.get
    op, x, y, w = get("op"), get("x"), get("y"), get("w")
    if x is not None:
        if not isinstance(x, (Mapping, list, tuple)):
            raise ValueError(f"x must be an object or a list, got {type(x).__name__}")
        check_values("x", x)
    if y is not None and type(y) is not bool:
        check_values("y", y)
    key, id = _text("key", get("key", other_key)), get("id")
    if id is not None:
        id = _text("id", id)
    if w is not None:
        w = _number("w", w)
    target = get("target")
    if op is not None:
        target = _target(op, target)
    number = get("seq", seq)
    if number is not None and type(number) is not int:
        number = int(number) if isinstance(number, np.integer) else -1
    if number is not None and number < 0:
        raise ValueError(f"seq must be an integer >= 0, got {get('seq', seq)!r:.100}")
    segment, origin, checksum = get("segment"), get("source", source), get("checksum")
    event = Event(
        key, id, _seconds(get("time", other_time)), x, y, w,
        None if segment is None else _text("segment", segment), number,
        None if origin is None else _text("source", origin), op, target,
        None if checksum is None else _text("checksum", checksum),
    )
    if (fault := malformed(event)) is not None:
        raise ValueError(fault)
    return event


def _target(op: Any, target: Any) -> str | int | None:
    if op not in OPS:
        raise ValueError(f"op must be one of {', '.join(OPS)}, got {op!r}")
    if op == "forget":
        return _text("target", target)
    if target is None or op != "rollback":
        return None
    version = _number("target", target)
    if version < 0 or version != int(version):
        raise ValueError(f"target of a rollback must be a version, got {target!r}")
    return int(version)


def _text(name: str, value: Any) -> str:
    if type(value) is not str:
        if isinstance(value, (bool, np.bool_)):
            value = "true" if value else "false"
        elif isinstance(value, (int, float, np.number)):
            _check_number(name, value)
            value = str(int(value)) if value == int(value) else repr(float(value))
        else:
            raise ValueError(f"{name} must be text, a number or a bool, got {type(value).__name__}")
    if len(value) > MAX_TEXT:
        raise ValueError(f"{name} has more than {MAX_TEXT} characters")
    return str(value)


def _text_or_none(value: Any) -> str | None:
    try:
        return None if value is None else _text("", value)
    except ValueError:
        return None


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ValueError(f"{name} must be a number, got {value!r:.100}")
    _check_number(name, value)
    return float(value)


def _check_number(name: Any, value: Any) -> None:
    try:
        if math.isfinite(value):
            return
    except (OverflowError, TypeError):  # an int beyond float range; a complex number
        pass
    raise ValueError(f"{name!r} must be a finite number, got {value!r:.100}")


def _seconds(value: Any) -> float:
    if isinstance(value, str):
        try:
            return _number("time", float(value))
        except ValueError:
            moment = datetime.datetime.fromisoformat(value.upper())  # a ValueError in words
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.timezone.utc)
        return moment.timestamp()
    return _number("time", value)


def _decoded(text: str) -> Any:
    """What `json.loads` makes of a text, sooner where msgspec is installed; what that refuses, json judges in words."""
    if _msgspec is not None:
        try:
            return _msgspec(text)
        except (ValueError, RecursionError):
            pass
    return _decode(text)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_msgspec = None if importlib.util.find_spec("msgspec") is None else importlib.import_module("msgspec").json.decode
_decode = json.JSONDecoder(parse_constant=_refuse).decode
_plain_text = json.JSONEncoder(ensure_ascii=False)
