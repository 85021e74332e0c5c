"""The page around the figures: a headline for whoever has ten seconds, then the rest."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources

import numpy as np

from beam_pipelines.report import errors, flow, groups, manner, scales
from beam_pipelines.report.charts import name, text
from beam_pipelines.report.gather import RIVER, Report
from beam_pipelines.report.read import Kind


def render(report: Report) -> str:
    """Return the whole page as one HTML text."""
    parts = {
        "time": errors.over_time(report),
        "baselines": errors.contest(report),
        "how": manner.in_which_way(report),
        "keys": groups.by_key(report),
        "segments": groups.by_segment(report),
        "labels": flow.labels(report),
        "rejected": flow.rejected(report),
        "drift": flow.drift(report),
        "sizes": flow.sizes(report),
    }
    titles = {
        "time": "over time",
        "baselines": "simple rules",
        "how": "in which way",
        "keys": "keys",
        "segments": "segments",
        "labels": "labels",
        "rejected": "rejected",
        "drift": "drift",
        "sizes": "models",
    }
    links = "".join(f'<a href="#{part}">{titles[part]}</a>' for part, shown in parts.items() if shown)
    body = f'{head(report)}<nav aria-label="Parts of the page">{links}</nav>{"".join(parts.values())}{foot(report)}'
    page = resources.files("beam_pipelines.report").joinpath("template.html").read_text(encoding="utf-8")
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    # The policy lets this one script run and nothing be fetched: a second lock behind the escaping of names.
    filled = {"title": text(f"{report.name}: report"), "digest": digest, "body": body}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], page)


def head(report: Report) -> str:
    """Return the headline, the verdict and the tiles."""
    facts = "".join(f"<dt>{text(key)}</dt><dd>{text(value, 800)}</dd>" for key, value in report.facts.items())
    ran = f'<details class="facts"><summary>The run</summary><dl>{facts}</dl></details>' if facts else ""
    about = f" {text(report.about, 800)}" if report.about else ""
    return (
        f'<header><p class="eyebrow">{name(report.name)}{about}'
        f" <span>{_span(report)}</span></p><h1>{headline(report)}</h1>"
        f"{verdict(report)}{lead(report)}{ran}</header>{tiles(report)}"
    )


def lead(report: Report) -> str:
    """Return what ran, for whoever has never heard of it."""
    says = {
        Kind.BINARY: "says yes or no",
        Kind.REGRESSION: "predicts a number",
        Kind.DETECTOR: "says how unusual it is",
        Kind.MULTICLASS: "picks a label",
        Kind.COST: "picks a label",
    }.get(report.kind, "answers")
    learns = (
        "and learns from it at once"
        if report.kind is Kind.DETECTOR
        else "and learns when the true label arrives, which may be later"
    )
    return f'<p class="lead">Each key has a model of its own, which {says} for every event as it comes, {learns}.</p>'


def _span(report: Report) -> str:
    times = report.predictions.time if len(report.predictions.time) else report.outcomes.known
    if not len(times):
        return ""
    first, last = scales.day(float(times.min())), scales.day(float(times.max()))
    return text(first if first == last else f"{first} to {last}")


def headline(report: Report) -> str:
    """Return the one sentence that a stranger takes home."""
    count = len(report.outcomes)
    asked = len(report.predictions.key)
    if report.kind is Kind.EMPTY:
        return f"{asked:,} predictions, and no label has come yet" if asked else "Nothing was predicted"
    if report.kind is Kind.DETECTOR:
        score = report.predictions.score[~np.isnan(report.predictions.score)]
        outside = scales.percent(float((score > 1.0).mean())) if len(score) else "none"
        return f"{outside} of {len(score):,} events lie outside of what is usual for their key"
    mean = text(report.write(report.summaries[0].mean))
    if report.kind is Kind.REGRESSION:
        return f"Off by <em>{mean}</em> on average, over {count:,} predictions"
    if report.kind is Kind.OTHER:
        return f"A mean loss of <em>{mean}</em> over {count:,} predictions"
    return f"Wrong on <em>{mean}</em> of {count:,} predictions"


def verdict(report: Report) -> str:
    """Return the comparison with the best simple rule, in words a sign and a colour repeat."""
    base = report.base
    if base is None or not base.count:
        return ""
    standing = errors.standing(base.difference, base.margin)
    points = f"{report.gap(base.difference, signed=False)} {report.points}".strip()
    word = {
        "better": f"{points} better than a simple rule",
        "worse": f"{points} worse than a simple rule",
        "even": "No clear difference to a simple rule",
    }
    sign = {"better": "\u25b2", "worse": "\u25bc", "even": "\u25c6"}
    rule = {
        "majority so far": "Answering with the label the key had most often so far",
        "last label": "Repeating the key's last label",
        "mean so far": "Answering with the mean of the key's labels so far",
        "median so far": "Answering with the median of the key's labels so far",
    }[base.name]
    does = (
        f"is off by {report.write(base.mean)}"
        if report.kind is Kind.REGRESSION
        else f"is wrong on {report.write(base.mean)}"
    )
    lines = [f"{text(rule)} {text(does)}, on the same predictions."]
    for summary in report.summaries:
        if summary.name.startswith(RIVER) and summary.count:
            lines.append(
                f"{text(summary.name)}, given the same events,"
                f" {text(does.rsplit(' ', 2)[0] if report.kind is not Kind.REGRESSION else 'is off by')}"
                f" {text(report.write(summary.mean))}."
            )
    model = report.summaries[0]
    if model.balanced == model.balanced and base.balanced == base.balanced:
        lines.append(
            f"Weighing all labels equally, the models are wrong on {scales.percent(model.balanced)}, "
            f"the rule on {scales.percent(base.balanced)}."
        )
    if report.kind is Kind.COST:
        lines.append(
            f"What the models' answers cost: {scales.number(float(report.outcomes.loss.mean()))} on average."
        )
    return (
        f'<p class="verdict"><span class="pill {standing}">{sign[standing]} {text(word[standing])}</span>'
        f' {" ".join(lines)}</p>'
    )


def tiles(report: Report) -> str:
    """Return the few counts that say how much ran and what was lost."""
    outcomes = report.outcomes
    asked, answered = len(report.predictions.key), len(outcomes) + report.unscored
    keys = len(np.union1d(report.predictions.key, outcomes.key))
    found = [(f"{keys:,}", "model" if keys == 1 else "models, one a key"), (f"{asked:,}", "predictions")]
    if report.kind is not Kind.DETECTOR or answered:
        share = scales.percent(answered / asked) if asked else "-"
        found.append((share, f"of them got their label ({answered:,})"))
    delay = outcomes.delay[~np.isnan(outcomes.delay)]
    if len(delay):
        found.append((scales.duration(float(np.median(delay))), "until a label arrives, half of the time"))
    found += [(f"{report.orphans.total:,}", "orphans"), (f"{report.rejected.total:,}", "rejected")]
    if report.drift.total:
        found.append((f"{report.drift.total:,}", "drift records"))
    if report.stored:
        found.append((scales.size(float(sum(one.model for one in report.stored))), "all models together"))
    shown = "".join(f"<li><b>{text(value)}</b><span>{text(what)}</span></li>" for value, what in found)
    return f'<ul class="tiles">{shown}</ul>'


def foot(report: Report) -> str:
    """Return what the words on the page mean."""
    lost = (
        f"<p>{report.unscored:,} outcomes have no loss and are left out of every error.</p>"
        if report.unscored
        else ""
    )
    return (
        '<footer id="words"><h2>Words</h2><dl><dt>prediction</dt><dd>what the model of the key said when the'
        " features came; it is kept, and judged when its label comes</dd><dt>outcome</dt><dd>a prediction that met"
        f" its label; the model learns from it afterwards</dd><dt>error</dt><dd>{text(report.measure)}</dd><dt>so"
        " far</dt><dd>from the labels of the key that had arrived when the prediction was made; nothing"
        f" later</dd><dt>points</dt><dd>difference of two percentages</dd></dl>{lost}<p>Computed from the files"
        " beside this page. It holds all it needs: nothing is fetched.</p></footer>"
    )
