"""Which core runs the hot loops: the compiled one where it was built, else the reference. Chosen once, at import.

`PA_RIVER_NATIVE=1` makes a missing core an ImportError, `PA_RIVER_NATIVE=0` takes the reference even where the core is.
A model keeps the core it was built with, in its store: `on_reference(model)` moves one to the reference.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from pa_river import state
from pa_river.budget import Budget
from pa_river.confidence import ConfidenceStore
from pa_river.kernels import Kernel
from pa_river.rows import RowStore
from pa_river.spread import ScaledStore
from pa_river.stores import LinearStore
from pa_river.support import SupportStore

_WANTED = os.environ.get("PA_RIVER_NATIVE", "")
if _WANTED not in ("", "0", "1"):
    raise ImportError(f"PA_RIVER_NATIVE must be 0 or 1, got {_WANTED!r}")

T = TypeVar("T")


def linear_store(learn_intercept: bool) -> LinearStore:
    """Return an empty store of one weight a name; the compiled one where there is a core."""
    store: LinearStore = _STORE(learn_intercept)
    return store


def single(
    learn_intercept: bool, kernel: Kernel | None = None, budget: Budget | None = None,
) -> LinearStore | SupportStore:
    """Return a new store of one weight vector: by feature name, or by support vectors where there is a kernel."""
    return linear_store(learn_intercept) if kernel is None else SupportStore(kernel, learn_intercept, budget)


def multi(
    learn_intercept: bool, kernel: Kernel | None = None, budget: Budget | None = None,
) -> RowStore | SupportStore:
    """Return a new store of one weight vector a slot: rows by feature name, or support vectors."""
    return _ROWS(learn_intercept) if kernel is None else SupportStore(kernel, learn_intercept, budget)


def restored_rows(learn_intercept: bool, values: dict[str, Any]) -> RowStore:
    """Return a store of one weight vector a slot with this state; see `restored_store`."""
    store: RowStore = _ROWS(learn_intercept)
    store.set_state(values)
    return store


def scaled_store(learn_intercept: bool) -> ScaledStore:
    """Return an empty store of one weight and one spread a name; the compiled one where there is a core."""
    store: ScaledStore = _SCALED(learn_intercept)
    return store


def restored_scaled(learn_intercept: bool, values: dict[str, Any]) -> ScaledStore:
    """Return a store of one weight and one spread a name with this state; see `restored_store`."""
    store = scaled_store(learn_intercept)
    store.set_state(values)
    return store


def confidence_store(learn_intercept: bool) -> ConfidenceStore:
    """Return an empty store of one weight and one variance a name and slot; the compiled one where there is a core."""
    store: ConfidenceStore = _CONFIDENCE(learn_intercept)
    return store


def restored_confidence(learn_intercept: bool, values: dict[str, Any]) -> ConfidenceStore:
    """Return a store of one weight and one variance a name and slot with this state; see `restored_store`."""
    store = confidence_store(learn_intercept)
    store.set_state(values)
    return store


def restored_store(learn_intercept: bool, values: dict[str, Any]) -> LinearStore:
    """Return a store with this state: how a copy or pickle of a compiled store comes back on any machine."""
    store = linear_store(learn_intercept)
    store.set_state(values)
    return store


def inputs(store: Any, X: Any) -> Any:
    """Return the rows of a plain table as a compiled store of rows takes them; None for another table or store."""
    return store.lines(X) if NATIVE and type(store) in (_ROWS, _CONFIDENCE) else None


def on_reference(model: T) -> T:
    """Return `model` itself, from now on run by the reference, if it was run by the compiled core.

    What parity is measured against, and what watches moves that the compiled core makes without a call.
    """
    compiled = model._store  # type: ignore[attr-defined]
    if hasattr(compiled, "interpreted"):
        compiled.interpreted = True
    for core, plain in (
        (_STORE, LinearStore), (_ROWS, RowStore), (_SCALED, ScaledStore), (_CONFIDENCE, ConfidenceStore),
    ):
        if type(compiled) is core and core is not plain:
            store = plain(bool(compiled._extra))
            store.set_state(compiled.get_state())
            model._store = store  # type: ignore[attr-defined]
    return model


_STORE: Any = LinearStore
_ROWS: Any = RowStore
_SCALED: Any = ScaledStore
_CONFIDENCE: Any = ConfidenceStore
NATIVE = False

#: The compiled loops over sentences, `_tagger` and `_coder`; None where they are not built or not wanted.
taggers: Any = None
coders: Any = None

if TYPE_CHECKING:
    class Margin:
        """Bases that bring compiled methods; empty where there is no core."""

    class Tube:
        """The same, for regression."""

    class Pair:
        """The same, for prototypes of which two move."""

    class Scaled:
        """The same, for features that are scaled as they come."""

    class ConfidentMargin:
        """The same, for weights that have variances."""

    class ConfidentPair:
        """The same, for prototypes whose weights have variances."""
else:
    try:
        if _WANTED == "0":
            raise ImportError("the reference is wanted")
        from pa_river import _codec, _coder, _tagger
        from pa_river._arena import ArenaStore as _STORE
        from pa_river._confidence import ConfidenceArena as _CONFIDENCE
        from pa_river._confident import ConfidentMargin, ConfidentPair
        from pa_river._native import Margin, Tube
        from pa_river._pair import Pair
        from pa_river._rowarena import RowArena as _ROWS
        from pa_river._scaled import Scaled
        from pa_river._scaled import ScaledArena as _SCALED

        NATIVE = True
        taggers, coders = _tagger, _coder
        state._shortcuts = (_codec.dumps, _codec.loads)
    except ImportError:
        if _WANTED == "1":
            raise
        Margin = type("Margin", (), {})
        Tube = type("Tube", (), {})
        Pair = type("Pair", (), {})
        Scaled = type("Scaled", (), {})
        ConfidentMargin = type("ConfidentMargin", (), {})
        ConfidentPair = type("ConfidentPair", (), {})
