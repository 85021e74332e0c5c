"""From losses to what the page shows: curves, comparisons with their uncertainty, groups, bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beam_pipelines.report.baselines import Contender
from beam_pipelines.report.read import Bools, Floats, Ints, Outcomes, Predictions

POINTS = 360  # samples of a curve: finer than a screen shows
BATCHES = 40
ENOUGH = 50  # outcomes of a group before it is called good or bad


@dataclass(frozen=True, slots=True)
class Curve:
    """Sliding and cumulative mean loss of a contender at chosen places; NaN where there is too little to say."""

    sliding: Floats
    cumulative: Floats


@dataclass(frozen=True, slots=True)
class Summary:
    """A contender over all outcomes, beside the model on the same ones."""

    name: str
    note: str
    count: int
    mean: float
    late: float  # over the last tenth of the outcomes
    balanced: float  # mean over the labels of the error on each; NaN where labels do not apply
    difference: float  # model - contender: below zero, the model is better
    margin: float  # half of a 95 % interval of `difference`
    wins: int  # groups of `ENOUGH` outcomes in which the model is better
    of: int


@dataclass(frozen=True, slots=True)
class Group:
    """The outcomes of one key or segment."""

    code: int
    count: int
    mean: float
    reference: float
    early: float  # the model over the first half of the group's outcomes
    late: float  # and over the second
    delay: float  # median, in seconds
    margin: float  # half of a 95 % interval of `difference`

    @property
    def difference(self) -> float:
        return self.mean - self.reference


def window_for(count: int) -> int:
    """Return the length of the sliding window: about a fiftieth of the outcomes, a round number in [20, 5000].

    Examples
    --------
    >>> [window_for(n) for n in (10, 300, 5_000, 327_346)]
    [20, 20, 100, 5000]

    """
    raw = min(max(count / 50.0, 20.0), 5000.0)
    power = 10 ** math.floor(math.log10(raw))
    return int(power * max(m for m in (1, 2, 5) if m * power <= raw))


def arrival(outcomes: Outcomes) -> Ints:
    """Return the rows in the order in which their labels were known; at equal times, that of the file."""
    return np.argsort(outcomes.known, kind="stable")


def curve(loss: Floats, order: Ints, window: int, rows: Ints, least: int) -> Curve:
    """Return a contender's curves at positions `rows` of `order`, from the `least`-th outcome on.

    Until the window is full, it is all there is. Outcomes without a loss are passed over.

    """
    ordered = loss[order]
    good = ~np.isnan(ordered)
    sums = np.concatenate([[0.0], np.cumsum(np.where(good, ordered, 0.0))])
    counts = np.concatenate([[0], np.cumsum(good)])
    end = rows + 1
    start = np.maximum(end - window, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        sliding = (sums[end] - sums[start]) / (counts[end] - counts[start])
        cumulative = sums[end] / counts[end]
    soon = end < min(least, len(order))
    sliding[soon] = cumulative[soon] = np.nan
    return Curve(sliding, cumulative)


def samples(count: int, points: int = POINTS) -> Ints:
    """Return at most `points` evenly spaced positions of `count`, the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, points)).astype(np.int64))


