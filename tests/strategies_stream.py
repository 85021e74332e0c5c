"""Generated input for the stream: event sequences with late, early, missing, doubled, changed and refused parts."""

from __future__ import annotations

import math
from typing import Any

import pa_river
from hypothesis import strategies as st
from pa_river import state
from pa_river.stream import CellSpec, Event
from river import preprocessing

KEY = "k"


@state.storable
class Bomb:
    """A model that trusts its input: some examples make it raise with half of its state changed already."""

    _supervised = True

    def __init__(self, fuse: float = 13.0) -> None:
        self.fuse = fuse
        self.total, self.count = 0.0, 0

    def learn_one(self, x: dict[str, Any], y: Any, w: float = 1.0) -> None:
        self.count += 1
        for value in x.values():
            self.total += w * float(value) * (1 if y else -1)
            if value == self.fuse:
                raise ZeroDivisionError("halfway")

    def predict_one(self, x: dict[str, Any]) -> bool:
        if "unanswerable" in x:
            raise LookupError("no answer")
        return self.total > 0.0

    def _get_state(self) -> dict[str, Any]:
        return {"total": self.total, "count": self.count}

    def _set_state(self, values: dict[str, Any]) -> None:
        self.total, self.count = values["total"], values["count"]


MODELS = {
    "ours": lambda: pa_river.PAClassifier(pa_river.PA1(0.5)),
    "pipeline": lambda: preprocessing.StandardScaler() | pa_river.PAClassifier(),
    "bomb": lambda: Bomb(),
}

times = st.one_of(st.integers(0, 40), st.floats(0.0, 60.0, allow_nan=False).map(lambda t: round(t, 2)))
ids = st.sampled_from(["1", "2", "3", "4", "with\nline", "ü"])
features = st.sampled_from([
    {"a": 1.0}, {"a": 1.0, "b": -2.0}, {"b": 0.5}, {"colour": "red", "a": 2.0}, {}, {"a": 13.0}, {"unanswerable": 1.0},
    {"a": math.nan}, {"a": 1e308, "b": -1e308},
])
labels = st.sampled_from([True, False, 1, 0, "no label"])
weights = st.sampled_from([None, None, None, 0.0, 2.0])


@st.composite
def events(draw: st.DrawFn, control: bool = True) -> Event:
    """One event of any sort."""
    sorts = ["x", "x", "x", "y", "y", "y", "xy"] + (["query", "reset", "rollback", "forget"] if control else [])
    sort = draw(st.sampled_from(sorts))
    id, time = draw(ids), draw(times)
    if sort in ("reset", "rollback", "forget"):
        target = {"reset": None, "rollback": draw(st.sampled_from([None, 0, 1, 2])), "forget": draw(ids)}[sort]
        return Event(KEY, f"op {id}", time, op=sort, target=target)
    if sort == "query":
        return Event(KEY, id, time, x=draw(features), op="query")
    x = draw(features) if "x" in sort else None
    y = draw(labels) if "y" in sort else None
    return Event(KEY, id, time, x, y, w=draw(weights), segment=draw(st.sampled_from([None, "s"])))


def streams(control: bool = True, most: int = 25, least: int = 0) -> st.SearchStrategy[list[Event]]:
    """Events in almost any order of time: half of the streams are sorted."""
    some = st.lists(events(control), min_size=least, max_size=most)
    return st.one_of(some, some.map(lambda stream: sorted(stream, key=lambda event: event.time)))


@st.composite
def specs(draw: st.DrawFn, model: str | None = None, order: str | None = None) -> CellSpec:
    """Settings small enough for every bound to be met."""
    return CellSpec(
        MODELS[model or draw(st.sampled_from(sorted(MODELS)))](),
        label_ttl=draw(st.sampled_from([None, 5.0, 20.0])),
        idle_ttl=draw(st.sampled_from([None, None, 10.0])),
        order=order or "arrival",
        dedupe_size=draw(st.sampled_from([1, 3, 1024])),
        max_pending=draw(st.sampled_from([1, 3, 10_000])),
        snapshot_every=draw(st.sampled_from([None, 3])),
        keep_every=draw(st.sampled_from([1, 2])),
        at_end=draw(st.sampled_from(["flush", "snapshot"])),
    )


def numbered(stream: list[Event], sources: tuple[str, ...] = ("s",)) -> list[Event]:
    """The events with seq 0, 1, 2 ... per source, dealt to the sources in turn."""
    count = dict.fromkeys(sources, 0)
    result = []
    for at, event in enumerate(stream):
        source = sources[at % len(sources)]
        result.append(event._replace(source=source, seq=count[source]))
        count[source] += 1
    return result
