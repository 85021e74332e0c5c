"""What one engine key holds: a directory of cells, behind the small interface that every engine is wired to."""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Any

from pa_river.stream import sections
from pa_river.stream.cell import Cell
from pa_river.stream.records import Event, Output, Snapshot
from pa_river.stream.spec import Settings, SnapshotReader, engine_key

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
        "arrival"; "sequence": `seq` counts 0, 1, 2 ... per key and source, and an event waits for its predecessor;
        "event_time": events wait until nothing earlier is to come, and are handled by time, at equal times labels
        before features, then by source, seq and id. One that comes behind a later one that was handled is handled at
        once, and counted as `out_of_order`.
    lateness
        Of "event_time": seconds by which an event of a key may come after a later one. None: events wait for the
        engine's timers, or the end of the input.
    shards
        Many cells to an engine key: into so many are the keys dealt, by `engine_key`. Only the cells that events
        touch are decoded and encoded; a state belongs to one number of shards.
    detector, action
        Not supported yet; their place in the state is left.
    at_end
        "flush" (what waits leaves as orphans, then a snapshot) or "snapshot" (the whole cell, nothing leaves).
    on_return
        What a key does that comes back after it left: "fresh" (a new generation) or "restore" from `reader`.
    dedupe_size
        Answered and expired ids remembered a key.
    max_pending, max_pending_bytes
        Bound on waiting features, on waiting labels, and on events that wait for their turn, each; over it the oldest
        leaves (an event: is handled early) and is counted as `overflow`.
    max_rejected
        Rejected events of one key above which the bundle fails with `RuntimeError`; None: any number.
    snapshot_every
        Versions between two periodic snapshots; None: only at idle expiry and at the end.
    keep_every
        Versions between two models put into the ring of the last 3 that a rollback takes from; None: only what a
        reset or rollback replaces.
    reader
        Where the newest snapshot of a key is found of which the engine holds nothing: it goes on from there, unless
        it had left. With `idle_ttl`, and where keys that left come back "fresh", it needs `keep_marks`.
    keep_marks
        Whether a key that left keeps its marks (at most 4 kB a source) and the number of its generation, so that an
        event that is delivered again is known and an older one that comes late begins no generation twice.

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
        keep_every: int | None = 1_000, reader: SnapshotReader | None = None, lateness: float | None = None,
        keep_marks: bool = False,
    ) -> None:
        super().__init__(
            model, label_ttl=label_ttl, idle_ttl=idle_ttl, order=order, shards=shards, detector=detector, action=action,
            at_end=at_end, on_return=on_return, dedupe_size=dedupe_size, max_pending=max_pending,
            max_pending_bytes=max_pending_bytes, max_rejected=max_rejected, snapshot_every=snapshot_every,
            keep_every=keep_every, reader=reader, lateness=lateness, keep_marks=keep_marks,
        )

    def engine_key(self, key: str) -> str:
        """Under which key an engine holds the cell of `key`: its own, or with `shards` that of many."""
        return engine_key(key, self.shards)

    def open(self, key: str, held: bytes | Holder | None, *, is_armed: bool = True) -> Holder:
        """The holder of an engine key: from its bytes, itself if it is live already, new if nothing is held.

        Parameters
        ----------
        key
            The engine key: with `shards`, as `engine_key` returns it.
        held
            What the engine has.
        is_armed
            Whether the timer that the bytes speak of is still set: False where they outlived the engine that set it.

        Raises
        ------
        StateError
            If the bytes are damaged, or of another format; never to be taken for a bad event.

        """
        if isinstance(held, Holder):
            return held
        return Holder(self, key, held, is_armed)

    def open_from(self, snapshot: Snapshot) -> Holder:
        """The holder of a snapshot's key, which goes on from there; of a key that had left, as one that comes back.

        Examples
        --------
        >>> from pa_river import PAClassifier
        >>> spec = CellSpec(PAClassifier(), at_end="snapshot")
        >>> holder = spec.open("k", None)
        >>> _ = holder.on_event(Event("k", "1", 0.0, {"a": 1.0}, True))
        >>> spec.open_from(holder.on_end()[-1]).version()
        1

        """
        holder = Holder(self, self.engine_key(snapshot.key))
        holder.put(snapshot)
        return holder


