"""What one engine key holds: a directory of cells, behind the small interface that every engine is wired to."""

from __future__ import annotations

import math
from typing import Any

from pa_river.stream import sections
from pa_river.stream.cell import Cell
from pa_river.stream.records import Event, Output
from pa_river.stream.spec import Settings, SnapshotReader

_INF = math.inf


class CellSpec(Settings):
    """A job's settings; opens what an engine key holds.

    Parameters
    ----------
    model
        A prototype, of this package or a River model or pipeline that `pa_river.dumps` can store. Each key starts
        from a copy of it.
    label_ttl
        Seconds of event time that features wait for their label, and a label for its features; None: for ever,
        within `max_pending`.
    idle_ttl
        Seconds of event time without an event after which a key leaves with a last snapshot; None: never.
    order
        "arrival", or "sequence": `seq` counts 0, 1, 2 ... per key and source, and an event waits for its predecessor.
    shards, detector, action
        Not supported yet; their place in the state is left.
    at_end
        "flush" (what waits leaves as orphans, then a snapshot) or "snapshot" (the whole cell, nothing leaves).
    on_return
        What a key does that comes back: "fresh" (a new generation) or "restore" from `reader`.
    dedupe_size
        Answered and expired ids remembered a key.
    max_pending, max_pending_bytes
        Bound on waiting features, on waiting labels, and on events that wait for their turn, each; over it the oldest
        leaves (an event of "sequence": is handled early) and is counted as `overflow`.
    max_rejected
        Rejected events of one key above which the bundle fails with `RuntimeError`; None: any number.
    snapshot_every
        Versions between two periodic snapshots; None: only at idle expiry and at the end.
    keep_every
        Versions between two models put into the ring of the last 3 that a rollback takes from; None: only what a
        reset or rollback replaces.
    reader
        Where `on_return="restore"` finds the newest snapshot of a key.

    Raises
    ------
    ValueError
        In words, for a value that is not allowed or not supported yet, or a model that cannot be stored.

    Examples
    --------
    >>> from pa_river import PAClassifier
    >>> holder = CellSpec(PAClassifier(), label_ttl=60.0).open("k", None)
    >>> [output.tag for output in holder.on_event(Event("k", "1", 0.0, x={"a": 1.0}))]
    ['predictions']
    >>> [output.tag for output in holder.on_event(Event("k", "1", 5.0, y=True))]
    ['outcomes']

    """

    def __init__(
        self, model: Any, *, label_ttl: float | None = None, idle_ttl: float | None = None, order: str = "arrival",
        shards: int | None = None, detector: Any = None, action: str = "none", at_end: str = "flush",
        on_return: str = "fresh", dedupe_size: int = 1024, max_pending: int = 10_000,
        max_pending_bytes: int = 4_000_000, max_rejected: int | None = None, snapshot_every: int | None = None,
        keep_every: int | None = 1_000, reader: SnapshotReader | None = None,
    ) -> None:
        super().__init__(
            model, label_ttl=label_ttl, idle_ttl=idle_ttl, order=order, shards=shards, detector=detector, action=action,
            at_end=at_end, on_return=on_return, dedupe_size=dedupe_size, max_pending=max_pending,
            max_pending_bytes=max_pending_bytes, max_rejected=max_rejected, snapshot_every=snapshot_every,
            keep_every=keep_every, reader=reader,
        )

    def open(self, key: str, held: bytes | Holder | None) -> Holder:
        """The holder of an engine key: from its bytes, itself if it is live already, new if nothing is held.

        Raises
        ------
        StateError
            If the bytes are damaged, or of another format; never to be taken for a bad event.

        """
        if isinstance(held, Holder):
            return held
        return Holder(self, key, held)


