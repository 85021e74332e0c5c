"""One page about a run: `write_report` reads what the run left in its directory and writes `report.html` beside it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from beam_pipelines.report.baselines import counterpart
from beam_pipelines.report.gather import collect
from beam_pipelines.report.page import render
from beam_pipelines.report.read import ReportError, narrator

__all__ = ["ReportError", "counterpart", "write_report"]


def write_report(
    output_dir: Path,
    *,
    progress: bool = False,
    title: str | None = None,
    about: str = "",
    unit: str = "",
    facts: Mapping[str, str] | None = None,
    baseline_events: Iterable[Any] | None = None,
    baseline_model: Any | None = None,
) -> Path:
    """Write `report.html` into a run's directory and return its path.

    Parameters
    ----------
    output_dir
        Holds `predictions.jsonl`, `outcomes.jsonl`, `rejected.jsonl`, `orphans.jsonl` and `drift.jsonl`, empty or
        not, and perhaps `snapshots.db`.
    progress
        Say on stderr how far it is, if that is a terminal.
    title
        What the run is called on the page; if None the job of `fingerprint.json`, else the directory's name.
    about
        One sentence for a stranger: what is predicted, and for what.
    unit
        Of a regression's target, such as "minutes".
    facts
        What else a reader should know of the run (job, model, input), name to value; over those of `fingerprint.json`.
    baseline_events
        The run's `Event`s in the order in which they were handled. Outcomes hold no features, so only with these can a
        River model be driven over the same stream, one clone a key, with the same delays.
    baseline_model
        What to drive: a River model, never trained, such as `counterpart(model)`; if None River's own `PAClassifier()`
        or `PARegressor()`.

    Raises
    ------
    ReportError
        A `ValueError` that names the file, and the line, that is not as a finished run leaves it.

    Notes
    -----
    The page is one file that opens offline. No clock is read: equal files give an equal page. About 6 s and 250 MB for
    330,000 outcomes without `baseline_events`; columns of numbers are held, never the records.

    """
    report = collect(
        output_dir, narrator(progress), title=title, about=about, unit=unit, facts=facts, events=baseline_events,
        rival=baseline_model,
    )  # fmt: skip
    target, part = output_dir / "report.html", output_dir / "report.html.part"
    # A lone surrogate in a key has no UTF-8; it becomes a question mark here and stays what it is in the files.
    part.write_text(render(report), encoding="utf-8", errors="replace", newline="\n")
    os.replace(part, target)
    return target
