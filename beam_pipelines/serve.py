"""The live operator on Beam: cells whose output leaves as units, opened from a store where the runner has no state."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.runners.worker.statecache import CacheAware
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec, TimerSpec, on_timer
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import Timestamp

from beam_pipelines import apart  # noqa: F401  (wherever these DoFns are unpickled)
from beam_pipelines.learn import Batch, add_counts, check_runner, typed
from beam_pipelines.store import LiveStore
from beam_pipelines.units import BEAT, Unit, spans, unit
from pa_river.stream import CellSpec, Event, Holder, Output, SnapshotStore

_HEADER = struct.Struct(">QQ?")  # serial, events since the last blob, whether the saving timer is armed
_KNOWN = ("duplicates", "too_old")


class Resume:
    """Where an engine key goes on from that the runner knows nothing of: the point that the last run reached."""

    def __init__(self, store: LiveStore) -> None:
        self._store = store
        self._rolled_back: set[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_store": self._store, "_rolled_back": None}

    def open(self, spec: CellSpec, key: str) -> Holder:
        """The key's holder, without a timer: that of the last run died with its runner.

        A model that was rolled back in the store while no job ran is taken up; only the model.
        """
        blob = self._store.blob(key)
        holder = spec.open(key, blob, is_armed=False)
        if self._rolled_back is None:  # once a process: while a job runs, nobody else writes
            self._rolled_back = self._store.rolled_back()
        for name in self._rolled_back.intersection(holder.keys()) if blob is not None else ():
            found = SnapshotStore(self._store.path).newest(name)
            if found is not None and found.reason == "rollback" and found.version > holder.version(name):
                holder.put_model(name, found)
        return holder


class Held(CacheAware):
    """A live holder and how far it is counted and saved; nothing in it for the SDK's cache to weigh."""

    __slots__ = ("holder", "serial", "unsaved", "is_armed")

    def __init__(self, holder: Holder, serial: int = 0, unsaved: int = 0, is_armed: bool = False) -> None:
        self.holder, self.serial, self.unsaved, self.is_armed = holder, serial, unsaved, is_armed

    def get_referents_for_cache(self) -> list[Any]:
        return []


class HeldCoder(coders.Coder):
    """`Held` -> bytes, once a bundle; back as bytes, which only `CellSpec.open` can open."""

    def encode(self, value: Held | bytes) -> bytes:
        if isinstance(value, bytes):
            return value
        return _HEADER.pack(value.serial, value.unsaved, value.is_armed) + (value.holder.dumps() or b"")

    def decode(self, encoded: bytes) -> Held | bytes:
        return encoded

    def is_deterministic(self) -> bool:
        return False


