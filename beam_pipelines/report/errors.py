"""The part of the page about being wrong: over time, beside the baselines, and in which way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from beam_pipelines.report import charts, measures, scales
from beam_pipelines.report.charts import Axis, Bar, Cell, Column, Dot, Line, text
from beam_pipelines.report.gather import RIGHT_OR_WRONG, Report
from beam_pipelines.report.read import Floats, Kind

MATRIX = 12  # labels a confusion matrix shows


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
    flags = " Thin upright lines are drift alarms." if marks else ""
    if x.title == "" and at[-1] > at[0]:
        flags += (
            f" Left to right: the time at which a label arrived, {scales.day(at[0])} to {scales.day(at[-1])} (UTC)."
        )
    return "".join(
        (
            '<section id="time"><h2>Error over time</h2>',
            legend(names),
            f"<figure><figcaption><b>The last {window:,} outcomes</b>, at every moment: is it good now?</figcaption>",
            charts.lines(
                x,
                _error_axis(report, sliding),
                at,
                sliding,
                marks=marks,
                label=f"{report.measure} over a sliding window of {window} outcomes, by time",
            ),
            "</figure>",
            "<figure><figcaption><b>All outcomes so far</b>: was it good altogether?</figcaption>",
            charts.lines(
                x, _error_axis(report, total), at, total, marks=marks, label=f"Cumulative {report.measure}, by time"
            ),
            "</figure>",
            (
                '<p class="note">Lower is better. Every prediction was made before its label was'
                f" known.{flags}</p></section>"
            ),
        )
    )


def _error_axis(report: Report, series: list[Line]) -> Axis:
    values = np.concatenate([line.values for line in series])
    values = values[~np.isnan(values)]
    # The first few answers of a cumulative curve swing wildly; the axis is for the rest of it.
    high = float(np.quantile(values, 0.985)) if len(values) else 1.0
    return charts.axis(0.0, high or 1.0, report.measure, _plain(report))


def _plain(report: Report) -> Callable[[float], str]:
    return _percent if report.kind in RIGHT_OR_WRONG else scales.number


def _percent(share: float) -> str:
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
    rows = []
    for i, summary in enumerate(report.summaries):
        head = f'<i class="key f{i}"></i>{text(summary.name)}'
        if summary.note:
            head += f" <small>({text(summary.note)})</small>"
        cells = [
            Cell(f"<b>{head}</b>" if not i else head),
            Cell(text(report.bare(summary.mean))),
            Cell(text(report.bare(summary.late))),
        ]
        if labelled:
            cells.append(Cell(text(scales.percent(summary.balanced))))
        cells += [
            Cell("") if not i else verdict_cell(report, i),
            Cell("" if not i else f"{summary.wins:,} of {summary.of:,}"),
            Cell(f"{summary.count:,}"),
        ]
        rows.append(cells)
    if not any(c.name.startswith("River's") for c in report.contenders) and report.kind in (
        Kind.BINARY,
        Kind.REGRESSION,
    ):
        rows.append(
            [
                Cell('<span class="absent">River\'s own PA</span>'),
                *[Cell("") for _ in columns[1:-1]],
                Cell('<span class="absent">not run: outcomes hold no features</span>'),
            ]
        )
    return "".join(
        (
            '<section id="baselines"><h2>Against simple rules</h2>',
            charts.table(columns, rows),
            (
                '<p class="note">The rules play by the terms of the models: one memory a key, and a label is seen'
                " only from the moment it had arrived. "
            ),
            _agreement(report),
            (
                " The interval is of 95 %, from the means of 40 stretches of time, since errors come in"
                " waves.</p></section>"
            ),
        )
    )


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


def in_which_way(report: Report) -> str:
    """Return the confusion matrix, or the spread of a regression's errors, and what the score is worth."""
    if report.kind in RIGHT_OR_WRONG:
        parts = [_matrix(report)] + ([_score(report)] if report.kind is Kind.BINARY else [])
    elif report.kind is Kind.REGRESSION:
        parts = [_spread(report), _calibration(report)]
    elif report.kind is Kind.DETECTOR:
        parts = [_scores(report)]
    else:
        parts = []
    shown = "".join(f"<figure>{part}</figure>" for part in parts if part)
    head = "How the scores lie" if report.kind is Kind.DETECTOR else "Wrong in which way"
    return f'<section id="how"><h2>{head}</h2><div class="pair">{shown}</div></section>' if shown else ""


def _matrix(report: Report) -> str:
    outcomes, labels = report.outcomes, report.outcomes.labels
    if not labels:
        return ""
    frequency = np.bincount(outcomes.y[outcomes.y >= 0], minlength=len(labels))
    if report.kind is Kind.BINARY:
        shown = sorted(range(len(labels)), key=lambda code: bool(labels[code]))
    else:
        shown = sorted(range(len(labels)), key=lambda code: (-frequency[code], code))[:MATRIX]
    place = np.full(len(labels) + 1, len(shown))  # what is not shown, and -1, count as the rest
    place[shown] = range(len(shown))
    side = len(shown) + 1
    counts = np.bincount(place[outcomes.y] * side + place[outcomes.p], minlength=side * side).reshape(side, side)
    names = [charts.name(labels[code]) for code in shown]
    if counts[-1].any() or counts[:, -1].any():
        names.append("<i>other or none</i>")
    used = len(names)
    rows = []
    for i in range(used):
        total = max(int(counts[i].sum()), 1)
        row = [Cell(f"<b>{names[i]}</b>")]
        for j in range(used):
            share = float(counts[i, j]) / total
            kind = "hit" if i == j else "miss"
            row.append(
                Cell(
                    f'<span class="{kind}" style="--a:{share:.2f}">{scales.percent(share)}'
                    f"<small>{int(counts[i, j]):,}</small></span>"
                )
            )
        rows.append(row)
    drawn = charts.table([Column("really \\ predicted", False), *(Column("", ready=label) for label in names)], rows)
    extra = f"; the {MATRIX} most frequent labels of {len(labels):,}" if len(labels) > MATRIX else ""
    return (
        f"<figcaption><b>What was predicted, for each true label</b>{extra}. Rows add up to 100 %.</figcaption>"
        f'<div class="matrix">{drawn}</div>'
    )


