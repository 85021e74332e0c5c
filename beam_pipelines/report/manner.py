"""The part of the page about how the models are wrong: labels mixed up, how far off, what a score is worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from beam_pipelines.report import charts, measures, scales
from beam_pipelines.report.charts import Axis, Bar, Cell, Column, Dot, text
from beam_pipelines.report.errors import percent_tick
from beam_pipelines.report.gather import RIGHT_OR_WRONG, Report
from beam_pipelines.report.read import Floats, Kind

MATRIX = 12  # labels a confusion matrix shows


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
    rest = "<i>other or none</i>"
    across = [*names, rest] if counts[:, -1].any() else names
    rows = []
    for i, down in enumerate([*names, rest] if counts[-1].any() else names):
        total = max(int(counts[i].sum()), 1)
        row = [Cell(f"<b>{down}</b>")]
        for j in range(len(across)):
            share = float(counts[i, j]) / total
            kind = "hit" if i == j else "miss"
            row.append(
                Cell(
                    f'<span class="{kind}" style="--a:{share:.2f}">{scales.percent(share)}'
                    f"<small>{int(counts[i, j]):,}</small></span>"
                )
            )
        rows.append(row)
    drawn = charts.table([Column("really \\ predicted", False), *(Column("", ready=label) for label in across)], rows)
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
    y = charts.axis(0.0, max(b.truth for b in bins) or 1.0, "share that was True", percent_tick)
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
    y = charts.axis(0.0, float(share.max()) or 1.0, "share", percent_tick, 4)
    found = [
        Bar(float(a), float(b), float(s), f"{says(float(a), float(b))}: {n:,} ({scales.percent(float(s))})")
        for a, b, s, n in zip(edges, edges[1:], share, sizes.tolist())
        if n
    ]
    return charts.bars(x, y, found, label=label, marks=[m for m in marks if x.low <= m[0] <= x.high])