def summarise(contender: Contender, model: Floats, outcomes: Outcomes, order: Ints, labelled: bool) -> Summary:
    """Compare a contender with the model on the outcomes for which it has an answer."""
    good = ~np.isnan(contender.loss)
    count = int(good.sum())
    if not count:
        nothing = math.nan
        return Summary(contender.name, contender.note, 0, nothing, nothing, nothing, nothing, nothing, 0, 0)
    loss = contender.loss[good]
    paired = (model - contender.loss)[order]
    paired = paired[~np.isnan(paired)]
    recent = contender.loss[order][-max(1, len(order) // 10) :]
    recent = recent[~np.isnan(recent)]
    sizes = np.bincount(outcomes.key[good])
    gaps = np.bincount(outcomes.key[good], weights=(model - contender.loss)[good])
    return Summary(
        name=contender.name,
        note=contender.note,
        count=count,
        mean=float(loss.mean()),
        late=float(recent.mean()) if len(recent) else math.nan,
        balanced=balanced(loss, outcomes.y[good]) if labelled else math.nan,
        difference=float(paired.mean()),
        margin=margin(paired),
        wins=int(((sizes >= ENOUGH) & (gaps < 0.0)).sum()),
        of=int((sizes >= ENOUGH).sum()),
    )


def margin(values: Floats) -> float:
    """Return half of a 95 % interval of a mean of neighbours that resemble each other: by the means of batches.

    Errors come in waves (a storm delays a day of flights), so the usual standard error would be far too sure.

    """
    if len(values) < 2 * BATCHES:
        return math.inf
    means = np.array([part.mean() for part in np.array_split(values, BATCHES)])
    return 2.02 * float(means.std(ddof=1)) / math.sqrt(BATCHES)  # Student's t, 39 degrees of freedom


def balanced(loss: Floats, y: Ints) -> float:
    """Return the mean over the labels of the mean loss on each: 1/2 for a constant answer to a yes-no question."""
    sizes = np.bincount(y[y >= 0])
    sums = np.bincount(y[y >= 0], weights=loss[y >= 0])
    return float((sums[sizes > 0] / sizes[sizes > 0]).mean()) if sizes.any() else math.nan


def groups(codes: Ints, outcomes: Outcomes, model: Floats, reference: Floats | None, order: Ints) -> list[Group]:
    """Return one group a code (negative codes are no group), largest first; O(n log n)."""
    by_code = order[np.argsort(codes[order], kind="stable")]  # within a group in order of arrival
    by_code = by_code[codes[by_code] >= 0]
    if not len(by_code):
        return []
    found, starts = np.unique(codes[by_code], return_index=True)
    made = []
    for code, rows in zip(found.tolist(), np.split(by_code, starts[1:])):
        loss, half = model[rows], (len(rows) + 1) // 2
        base = math.nan if reference is None else float(reference[rows].mean())
        sure = math.inf if reference is None else margin(loss - reference[rows])
        late = float(loss[half:].mean()) if half < len(rows) else math.nan
        delays = outcomes.delay[rows]
        delays = delays[~np.isnan(delays)]
        delay = float(np.median(delays)) if len(delays) else math.nan
        made.append(Group(code, len(rows), float(loss.mean()), base, float(loss[:half].mean()), late, delay, sure))
    return sorted(made, key=lambda group: (-group.count, group.code))


def extremes(found: Sequence[Group], count: int) -> tuple[list[Group], list[Group]]:
    """Return the groups that do best and worst against the reference among those with `ENOUGH` outcomes."""
    judged = sorted(
        (g for g in found if g.count >= ENOUGH and g.difference == g.difference), key=lambda g: (g.difference, g.code)
    )
    half = min(count, len(judged) // 2)
    return judged[:half], judged[::-1][:half]


def joined(outcomes: Outcomes, predictions: Predictions, column: Floats) -> Floats:
    """Return a column of the predictions beside the outcomes, NaN where no prediction has their key, id and version.

    By hashes of 64 bits: among a million records two strangers agree with a probability of 3e-8.

    """
    if not len(predictions.identity):
        return np.full(len(outcomes), np.nan)
    order = np.argsort(predictions.identity, kind="stable")
    known = predictions.identity[order]
    at = np.minimum(np.searchsorted(known, outcomes.identity), len(known) - 1)
    return np.where(known[at] == outcomes.identity, column[order[at]], np.nan)


@dataclass(frozen=True, slots=True)
class Bin:
    """A tenth of the outcomes, by score: its range, its size, the mean of what really happened."""

    low: float
    high: float
    count: int
    score: float
    truth: float


def tenths(score: Floats, truth: Floats) -> list[Bin]:
    """Return ten bins of equal size by rising score (fewer where there are fewer rows)."""
    good = ~(np.isnan(score) | np.isnan(truth))
    score, truth = score[good], truth[good]
    order = np.argsort(score, kind="stable")
    parts = np.array_split(order, 10) if len(order) >= 10 else []
    return [
        Bin(float(score[p[0]]), float(score[p[-1]]), len(p), float(score[p].mean()), float(truth[p].mean()))
        for p in parts
    ]


def rank_quality(score: Floats, positive: Bools) -> float:
    """Return the area under the ROC curve: the chance that a positive scores above a negative; ties count half."""
    good = ~np.isnan(score)
    score, positive = score[good], positive[good]
    ones = int(positive.sum())
    if not 0 < ones < len(score):
        return math.nan
    values, inverse, sizes = np.unique(score, return_inverse=True, return_counts=True)
    ranks = np.cumsum(sizes) - (sizes - 1) / 2.0
    return float((ranks[inverse][positive].sum() - ones * (ones + 1) / 2.0) / ones / (len(score) - ones))
