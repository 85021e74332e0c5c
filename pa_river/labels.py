"""Labels and targets: the one place that normalises y, for learners, metrics and the operator alike."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from river import base

from pa_river.features import short

_SIGNS: dict[float, bool] = {1: True, 0: False, -1: False}  # Python's equality: True, 1.0 and +1 are one key


def binary(y: Any) -> bool:
    """Return True for True, 1, 1.0; False for False, 0, 0.0, -1, -1.0; numpy's count as Python's.

    Raises
    ------
    ValueError
        For anything else; the message names `PAMulticlass`, which takes any label.

    Examples
    --------
    >>> [binary(y) for y in (True, 1, 1.0, False, 0, -1)]
    [True, True, True, False, False, False]

    """
    if y is True or y is False:
        return y
    value = y.item() if isinstance(y, np.generic) else y
    if isinstance(value, (int, float)):
        sign = _SIGNS.get(value)
        if sign is not None:
            return sign
    raise ValueError(
        f"a binary label must be True, 1, False, 0 or -1, got {short(y)}; for other labels use PAMulticlass"
    )


def target(y: Any) -> float:
    """Return the target of a regression as a float; `ValueError` unless it is a finite number.

    Examples
    --------
    >>> target(3)
    3.0

    """
    if type(y) is float and y - y == 0.0:
        return y
    value = y.item() if isinstance(y, np.generic) else y
    try:
        if isinstance(value, numbers.Number) and not isinstance(value, (bool, complex)):
            number = float(value)  # type: ignore[arg-type]
            if math.isfinite(number):
                return number
    except (OverflowError, ValueError):
        pass
    raise ValueError(f"a target must be a finite number, got {short(y)}")


def label(y: Any) -> Hashable:
    """Return a label as Python spells it (numpy scalars become Python's); `ValueError` for None, NaN or the unhashable.

    Examples
    --------
    >>> label("spam"), label(np.int64(3))
    ('spam', 3)

    """
    value = y.item() if isinstance(y, np.generic) else y
    if isinstance(value, tuple):
        value = tuple(label(part) for part in value)
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"a label must be hashable, got {short(y)}") from None
    if value is None or (type(value) is not str and _unlike_itself(value)):
        raise ValueError(f"a label must not be None or NaN, got {short(y)}")
    return value  # type: ignore[no-any-return]


def _unlike_itself(value: Any) -> bool:
    """Whether `value` is NaN, of whatever type; pandas' NA, which answers no comparison, counts."""
    try:
        return bool(value != value)
    except Exception:  # what cannot be compared with itself cannot be found again
        return True


def label_set(y: Any) -> dict[Hashable, bool]:
    """Return the relevant and irrelevant labels of a multilabel example: {label: bool}, normalised on both sides.

    Examples
    --------
    >>> label_set({"sport": 1, "politics": False})
    {'sport': True, 'politics': False}

    """
    if not isinstance(y, dict):
        raise ValueError(f"multilabel y must be a dict of label to bool, got {short(y)}")
    clean: dict[Hashable, bool] = {}
    for name, flag in y.items():
        if (name := label(name)) in clean:
            raise ValueError(f"label {name!r} appears twice in one example")
        clean[name] = binary(flag)
    return clean


def tags(y: Any) -> list[Hashable]:
    """Return the tags of a sequence as a list of labels.

    Examples
    --------
    >>> tags(("DET", "NOUN"))
    ['DET', 'NOUN']

    """
    if not isinstance(y, (list, tuple)):
        raise ValueError(f"the tags of a sequence must be a list, got {short(y)}")
    return [label(tag) for tag in y]


def of(model: Any) -> Callable[[Any], Any]:
    """Return the function that normalises y for `model`: one of ours, a pipeline (its last step), any River model.

    Examples
    --------
    >>> from river import linear_model
    >>> of(linear_model.LinearRegression()) is target
    True

    """
    last = getattr(model, "_last_step", model)
    own = getattr(last, "_normalise_y", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    if isinstance(last, base.MultiLabelClassifier):
        return label_set
    if isinstance(last, base.Classifier):
        return label
    if isinstance(last, base.Regressor):
        return target
    return label
