"""Figures as HTML and inline SVG: drawn in a plane of 1000 x 1000 that stretches with the page, with words around it.

Strokes do not scale with the plane, so one drawing is sharp on a phone and on a desk. Every text that comes from data
goes through `text`; a script adds the readings under the pointer, and nothing but them.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from beam_pipelines.report import scales
from beam_pipelines.report.read import Floats
from beam_pipelines.report.scales import Tick

PLANE = 1000.0
LONGEST = 80  # characters of a name from outside that a page shows


def text(value: object, most: int = LONGEST) -> str:
    """Return any value as inert HTML, cut at so many characters.

    Examples
    --------
    >>> text("<script>")
    '&lt;script&gt;'

    """
    shown = str(value)
    shown = shown if len(shown) <= most else shown[: most - 1] + "\u2026"
    return html.escape(shown.replace("\x00", "\ufffd"), quote=True)


def name(value: object) -> str:
    """Return a name from outside as inert HTML that cannot turn the direction of the text around it."""
    return f"<bdi>{text(value)}</bdi>"


def embedded(value: object) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of an axis, what stands along it, and how to write a value of it."""

    low: float
    high: float
    ticks: Sequence[Tick]
    title: str
    write: Callable[[float], str]

    def place(self, value: float) -> float:
        """Return where a value lies in the plane, from 0 to 1000, clipped."""
        return PLANE * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


def axis(low: float, high: float, title: str, write: Callable[[float], str], about: int = 5) -> Axis:
    """Return an axis of round numbers that covers [low, high]."""
    steps = scales.round_steps(low, high, about)
    return Axis(steps[0], steps[-1], [Tick(at, write(at)) for at in steps], title, write)


def time_axis(low: float, high: float) -> Axis:
    """Return an axis of dates (or of seconds, where the times are no dates)."""
    if not high > low:
        low, high = low - 0.5, high + 0.5
    return Axis(low, high, scales.time_ticks(low, high), "", scales.when)


def log_axis(low: float, high: float, title: str, write: Callable[[float], str]) -> Axis:
    """Return an axis by powers of ten that begins and ends at 1, 2 or 5 of one; `place` takes the logarithm."""
    grades = [
        m * 10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 2) for m in (1, 2, 5)
    ]
    first = max((g for g in grades if g <= low * (1 + 1e-9)), default=low)
    last = min(g for g in grades if g >= high * (1 - 1e-9) and g > first)
    sparse = last / first >= 1e3
    shown = [g for g in grades if first <= g <= last and (not sparse or f"{g:e}".startswith("1"))]
    return Axis(math.log10(first), math.log10(last), [Tick(math.log10(g), write(g)) for g in shown], title, write)


@dataclass(frozen=True, slots=True)
class Line:
    """A series of a line chart; `style` numbers its colour and dashes, 0 is the model."""

    label: str
    style: int
    values: Floats


def lines(
    x: Axis,
    y: Axis,
    at: Floats,
    series: Sequence[Line],
    *,
    label: str,
    marks: Iterable[float] = (),
    ends: bool = True,
) -> str:
    """Return a line chart with readings under the pointer; `marks` are times drawn as upright lines."""
    places = [round(x.place(value)) for value in at.tolist()]
    drawn = [f'<path class="mark" d="M{round(x.place(m))} 0V1000"/>' for m in marks]
    for line in sorted(series, key=lambda one: -one.style):  # the model last, on top
        drawn.append(f'<path class="line s{line.style}" d="{_path(places, line.values, y)}"/>')
    reading = {
        "x": places,
        "t": [x.write(value) for value in at.tolist()],
        "s": [
            {
                "n": line.label,
                "c": line.style,
                "v": [y.write(v) if v == v else "" for v in line.values.tolist()],
                "y": [round(PLANE - y.place(v)) if v == v else None for v in line.values.tolist()],
            }
            for line in series
        ],
    }
    data = f'<script type="application/json">{embedded(reading)}</script>'
    side = _ends(series, y) if ends else ""
    return _plot("lines" + (" ended" if ends else ""), x, y, "".join(drawn), label, side + data, focus=True)


def _path(places: Sequence[int], values: Floats, y: Axis) -> str:
    parts, pen = [], "M"
    for place, value in zip(places, values.tolist()):
        if value != value:
            pen = "M"
            continue
        parts.append(f"{pen}{place} {round(PLANE - y.place(value))}")
        pen = "L"
    return "".join(parts)


