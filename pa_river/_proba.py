"""Scores -> numbers that look like probabilities: finite, summing to 1, in the order of the scores, not calibrated."""

from __future__ import annotations

import math


def logistic(score: float) -> dict[bool, float]:
    """Return the logistic of a score for True, and the rest for False."""
    # exp of a negative number only: never overflows
    small = math.exp(-abs(score))
    likely, unlikely = 1.0 / (1.0 + small), small / (1.0 + small)
    return {False: unlikely, True: likely} if score > 0.0 else {False: likely, True: unlikely}


def softmax(scores: list[float]) -> list[float]:
    """Return exp(score) / sum of exp(scores); [] for no scores."""
    if not scores:
        return []
    best = max(scores)
    # exp of what is not positive: never overflows, and the best one's is 1, so that the sum divides
    parts = [math.exp(score - best) for score in scores]
    total = sum(parts)
    return [part / total for part in parts]
