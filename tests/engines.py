"""Simulated engines around the cell: bundles, timers, crashes, all in one thread and all on purpose.

`Checkpointing` commits state, timers and outputs of a bundle together or not at all, as Flink or Dataflow do.
`Journaling` keeps nothing when it dies, as Prism does: the live job's own wiring and file must bring everything back.
"""

from __future__ import annotations

import itertools
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pa_river
from beam_pipelines import serve, units
from beam_pipelines.broker import Partition
from beam_pipelines.store import LiveStore
from pa_river.stream import CellSpec, Event, Output, Snapshot

SOURCE = "t-0"
END = 1e9  # a watermark behind everything


class Killed(BaseException):
    """The process is gone: nothing may catch it."""


class Steps:
    """Counts the steps taken inside it, and fails at one of them, once.

    A step is a call of any function of the stream package, of the live wiring and its file, or of SQLite: between two
    of them nothing can fail that the machine does not fail as a whole.
    """

    def __init__(self, at: int | None = None, error: Callable[[], BaseException] = Killed) -> None:
        self.taken = 0
        self._at, self._error = at, error

    def __enter__(self) -> Steps:
        sys.setprofile(self._look)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _look(self, frame: Any, what: str, arg: Any) -> None:
        if what == "call":
            if frame.f_code.co_filename not in _WATCHED or frame.f_code.co_name == "<genexpr>":
                return  # a generator that is let go is entered once more, where nothing can be raised
        elif what != "c_call" or not isinstance(getattr(arg, "__self__", None), sqlite3.Connection):
            return
        elif arg.__name__ == "close":  # what is left to the operating system when a process is gone
            return
        self.taken += 1
        if self.taken == self._at:
            raise self._error()


_ROOT = Path(pa_river.__file__).parents[1]
_WATCHED = frozenset(map(str, [
    *(_ROOT / "pa_river" / "stream").glob("*.py"),
    *(_ROOT / "beam_pipelines" / f"{name}.py" for name in ("serve", "store", "units")),
]))  # fmt: skip


def plain(spec: CellSpec, events: Iterable[Event]) -> dict[str, Any]:
    """The holders after all events in their order, in one piece, and what each put out: the uninterrupted run."""
    engine = Checkpointing(spec)
    for event in events:
        engine.bundle([event])
    engine.fire(END)
    return engine.result()


class Checkpointing:
    """State, timers and outputs of a bundle are committed together; a bundle that fails is run again."""

    def __init__(self, spec: CellSpec) -> None:
        self._spec = spec
        self.state: dict[str, bytes] = {}
        self.timers: dict[str, float] = {}
        self.outputs: list[Output] = []
        self.failures = 0

    def bundle(self, events: Sequence[Event]) -> None:
        """Events of any keys, in this order."""
        self._retried(lambda: self._handle(events))

    def fire(self, watermark: float) -> None:
        """Fire every timer that the watermark has passed, a bundle each, until none is left."""
        while due := sorted((at, key) for key, at in self.timers.items() if at <= watermark):
            self.wake(due[0][1], due[0][0])

    def wake(self, key: str, at: float) -> None:
        """Fire one timer, wanted or not."""
        self._retried(lambda: self._wake(key, at))

    def result(self) -> dict[str, Any]:
        """What came of it, by key: the records in their order, the model's bytes, the version."""
        return _result(self._spec, self.outputs, self.state)

    def _handle(self, events: Sequence[Event]) -> None:
        live, timers, outputs = {}, dict(self.timers), []
        for event in events:
            key = self._spec.engine_key(event.key)
            if key not in live:
                live[key] = self._spec.open(key, self.state.get(key))
            outputs += live[key].on_event(event)
            if (at := live[key].wake_at()) is not None:
                timers[key] = at
        self._commit(live, timers, outputs)

    def _wake(self, key: str, at: float) -> None:
        timers = dict(self.timers)
        if timers.get(key, END) <= at:
            del timers[key]
        if key not in self.state:
            self.timers = timers
            return
        holder = self._spec.open(key, self.state[key])
        outputs = holder.on_due(at)
        if (again := holder.wake_at()) is not None:
            timers[key] = again
        self._commit({key: holder}, timers, outputs)

    def _commit(self, live: dict[str, Any], timers: dict[str, float], outputs: list[Output]) -> None:
        state = dict(self.state)
        for key, holder in live.items():
            data = holder.dumps()
            if data is None:
                state.pop(key, None)
                timers.pop(key, None)
            else:
                state[key] = data
        self.state, self.timers = state, timers
        self.outputs = self.outputs + outputs

    def _retried(self, attempt: Callable[[], None]) -> None:
        while True:
            try:
                return attempt()
            except (Killed, MemoryError, OSError):
                self.failures += 1


class _Cell:
    """One key's state of a runner: the live object within a bundle, bytes between two."""

    def __init__(self) -> None:
        self.held: Any = None

    def read(self) -> Any:
        return self.held

    def write(self, value: Any) -> None:
        self.held = value

    def end_of_bundle(self) -> None:
        if self.held is not None:
            self.held = _CODER.decode(_CODER.encode(self.held))


_CODER = serve.HeldCoder()


class _Timer:
    def __init__(self) -> None:
        self.at: float | None = None

    def set(self, at: Any) -> None:
        self.at = at.micros / 1e6


