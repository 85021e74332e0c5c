"""The nouns that every learner shares: features, a term of a direction, a violated constraint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

#: str, bytes, int, or a tuple of these (checked in `features.py`; a recursive alias would only burden callers).
Name: TypeAlias = "str | bytes | int | tuple[object, ...]"

#: A checked record: names of the allowed types, finite numbers. Zeros may remain: a store skips them.
Features: TypeAlias = Mapping[Name, float]


class Term(NamedTuple):
    """One signed input of a direction: `sign * phi`, in the prototype `slot`."""

    sign: float
    phi: Features
    slot: int = 0


class Violation(NamedTuple):
    """The constraint that an example breaks: by how much, how long its direction is, and along what it points.

    `norm` is the Euclidean length of the whole direction, the sum of `terms`, intercept included. Uniclass prediction
    points from the center to the record: its term is the record, its norm that of a unit vector.
    """

    loss: float
    norm: float
    terms: tuple[Term, ...]
