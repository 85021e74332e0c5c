"""The part of the page about how often the models are wrong: over time, and beside the baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from beam_pipelines.report import charts, measures, scales
from beam_pipelines.report.charts import Axis, Cell, Column, Line, text
from beam_pipelines.report.gather import RIGHT_OR_WRONG, RIVER, Report
from beam_pipelines.report.read import Kind

OWN = {Kind.BINARY: "PAClassifier", Kind.REGRESSION: "PARegressor"}


def over_time(report: Report) -> str:
    """Return the sliding-window and the cumulative error of all contenders."""
    count = len(report.outcomes)
    if not report.rated:
        return ""
    window = min(measures.window_for(count), count)
    rows = measures.samples(count)
    at = report.outcomes.known[report.order][rows]
    least = max(min(window, count // 10), 1)
    curves = [measures.curve(c.loss, report.order, window, rows, least) for c in report.contenders]
    x = charts.time_axis(float(at[0]), float(at[-1]))
    marks = [alarm["time"] for alarm in report.alarms if at[0] <= alarm["time"] <= at[-1]][:200]
    names = [c.name for c in report.contenders]
    sliding = [Line(n, i, c.sliding) for i, (n, c) in enumerate(zip(names, curves))]
    total = [Line(n, i, c.cumulative) for i, (n, c) in enumerate(zip(names, curves))]
    near, far = _error_axis(report, sliding), _error_axis(report, total)
    notes = ["Lower is better. Every prediction was made before its label was known."]
    if marks:
        notes.append("Thin upright lines are drift alarms.")
    if any(np.nanmax(line.values) > y.high for y, series in ((near, sliding), (far, total)) for line in series):
        notes.append("A line that leaves at the top goes on above; the readings say how far.")
    notes.append(f"Left to right: when a label arrived, {scales.day(at[0])} to {scales.day(at[-1])} (UTC).")
    above = charts.lines(x, near, at, sliding, marks=marks, label=f"{report.measure}, the last {window} outcomes")
    below = charts.lines(x, far, at, total, marks=marks, label=f"{report.measure}, all outcomes so far")
    return (
        f'<section id="time"><h2>Error over time</h2>{legend(names)}<figure><figcaption><b>The last {window:,}'
        f" outcomes</b>, at every moment: is it good now?</figcaption>{above}</figure><figure><figcaption><b>All"
        f" outcomes so far</b>: was it good altogether?</figcaption>{below}</figure><p"
        f' class="note">{" ".join(notes)}</p></section>'
    )


def _error_axis(report: Report, series: list[Line]) -> Axis:
    values = np.concatenate([line.values for line in series])
    values = values[~np.isnan(values)]
    high = float(values.max()) if len(values) else 1.0
    usual = 2.0 * float(np.quantile(values, 0.95)) if len(values) else 1.0
    high = min(high, usual)  # one that explodes must not press all others flat
    return replace(charts.axis(0.0, high or 1.0, report.measure, _plain(report)), write=report.bare)


def _plain(report: Report) -> Callable[[float], str]:
    return percent_tick if report.kind in RIGHT_OR_WRONG else scales.number


def percent_tick(share: float) -> str:
    return f"{100 * share:.3g} %"


def legend(names: list[str]) -> str:
    """Return the key to the lines of all charts of contenders."""
    items = "".join(
        f'<li><svg viewBox="0 0 32 8" aria-hidden="true"><path class="line s{i}" d="M0 4H32"/></svg>{text(n)}</li>'
        for i, n in enumerate(names)
    )
    return f'<ul class="legend">{items}</ul>'


def contest(report: Report) -> str:
    """Return the table of contenders."""
    if not report.rated or len(report.summaries) < 2:
        return _no_contest(report)
    labelled = report.kind in RIGHT_OR_WRONG
    columns = [
        Column("", False),
        Column(_with_unit(report, "error")),
        Column("last tenth", why="error over the last 10 % of the outcomes"),
    ]
    if labelled:
        columns.append(
            Column(
                "balanced",
                why="mean over the labels of the error on each: a constant answer to a yes-no question has 50 %",
            )
        )
    columns += [
        Column(
            f"models against it{f' ({report.points})' if report.points else ''}",
            why="error of the models less error of this rule, on the same outcomes",
        ),
        Column("keys won", why=f"keys with {measures.ENOUGH} outcomes or more where the models do better"),
        Column("outcomes"),
    ]
    rows = [_row(report, i, labelled) for i in range(len(report.summaries))]
    missing = ""
    if report.kind in OWN and not any(c.name.startswith(RIVER) for c in report.contenders):
        rows.append([Cell(f"{RIVER} {OWN[report.kind]}"), Cell("not run"), *(Cell("") for _ in columns[2:])])
        missing = " River's own learner needs the features, which outcomes do not hold."
    return (
        f'<section id="baselines"><h2>Against simple rules</h2>{charts.table(columns, rows)}<p class="note">The rules'
        " play by the terms of the models: one memory a key, and a label is seen only from the moment it had"
        f" arrived. {_agreement(report)} The interval is of 95 %, from the means of {measures.BATCHES} stretches of"
        f" time, since errors come in waves.{missing}</p></section>"
    )


def _row(report: Report, index: int, labelled: bool) -> list[Cell]:
    summary = report.summaries[index]
    head = f'<i class="key f{index}"></i>{text(summary.name)}'
    if summary.note:
        head += f" <small>({text(summary.note)})</small>"
    return [
        Cell(head if index else f"<b>{head}</b>"),
        Cell(text(report.bare(summary.mean))),
        Cell(text(report.bare(summary.late))),
        *([Cell(text(scales.percent(summary.balanced)))] if labelled else []),
        verdict_cell(report, index) if index else Cell(""),
        Cell(f"{summary.wins:,} of {summary.of:,}" if index else ""),
        Cell(f"{summary.count:,}"),
    ]


def _with_unit(report: Report, what: str) -> str:
    return f"{what} ({report.unit})" if report.unit and report.kind not in RIGHT_OR_WRONG else what


def _no_contest(report: Report) -> str:
    if report.kind is Kind.OTHER:
        return (
            '<section id="baselines"><h2>Against simple rules</h2><p class="note">None here: the loss of tags, of'
            " sets of labels or of mixed labels cannot be told for an answer that was never given.</p></section>"
        )
    return ""


def _agreement(report: Report) -> str:
    if report.agreeing != report.agreeing:
        return ""
    if report.agreeing == 1.0:
        return "Before every single prediction they had seen exactly as many labels of the key as the model had."
    return (
        f"Before {scales.percent(report.agreeing)} of the predictions they had seen exactly as many labels of the key"
        " as the model had; elsewhere the order of arrival, a reset or an expiry made a difference."
    )


def verdict_cell(report: Report, index: int) -> Cell:
    """Return the difference to a contender with its interval, coloured by what is sure."""
    summary = report.summaries[index]
    if not summary.count:
        return Cell("-")
    shown = report.gap(summary.difference)
    if summary.margin < float("inf"):
        shown += f" \u00b1 {report.gap(summary.margin, signed=False)}"
    return Cell(
        f'<span class="{standing(summary.difference, summary.margin)}">{text(shown)}</span>', summary.difference
    )


def standing(difference: float, margin: float) -> str:
    """Return "better", "worse", or "even" where the interval holds zero or is not known."""
    if not abs(difference) > margin:
        return "even"
    return "better" if difference < 0.0 else "worse"
