"""Record -> features: names and values checked, text and bools made numbers, the rest refused by name."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from pa_river.terms import Features, Name

# A sum of huge floats that meets a np.float32 overflows on the way to it, which only tells that the values are not
# plain. Where warnings are errors, `features` catches it.
warnings.filterwarnings("ignore", "overflow encountered in cast", RuntimeWarning, r"pa_river\.features")


def features(x: Mapping[Any, Any]) -> Features:
    """Return `x` itself where it is clean already, else a canonical copy.

    Clean: every name a str, every value a plain finite number. The two sums below find that out at the speed of C: a
    name that is no str fails the join; a value that is no number fails the sum or changes its type; NaN and inf stay in
    it. What they cannot vouch for goes through `canonical`.

    Raises
    ------
    ValueError
        Naming the feature, if a value is NaN, infinite, beyond float range or no number, a name is none of str, bytes,
        int or tuples of these, or two entries give the same feature.

    Examples
    --------
    >>> features({"a": 1.5, "colour": "red", "b": None, "c": True})
    {'a': 1.5, 'colour=red': 1.0, 'c': 1.0}
    >>> features({"a": float("nan")})
    Traceback (most recent call last):
    ...
    ValueError: feature 'a' must be a finite number, got nan

    """
    if type(x) is dict:
        try:
            "".join(x)
            total = sum(x.values(), 0.0)
        except (TypeError, OverflowError, RuntimeWarning):
            return canonical(x)
        if type(total) is float and total - total == 0.0:
            return x
    return canonical(x)


_FLOATS = {float, np.float64}


def canonical(x: Mapping[Any, Any]) -> dict[Name, float]:
    """The slow road of `features`: a fresh dict of plain floats, without absent values."""
    if not isinstance(x, Mapping):
        raise ValueError(f"features must be a mapping of names to numbers, got {type(x).__name__}")
    clean: dict[Name, float] = {}
    for raw, value in x.items():
        kind = type(raw)
        name = raw if kind is str or kind is int else name_of(raw)
        if value is None:
            continue
        if type(value) in _FLOATS and math.isfinite(value):  # nearly every value that comes here from numpy
            number = float(value)
        elif isinstance(value, str):
            name, number = _indicator(name, str(value)), 1.0
        else:
            number = _number(name, value)
        if name in clean:
            raise ValueError(f"feature {name!r} appears twice in one record")
        clean[name] = number
    return clean


def name_of(name: Any) -> Name:
    """Return a feature's name as it is stored; `ValueError` if it is none of str, bytes, int or tuples of these."""
    if type(name) is str or type(name) is int:
        return name
    if isinstance(name, (str, bytes)):
        return str(name) if isinstance(name, str) else bytes(name)
    if isinstance(name, numbers.Integral):  # bool and numpy integers: equal to an int, and stored as one
        return int(name)
    if isinstance(name, tuple):
        return tuple(name_of(part) for part in name)
    raise ValueError(f"a feature name must be a str, bytes, int or a tuple of these, got {name!r}")


def _indicator(name: Name, value: str) -> str:
    return f"{name}={value}" if isinstance(name, str) else f"{name!r}={value}"


def _number(name: Name, value: Any) -> float:
    if isinstance(value, np.generic) and not isinstance(value, float):  # np.float64 is a float
        value = value.item()
    try:
        if isinstance(value, (float, int)):  # nearly always; asking numbers.Number takes several times as long
            number = float(value)
            if math.isfinite(number):
                return number
        # Decimal is a Number but no Real: a number all the same, where a database driver filled the record.
        elif isinstance(value, numbers.Number) and not isinstance(value, complex):
            number = float(value)  # type: ignore[arg-type]
            if math.isfinite(number):
                return number
    except (OverflowError, ValueError):  # an int beyond float range; a signalling Decimal
        pass
    raise ValueError(f"feature {name!r} must be a finite number, got {short(value)}")


def short(value: object) -> str:
    """`repr(value)`, cut for an error message."""
    try:
        shown = repr(value)
    except ValueError:  # Python prints no int of more than 4,300 digits
        shown = f"a {type(value).__name__} too long to print"
    return shown if len(shown) <= 80 else shown[:77] + "..."