class ServeFn(beam.DoFn):
    """(key, [(offset, Event), ...]) -> one `Unit`: what the key's cell put out, and now and then what it is.

    Parameters
    ----------
    spec, resume
        What a cell starts from.
    save_every
        Events of a key after which its blob leaves with the unit.
    save_within
        Seconds of processing time after which it leaves although fewer came; None: the input is bounded, and every blob
        leaves at its end.

    Notes
    -----
    State is never cleared, or a serial number would be given twice: a key without a cell keeps 17 bytes.

    """

    CELL = ReadModifyWriteStateSpec("cell", HeldCoder())
    WAKE = TimerSpec("wake", TimeDomain.WATERMARK)
    SAVE = TimerSpec("save", TimeDomain.REAL_TIME)

    def __init__(self, spec: CellSpec, resume: Resume, save_every: int, save_within: float | None) -> None:
        self._spec, self._resume = spec, resume
        self._save_every, self._save_within = save_every, save_within

    def process(
        self,
        element: tuple[str, Batch],
        cell: Any = beam.DoFn.StateParam(CELL),
        wake: Any = beam.DoFn.TimerParam(WAKE),
        save: Any = beam.DoFn.TimerParam(SAVE),
    ) -> Iterator[Unit]:
        key, batch = element
        if key == BEAT and not batch:
            yield Unit(BEAT, 0, [], [], [], None, False)
            return
        state = cell.read()
        held = self._open(key, state)
        outputs: list[Output] = []
        for _, event in batch:
            outputs += held.holder.on_event(event)
        counts = add_counts(held.holder)
        known = sum(counts.get(name, 0) for name in _KNOWN)
        is_new = bool(outputs) or known < len(batch)
        held.unsaved += len(batch) if is_new else 0
        made = self._unit(key, held, outputs, _handled(batch), is_new, held.unsaved >= self._save_every)
        if self._save_within is not None:
            self._arm(held, wake, save, self._save_within)
        elif state is None:
            wake.set(GlobalWindow().max_timestamp())
        cell.write(held)
        if batch:
            yield made

    @on_timer(WAKE)  # type: ignore[untyped-decorator]
    def woken(
        self,
        key: str = beam.DoFn.KeyParam,
        time: Timestamp = beam.DoFn.TimestampParam,
        cell: Any = beam.DoFn.StateParam(CELL),
        wake: Any = beam.DoFn.TimerParam(WAKE),
        save: Any = beam.DoFn.TimerParam(SAVE),
    ) -> Iterator[Unit]:
        state = cell.read()
        if state is None:
            return
        held = self._open(key, state)
        is_end = self._save_within is None
        outputs = held.holder.on_end() if is_end else held.holder.on_due(time.micros / 1e6)
        add_counts(held.holder)
        held.unsaved += len(outputs)  # under order="event_time" this is where events are learned
        made = self._unit(key, held, outputs, [], bool(outputs), is_end or held.unsaved >= self._save_every)
        if self._save_within is not None:
            self._arm(held, wake, save, self._save_within)
        cell.write(held)
        if made.serial:
            yield made

    @on_timer(SAVE)  # type: ignore[untyped-decorator]
    def saved(self, key: str = beam.DoFn.KeyParam, cell: Any = beam.DoFn.StateParam(CELL)) -> Iterator[Unit]:
        state = cell.read()
        if state is None:
            return
        held = self._open(key, state)
        held.is_armed = False
        made = self._unit(key, held, [], [], False, held.unsaved > 0)
        cell.write(held)
        if made.serial:
            yield made

    def _open(self, key: str, state: Held | bytes | None) -> Held:
        if isinstance(state, Held):
            return state
        if state is None:
            return Held(self._resume.open(self._spec, key))
        serial, unsaved, is_armed = _HEADER.unpack_from(state)
        return Held(self._spec.open(key, state[_HEADER.size:] or None), serial, unsaved, is_armed)

    def _unit(
        self, key: str, held: Held, outputs: list[Output], handled: list[tuple[str, int, int]], is_new: bool,
        is_due: bool,
    ) -> Unit:
        """The next unit of the chain; of nothing new, one outside it."""
        blob = held.holder.dumps() if is_due else None
        if blob is not None:
            held.unsaved = 0
        if not is_new and blob is None:
            return unit(key, 0, outputs, handled, None, False)
        held.serial += 1
        return unit(key, held.serial, outputs, handled, blob, is_new)

    def _arm(self, held: Held, wake: Any, save: Any, within: float) -> None:
        if (at := held.holder.wake_at()) is not None:  # None also while an earlier timer is armed
            wake.set(Timestamp(micros=round(at * 1e6)))
        if held.unsaved and not held.is_armed:
            held.is_armed = True
            save.set(Timestamp.now() + within)


def _handled(batch: list[tuple[int, Event]]) -> list[tuple[str, int, int]]:
    """The places of a batch in its logs, neighbours joined."""
    by_source: dict[str, list[int]] = {}
    for _, event in batch:
        if event.source is not None and event.seq is not None:
            by_source.setdefault(event.source, []).append(event.seq)
    return [span for source, numbers in by_source.items() for span in spans(source, sorted(numbers))]


class Serve(beam.PTransform):
    """PCollection[(key, Batch)] -> PCollection[Unit]."""

    def __init__(self, spec: CellSpec, resume: Resume, *, save_every: int, save_within: float | None) -> None:
        super().__init__()
        self._fn = ServeFn(spec, resume, save_every, save_within)

    def expand(self, keyed: Any) -> Any:
        check_runner(keyed)
        return typed(keyed, tuple[str, Batch]) | "Cells" >> beam.ParDo(self._fn).with_output_types(Unit)


class WriteUnits(beam.PTransform):
    """Units -> the store, one transaction a bundle, behind a real edge of the graph.

    The edge is a Reshuffle: on Prism a stateful stage fused with its sink spins on a closed channel (Beam 2.77).
    """

    def __init__(self, store: LiveStore, run: int) -> None:
        super().__init__()
        self._fn = _WriteUnits(store, run)

    def expand(self, units: Any) -> Any:
        return units | "Edge" >> beam.Reshuffle() | "Store" >> beam.ParDo(self._fn)


class _WriteUnits(beam.DoFn):
    def __init__(self, store: LiveStore, run: int) -> None:
        self._store, self._run = store, run
        self._units: list[Unit] = []

    def start_bundle(self) -> None:
        self._units = []

    def process(self, element: Unit) -> None:
        self._units.append(element)

    def finish_bundle(self) -> None:
        if self._units:
            self._store.write(self._run, self._units)

    def teardown(self) -> None:
        self._store.close()
