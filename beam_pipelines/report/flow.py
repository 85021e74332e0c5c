"""The part of the page about records: labels and their delay, orphans, rejected input, drift, stored models."""

from __future__ import annotations

import json
import math

import numpy as np

from beam_pipelines.report import charts, scales
from beam_pipelines.report.charts import Cell, Column, Dot, name, text
from beam_pipelines.report.manner import histogram
from beam_pipelines.report.gather import Report
from beam_pipelines.report.read import Tally

ORPHANS = {
    "unlabelled": "a prediction whose label never came in time",
    "no_features": "a label whose features never came",
    "late": "a label that came after its prediction had been given up",
    "corrected": "a second, different label for an id; not learned",
}
REASONS = 40
ALARMS = 100


def labels(report: Report) -> str:
    """Return how long labels took, and what became of those that found no partner."""
    return (
        '<section id="labels"><h2>Labels: when they come, and whether</h2><div class="pair">'
        f"<figure>{_delay(report)}</figure><figure>{_orphans(report)}</figure></div></section>"
    )


def _delay(report: Report) -> str:
    delay = report.outcomes.delay
    delay = delay[~np.isnan(delay)]
    if not len(delay):
        return '<figcaption><b>No label arrived</b></figcaption><p class="note">So there is no delay to show.</p>'
    if not delay.any():
        return (
            "<figcaption><b>Labels came with their features</b></figcaption>"
            f'<p class="note">All {len(delay):,} outcomes have a delay of zero.</p>'
        )
    low, middle, high, most = (float(v) for v in np.quantile(delay, [0.005, 0.5, 0.99, 1.0]))
    unit, word = scales.duration_unit(max(abs(low), abs(high)))
    x = charts.axis(min(low, 0.0) / unit, high / unit, f"delay of the label in {word}", scales.number, 8)
    early = int((delay < 0.0).sum())
    said = f" {early:,} labels came before their features." if early else ""
    drawn = histogram(
        x,
        delay / unit,
        48,
        lambda a, b: f"{scales.number(a)} to {scales.number(b)} {word}",
        [(middle / unit, f"median {scales.duration(middle)}")],
        "Distribution of the delay of labels",
    )
    if delay.min() == most:
        return f"<figcaption><b>Every label took {text(scales.duration(most))}</b></figcaption>"
    return (
        f"<figcaption><b>Half of the labels arrive within {text(scales.duration(middle))}</b>, 99 % within "
        f"{text(scales.duration(high))}; the longest took {text(scales.duration(most))}.{said}</figcaption>{drawn}"
    )


def _orphans(report: Report) -> str:
    if not report.orphans.total:
        return (
            '<figcaption><b>No orphans</b></figcaption><p class="note">No prediction was given up, '
            "and no label lacked its features.</p>"
        )
    counts = sorted(report.orphans.groups.items(), key=lambda item: (-item[1], item[0]))
    rows = [
        [
            Cell(f"<b>{text(kind)}</b><br><small>{text(ORPHANS.get(kind, ''))}</small>"),
            Cell(f"{count:,}"),
            Cell(f"<small>{text(report.orphans.examples[kind,])}</small>"),
        ]
        for (kind,), count in counts
    ]
    most = sorted(report.orphans.keys.items(), key=lambda item: (-item[1], item[0]))[:5]
    keys = ", ".join(f"{name(report.keys[code])} ({count:,})" for code, count in most)
    return (
        f"<figcaption><b>{report.orphans.total:,} orphans</b>: halves of examples without the other half</figcaption>"
        + charts.table([Column("kind", False), Column("records"), Column("the first", False)], rows)
        + f'<p class="note">Most: {keys}.</p>'
    )