def _score(report: Report) -> str:
    truth = report.outcomes.holds(True).astype(np.float64)
    bins = measures.tenths(report.score, truth)
    if not bins:
        return ""
    area = measures.rank_quality(report.score, truth > 0.5)
    x = Axis(
        0.0,
        10.0,
        [scales.Tick(i + 0.5, str(i + 1)) for i in range(10)],
        "tenth of the outcomes, by rising score",
        str,
    )
    y = charts.axis(0.0, max(b.truth for b in bins) or 1.0, "share that was True", _percent)
    found = [
        Bar(
            i,
            i + 1,
            b.truth,
            f"{scales.percent(b.truth)} True among {b.count:,} with a score from "
            f"{scales.number(b.low)} to {scales.number(b.high)}",
        )
        for i, b in enumerate(bins)
    ]
    overall = float(truth.mean())
    return (
        "<figcaption><b>Does a higher score mean True more often?</b> It should climb from left to right. A positive"
        f" has the higher score in {scales.percent(area)} of pairs (50 % is chance).</figcaption>"
        + charts.bars(
            x, y, found, label="Share of True labels by tenth of the score", steps=[(0.0, overall), (10.0, overall)]
        )
        + '<p class="note">The line is the share over all outcomes.</p>'
    )


def _spread(report: Report) -> str:
    error = report.outcomes.guess - report.outcomes.number
    low, high = (float(v) for v in np.quantile(error, [0.01, 0.99]))
    quartiles = np.quantile(error, [0.25, 0.5, 0.75])
    if not high > low:
        return ""
    x = charts.axis(low, high, f"prediction less truth{f' ({report.unit})' if report.unit else ''}", scales.number, 8)
    drawn = histogram(
        x,
        error,
        40,
        lambda a, b: f"off by {scales.number(a)} to {scales.number(b)}",
        [(0.0, "exact")],
        "Distribution of the signed error",
    )
    left, right = (report.gap(float(q)) for q in quartiles[[0, 2]])
    unit = f" {report.unit}" if report.unit else ""
    return (
        f"<figcaption><b>How far off, and to which side?</b> The middle half of all predictions lies {text(left)} to"
        f" {text(right)}{text(unit)} beside the truth (median"
        f' {text(report.gap(float(quartiles[1])))}).</figcaption>{drawn}<p class="note">The outer 1 % on either side'
        " is not drawn.</p>"
    )


def _calibration(report: Report) -> str:
    bins = measures.tenths(report.outcomes.guess, report.outcomes.number)
    if not bins:
        return ""
    low = min(min(b.score, b.truth) for b in bins)
    high = max(max(b.score, b.truth) for b in bins)
    unit = f" ({report.unit})" if report.unit else ""
    x = charts.axis(low, high, f"mean prediction{unit}", scales.number)
    y = charts.axis(low, high, f"mean of what came{unit}", scales.number)
    found = [
        Dot(
            b.score,
            b.truth,
            f"predicted {report.write(b.score)} on average, came {report.write(b.truth)}; {b.count:,} outcomes",
        )
        for b in bins
    ]
    return (
        "<figcaption><b>Does what is predicted come, on average?</b> Each dot is a tenth of the outcomes by"
        " prediction; on the line it would be right.</figcaption>"
        + charts.dots(
            x, y, found, label="Mean truth by tenth of the prediction", line=[(x.low, x.low), (x.high, x.high)]
        )
    )


def _scores(report: Report) -> str:
    score = report.predictions.score[~np.isnan(report.predictions.score)]
    if not len(score):
        return ""
    high = float(np.quantile(score, 0.99))
    x = charts.axis(0.0 if score.min() >= 0.0 else float(score.min()), high, "anomaly score", scales.number, 8)
    truth = report.outcomes.holds(True)
    area = measures.rank_quality(report.score, truth)
    said = f" Labelled anomalies score above the rest in {scales.percent(area)} of pairs." if area == area else ""
    return (
        f"<figcaption><b>All {len(score):,} scores</b>; above 1 is outside."
        f" {scales.percent(float((score > 1.0).mean()))} are.{said}</figcaption>"
        + histogram(
            x,
            score,
            40,
            lambda a, b: f"score {scales.number(a)} to {scales.number(b)}",
            [(1.0, "edge")],
            "Distribution of the anomaly score",
        )
        + '<p class="note">The highest 1 % is not drawn.</p>'
    )


def histogram(
    x: Axis,
    values: Floats,
    count: int,
    says: Callable[[float, float], str],
    marks: list[tuple[float, str]],
    label: str,
) -> str:
    """Return a histogram over the range of an axis; what lies outside it is left out."""
    sizes, edges = np.histogram(values, bins=count, range=(x.low, x.high))
    share = sizes / max(len(values), 1)
    y = charts.axis(0.0, float(share.max()) or 1.0, "share", _percent, 4)
    found = [
        Bar(float(a), float(b), float(s), f"{says(float(a), float(b))}: {n:,} ({scales.percent(float(s))})")
        for a, b, s, n in zip(edges, edges[1:], share, sizes.tolist())
        if n
    ]
    return charts.bars(x, y, found, label=label, marks=[m for m in marks if x.low <= m[0] <= x.high])
