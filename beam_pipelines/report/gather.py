"""Everything the page shows, computed once from a directory: records, contenders, comparisons."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from beam_pipelines.report import baselines, measures, read, scales
from beam_pipelines.report.baselines import Contender
from beam_pipelines.report.measures import Summary
from beam_pipelines.report.read import Floats, Ints, Kind, Outcomes, Predictions, Progress, Stored, Tally

MODEL = "the models"
RIVER = "River's own"
RIGHT_OR_WRONG = (Kind.BINARY, Kind.MULTICLASS, Kind.COST)


@dataclass(frozen=True, slots=True)
class Report:
    """A run as the page tells it. `contenders[0]` is the model; `reference` the index of the best simple rule."""

    name: str
    about: str
    unit: str
    facts: Mapping[str, str]
    keys: list[str]
    outcomes: Outcomes  # those with a loss, but for a detector's
    unscored: int
    predictions: Predictions
    rejected: Tally
    orphans: Tally
    drift: Tally
    alarms: list[dict[str, Any]]
    stored: list[Stored]
    contenders: list[Contender]
    summaries: list[Summary]
    order: Ints
    reference: int | None
    score: Floats
    agreeing: float  # share of questions before which rule and model had seen equally many labels

    @property
    def kind(self) -> Kind:
        return self.outcomes.kind

    @property
    def rated(self) -> bool:
        """Whether there is an error to speak of."""
        return self.kind not in (Kind.EMPTY, Kind.DETECTOR)

    @property
    def base(self) -> Summary | None:
        return None if self.reference is None else self.summaries[self.reference]

    def write(self, value: float) -> str:
        """Return an error in words: a percentage, or a number with its unit."""
        return scales.percent(value) if self.kind in RIGHT_OR_WRONG else f"{self.bare(value)} {self.unit}".strip()

    def bare(self, value: float) -> str:
        """Return an error as a cell of a table shows it: its unit, if not the per cent, stands in the head."""
        if self.kind in RIGHT_OR_WRONG or value != value:
            return scales.percent(value)
        return f"{value:,.{self._digits}f}"

    def gap(self, value: float, signed: bool = True) -> str:
        """Return a difference of two errors, in points or in the unit of the target (not named)."""
        if value != value:
            return "-"
        shown = f"{100 * value:+.1f}" if self.kind in RIGHT_OR_WRONG else f"{value:+,.{self._digits + 1}f}"
        if not shown.strip("+-0.,"):
            return "0"
        return shown.replace("-", "\u2212") if signed else shown.lstrip("+-")

    @property
    def points(self) -> str:
        """The unit of `gap`."""
        return "points" if self.kind in RIGHT_OR_WRONG else self.unit

    @property
    def _digits(self) -> int:
        """Decimals that give the mean error three digits, so that errors stand in one column."""
        mean = self.summaries[0].mean
        return min(max(2 - math.floor(math.log10(mean)), 0), 6) if mean > 0.0 and math.isfinite(mean) else 2

    @property
    def measure(self) -> str:
        """The name of the error."""
        return {
            Kind.REGRESSION: f"mean absolute error{f' ({self.unit})' if self.unit else ''}",
            Kind.OTHER: "mean loss",
        }.get(self.kind, "share of wrong answers")


def collect(
    directory: Path,
    progress: Progress,
    *,
    title: str | None,
    about: str,
    unit: str,
    facts: Mapping[str, str] | None,
    events: Iterable[Any] | None,
    rival: Any | None,
) -> Report:
    """Read a directory and compute what the page needs; `ReportError` where it is no finished run."""
    read.check(directory)
    facts = fingerprint(directory) | dict(facts or {})
    keys = read.Names()
    outcomes = read.read_outcomes(directory / "outcomes.jsonl", keys, progress)
    predictions = read.read_predictions(directory / "predictions.jsonl", keys, progress)
    outcomes = timed(outcomes, predictions)
    everything = len(outcomes)
    if outcomes.kind is not Kind.DETECTOR:
        outcomes = where(outcomes, ~np.isnan(outcomes.loss))
    contenders, agreeing = compare(outcomes, events, rival, progress)
    order = measures.arrival(outcomes)
    labelled = outcomes.kind in RIGHT_OR_WRONG
    summaries = [measures.summarise(c, contenders[0].loss, outcomes, order, labelled) for c in contenders]
    simple = [i for i, c in enumerate(contenders) if i and not c.name.startswith(RIVER)]
    drift, alarms = read.read_drift(directory / "drift.jsonl", keys, progress)
    rejected = read.read_rejected(directory / "rejected.jsonl", keys, progress)
    orphans = read.read_orphans(directory / "orphans.jsonl", keys, progress)
    stored = read.read_snapshots(directory / "snapshots.db", keys)
    progress("")
    return Report(
        name=title or facts.get("job") or directory.resolve().name or "run",
        about=about,
        unit=unit,
        facts=facts,
        keys=[str(key) for key in keys.all()],
        outcomes=outcomes,
        unscored=everything - len(outcomes),
        predictions=predictions,
        rejected=rejected,
        orphans=orphans,
        drift=drift,
        alarms=alarms,
        stored=stored,
        contenders=contenders,
        summaries=summaries,
        order=order,
        reference=min(simple, key=lambda i: summaries[i].mean) if simple else None,
        score=measures.joined(outcomes, predictions, predictions.score),
        agreeing=agreeing,
    )


def fingerprint(directory: Path) -> dict[str, str]:
    """Return what the run wrote down about itself, if it did."""
    try:
        found = json.loads((directory / "fingerprint.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the page does without
        return {}
    return {str(n): str(v) for n, v in found.items() if v is not None} if isinstance(found, dict) else {}


def compare(
    outcomes: Outcomes, events: Iterable[Any] | None, rival: Any | None, progress: Progress
) -> tuple[list[Contender], float]:
    """Return the model and its baselines, the model first, and how far both saw the same labels."""
    kind = outcomes.kind
    # A cost cannot be told for an answer that was never given: there, all are judged by right or wrong.
    loss = (outcomes.y != outcomes.p).astype(np.float64) if kind is Kind.COST else outcomes.loss
    contenders = [Contender(MODEL, loss)]
    if kind in (Kind.EMPTY, Kind.DETECTOR, Kind.OTHER):
        return contenders, float("nan")
    simple, seen = baselines.simple(outcomes, progress)
    contenders += simple
    rival = baselines.own_river(kind) if rival is None else rival
    if events is not None and rival is not None:
        name = f"{RIVER} {type(getattr(rival, '_last_step', rival)).__name__}"
        contenders.append(baselines.driven(outcomes, events, rival, name, progress))
    return contenders, float((seen == outcomes.version).mean())


def timed(outcomes: Outcomes, predictions: Predictions) -> Outcomes:
    """Return the outcomes with the exact times of their questions; label time less delay may be a rounding off."""
    if not len(outcomes) or not len(predictions.identity):
        return outcomes
    exact = measures.joined(outcomes, predictions, predictions.time)
    asked = np.where(np.isnan(exact), outcomes.asked, exact)
    return replace(outcomes, asked=asked, known=np.maximum(outcomes.known, asked))


def where(outcomes: Outcomes, mask: read.Bools) -> Outcomes:
    """Return the outcomes in which `mask` is true."""
    if mask.all():
        return outcomes
    columns = ((f.name, getattr(outcomes, f.name)) for f in fields(outcomes))
    kept: dict[str, Any] = {name: column[mask] for name, column in columns if isinstance(column, np.ndarray)}
    return replace(outcomes, **kept)