class Holder:
    """What one engine key holds. `CellSpec.open` makes it; an engine adapter does nothing but call it.

    Cells that no event touches stay bytes, and the earliest deadline is the top of a heap: a touch costs the cells
    that it is for, however many there are beside them.
    """

    def __init__(self, settings: Settings, key: str, data: bytes | None = None, is_armed: bool = True) -> None:
        self.key = key
        self._settings = settings
        self._cells: dict[str, Cell] = {}
        self._asleep: dict[str, tuple[float, bytes | memoryview]] = {}  # next deadline and bytes of untouched cells
        self._armed = self._armed_for = _INF  # the timer, and the deadline it was set for
        self._news: dict[str, int] = {}
        is_untimed = settings.label_ttl is None and settings.idle_ttl is None
        self._is_timeless = is_untimed and settings.order != "event_time"
        self._due: dict[str, float] = {}  # the deadline of each cell that has one, as it was last looked at
        self._first: list[tuple[float, str]] = []  # a heap of these, and of some that no longer count
        self._fresh: set[str] = set()  # touched since `wake_at` was asked
        self._later: set[str] = set()  # touched, and due at the armed timer or later: not looked at until it fires
        if data is not None:
            cells, armed = sections.split_cells(data)
            if is_armed:
                self._armed = armed
                self._armed_for = armed - 0.001  # at most: no later deadline than this needs a new timer
            self._asleep = {name: (due, blob) for name, due, blob in cells}
            self._first = [(due, name) for name, due, _ in cells if due < _INF]
            self._due = {name: due for due, name in self._first}
            heapify(self._first)

    def on_event(self, event: Event) -> list[Output]:
        """Handle one event; everything due before its time is handled first."""
        key = event.key
        cell = self._cells.get(key)
        if cell is None:
            cell = self._wake(key)
        outputs = cell.on_event(event)
        if not self._is_timeless:
            self._fresh.add(key)
        if not cell.version and cell.is_blank():
            self._drop(cell)
        return outputs

    def on_due(self, now: float) -> list[Output]:
        """A timer fired at `now` (event-time seconds): handle what is due before it. A stale one does nothing."""
        now = float(now)
        if now >= self._armed:
            self._armed = self._armed_for = _INF
        for name in (*self._fresh, *self._later):
            self._place(name)
        self._fresh.clear()
        self._later.clear()
        names: list[str] = []
        while self._earliest() < now:  # in order of deadline, then of name
            names.append(heappop(self._first)[1])
            del self._due[names[-1]]
        outputs: list[Output] = []
        for name in names:
            cell = self._cells.get(name) or self._wake(name)
            outputs += cell.on_due(now)
            self._fresh.add(name)
            if cell.is_blank():
                self._drop(cell)
        return outputs

    def on_end(self) -> list[Output]:
        """The bounded input is over: what waits leaves by `at_end`, key by key, and snapshots with it."""
        outputs: list[Output] = []
        for name in sorted([*self._cells, *self._asleep]):
            cell = self._cells.get(name) or self._wake(name)
            outputs += cell.on_end()
            self._fresh.add(name)
            if cell.is_blank():
                self._drop(cell)
        return outputs

    def wake_at(self) -> float | None:
        """The event time for which a timer must be set now; None: nothing is due, or an earlier timer is armed.

        To ask is to arm: set the timer that is returned. A whole number of milliseconds, rounded up, plus one, so that
        a timer cut to milliseconds still fires after the deadline.
        """
        if self._is_timeless:
            return None
        for name in self._fresh:
            cell = self._cells.get(name)
            if cell is not None and cell.bound >= self._armed_for:
                self._later.add(name)
            else:
                self._place(name)
        self._fresh.clear()
        due = self._earliest()
        if due >= self._armed_for:
            return None
        wake = (math.ceil(due * 1000.0) + 1) / 1000.0
        if wake >= self._armed:
            return None
        self._armed, self._armed_for = wake, due
        return wake

    def dumps(self) -> bytes | None:
        """Everything as bytes; None if nothing is left, so that the engine can drop the key."""
        rows: list[tuple[str, float, list[bytes | memoryview]]]
        rows = [(name, due, [blob]) for name, (due, blob) in self._asleep.items()]
        rows += [(name, cell.deadline(), cell.dumps()) for name, cell in self._cells.items()]
        rows.sort(key=itemgetter(0))
        return sections.join_cells(rows, self._armed) if rows else None

    def is_empty(self) -> bool:
        """Whether `dumps` would return None, at no cost: an engine then clears its state and its timer."""
        return not self._cells and not self._asleep

    def keys(self) -> list[str]:
        """The keys that have a cell here."""
        return sorted([*self._cells, *self._asleep])

    def counts(self) -> dict[str, int]:
        """Totals of what the cells count: duplicates, overflow, gaps, too_old, out_of_order, rejected, orphans."""
        totals: dict[str, int] = {}
        for name in self.keys():
            cell = self._look(name)
            _add(totals, cell.counts if cell is not None else {})
        return totals

    def drain_counts(self) -> dict[str, int]:
        """What was counted since the last call, by this live object: for an engine's own metrics."""
        news, self._news = self._news, {}
        for cell in self._cells.values():
            if cell.news:
                _add(news, cell.news)
                cell.news = {}
        return news

    def model(self, key: str | None = None) -> Any:
        """The live model of a key (the only one by default), for reading; None if the key has no cell."""
        cell = self._look(self.key if key is None else key)
        return None if cell is None else self._settings.kind.load(cell.model_bytes())

    def version(self, key: str | None = None) -> int:
        """The version of a key's model; 0 if it has no cell."""
        cell = self._look(self.key if key is None else key)
        return 0 if cell is None else cell.version

    def put(self, snapshot: Snapshot) -> None:
        """Let the key of a snapshot go on from it, whatever it held here."""
        cell = Cell(self._settings, snapshot.key)
        cell.resume(snapshot)
        self._asleep.pop(snapshot.key, None)
        self._cells[snapshot.key] = cell
        self._fresh.add(snapshot.key)

    def put_model(self, key: str, snapshot: Snapshot) -> None:
        """Let a key that has a cell here serve a snapshot's model, as the version that it has there; only that."""
        cell = self._cells.get(key) or self._wake(key)
        cell.serve(snapshot)
        self._fresh.add(key)

    def _look(self, name: str) -> Cell | None:
        """A key's cell, for reading: one that is asleep stays so."""
        if name in self._asleep:
            return Cell(self._settings, name, self._asleep[name][1])
        return self._cells.get(name)

    def _wake(self, name: str) -> Cell:
        """The cell of a key of which none is live: from its bytes, from the reader's snapshot, or a new one."""
        settings = self._settings
        if name != self.key and settings.shards is None:
            raise ValueError(f"an event of key {name!r} reached the state of key {self.key!r}")
        if settings.shards is not None and engine_key(name, settings.shards) != self.key:
            raise ValueError(f"an event of key {name!r} reached the state of {self.key!r}")
        if name in self._asleep:
            cell = Cell(settings, name, self._asleep.pop(name)[1])
        else:
            cell = Cell(settings, name)
            found = None if settings.reader is None else settings.reader.newest(name)
            if found is not None and found.cell:
                cell.resume(found)
        self._cells[name] = cell
        return cell

    def _place(self, name: str) -> None:
        """Look at a cell's deadline, and put it into the heap."""
        cell = self._cells.get(name)
        due = _INF if cell is None else cell.deadline()
        if due == _INF:
            self._due.pop(name, None)
        elif self._due.get(name) != due:
            self._due[name] = due
            heappush(self._first, (due, name))
            if len(self._first) > 64 + 2 * len(self._due):
                self._first = [(due, name) for name, due in self._due.items()]
                heapify(self._first)

    def _earliest(self) -> float:
        """The earliest deadline that was looked at; what no longer counts is passed."""
        first, due = self._first, self._due
        while first and due.get(first[0][1]) != first[0][0]:
            heappop(first)
        return first[0][0] if first else _INF

    def _drop(self, cell: Cell) -> None:
        name = cell.key
        _add(self._news, cell.news)
        del self._cells[name]
        self._due.pop(name, None)
        self._fresh.discard(name)
        self._later.discard(name)
        if not self._cells and not self._asleep:
            self._armed = self._armed_for = _INF


def _add(totals: dict[str, int], counts: dict[str, int]) -> None:
    for name, count in counts.items():
        totals[name] = totals.get(name, 0) + count
