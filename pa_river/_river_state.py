"""The River classes whose state can be stored: an explicit list, each rebuilt from its attributes, without a pickle."""

from __future__ import annotations

import collections
import importlib
import numbers
from typing import Any

from river import compose, utils

from pa_river._pack import StateError

#: Public path of every class that may be stored besides our own. A class joins by its line here, once its attributes
#: are plain values and other listed classes. Nothing else is ever imported or built from stored bytes.
_ALLOWED = (
    "river.compose.Discard", "river.compose.Prefixer", "river.compose.Select", "river.compose.SelectType",
    "river.compose.Suffixer",
    "river.feature_extraction.PolynomialExtender",
    "river.linear_model.LinearRegression", "river.linear_model.LogisticRegression", "river.linear_model.Perceptron",
    "river.multiclass.OneVsRestClassifier",
    "river.optim.SGD", "river.optim.initializers.Zeros",
    "river.optim.losses.EpsilonInsensitiveHinge", "river.optim.losses.Hinge", "river.optim.losses.Log",
    "river.optim.losses.Squared",
    "river.optim.schedulers.Constant",
    "river.preprocessing.FeatureHasher", "river.preprocessing.MaxAbsScaler", "river.preprocessing.MinMaxScaler",
    "river.preprocessing.Normalizer", "river.preprocessing.OneHotEncoder", "river.preprocessing.StandardScaler",
    "river.stats.AbsMax", "river.stats.Max", "river.stats.Min",
)
#: Plain types that a listed object may hold: default factories, and what `SelectType` tells apart.
_FACTORIES = {"bool": bool, "float": float, "int": int, "numbers.Number": numbers.Number, "set": set, "str": str}


def encode(value: Any) -> tuple[str, Any]:
    """Return (public name, plain content) of a listed object; `StateError` that names an unlisted class."""
    if isinstance(value, type):
        return "type", _class_name(value)
    if type(value) is set:
        return "set", sorted(value, key=repr)  # a set's own order differs between processes
    if type(value) is collections.Counter:
        return "Counter", dict(value)
    if type(value) is collections.defaultdict:
        return "defaultdict", (_class_name(value.default_factory), dict(value))
    if type(value) is utils.VectorDict:
        return "VectorDict", value.to_dict()
    if type(value) is compose.Pipeline:
        return "Pipeline", list(value.steps.items())
    if type(value) is compose.TransformerUnion:
        return "TransformerUnion", list(value.transformers.items())
    name = _class_name(type(value))
    if name in _FACTORIES:
        raise StateError(f"{type(value).__name__} is no model")
    return name, dict(value.__dict__)


def decode(name: Any, content: Any) -> Any:
    """Return the object that `encode` described; `StateError` that names an unlisted class."""
    if name == "type":
        return _class(content)
    if name == "set":
        return set(content)
    if name == "Counter":
        return collections.Counter(content)
    if name == "defaultdict":
        factory, items = content
        return collections.defaultdict(_class(factory), items)
    if name == "VectorDict":
        return utils.VectorDict(content)
    if name == "Pipeline":
        return compose.Pipeline(*content)
    if name == "TransformerUnion":
        return compose.TransformerUnion(*content)
    cls = _class(name)
    if not isinstance(content, dict):
        raise StateError(f"the attributes of {name} are missing")
    model = cls.__new__(cls)
    model.__dict__.update(content)
    return model


def _class_name(cls: Any) -> str:
    for name, factory in _FACTORIES.items():
        if cls is factory:
            return name
    for path in _ALLOWED:
        if path.rpartition(".")[2] == getattr(cls, "__name__", None) and _load(path) is cls:
            return path
    shown = f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', cls)}"
    raise StateError(f"{shown} cannot be stored: it is not on the list of classes that can")


def _class(name: Any) -> Any:
    if isinstance(name, str):
        if name in _FACTORIES:
            return _FACTORIES[name]
        if name in _ALLOWED:
            return _load(name)
    raise StateError(f"{str(name)[:80]!r} is not on the list of classes that can be loaded")


def _load(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name, None)