class Holder:
    """What one engine key holds. `CellSpec.open` makes it; an engine adapter does nothing but call it."""

    def __init__(self, settings: Settings, key: str, data: bytes | None = None) -> None:
        self.key = key
        self._settings = settings
        self._cells: dict[str, Cell] = {}
        self._asleep: dict[str, tuple[float, bytes]] = {}  # next deadline and bytes of cells that no event touched
        self._armed = self._armed_for = _INF  # the timer, and the deadline it was set for
        self._news: dict[str, int] = {}
        self._is_timeless = settings.label_ttl is None and settings.idle_ttl is None
        if data is not None:
            cells, self._armed = sections.split_cells(data)
            self._armed_for = self._armed - 0.001  # at most: no later deadline than this needs a new timer
            self._asleep = {name: (due, blob) for name, due, blob in cells}

    def on_event(self, event: Event) -> list[Output]:
        """Handle one event; everything due before its time is handled first."""
        cell = self._cells.get(event.key)
        if cell is None:
            cell = self._wake(event.key)
        outputs = cell.on_event(event)
        if not cell.version and cell.is_blank():
            self._drop(cell)
        return outputs

    def on_due(self, now: float) -> list[Output]:
        """A timer fired at `now` (event-time seconds): handle what is due before it. A stale one does nothing."""
        now = float(now)
        if now >= self._armed:
            self._armed = self._armed_for = _INF
        dues = {name: cell.deadline() for name, cell in self._cells.items()}
        dues.update({name: due for name, (due, _) in self._asleep.items()})
        outputs: list[Output] = []
        for _, name in sorted((due, name) for name, due in dues.items() if due < now):
            cell = self._cells.get(name) or self._wake(name)
            outputs += cell.on_due(now)
            if cell.generation is None:
                self._drop(cell)
        return outputs

    def on_end(self) -> list[Output]:
        """The bounded input is over: what waits leaves by `at_end`, key by key, and snapshots with it."""
        outputs: list[Output] = []
        for name in sorted([*self._cells, *self._asleep]):
            cell = self._cells.get(name) or self._wake(name)
            outputs += cell.on_end()
            if cell.generation is None:
                self._drop(cell)
        return outputs

    def wake_at(self) -> float | None:
        """The event time for which a timer must be set now; None: nothing is due, or an earlier timer is armed.

        To ask is to arm: set the timer that is returned. A whole number of milliseconds, rounded up, plus one, so that
        a timer cut to milliseconds still fires after the deadline.
        """
        if self._is_timeless:
            return None
        cells = self._cells.values()
        if not self._asleep:
            for cell in cells:
                if cell.bound < self._armed_for:
                    break
            else:
                return None
        due = min([cell.deadline() for cell in cells], default=_INF)
        if self._asleep:
            due = min(due, min(due for due, _ in self._asleep.values()))
        if due >= self._armed_for:
            return None
        wake = (math.ceil(due * 1000.0) + 1) / 1000.0
        if wake >= self._armed:
            return None
        self._armed, self._armed_for = wake, due
        return wake

    def dumps(self) -> bytes | None:
        """Everything as bytes; None if nothing is left, so that the engine can drop the key."""
        rows = [(name, due, blob) for name, (due, blob) in self._asleep.items()]
        rows += [(name, cell.deadline(), cell.dumps()) for name, cell in self._cells.items()]
        return sections.join_cells(sorted(rows), self._armed) if rows else None

    def is_empty(self) -> bool:
        """Whether `dumps` would return None, at no cost: an engine then clears its state and its timer."""
        return not self._cells and not self._asleep

    def counts(self) -> dict[str, int]:
        """Totals of what the cells count: duplicates, overflow, gaps, too_old, rejected and each kind of orphan."""
        totals: dict[str, int] = {}
        for name in list(self._asleep):
            self._wake(name)
        for cell in self._cells.values():
            _add(totals, cell.counts)
        return totals

    def drain_counts(self) -> dict[str, int]:
        """What was counted since the last call, by this live object: for an engine's own metrics."""
        news, self._news = self._news, {}
        for cell in self._cells.values():
            _add(news, cell.news)
            cell.news = {}
        return news

    def model(self, key: str | None = None) -> Any:
        """The live model of a key (the only one by default), for reading; None if the key has no cell."""
        name = self.key if key is None else key
        cell = self._cells.get(name) or (self._wake(name) if name in self._asleep else None)
        return None if cell is None else self._settings.kind.load(cell.model_bytes())

    def version(self, key: str | None = None) -> int:
        """The version of a key's model; 0 if it has no cell."""
        name = self.key if key is None else key
        cell = self._cells.get(name) or (self._wake(name) if name in self._asleep else None)
        return 0 if cell is None else cell.version

    def _wake(self, name: str) -> Cell:
        if name != self.key and self._settings.shards is None:
            raise ValueError(f"an event of key {name!r} reached the state of key {self.key!r}")
        _, blob = self._asleep.pop(name, (_INF, b""))
        cell = self._cells[name] = Cell(self._settings, name, blob)
        return cell

    def _drop(self, cell: Cell) -> None:
        _add(self._news, cell.news)
        del self._cells[cell.key]
        if not self._cells and not self._asleep:
            self._armed = self._armed_for = _INF


def _add(totals: dict[str, int], counts: dict[str, int]) -> None:
    for name, count in counts.items():
        totals[name] = totals.get(name, 0) + count
