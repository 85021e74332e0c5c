"""What simple rules would have answered: each sees a label only from the moment it was known, per key, like the model.

A rule is told the labels of the outcomes, no others. At equal times a late label comes before a question, as in
River's `simulate_qa`; of a label that came with its own question (or before it), the question is first, in the order
of the file.
"""

from __future__ import annotations

import functools
import heapq
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from river import linear_model

from beam_pipelines.report.read import Floats, Ints, Kind, Outcomes, Progress
from pa_river import binary, labels, regression, steps
from pa_river.features import features

_MODES = {steps.PA: 0, steps.PA1: 1, steps.PA2: 2}
UNKNOWN = -2  # an answer no label equals


@dataclass(frozen=True, slots=True)
class Contender:
    """Losses on the outcomes, row by row; NaN where there is no answer to judge."""

    name: str
    loss: Floats
    note: str = ""


class Rule(Protocol):
    """A baseline: what it answers for a key, and what a label teaches it."""

    def answer(self, key: int) -> float: ...

    def learn(self, key: int, y: float) -> None: ...


class LastLabel:
    """The label of this key that arrived last."""

    def __init__(self, untrained: float):
        self._untrained = untrained
        self._last: dict[int, float] = {}

    def answer(self, key: int) -> float:
        return self._last.get(key, self._untrained)

    def learn(self, key: int, y: float) -> None:
        self._last[key] = y


class MajoritySoFar:
    """The most frequent label of this key; a tie stays with the one that led before."""

    def __init__(self, untrained: float):
        self._untrained = untrained
        self._counts: dict[tuple[int, float], int] = {}
        self._leader: dict[int, float] = {}

    def answer(self, key: int) -> float:
        return self._leader.get(key, self._untrained)

    def learn(self, key: int, y: float) -> None:
        count = self._counts[key, y] = self._counts.get((key, y), 0) + 1
        if key not in self._leader or count > self._counts[key, self._leader[key]]:
            self._leader[key] = y


class MeanSoFar:
    """The mean of this key's labels."""

    def __init__(self, untrained: float):
        self._untrained = untrained
        self._sums: dict[int, tuple[int, float]] = {}

    def answer(self, key: int) -> float:
        count, mean = self._sums.get(key, (1, self._untrained))
        return mean

    def learn(self, key: int, y: float) -> None:
        count, mean = self._sums.get(key, (0, 0.0))
        self._sums[key] = count + 1, mean + (y - mean) / (count + 1)


class MedianSoFar:
    """The median of this key's labels (the lower of two): the constant with the least absolute error so far."""

    def __init__(self, untrained: float):
        self._untrained = untrained
        self._halves: dict[int, tuple[list[float], list[float]]] = {}

    def answer(self, key: int) -> float:
        halves = self._halves.get(key)
        return -halves[0][0] if halves else self._untrained

    def learn(self, key: int, y: float) -> None:
        low, high = self._halves.setdefault(key, ([], []))  # heaps: negated lower half, upper half
        if low and y > -low[0]:
            heapq.heappush(high, y)
        else:
            heapq.heappush(low, -y)
        if len(high) > len(low):
            heapq.heappush(low, -heapq.heappop(high))
        elif len(low) > len(high) + 1:
            heapq.heappush(high, -heapq.heappop(low))


def simple(outcomes: Outcomes, progress: Progress) -> tuple[list[Contender], Ints]:
    """Return the simple rules' losses, and how many labels of its key each question could have seen."""
    regression = outcomes.kind is Kind.REGRESSION
    rules: dict[str, Rule]
    if regression:
        y = outcomes.number
        rules = {"median so far": MedianSoFar(0.0), "mean so far": MeanSoFar(0.0), "last label": LastLabel(0.0)}
    elif outcomes.kind in (Kind.BINARY, Kind.MULTICLASS, Kind.COST):
        y = outcomes.y.astype(np.float64)
        # Untrained, a rule says what our learners say: False, or no label at all.
        none = outcomes.labels.index(False) if outcomes.kind is Kind.BINARY and False in outcomes.labels else UNKNOWN
        rules = {"majority so far": MajoritySoFar(none), "last label": LastLabel(none)}
    else:
        return [], np.zeros(len(outcomes), np.int64)
    answers, seen = replay(outcomes, y, list(rules.values()), progress)
    losses = np.abs(answers - y) if regression else (answers != y).astype(np.float64)
    return [Contender(name, loss) for name, loss in zip(rules, losses)], seen


