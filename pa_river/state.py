"""Models <-> bytes: magic, format version, checksum, then class, parameters and learned state. No pickle."""

from __future__ import annotations

import inspect
import struct
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

from pa_river import _river_state
from pa_river._pack import StateError, finite_float, finite_vector, pack, pack_names, unpack, unpack_names

__all__ = [
    "StateError", "dumps", "finite_float", "finite_vector", "loads", "not_stored", "pack", "pack_names", "storable",
    "unpack", "unpack_names",
]

_MAGIC = b"PARV"
_VERSION = 1
_HEADER = struct.Struct("<4sHHI")  # magic, format version, reserved, CRC-32 of the body

_classes: dict[str, type] = {}

#: The compiled core's `dumps` and `loads` for its own models: the same bytes, sooner; None where they do not apply.
_shortcuts: tuple[Callable[[Any], bytes | None], Callable[[Any], Any]] | tuple[()] = ()
K = TypeVar("K", bound=type)


def storable(cls: K) -> K:
    """Class decorator: `dumps` and `loads` know the class by its name.

    What is stored are the constructor's parameters, read back from the attributes of the same names, and what
    `_get_state()` returns, where the class has one; `_set_state(values)` takes it over.
    """
    if cls.__name__ in _classes:
        raise TypeError(f"two storable classes are called {cls.__name__}")
    _classes[cls.__name__] = cls
    return cls


def dumps(model: Any) -> bytes:
    """Return a model of this package, or a River model or pipeline of listed classes, as bytes.

    Parameters
    ----------
    model
        A learner, a wrapper or a River pipeline. Callable parameters are not stored: `loads` wants them back.

    Returns
    -------
    Bytes that another process, machine or later version reads; `loads` continues bit-equal. O(size of the model).

    Raises
    ------
    StateError
        Naming the class, label or value that cannot be stored.

    Examples
    --------
    >>> from pa_river import PA, PAClassifier
    >>> model = PAClassifier(PA(), learn_intercept=False)
    >>> model.learn_one({"a": 2.0}, True)
    >>> loads(dumps(model)).weights
    {'a': 0.5}

    """
    short = _shortcuts[0](model) if _shortcuts else None
    if short is not None:
        return short
    body = pack(_encode(model), _encode)
    return _HEADER.pack(_MAGIC, _VERSION, 0, zlib.crc32(body)) + body


def loads(data: bytes, **not_stored: Any) -> Any:
    """Return the model that `dumps` stored.

    Parameters
    ----------
    data
        What `dumps` returned.
    not_stored
        Constructor parameters of the model or its parts that bytes cannot hold, such as a cost function, by name.

    Raises
    ------
    StateError
        On anything that is not such bytes: truncated, changed, hostile, of a newer format or an unlisted class.
        Nothing large is allocated and no foreign code runs.

    """
    short = _shortcuts[1](data) if _shortcuts and not not_stored else None
    if short is not None:
        return short
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise StateError(f"a model's bytes were expected, got {type(data).__name__}")
    view = memoryview(data)
    if len(view) < _HEADER.size:
        raise StateError(f"{len(view)} bytes are too few for a model")
    magic, version, reserved, checksum = _HEADER.unpack_from(view)
    if magic != _MAGIC:
        raise StateError("these bytes are no pa_river model")
    if version != _VERSION or reserved:
        raise StateError(f"format version {version} is not known here (this is version {_VERSION})")
    body = view[_HEADER.size:]
    if zlib.crc32(body) != checksum:
        raise StateError("the checksum does not fit: the bytes were changed or cut")
    decoder = _Decoder(not_stored)
    try:
        content = unpack(body, decoder)
        if not (isinstance(content, tuple) and len(content) == 2):
            raise StateError("the body holds no model")
        model = decoder(*content)
    except StateError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        # a body with a right checksum and a wrong inside: made by hand, or by a defect; never a half-built model
        raise StateError(f"the state does not fit its class: {error!r:.200}") from error
    unused = [param for param in not_stored if param not in decoder.used]
    if unused:
        raise StateError(f"{type(model).__name__} has no parameter {unused[0]!r} that was not stored")
    return model


def not_stored(model: Any) -> dict[str, Any]:
    """Return the callable parameters of a model and its parts, by name: what `loads` wants back.

    `StateError` if two parts have different ones of the same name, which `loads` could not tell apart.
    """
    found: dict[str, Any] = {}

    def encode(value: Any) -> tuple[str, Any]:
        name, content = _encode(value)
        if name in _classes:
            for param, stored in content[0].items():
                given = getattr(value, param)
                if stored is _NOT_STORED and found.setdefault(param, given) is not given:
                    raise StateError(f"two parts of the model have a callable {param!r} each, and not the same")
        return name, content

    pack(encode(model), encode)
    return found


def _encode(value: Any) -> tuple[str, Any]:
    cls = type(value)
    if _classes.get(cls.__name__) is not cls:
        return _river_state.encode(value)
    params = {}
    for name in _parameters(cls):
        param = getattr(value, name)
        params[name] = _NOT_STORED if callable(param) and type(param) not in _classes.values() else param
    get_state = getattr(value, "_get_state", None)
    return cls.__name__, (params, get_state() if get_state is not None else None)


#: Stands for a callable parameter: bytes hold no code.
_NOT_STORED = ("pa_river: not stored",)


class _Decoder:
    """(class name, content) -> object, with the callables that the bytes do not hold."""

    def __init__(self, not_stored: dict[str, Any]):
        self._not_stored = not_stored
        self.used: set[str] = set()

    def __call__(self, name: str, content: Any) -> Any:
        cls = _classes.get(name) if isinstance(name, str) else None
        if cls is None:
            return _river_state.decode(name, content)
        params, learned = content
        known = _parameters(cls)
        for param, value in params.items():
            if param not in known:
                raise StateError(f"{name} has no parameter {param!r}")
            if value == _NOT_STORED:
                if param not in self._not_stored:
                    raise StateError(f"{name}: the parameter {param!r} is a callable, which bytes do not hold; "
                                     f"give it to loads(data, {param}=...)")
                params[param] = self._not_stored[param]
                self.used.add(param)
        model = cls(**params)
        if learned is not None:
            model._set_state(learned)
        return model


def _parameters(cls: type) -> list[str]:
    found = _signatures.get(cls)
    if found is None:
        found = _signatures[cls] = [name for name in inspect.signature(cls).parameters]
    return found


_signatures: dict[type, list[str]] = {}