class Journaling:
    """The live job's `ServeFn` and `LiveStore` on an engine that forgets everything when it dies.

    Parameters
    ----------
    spec
        What the cells start from.
    path
        The file.
    log
        The events, numbered by their offsets.
    cut
        bundle number -> (events in it, which of the units under way arrive after it).

    """

    def __init__(
        self, spec: CellSpec, path: Path, log: Sequence[Event], *, save_every: int = 3,
        cut: Callable[[int], tuple[int, int]] = lambda number: (2, -1), watermarks: bool = True,
    ) -> None:
        self._spec, self._path, self._save_every, self._cut = spec, path, save_every, cut
        self._log = [event._replace(source=SOURCE, seq=offset) for offset, event in enumerate(log)]
        self._watermarks = watermarks
        self.failures = 0

    def run(self, steps: Steps | None = None) -> dict[str, Any]:
        """Go through the log, as often as it takes; what the file says then.

        `steps` counts those of the job, and may make one of them fail.
        """
        steps = steps or Steps()
        while not self.once(steps):
            pass
        return self._said()

    def once(self, steps: Steps) -> bool:
        """Start the job; whether it came to the log's end."""
        store: LiveStore | None = None
        try:
            with steps:
                store = LiveStore(self._path)
                self._run(store)
        except (Killed, MemoryError, sqlite3.OperationalError):
            self.failures += 1
            return False
        finally:
            if store is not None:
                store.close()
        return True

    def _run(self, store: LiveStore) -> None:
        end = len(self._log)
        number, (partition,) = store.begin([Partition("t", 0, 0, end, 0, "made once")])
        fn = serve.ServeFn(self._spec, serve.Resume(store), self._save_every, 10.0)
        cells: dict[str, tuple[_Cell, _Timer, _Timer]] = {}
        under_way: list[units.Unit] = []

        def handle(key: str, batch: list[tuple[int, Event]]) -> None:
            parts = cells.setdefault(key, (_Cell(), _Timer(), _Timer()))
            under_way.extend(fn.process((key, batch), *parts))
            parts[0].end_of_bundle()

        def fire(watermark: float) -> None:
            for key, (cell, wake, save) in cells.items():
                while wake.at is not None and wake.at <= watermark:
                    at, wake.at = wake.at, None
                    under_way.extend(fn.woken(key, _Time(at), cell, wake, save))
                    cell.end_of_bundle()

        for key in store.waiting():
            handle(key, [])
        at, bundles = partition.start, itertools.count()
        while at < end:
            size, arrives = self._cut(next(bundles))
            batches: dict[str, list[tuple[int, Event]]] = {}
            for event in self._log[at:at + size]:
                batches.setdefault(self._spec.engine_key(event.key), []).append((event.seq or 0, event))
            at += size
            for key, batch in batches.items():
                handle(key, batch)
            if self._watermarks and at < end:
                fire(min(event.time for event in self._log[at:]))
            if under_way and arrives:  # the one there, or all
                found = under_way if arrives < 0 else [under_way.pop(arrives % len(under_way))]
                store.write(number, list(found))
                if arrives < 0:
                    under_way.clear()
        fire(END)
        for key, (cell, _, save) in cells.items():
            if save.at is not None:
                under_way.extend(fn.saved(key, cell))
        store.write(number, under_way)

    def _said(self) -> dict[str, Any]:
        store = LiveStore(self._path)
        records: dict[str, Any] = {}
        for _, made in store.records():
            records[made.id, made.kind] = made.line
        with closing(sqlite3.connect(self._path)) as db:
            state = dict(db.execute("SELECT key, blob FROM cells WHERE blob IS NOT NULL"))
        conflicts = store.conflicts()
        store.close()
        return {"records": records, "models": models(self._spec, state), "conflicts": conflicts}


class _Time:
    """What the engine says a timer was set for."""

    def __init__(self, seconds: float) -> None:
        self.micros = round(seconds * 1e6)


def models(spec: CellSpec, state: dict[str, bytes]) -> dict[str, tuple[int, bytes]]:
    """key -> (version, bytes of the model) of every cell in these engine keys."""
    found = {}
    for key, data in state.items():
        holder = spec.open(key, data)
        for name in holder.keys():
            found[name] = holder.version(name), pa_river.dumps(holder.model(name))
    return found


def _result(spec: CellSpec, outputs: Iterable[Output], state: dict[str, bytes]) -> dict[str, Any]:
    by_key: dict[str, list[Output]] = {}
    for output in outputs:
        by_key.setdefault(output.key or "", []).append(output)
    return {"outputs": by_key, "models": models(spec, state)}


def journal_of(result: dict[str, Any]) -> dict[str, Any]:
    """What a `Journaling` run must have stored, from an uninterrupted one."""
    records = {}
    for outputs in result["outputs"].values():
        for output in outputs:
            if not isinstance(output, Snapshot):
                made = units.record(output)
                records[made.id, made.kind] = made.line
    return {"records": records, "models": result["models"], "conflicts": 0}


def rebundled(events: Sequence[Event], cuts: Iterable[int]) -> Iterator[list[Event]]:
    """The events in bundles that end at these places."""
    ends = sorted({*(cut for cut in cuts if 0 < cut < len(events)), len(events)})
    for first, last in zip([0, *ends], ends):
        yield list(events[first:last])
