"""Text of the command line -> a model or a detector, by parsing and never by evaluating."""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

from river import base

import pa_river

#: Where River's public estimators and their parts live, the likely ones first: they are imported only when asked for.
#: Not `datasets`, `evaluate`, `stream` (nothing to configure a model with) and `compat` (wrappers of other packages).
_RIVER = (
    "preprocessing", "compose", "linear_model", "optim", "drift", "multiclass", "naive_bayes", "tree", "ensemble",
    "forest", "feature_extraction", "feature_selection", "anomaly", "dummy", "facto", "imblearn", "multioutput",
    "neighbors", "rules", "stats", "metrics", "proba", "misc", "model_selection", "cluster", "covariance", "sketch",
    "active", "bandit", "reco", "time_series",
)  # fmt: skip

_LONGEST = 10_000  # characters: deeper than Python's own parser goes is not a model


def parse_model(text: str) -> Any:
    """Return the estimator that `text` spells.

    Calls, `|`, `+`, literals and keyword arguments are all there is; names resolve in pa_river first, then among
    River's public estimators. Nothing is evaluated: the text is parsed, and only the classes found are called.

    Raises
    ------
    ValueError
        In one line: what is not understood, a name that is unknown, an argument that the class refuses.

    Examples
    --------
    >>> parse_model("StandardScaler() | PAClassifier(PA1(C=0.1), learn_intercept=False)")["PAClassifier"].rule
    PA1 (
      C=0.1
    )
    >>> parse_model("__import__('os')")
    Traceback (most recent call last):
    ...
    ValueError: '__import__' is neither a name of pa_river nor a public estimator of River

    """
    model = _parse(text)
    if inspect.isclass(model) or not isinstance(model, base.Estimator):
        raise ValueError(f"{text!r} is not a model (write a call, such as PAClassifier(PA1(C=0.1)))")
    return model


def parse_detector(text: str) -> Any:
    """Return the drift detector that `text` spells, by the rules of `parse_model`.

    Examples
    --------
    >>> type(parse_detector("ADWIN(delta=0.01)")).__name__
    'ADWIN'

    """
    detector = _parse(text)
    if not isinstance(detector, base.DriftDetector):
        raise ValueError(f"{text!r} is not a drift detector (write a call, such as ADWIN(delta=0.002))")
    return detector


def _parse(text: str) -> Any:
    if len(text) > _LONGEST:
        raise ValueError(f"an expression of {len(text)} characters is longer than {_LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _value(tree.body)
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not an expression: {error.msg}") from None
    except (RecursionError, MemoryError):  # how Python's parser refuses what is nested too deeply
        raise ValueError("the expression is nested too deeply") from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name(id="inf"):
            return math.inf
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _signed(node.op, _value(operand))
        case ast.Tuple(elts=parts):
            return tuple(_value(part) for part in parts)
        case ast.List(elts=parts):
            return [_value(part) for part in parts]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.BinOp(op=ast.BitOr() | ast.Add(), left=left, right=right):
            return _joined(node.op, _value(left), _value(right))
        case ast.Call(func=function, args=args, keywords=keywords):
            return _called(_name(function), args, keywords)
    raise ValueError(f"{ast.unparse(node)!r} is not allowed: write calls, |, +, literals and keyword arguments")


def _signed(sign: ast.unaryop, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"only a number has a sign, not {value!r}")
    return -value if isinstance(sign, ast.USub) else value


def _joined(sign: ast.operator, left: Any, right: Any) -> Any:
    """`a | b` is a pipeline and `a + b` a union, of estimators only: `1 + 1` is no literal."""
    for side in (left, right):
        if not isinstance(side, base.Estimator):
            raise ValueError(f"| and + join estimators, not {side!r}")
    return left | right if isinstance(sign, ast.BitOr) else left + right


def _called(name: str, args: list[ast.expr], keywords: list[ast.keyword]) -> Any:
    build = _resolve(name)
    given: dict[str, Any] = {}
    for keyword in keywords:
        if keyword.arg is None:
            raise ValueError(f"{name}(**...) is not allowed: write each argument")
        given[keyword.arg] = _value(keyword.value)
    values = [_value(arg) for arg in args]
    try:
        return build(*values, **given)
    except RecursionError:
        raise
    except Exception as error:  # a foreign constructor may refuse its arguments by any exception; all are the user's
        reason = " ".join(str(error).split())
        raise ValueError(reason if reason.startswith(name) else f"{name}: {reason}") from error


def _name(node: ast.expr) -> str:
    """`PA1`, or `linear_model.PAClassifier` for River's class where pa_river has one of that name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    raise ValueError(f"{ast.unparse(node)!r} is not a name")


def _resolve(name: str) -> Callable[..., Any]:
    module, _, short = name.rpartition(".")
    if not module:
        for found in _of_module(pa_river, short):
            return found
    for place in (module,) if module in _RIVER else _RIVER if not module else ():
        for found in _of_module(importlib.import_module(f"river.{place}"), short):
            return found
    near = difflib.get_close_matches(short, _public(), n=3)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise ValueError(f"{name!r} is neither a name of pa_river nor a public estimator of River{hint}")


def _of_module(module: Any, name: str) -> Iterator[Callable[..., Any]]:
    """The class `name` of a module's public names: at most one."""
    found = getattr(module, name, None) if name in module.__all__ else None
    if inspect.isclass(found) and issubclass(found, base.Base):
        yield found


def _public() -> list[str]:
    modules = [pa_river, *(importlib.import_module(f"river.{place}") for place in _RIVER)]
    return sorted({name for module in modules for name in module.__all__})
