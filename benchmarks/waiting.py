"""A bundle that touches a key in which thousands of predictions wait: entries left as bytes, or decoded."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.measure import Contestant, Row, compare
from pa_river import PAClassifier
from pa_river.stream import CellSpec, Event, Holder
from pa_river.stream.buffers import Buffer

_KEY = "k"
_SPEC = CellSpec(PAClassifier(), label_ttl=1e9)


def _state(waiting: int, features: int) -> bytes:
    holder = _SPEC.open(_KEY, None)
    for number in range(waiting):
        x = {f"feature_{name}": float(name + number) for name in range(features)}
        holder.on_event(Event(_KEY, f"id-{number:07d}", float(number), x))
    data = holder.dumps()
    assert data is not None
    return data


def _bundle(holder: Holder, waiting: int) -> None:
    """One label of one that waits, and the features of another."""
    holder.on_event(Event(_KEY, f"id-{waiting // 2:07d}", float(waiting), y=True))
    holder.on_event(Event(_KEY, "new", float(waiting), {"feature_0": 1.0}))
    holder.wake_at()
    holder.dumps()


def _raw(data: bytes, waiting: int) -> Contestant:
    def prepare() -> Callable[[], int]:
        def run() -> int:
            _bundle(_SPEC.open(_KEY, data), waiting)
            return 1

        return run

    return prepare


def _decoded(data: bytes, waiting: int) -> Contestant:
    """The same where every entry is made an object when the key is opened, and bytes again when the bundle ends."""

    def prepare() -> Callable[[], int]:
        def run() -> int:
            holder = _SPEC.open(_KEY, data)
            cell = holder._wake(_KEY)
            cell.touch()
            stored, live = cell.pending, Buffer(timed=True)
            for id in stored.ids():
                live.add(id, stored.time(id), 0, stored.content(id))
            cell.pending = live
            _bundle(holder, waiting)
            return 1

        return run

    return prepare


def waiting(turns: int) -> list[Row]:
    """Rows of 100, 1,000 and 10,000 open predictions of five features each."""
    rows = []
    for count in (100, 1_000, 10_000):
        data = _state(count, 5)
        row = compare(
            f"a bundle of two events over {count:,} open predictions", "left as bytes",
            {"left as bytes": _raw(data, count), "decoded": _decoded(data, count)}, turns,
        )
        row.figures["bytes"] = len(data)
        rows.append(row)
    return rows


BENCHMARKS = {"waiting": waiting}
