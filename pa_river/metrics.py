"""Multilabel ranking metrics that River lacks. They take scores: `metric.update(y, model.decision_one(x))`."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

from river import metrics

from pa_river import labels


class RankingMetric(metrics.base.MeanMetric, metrics.multioutput.base.MultiOutputClassificationMetric):
    """A mean over examples of how well scores rank the relevant labels before the irrelevant ones.

    y_true: label -> bool; a label it leaves out is irrelevant. y_pred: label -> score, probability or bool, or
    label -> {True: probability}; a label it leaves out ranks below all others. Equal scores count against the ranking,
    whatever the order of the labels. An example on which nothing can be ranked wrong, with no relevant or no irrelevant
    label, counts as ranked right.

    `river.evaluate.progressive_val_score` gives a metric what a multilabel model's `predict_one` says, bools, most of
    which tie: the figure is then not that of the model's ranking. Call `update` with its scores.
    """

    @property
    def requires_labels(self) -> bool:
        return False

    @property
    def bigger_is_better(self) -> bool:
        return False

    def _eval(self, y_true: Any, y_pred: Any) -> float:
        flags = labels.label_set(y_true)
        scores = {label: -math.inf for label in flags} | {label: _score(value) for label, value in y_pred.items()}
        relevant = [score for label, score in scores.items() if flags.get(label, False)]
        irrelevant = [score for label, score in scores.items() if not flags.get(label, False)]
        return self._ranked(relevant, irrelevant) if relevant and irrelevant else self._right

    #: what an example counts that is ranked right
    _right = 0.0

    @abc.abstractmethod
    def _ranked(self, relevant: list[float], irrelevant: list[float]) -> float:
        """Return the figure of one example from the scores of its labels, neither side empty."""


class RankingLoss(RankingMetric):
    """Ranking loss: the share of pairs of a relevant and an irrelevant label that are not ranked in that order.

    Examples
    --------
    >>> metric = RankingLoss()
    >>> metric.update({"a": True, "b": False, "c": False}, {"a": 0.5, "b": 0.9, "c": 0.1})
    >>> metric
    RankingLoss: 50.00%

    """

    def _ranked(self, relevant: list[float], irrelevant: list[float]) -> float:
        wrong = sum(good <= bad for good in relevant for bad in irrelevant)
        return wrong / (len(relevant) * len(irrelevant))


class OneError(RankingMetric):
    """One-error: the share of examples whose best label is not a relevant one.

    Examples
    --------
    >>> metric = OneError()
    >>> metric.update({"a": True, "b": False}, {"a": 0.5, "b": 0.9})
    >>> metric.update({"a": True, "b": False}, {"a": 0.5, "b": 0.1})
    >>> metric
    OneError: 50.00%

    """

    def _ranked(self, relevant: list[float], irrelevant: list[float]) -> float:
        return float(max(relevant) <= max(irrelevant))


class AveragePrecision(RankingMetric):
    """Label ranking average precision: over the relevant labels, the mean share of relevant ones down to each.

    Examples
    --------
    >>> metric = AveragePrecision()
    >>> metric.update({"a": True, "b": False, "c": True}, {"a": 0.9, "b": 0.5, "c": 0.1})  # (1 + 2 / 3) / 2
    >>> round(metric.get(), 6)
    0.833333

    """

    _right = 1.0

    @property
    def bigger_is_better(self) -> bool:
        return True

    def _ranked(self, relevant: list[float], irrelevant: list[float]) -> float:
        precisions = []
        for score in relevant:
            found = sum(other >= score for other in relevant)
            precisions.append(found / (found + sum(other >= score for other in irrelevant)))
        return sum(precisions) / len(precisions)


def _score(value: Any) -> float:
    score = float(value.get(True, 0.0) if isinstance(value, Mapping) else value)
    if math.isnan(score):  # before no other score and behind none, it would count as ranked right
        raise ValueError("a score must not be NaN")
    return score
