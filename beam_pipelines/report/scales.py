"""Axes and words for numbers: round ticks, calendar ticks, percent, durations, bytes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import NamedTuple

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
_CLOCK = 1e8  # below this (March 1973) a time is a counter from a test or a simulation, not a date
_STEPS = (
    1,
    2,
    5,
    10,
    15,
    30,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
)


class Tick(NamedTuple):
    """A mark on an axis: where, and what stands there."""

    at: float
    text: str


def round_steps(low: float, high: float, about: int = 5) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten that cover [low, high].

    Examples
    --------
    >>> round_steps(0.0, 0.37, 4)
    [0.0, 0.1, 0.2, 0.3, 0.4]

    """
    span = high - low
    if not span > 0.0:
        high, span = low + 1.0, 1.0
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((power * m for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / raw)))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def when(time: float) -> str:
    """Return a time in words (UTC), or seconds where it is no plausible date.

    Examples
    --------
    >>> when(1357034400.0), when(12.5)
    ('2013-01-01 10:00', '12.5 s')

    """
    moment = _date(time)
    return f"{time:,.6g} s" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def day(time: float) -> str:
    """Return the date of a time, or seconds where it is no plausible date."""
    moment = _date(time)
    return f"{time:,.6g} s" if moment is None else f"{moment.day} {moment:%b %Y}"


def time_ticks(low: float, high: float) -> list[Tick]:
    """Return ticks at whole units of the calendar between two times in epoch seconds."""
    first, last = _date(low), _date(high)
    if first is None or last is None:
        return [Tick(at, f"{at:,.6g} s") for at in round_steps(low, high) if low <= at <= high]
    if high - low > 100 * DAY:
        months = (last.year - first.year) * 12 + last.month - first.month
        every = next((n for n in (1, 2, 3, 6, 12, 24, 60) if months / n <= 13), 120)
        return [tick for tick in _months(first, last, every) if low <= tick.at <= high]
    step = next((s for s in _STEPS if (high - low) / s <= 8), 28 * DAY)
    text = "%-d %b" if step >= DAY else "%H:%M" if step >= MINUTE else "%H:%M:%S"
    start = math.ceil(low / step)
    return [Tick(i * step, _text(i * step, text)) for i in range(start, math.floor(high / step) + 1)]


def _months(first: dt.datetime, last: dt.datetime, every: int) -> list[Tick]:
    ticks = []
    for month in range((first.year * 12 + first.month - 1) // every * every, last.year * 12 + last.month, every):
        if month >= 12:
            moment = dt.datetime(month // 12, month % 12 + 1, 1, tzinfo=dt.timezone.utc)
            text = f"{moment:%Y}" if every >= 12 else f"{moment:%b}" if month % 12 else f"{moment:%b %Y}"
            ticks.append(Tick(moment.timestamp(), text))
    return ticks


def _date(time: float) -> dt.datetime | None:
    if not abs(time) >= _CLOCK:
        return None
    try:
        return dt.datetime.fromtimestamp(time, dt.timezone.utc)
    except (OverflowError, OSError, ValueError):  # a year the calendar has no room for
        return None


def _text(time: float, pattern: str) -> str:
    moment = dt.datetime.fromtimestamp(time, dt.timezone.utc)
    return moment.strftime(pattern.replace("%-d", str(moment.day)))  # %-d is not everywhere


def duration(seconds: float) -> str:
    """Return a length of time in its natural unit.

    Examples
    --------
    >>> duration(9000.0), duration(0.25), duration(-90.0), duration(0.0)
    ('2.5 h', '250 ms', '-1.5 min', '0 s')

    """
    size = abs(seconds)
    for unit, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min"), (1.0, "s"), (0.001, "ms")):
        if size >= unit:
            return f"{number(seconds / unit)} {name}"
    return "0 s" if not size else f"{seconds:.2g} s"


def duration_unit(longest: float) -> tuple[float, str]:
    """Return the unit in which an axis up to `longest` seconds reads best: seconds in it, and its name."""
    for unit, name in ((2 * DAY, "days"), (2 * HOUR, "hours"), (2 * MINUTE, "minutes"), (0.5, "seconds")):
        if longest >= unit:
            return {"days": DAY, "hours": HOUR, "minutes": MINUTE, "seconds": 1.0}[name], name
    return 0.001, "milliseconds"


def size(count: float) -> str:
    """Return bytes in words: 999 B, 12.3 kB, 4.5 MB."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"


def number(value: float) -> str:
    """Return a number with about three digits and no exponent in the usual range.

    Examples
    --------
    >>> number(1234.5), number(12.34), number(0.01234), number(3.0)
    ('1,234', '12.3', '0.0123', '3')

    """
    if value != value or math.isinf(value):
        return "-"
    if value == 0.0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    if not -13 <= digits <= 8:
        return f"{value:.3g}"
    text = f"{value:,.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """Return a share as a percentage: one decimal, two below 1 %.

    Examples
    --------
    >>> percent(0.2366), percent(0.00456), percent(1.0), percent(0.0)
    ('23.7 %', '0.46 %', '100 %', '0 %')

    """
    if share != share:
        return "-"
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    return f"{100 * share:.{1 if abs(share) >= 0.01 else 2}f} %"


def spaced(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions at least `gap` apart, in the order of `wanted`, each as near to its wish as that allows.

    Examples
    --------
    >>> spaced([10.0, 11.0, 50.0], 5.0, 0.0, 100.0)
    [10.0, 15.0, 50.0]

    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [0.0] * len(wanted)
    at = low - gap
    for i in order:
        at = placed[i] = max(wanted[i], at + gap)
    at = high + gap
    for i in reversed(order):
        at = placed[i] = min(placed[i], at - gap)
    return placed