def _ends(series: Sequence[Line], y: Axis) -> str:
    shown = [line for line in series if line.values[-1] == line.values[-1]]
    places = scales.spaced([PLANE - y.place(line.values[-1]) for line in shown], 62.0, 0.0, PLANE)
    return "".join(
        f'<span class="end c{line.style}" style="top:{place / 10:.1f}%">{text(line.label)} '
        f"{text(y.write(line.values[-1]))}</span>"
        for line, place in zip(shown, places)
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from `low` to `high` on the x axis, with what to say about it."""

    low: float
    high: float
    height: float
    says: str
    style: int = 0


def bars(
    x: Axis,
    y: Axis,
    found: Sequence[Bar],
    *,
    label: str,
    marks: Sequence[tuple[float, str]] = (),
    steps: Sequence[tuple[float, float]] = (),
) -> str:
    """Return bars over ranges of x; `marks` are named upright lines, `steps` a line through points."""
    drawn = []
    for bar in found:
        left, right, top = x.place(bar.low), x.place(bar.high), PLANE - y.place(bar.height)
        gap = min(3.0, (right - left) / 8.0)
        drawn.append(
            f'<rect class="bar f{bar.style}" x="{left + gap:.0f}" y="{top:.0f}" '
            f'width="{max(right - left - 2 * gap, 1):.0f}" height="{PLANE - top:.0f}">'
            f"<title>{text(bar.says)}</title></rect>"
        )
    drawn += [f'<path class="mark" d="M{x.place(at):.0f} 0V1000"/>' for at, _ in marks]
    if steps:
        points = "L".join(f"{x.place(at):.0f} {PLANE - y.place(value):.0f}" for at, value in steps)
        drawn.append(f'<path class="line s1" d="M{points}"/>')
    names = "".join(
        f'<span class="flag{" left" if x.place(at) > 650.0 else ""}"'
        f' style="left:{x.place(at) / 10:.1f}%;top:{i * 1.3:.1f}em">{text(says)}</span>'
        for i, (at, says) in enumerate(marks)
    )
    return _plot("bars", x, y, "".join(drawn), label, names)


@dataclass(frozen=True, slots=True)
class Dot:
    """A point of a scatter with what to say about it; `style` numbers its colour."""

    x: float
    y: float
    says: str
    style: int = 0


def dots(
    x: Axis,
    y: Axis,
    found: Sequence[Dot],
    *,
    label: str,
    zero: float | None = None,
    line: Sequence[tuple[float, float]] = (),
    notes: str = "",
) -> str:
    """Return a scatter; `zero` is the y of a line to compare with, `line` another such line by its points."""
    drawn = [] if zero is None else [f'<path class="zero" d="M0 {PLANE - y.place(zero):.0f}H1000"/>']
    if line:
        points = "L".join(f"{x.place(at):.0f} {PLANE - y.place(value):.0f}" for at, value in line)
        drawn.append(f'<path class="zero" d="M{points}"/>')
    drawn += [
        f'<path class="dot s{dot.style}" d="M{x.place(dot.x):.0f} {PLANE - y.place(dot.y):.0f}h.1">'
        f"<title>{text(dot.says)}</title></path>"
        for dot in found
    ]
    return _plot("dots", x, y, "".join(drawn), label, notes)


def _plot(kind: str, x: Axis, y: Axis, drawn: str, label: str, after: str, focus: bool = False) -> str:
    grid = "".join(f'<path class="grid" d="M0 {PLANE - y.place(tick.at):.0f}H1000"/>' for tick in y.ticks)
    ticks = "".join(f'<path class="tick" d="M{x.place(tick.at):.0f} 0V1000"/>' for tick in x.ticks)
    # Where there is no room for all words of the axis, the style sheet hides the odd ones.
    below = "".join(
        f'<span class="x" style="left:{x.place(tick.at) / 10:.1f}%">{text(tick.text)}</span>' for tick in x.ticks
    )
    beside = "".join(
        f'<span class="y" style="top:{100 - y.place(tick.at) / 10:.1f}%">{text(tick.text)}</span>' for tick in y.ticks
    )
    title = f'<div class="ytitle">{text(y.title)}</div>' if y.title else ""
    under = f'<div class="xtitle">{text(x.title)}</div>' if x.title else ""
    dense = " dense" if len(x.ticks) > 6 else ""
    hold = ' tabindex="0"' if focus else ""
    return (
        f'{title}<div class="plot {kind}{dense}"{hold}><svg viewBox="0 0 1000 1000" preserveAspectRatio="none" '
        f'role="img" aria-label="{text(label)}">{ticks}{grid}{drawn}</svg>{below}{beside}{after}</div>{under}'
    )


def spark(series: Sequence[Line], top: float) -> str:
    """Return a small chart without axes, from 0 to `top`."""
    drawn = []
    for line in sorted(series, key=lambda one: -one.style):
        count = max(len(line.values) - 1, 1)
        places = [round(PLANE * i / count) for i in range(len(line.values))]
        plain = Axis(0.0, top, (), "", str)
        drawn.append(f'<path class="line s{line.style}" d="{_path(places, line.values, plain)}"/>')
    return (
        '<svg class="spark" viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="grid" d="M0 1000H1000M0 0H1000"/>{"".join(drawn)}</svg>'
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head, whether it holds numbers, a word of explanation; `ready`: the head as HTML."""

    head: str
    numeric: bool = True
    why: str = ""
    ready: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: ready HTML, and the number it sorts by."""

    shown: str
    order: float | None = None


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, sortable: bool = False, caption: str = ""
) -> str:
    """Return a table; a sortable one gets its buttons from the script."""
    heads = "".join(map(_head, columns))
    body = "".join(f"<tr>{''.join(map(_cell, columns, row))}</tr>" for row in rows)
    kind = ' class="sortable"' if sortable else ""
    above = f"<caption>{text(caption)}</caption>" if caption else ""
    return (
        f'<div class="scroll"><table{kind}>{above}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _head(column: Column) -> str:
    why = f' title="{text(column.why)}"' if column.why else ""
    return f'<th scope="col"{_class(column)}{why}>{column.ready or text(column.head)}</th>'


def _class(column: Column) -> str:
    return ' class="n"' if column.numeric else ""


def _cell(column: Column, cell: Cell) -> str:
    order = f' data-v="{cell.order:.8g}"' if cell.order is not None and cell.order == cell.order else ""
    return f"<td{_class(column)}{order}>{cell.shown}</td>"