def rejected(report: Report) -> str:
    """Return rejected records by stage and reason."""
    tally = report.rejected
    if not tally.total:
        return '<section id="rejected"><h2>Rejected</h2><p class="note">Nothing was rejected.</p></section>'
    counts = sorted(tally.groups.items(), key=lambda item: (-item[1], item[0]))
    rows = [
        [
            Cell(text(stage)),
            Cell(f"{count:,}", count),
            Cell(text(reason, 240)),
            Cell(_example(tally, (stage, reason))),
        ]
        for (stage, reason), count in counts[:REASONS]
    ]
    rest = sum(count for _, count in counts[REASONS:])
    note = f'<p class="note">{rest:,} more for {len(counts) - REASONS:,} rarer reasons.</p>' if rest else ""
    return (
        f'<section id="rejected"><h2>Rejected: {tally.total:,} {"record" if tally.total == 1 else "records"}</h2>'
        '<p class="note">Input that could not be used; it '
        "moved no model, and the run went on. Names and numbers in a reason are left out to count like with like.</p>"
        + charts.table(
            [Column("stage", False), Column("records"), Column("reason", False), Column("the first", False)],
            rows,
            sortable=True,
        )
        + note
        + "</section>"
    )


def _example(tally: Tally, group: tuple[str, ...]) -> str:
    reason, _, payload = tally.examples[group].partition("\n")
    return f'<small>{text(reason, 240)}</small><br><code class="payload">{text(payload, 240)}</code>'


def drift(report: Report) -> str:
    """Return alarms and control answers."""
    if not report.drift.total:
        return (
            '<section id="drift"><h2>Drift</h2><p class="note">No alarm: no detector ran, or none saw reason'
            " to.</p></section>"
        )
    counts = sorted(report.drift.groups.items(), key=lambda item: (-item[1], item[0]))
    summary = "; ".join(
        f"{text(detector)}, action {text(action)}: {count:,}" for (detector, action), count in counts[:12]
    )
    rows = [
        [
            Cell(text(scales.when(alarm["time"])), alarm["time"]),
            Cell(name(alarm["key"])),
            Cell(text(alarm["detector"] or "control event")),
            Cell(text(alarm["action"])),
            Cell(text(_evidence(alarm["evidence"]))),
            Cell(text(alarm["version"])),
        ]
        for alarm in report.alarms[:ALARMS]
    ]
    note = f'<p class="note">The first {ALARMS} of them.</p>' if report.drift.total > ALARMS else ""
    return (
        f'<section id="drift"><h2>Drift: {report.drift.total:,} records</h2><p>{summary}.</p>'
        + charts.table(
            [
                Column("time (UTC)", False),
                Column("key", False),
                Column("detector", False),
                Column("action", False),
                Column("evidence", False),
                Column("version"),
            ],
            rows,
            sortable=True,
        )
        + note
        + "</section>"
    )


def _evidence(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def sizes(report: Report) -> str:
    """Return the sizes of the newest stored models."""
    if not report.stored:
        return (
            '<section id="sizes"><h2>Stored models</h2><p class="note">No snapshots here: <code>snapshots.db</code>'
            " is absent or empty.</p></section>"
        )
    models = np.array([one.model for one in report.stored])
    cells = np.array([one.cell for one in report.stored])
    largest = report.stored[int(models.argmax())]
    summary = (
        f"<p><b>{len(models):,} {'model' if len(models) == 1 else 'models'}, {scales.size(float(models.sum()))} in"
        f" all</b>; median {scales.size(float(np.median(models)))}, largest {scales.size(float(largest.model))}"
        f" ({name(report.keys[largest.key])}). With all that waits and is remembered beside them, the cells take"
        f" {scales.size(float(cells.sum()))}.</p>"
    )
    return f'<section id="sizes"><h2>Stored models</h2>{summary}{_growth(report)}</section>'


def _growth(report: Report) -> str:
    shown = [one for one in report.stored if one.version > 0 and one.model > 0]
    if len(shown) < 3:
        return ""
    step = math.ceil(len(shown) / 1_500)
    shown = sorted(shown, key=lambda one: (-one.model, one.key))[::step]
    x = charts.log_axis(
        min(one.version for one in shown),
        max(one.version for one in shown),
        "updates of the model",
        lambda v: f"{v:,.0f}",
    )
    y = charts.axis(0.0, max(one.model for one in shown) / 1e3, "model in kB", scales.number)
    drawn = [
        Dot(
            math.log10(one.version),
            one.model / 1e3,
            f"{report.keys[one.key][:40]}: {scales.size(one.model)}, {one.version:,} updates",
        )
        for one in shown
    ]
    return (
        "<figure><figcaption><b>Do models grow without end?</b> Each dot is a key: a level cloud says"
        " no.</figcaption>"
        + charts.dots(x, y, drawn, label="Size of each model by its number of updates")
        + "</figure>"
    )
