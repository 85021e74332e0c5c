"""Checks of parameters and example weights, and the one place that words their errors."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any, overload

from pa_river.features import short


def is_number(value: object) -> bool:
    """Whether `value` is a real number and no bool: what a parameter may be."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _float(value: Any) -> float:
    """`value` as a float: NaN if it is no number, inf if it is an int beyond float range."""
    if not is_number(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def require_positive(owner: str, name: str, value: Any) -> float:
    """`value` as a float; `ValueError` unless it is a finite number > 0."""
    number = _float(value)
    if not 0.0 < number < math.inf:
        raise ValueError(f"{owner}({name}=...) must be a finite number > 0, got {short(value)}")
    return number


def require_non_negative(owner: str, name: str, value: Any) -> float:
    """`value` as a float; `ValueError` unless it is a finite number >= 0."""
    number = _float(value)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{owner}({name}=...) must be a finite number >= 0, got {short(value)}")
    return number


def require_count(owner: str, name: str, value: Any, least: int = 1) -> int:
    """`value` as an int; `ValueError` unless it is a whole number >= `least`."""
    if not (isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least):
        raise ValueError(f"{owner}({name}=...) must be a whole number >= {least}, got {short(value)}")
    return int(value)


def require_bool(owner: str, name: str, value: Any) -> bool:
    """`value`; `ValueError` unless it is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{owner}({name}=...) must be True or False, got {short(value)}")
    return value


def require_choice(owner: str, name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value`; `ValueError` unless it is one of `allowed`."""
    if not (isinstance(value, str) and value in allowed):
        raise ValueError(f"{owner}({name}=...) must be one of {', '.join(map(repr, allowed))}, got {short(value)}")
    return value


def require_instance(owner: str, name: str, value: Any, kind: type, example: str) -> None:
    """`ValueError` unless `value` is a `kind` or None; `example` shows what is meant."""
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"{owner}({name}=...) must be {example}, or None, got {short(value)}")


def example_weight(w: Any) -> float:
    """An example's weight as a float; `ValueError` unless it is a finite number >= 0."""
    if type(w) is float and 0.0 <= w < math.inf:  # the common case, without the cost of an ABC check
        return w
    number = _float(w)
    if not 0.0 <= number < math.inf:
        raise ValueError(f"the example weight w must be a finite number >= 0, got {short(w)}")
    return number


class _Checked:
    """A constructor parameter that is checked whenever it is set: when built, and by `mutate` later."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, instance: object, value: Any) -> None:
        instance.__dict__[self._name] = self._check(type(instance).__name__, self._name, value)

    if TYPE_CHECKING:  # without a __get__ of its own, the value is read from the instance at no cost
        @overload
        def __get__(self, instance: None, owner: type) -> _Checked: ...

        @overload
        def __get__(self, instance: object, owner: type) -> float: ...

        def __get__(self, instance: object | None, owner: type) -> float | _Checked: ...

    def _check(self, owner: str, name: str, value: Any) -> float:
        raise TypeError("use Positive or NonNegative")  # pragma: no cover


class Positive(_Checked):
    """A finite parameter > 0."""

    def _check(self, owner: str, name: str, value: Any) -> float:
        return require_positive(owner, name, value)


class NonNegative(_Checked):
    """A finite parameter >= 0."""

    def _check(self, owner: str, name: str, value: Any) -> float:
        return require_non_negative(owner, name, value)
