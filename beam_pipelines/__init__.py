"""River learners per key on Apache Beam: sources, the stateful operator, sinks, and one command each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from beam_pipelines.learn import Learned, LearnPerKey, LearnPerKeyFn

__all__ = ["LearnPerKey", "LearnPerKeyFn", "Learned"]


def __getattr__(name: str) -> Any:
    """The transform and its parts, imported when asked for: what needs no Beam does not wait for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from beam_pipelines import learn

    return getattr(learn, name)