def replay(outcomes: Outcomes, y: Floats, rules: list[Rule], progress: Progress) -> tuple[Floats, Ints]:
    """Ask and teach the rules in order of time; return their answers (a row a rule) and the labels seen before each."""
    count = len(outcomes)
    answers, seen = np.empty((len(rules), count)), np.empty(count, np.int64)
    known: dict[int, int] = {}
    keys, targets = outcomes.key.tolist(), y.tolist()
    columns: list[list[float]] = [[0.0] * count for _ in rules]
    bound = list(zip(rules, columns))
    for done, moment in enumerate(timeline(outcomes.asked, outcomes.known).tolist()):
        if moment < count:
            key = keys[moment]
            seen[moment] = known.get(key, 0)
            for rule, column in bound:
                column[moment] = rule.answer(key)
        else:
            key, target = keys[moment - count], targets[moment - count]
            known[key] = known.get(key, 0) + 1
            for rule in rules:
                rule.learn(key, target)
        if not done % 50_000:
            progress(f"baselines: {done // 2:,} of {count:,} outcomes")
    for row, column in enumerate(columns):
        answers[row] = column
    return answers, seen


def timeline(asked: Floats, known: Floats) -> Ints:
    """Return the order of all questions (i) and labels (i + n) of n outcomes."""
    count = len(asked)
    rows = np.arange(count)
    late = known > asked
    # At one time: late labels, then questions whose labels are late, then question and label of each that came as one.
    rank = np.concatenate([np.where(late, 1, 2), np.where(late, 0, 2)])
    side = np.repeat([0, 1], count)
    return np.lexsort((side, np.concatenate([rows, rows]), rank, np.concatenate([asked, known])))


def own_river(kind: Kind) -> Any | None:
    """Return River's own Passive-Aggressive learner for this kind of outcome, if it has one."""
    if kind is Kind.BINARY:
        return linear_model.PAClassifier()
    return linear_model.PARegressor() if kind is Kind.REGRESSION else None


def counterpart(model: Any) -> Any | None:
    """Return River's own learner with the settings of ours, behind the same transformers; None where there is none.

    Examples
    --------
    >>> import pa_river
    >>> counterpart(pa_river.PARegressor(pa_river.PA2(C=0.5), eps=0.2))
    PARegressor (
      C=0.5
      mode=2
      eps=0.2
      learn_intercept=True
    )

    """
    last = getattr(model, "_last_step", model)
    if not isinstance(last, (binary.PAClassifier, regression.PARegressor)):
        return None
    rule = last.rule if last.rule is not None else steps.PA1()
    mode = next((mode for kind, mode in _MODES.items() if type(rule) is kind), None)
    if mode is None:
        return None
    same = {"C": getattr(rule, "C", 1.0), "mode": mode, "learn_intercept": last.learn_intercept}
    own: Any
    if isinstance(last, regression.PARegressor):
        own = linear_model.PARegressor(eps=last.eps, **same)
    else:
        own = linear_model.PAClassifier(**same)
    if last is model:
        return own
    before = list(model.clone().steps.values())[:-1]
    return functools.reduce(operator.or_, [*before, own])


def driven(outcomes: Outcomes, events: Iterable[Any], model: Any, name: str, progress: Progress) -> Contender:
    """Drive one clone of a River model a key over the run's own events, and return its losses on the outcomes.

    Parameters
    ----------
    events
        The events of the run in the order in which they were handled: features ask, the label with the same id
        teaches what was kept with the question, as in the cell. What the cell refuses or has answered before is
        passed over. Weights are too: River's learners take none.
    model
        A prototype, never trained. It is given numbers only: texts became indicator features.

    """
    regression = outcomes.kind is Kind.REGRESSION
    normal: Callable[[Any], Any] = labels.target if regression else labels.binary
    if outcomes.kind in (Kind.MULTICLASS, Kind.COST):
        normal = labels.label
    models: dict[str, Any] = {}
    asked: dict[tuple[str, Any], tuple[Any, Any]] = {}
    early: dict[tuple[str, Any], Any] = {}
    found: dict[int, float] = {}
    failed = 0
    for count, event in enumerate(events):
        if not count % 20_000:
            progress(f"{name}: {count:,} events")
        if getattr(event, "op", None) is not None or not hasattr(event, "x"):
            continue  # a control event teaches nothing, a rejected record has no features
        ident = (event.key, event.time if event.id is None else event.id)
        if hash(ident) in found:
            continue  # delivered twice
        if (own := models.get(event.key)) is None:
            own = models[event.key] = model.clone()
        try:
            if event.x is not None and ident not in asked:
                x = features(event.x)
                asked[ident] = x, own.predict_one(x)
            y = early.pop(ident, None) if event.y is None else normal(event.y)
            if y is None:
                continue
            if ident not in asked:
                early[ident] = y
                continue
            x, answer = asked.pop(ident)
            found[hash(ident)] = abs(float(answer) - y) if regression else float(answer != y)
            own.learn_one(x, y)
        except (
            TypeError,
            ValueError,
            ArithmeticError,
        ):  # a bad record, or the model overflows: neither ends a report
            failed += 1
    missing = float("nan")
    loss = np.array([found.get(example, missing) for example in outcomes.example.tolist()])
    loss[~np.isfinite(loss)] = missing
    return Contender(name, loss, f"{failed:,} events it could not take" if failed else "")
