"""The part of the page that tells keys and segments apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from beam_pipelines.report import charts, measures, scales
from beam_pipelines.report.charts import Axis, Cell, Column, Dot, Line, text
from beam_pipelines.report.errors import legend, standing
from beam_pipelines.report.gather import RIGHT_OR_WRONG, Report
from beam_pipelines.report.measures import ENOUGH, Group
from beam_pipelines.report.read import Floats, Ints

ROWS = 1_000  # of a table
DOTS = 1_500
FEW, TOP = 15, 10  # rows that stand open; rows shown of a longer table
SMALL = 12  # small charts, at most
SMALL_POINTS = 60


def by_key(report: Report) -> str:
    """Return small charts, the scatter of all keys, and the table."""
    reference = None if report.reference is None else report.contenders[report.reference].loss
    found = (
        measures.groups(report.outcomes.key, report.outcomes, report.contenders[0].loss, reference, report.order)
        if report.rated
        else []
    )
    if not found:
        return ""
    one = (
        ""
        if len(found) > 1
        else f"<p>There is one key, {charts.name(report.keys[found[0].code])}: all of the above is about it.</p>"
    )
    parts = [_funnel(report, found), _small(report, found), _table(report, found)] if len(found) > 1 else [one]
    return f'<section id="keys"><h2>Key by key</h2>{"".join(parts)}</section>'


def by_segment(report: Report) -> str:
    """Return error and baseline of each segment side by side."""
    if not report.rated:
        return ""
    reference = None if report.reference is None else report.contenders[report.reference].loss
    found = measures.groups(
        report.outcomes.segment, report.outcomes, report.contenders[0].loss, reference, report.order
    )
    if not found:
        return (
            '<section id="segments"><h2>Segment by segment</h2><p class="note">No outcome has a segment: events may'
            " carry one in their field <code>segment</code>.</p></section>"
        )
    lost = int((report.outcomes.segment < 0).sum())
    note = f'<p class="note">{lost:,} outcomes have no segment.</p>' if lost else ""
    if len(found) > ROWS:
        note += f'<p class="note">The {ROWS:,} largest of {len(found):,} segments.</p>'
    columns, rows = _comparison(report, "segment", found[:ROWS], report.outcomes.segments)
    shown = charts.table(columns, rows, sortable=True)
    if len(found) > FEW:
        shown = (
            f'{charts.table(columns, rows[:TOP])}<details class="all"><summary>All segments as a'
            f" table</summary>{shown}</details>"
        )
    return f'<section id="segments"><h2>Segment by segment</h2>{shown}{note}</section>'


def _funnel(report: Report, found: Sequence[Group]) -> str:
    if report.base is None:
        return ""
    judged = [g for g in found if g.count >= ENOUGH]
    if len(judged) < 3:
        return ""
    won = sum(g.difference < 0.0 for g in judged)
    shown, note = judged, ""
    if len(judged) > DOTS:
        best, worst = measures.extremes(judged, 100)
        chosen = {g.code for g in [*judged[:300], *best, *worst]}
        rest = [g for g in judged if g.code not in chosen]
        step = math.ceil(len(rest) / (DOTS - len(chosen)))
        shown = [g for g in judged if g.code in chosen] + rest[::step]
        note = (
            f" {len(shown):,} of {len(judged):,} keys are drawn: the largest, best and worst, and every {step}th of"
            " the rest."
        )
    x = charts.log_axis(ENOUGH, max(g.count for g in judged), "outcomes of the key", lambda v: f"{v:,.0f}")
    gaps = sorted(g.difference for g in shown)
    unit = report.points
    scale = 100.0 if report.kind in RIGHT_OR_WRONG else 1.0
    y = charts.axis(
        min(gaps[0], 0.0) * scale,
        max(gaps[-1], 0.0) * scale,
        f"error less that of “{report.base.name}”{f' ({unit})' if unit else ''}",
        lambda v: f"{'+' if v > 0 else ''}{scales.number(v)}",
    )
    drawn = [
        Dot(
            math.log10(g.count),
            g.difference * scale,
            f"{report.keys[g.code][:40]}: {report.write(g.mean)}, rule {report.write(g.reference)}, {g.count:,}"
            " outcomes",
            0 if g.difference < 0.0 else 1,
        )
        for g in shown
    ]
    sides = '<span class="side up">worse than the rule</span>' if y.high > 0.0 else ""
    sides += '<span class="side down">better than the rule</span>' if y.low < 0.0 else ""
    return (
        f"<figure><figcaption><b>The models do better than “{text(report.base.name)}” for {won:,} of {len(judged):,}"
        f" keys</b> with {ENOUGH} outcomes or more. Each dot is a key.{note}</figcaption>"
        + charts.dots(
            x, y, drawn, zero=0.0, label="Difference to the rule by number of outcomes, one dot a key", notes=sides
        )
        + "</figure>"
    )


def _small(report: Report, found: Sequence[Group]) -> str:
    judged = [g for g in found if g.count >= ENOUGH]
    if not judged:
        return ""
    if len(judged) <= SMALL or report.base is None:
        parts = [(judged[:SMALL], "")]
    else:
        best, worst = measures.extremes(judged, 4)
        others = [g for g in judged if g not in best and g not in worst]
        parts = [
            (best, "Best against the rule"),
            (worst, "Worst against the rule"),
            (others[:4], "The largest of the rest"),
        ]
    rows = {code: part for code, part in _rows_of(report, [g.code for part, _ in parts for g in part])}
    curves = {g.code: _curves(report, rows[g.code]) for part, _ in parts for g in part}
    top = max(float(np.nanmax(values)) for lines in curves.values() for values in lines) or 1.0
    drawn = []
    for part, head in parts:
        cards = []
        for group in part:
            series = [Line(n, i, v) for i, (n, v) in enumerate(zip(("models", "rule"), curves[group.code]))]
            rule = f" <span>rule {text(report.write(group.reference))}</span>" if report.base else ""
            cards.append(
                f'<li><div class="small-head"><b>{charts.name(report.keys[group.code])}</b> '
                f"<small>{group.count:,}</small></div>{charts.spark(series, top)}"
                f'<div class="small-foot"><b>{text(report.write(group.mean))}</b>{rule}</div></li>'
            )
        drawn.append((f"<h3>{head}</h3>" if head else "") + f'<ul class="smalls">{"".join(cards)}</ul>')
    names = ["the models"] + ([report.base.name] if report.base else [])
    return (
        "<figure><figcaption><b>Error over a sliding eighth of the key's outcomes</b>, one scale for all: 0 to"
        f" {text(report.write(top))}, each from its first label to its"
        f" last.</figcaption>{legend(names)}{''.join(drawn)}</figure>"
    )


def _rows_of(report: Report, codes: Sequence[int]) -> list[tuple[int, Ints]]:
    keys = report.outcomes.key[report.order]
    return [(code, report.order[keys == code]) for code in codes]


def _curves(report: Report, rows: Ints) -> list[Floats]:
    contenders = [report.contenders[0]] + (
        [report.contenders[report.reference]] if report.reference is not None else []
    )
    window, at = max(len(rows) // 8, 20), measures.samples(len(rows), SMALL_POINTS)
    return [measures.curve(c.loss, rows, window, at, window // 2).sliding for c in contenders]


def _table(report: Report, found: Sequence[Group]) -> str:
    note = ""
    shown = list(found)
    if len(found) > ROWS:
        best, worst = measures.extremes(found, 100)
        chosen = {g.code for g in [*found[: ROWS - 200], *best, *worst]}
        shown = [g for g in found if g.code in chosen]
        rest = [g for g in found if g.code not in chosen]
        mean = sum(g.mean * g.count for g in rest) / sum(g.count for g in rest)
        note = (
            f'<p class="note">{len(shown):,} of {len(found):,} keys: the largest, and the 100 best and worst with'
            f" {ENOUGH} outcomes or more. The other {len(rest):,} have {sum(g.count for g in rest):,} outcomes with"
            f" an error of {text(report.write(mean))}.</p>"
        )
    columns, rows = _comparison(report, "key", shown, report.keys)
    sizes = {one.key: one for one in report.stored}
    columns += [
        Column("not labelled", why="orphans of this key"),
        Column("model", why="bytes of the newest snapshot's model"),
    ]
    for row, group in zip(rows, shown):
        lost, stored = report.orphans.keys.get(group.code, 0), sizes.get(group.code)
        row += [
            Cell(f"{lost:,}", lost),
            Cell("-") if stored is None else Cell(scales.size(stored.model), stored.model),
        ]
    return (
        f'<details class="all"{" open" if len(shown) <= FEW else ""}><summary>All keys as a table</summary>'
        f"{charts.table(columns, rows, sortable=True)}{note}</details>"
    )


def _comparison(
    report: Report, what: str, found: Sequence[Group], names: Sequence[str]
) -> tuple[list[Column], list[list[Cell]]]:
    top = max((g.mean for g in found), default=1.0) or 1.0
    columns = [
        Column(what, False),
        Column("outcomes"),
        Column(
            f"error ({report.unit})" if report.unit and report.kind not in RIGHT_OR_WRONG else "error",
            why=report.measure,
        ),
    ]
    if report.base is not None:
        top = max(top, max((g.reference for g in found), default=0.0))
        columns += [
            Column(report.base.name, why="error of the best simple rule over all outcomes"),
            Column(
                f"difference ({report.points})" if report.points else "difference",
                why="in colour where it is sure: zero lies outside of its 95 % interval",
            ),
        ]
    columns += [
        Column("first half", why="the models over the first half of the outcomes"),
        Column("second half"),
        Column("label after", why="median delay of the label"),
    ]
    limits = Axis(0.0, top, (), "", str)
    rows = []
    for group in found:
        mark = (
            ""
            if report.base is None
            else f'<i class="at" style="left:{limits.place(group.reference) / 10:.1f}%"></i>'
        )
        bar = (
            '<span class="barred"><i class="fill"'
            f' style="width:{limits.place(group.mean) / 10:.1f}%"></i>{mark}</span><span'
            f' class="value">{text(report.bare(group.mean))}</span>'
        )
        row = [Cell(charts.name(names[group.code])), Cell(f"{group.count:,}", group.count), Cell(bar, group.mean)]
        if report.base is not None:
            kind = standing(group.difference, group.margin)
            row += [
                Cell(text(report.bare(group.reference)), group.reference),
                Cell(f'<span class="{kind}">{text(report.gap(group.difference))}</span>', group.difference),
            ]
        row += [
            Cell(text(report.bare(group.early)), group.early),
            Cell(text(report.bare(group.late)) if group.late == group.late else "-", group.late),
            Cell(text(scales.duration(group.delay)) if group.delay == group.delay else "-", group.delay),
        ]
        rows.append(row)
    return columns, rows
