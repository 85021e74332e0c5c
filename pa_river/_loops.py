"""The reference loops over features: score, norm and step of a flat store. Plain Python, one pass each."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from pa_river.terms import Features, Name

# Inside this range a sum of squares has neither overflowed nor lost a part to underflow; outside, it is scaled.
_LEAST_SQUARE, _LARGEST_SQUARE = 1e-280, 1e280
_LEAST_NORM, _LARGEST_NORM = 1e-140, 1e140

# In `glance` a weight that meets a np.float32 may overflow, which only tells that the record is not plain.
warnings.filterwarnings("ignore", "(overflow|invalid value) encountered in", RuntimeWarning, r"pa_river\._loops")


def glance(weights: dict[Name, float], x: dict[Any, Any], intercept: float) -> float | None:
    """Return `dot` + intercept of a record that nobody has checked; None where that does not prove it clean.

    It does where all names are known and the score is a plain finite number: a value that is none stays in the sum
    whatever its weight, as NaN, as inf or by its type, if it can be multiplied at all.
    """
    total = 0.0
    try:
        for name, value in x.items():
            total += weights[name] * value
        score = total + intercept
    except Exception:  # a name not known, or whatever a value that is no number raises
        return None
    return score if type(score) is float and score - score == 0.0 else None


def dot(weights: dict[Name, float], phi: Features) -> float:
    """Return sum of weight * value over the features of `phi`, in their order; an unseen name weighs 0."""
    get, total = weights.get, 0.0
    for name, value in phi.items():
        total += get(name, 0.0) * value
    return total


def norm(phi: Features, extra: float = 0.0) -> float:
    """Return the Euclidean length of `phi` with `extra` added to its sum of squares (1 for an intercept).

    Scaled only where the plain sum leaves [1e-280, 1e280], so that 1e200 and 1e-200 have a length too.
    """
    values, square = phi.values(), extra
    try:
        for value in values:
            square += value * value
    except OverflowError:  # the square of a large int
        square = math.inf
    if _LEAST_SQUARE <= square <= _LARGEST_SQUARE:
        return math.sqrt(square)
    largest = max(map(abs, values), default=0.0)
    if extra:
        largest = max(largest, 1.0)
    if largest == 0.0:
        return 0.0
    largest = float(largest)
    return largest * math.sqrt(sum([(value / largest) ** 2 for value in values]) + extra / largest / largest)


def moved(weights: dict[Name, float], phi: Features, length: float, norm: float) -> dict[Name, float]:
    """Return weight + length * value / norm for every feature that is not 0; `ValueError` if one would not be finite.

    `length / norm` is formed first where both are ordinary numbers; at extreme norms it would leave the floats, and
    the division comes first.
    """
    get = weights.get
    if _LEAST_NORM <= norm <= _LARGEST_NORM:
        tau = length / norm
        new = {name: get(name, 0.0) + tau * value for name, value in phi.items() if value}
    else:
        new = {name: get(name, 0.0) + length * (value / norm) for name, value in phi.items() if value}
    total = sum(new.values())
    if total - total != 0.0:
        for name, weight in new.items():
            if not math.isfinite(weight):
                raise ValueError(f"the weight of feature {name!r} would not be finite; nothing was learned")
    return new


def blended(parts: Sequence[tuple[float, Mapping[Name, float]]]) -> dict[Name, float]:
    """Return the sum of share * weights, names in order of first sight; `ValueError` if one would not be finite."""
    names = dict.fromkeys(name for _, weights in parts for name in weights)
    return {name: finite(math.fsum(share * weights.get(name, 0.0) for share, weights in parts)) for name in names}


def finite(score: float) -> float:
    """Return `score`; `ValueError` if it is not finite."""
    if score - score != 0.0:
        raise ValueError("the score would not be finite; nothing was learned")
    return score
