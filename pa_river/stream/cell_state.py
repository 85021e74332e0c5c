"""What a cell keeps and how it goes: sections that stay bytes until touched, counters, deadlines, expiry."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pa_river.state import StateError, pack, unpack
from pa_river.stream import sections
from pa_river.stream.buffers import Buffer
from pa_river.stream.by_time import ByTime
from pa_river.stream.order import InOrder, Marks, highest
from pa_river.stream.records import Event, Orphan, Output, Rejected, Snapshot, payload
from pa_river.stream.sections import Section
from pa_river.stream.seen import NO_FEATURES, UNLABELLED, SeenRing, digest_x, digest_y
from pa_river.stream.serving import Served
from pa_river.stream.spec import OLD_MODELS, Settings

INF = math.inf


class CellState:
    """The state of one key, without the rules of what an event does to it.

    Nothing here reads a clock, draws a number or does I/O: the outputs and the bytes are a function of the events
    and of the times the cell was woken at. A cell without `generation` has not begun, or has expired.

    Parameters
    ----------
    settings
        The job's.
    key
        Whose cell this is.
    blob
        What `dumps` returned; b"" for a new one. Its sections stay bytes until an event touches them.

    """

    __slots__ = (
        "settings", "key", "news", "model", "pending", "early", "seen", "marks", "waiting", "clock", "last",
        "generation", "left", "version", "parent", "counts", "live", "bound", "_sections", "_data",
    )
    model: Served
    pending: Buffer  # id -> features, prediction, its version, weight, segment
    early: Buffer  # id -> label, weight, segment
    seen: SeenRing
    marks: Marks | InOrder
    waiting: ByTime | None  # under order="event_time"
    clock: float  # the largest event time seen or woken at
    last: float  # the largest event time seen
    generation: int | None  # whole milliseconds of event time; None: not begun
    left: int | None  # the generation that ended here; None: none did, or nothing of it is to be known
    version: int
    parent: int | None  # the version that the present one grew from; None: the prototype
    counts: dict[str, int]
    live: bool  # whether the sections were opened
    bound: float  # no deadline is before this: what an event or a timer compares first
    _sections: dict[int, Section]
    _data: bytes | memoryview

    def __init__(self, settings: Settings, key: str, blob: bytes | memoryview = b"") -> None:
        self.settings = settings
        self.key = key
        self.news: dict[str, int] = {}  # counts since they were last drained; no part of the state
        self.clear()
        if blob:
            self._adopt(blob)

    def is_blank(self) -> bool:
        """Whether nothing is worth keeping: no example, id or mark came (only queries and refused events)."""
        return not self.is_held() and self.is_unmoved() if self.live else not self._data

    def is_unmoved(self) -> bool:
        """Whether what was handled left nothing."""
        entries = len(self.pending) + len(self.early) + len(self.seen)
        if self.version or entries or self.marks or self.left is not None:
            return False
        return self.settings.max_rejected is None or not self.counts

    def dumps(self) -> list[bytes | memoryview]:
        """The cell's bytes in pieces, none if nothing is left; a section that no event touched keeps its bytes."""
        if not self.live:
            return [self._data]
        if self.is_blank():
            return []
        head = (self.clock, self.last, self.generation, self.version, self.parent, self.counts)
        self._put(sections.HEAD, pack(head if self.left is None else (*head, self.left)))
        self._put(sections.MODEL, self.model.encode() or b"")
        self._put(sections.PENDING, self.pending.encode())
        self._put(sections.EARLY, self.early.encode())
        self._put(sections.SEEN, self.seen.encode())
        self._put(sections.MARKS, self.marks.encode())
        if isinstance(self.marks, InOrder):
            self._put(sections.WAITING, self.marks.encode_waiting())
        elif self.waiting is not None:
            self._put(sections.WAITING, self.waiting.encode())
        return sections.pieces(self._sections)

    def snapshot(self, reason: str) -> Snapshot:
        """The model and the cell as a record.

        Events that wait for their turn are not in it: its marks say that they are still to come, and which ones had
        come already is a matter of arrival.
        """
        self.dumps()
        cell = sections.join({number: part for number, part in self._sections.items() if number != sections.WAITING})
        generation = 0 if self.generation is None else self.generation
        return Snapshot(self.key, generation, self.version, self.clock, reason, self.model_bytes(), cell)

    def model_bytes(self) -> bytes:
        """The model as `pa_river.loads` reads it."""
        if not self.live:
            self.touch()
        return self.model.encode() or self.settings.kind.prototype

    def old_models(self) -> list[tuple[int, float, bytes]]:
        """(version, time, bytes) of the last models that were kept, the newest last."""
        ring = self._sections.get(sections.RING)
        return list(unpack(ring.open())) if ring is not None and ring.blob else []

    def keep_model(self) -> None:
        """Put the present model into the ring of old ones."""
        kept = [entry for entry in self.old_models() if entry[0] != self.version]
        kept.append((self.version, self.clock, self.model_bytes()))
        self._put(sections.RING, pack(kept[-OLD_MODELS:]))

    def moved(self, out: list[Output]) -> None:
        """After the version rose: what is kept every so many versions."""
        settings = self.settings
        if settings.keep_every is not None and self.version % settings.keep_every == 0:
            self.keep_model()
        if settings.snapshot_every is not None and self.version % settings.snapshot_every == 0:
            out.append(self.snapshot("periodic"))

    def count(self, what: str, by: int = 1) -> None:
        """Add to a counter of the cell."""
        self.counts[what] = self.counts.get(what, 0) + by
        self.news[what] = self.news.get(what, 0) + by

    def reject(self, event: Event, stage: str, reason: str, out: list[Output]) -> None:
        """The record of an event that changed nothing."""
        out.append(Rejected(self.key, event.id, payload(event), stage, reason))
        self.count("rejected")
        most = self.settings.max_rejected
        if most is not None and self.counts["rejected"] > most:
            raise RuntimeError(f"key {self.key!r} rejected more than {most} events; the last: {stage}: {reason}")

    def orphan(self, kind: str, id: str, time: float, y: Any, prediction: Any, out: list[Output]) -> None:
        out.append(Orphan(self.key, id, time, kind, y, prediction))
        self.count(kind)

    def drop_features(self, id: str, time: float, out: list[Output]) -> None:
        """Features leave without their label."""
        x, prediction = self.pending.content(id)[:2]
        self.pending.remove(id)
        self.orphan("unlabelled", id, time, None, prediction, out)
        self.seen.add(id, UNLABELLED, digest_x(x), 0, time)

    def drop_label(self, id: str, time: float, out: list[Output]) -> None:
        """A label leaves without its features."""
        y = self.early.content(id)[0]
        self.early.remove(id)
        self.orphan("no_features", id, time, y, None, out)
        self.seen.add(id, NO_FEATURES, 0, digest_y(y), time)

    def deadline(self) -> float:
        """When the cell wants to be woken; inf if nothing is due ever.

        No key is idle while events wait for their turn: time, or the end of the input, frees them.
        """
        if not self.live:
            self.touch()
        label, idle = self._label_deadline()[0], self.idle_deadline()
        turn = INF if self.waiting is None else self.waiting.earliest()
        self.bound = min(label, idle, turn)
        return min(label, turn) if self.is_held() else self.bound

    def is_held(self) -> bool:
        """Whether events wait for their turn."""
        return len(self.marks) > 0 if isinstance(self.marks, InOrder) else bool(self.waiting)

    def idle_deadline(self) -> float:
        """When the key leaves, if no event comes."""
        ttl = self.settings.idle_ttl
        return INF if ttl is None or self.generation is None else self.last + ttl

    def waits(self, buffer: Buffer, id: str, time: float, size: int, content: tuple[Any, ...]) -> None:
        """Put features or a label where they wait for the other."""
        buffer.add(id, time, size, content)
        ttl = self.settings.label_ttl
        if ttl is not None and time + ttl < self.bound:
            self.bound = time + ttl

    def expire(self, clock: float, idle: float, out: list[Output]) -> None:
        """Handle every deadline before `clock`, in order; that of an idle key takes all and ends the generation."""
        while True:
            due, drop, id = self._label_deadline()
            if due >= clock or due > idle:
                break
            drop(id, due, out)
        if idle < clock:
            self.clock = max(self.clock, idle)
            self.flush(idle, out)
            out.append(self.snapshot("idle"))
            marks, waiting, left = self.marks, self.waiting, self.generation
            self.clear()
            self.marks, self.waiting, self.left = marks, waiting, left  # the sources go on counting where they were

    def _label_deadline(self) -> tuple[float, Callable[[str, float, list[Output]], None], str]:
        """The first deadline of what waits, and how it leaves: at equal deadlines features before labels."""
        ttl = self.settings.label_ttl
        if ttl is None:
            return INF, self.drop_features, ""
        features, label = self.pending.earliest(), self.early.earliest()
        if label is not None and (features is None or label[0] < features[0]):
            return label[0] + ttl, self.drop_label, label[1]
        time, id = features or (INF, "")
        return time + ttl, self.drop_features, id

    def flush(self, time: float, out: list[Output]) -> None:
        """Everything that waits leaves, in order of its event time."""
        waiting = [(self.pending.time(id), 0, id) for id in self.pending.ids()]
        waiting += [(self.early.time(id), 1, id) for id in self.early.ids()]
        for _, is_label, id in sorted(waiting, key=lambda entry: entry[:2]):
            (self.drop_label if is_label else self.drop_features)(id, time, out)

    def begin(self, time: float, left: Snapshot | None = None) -> None:
        """A generation begins with the event at `time`; or, by `on_return`, the one that left goes on.

        `left` is its snapshot, if it left just now; else the reader is asked.
        """
        self.bound = -INF
        settings = self.settings
        floor, self.left = self.left, self.left if settings.keep_marks else None
        if settings.on_return == "restore" and floor is not None and settings.reader is not None:
            found = left or settings.reader.newest(self.key)
            if found is not None and found.cell:
                marks, waiting = self.marks, self.waiting
                self._adopt(found.cell)
                self.touch()
                self.model.replace(found.model)  # the store may have rolled back the model, and only that
                if marks:
                    self.marks = marks
                self.waiting = waiting
                self.last = time
                return
        self.generation = round(time * 1000) if floor is None else max(round(time * 1000), floor + 1)

    def resume(self, found: Snapshot) -> None:
        """Go on from what a snapshot holds: of a key that had left then, its marks and its generation alone."""
        self._adopt(found.cell)
        self.touch()
        self.model.replace(found.model)
        if found.reason == "idle":
            marks, waiting = self.marks, self.waiting
            self.clear()
            self.marks, self.waiting, self.left = marks, waiting, found.generation

    def serve(self, found: Snapshot) -> None:
        """Another model, as a later version than the present one."""
        if not self.live:
            self.touch()
        self.model.replace(found.model)
        self.parent, self.version = self.version, found.version

    def clear(self) -> None:
        """Nothing is left; the next event begins a new generation."""
        self.clock = self.last = -INF
        self.generation = self.left = None
        self.version = 0
        self.parent = None
        self.counts = {}
        self._sections = {}
        self._data = b""
        self.touch()

    def touch(self) -> None:
        """Open the sections that every event looks into; their entries stay bytes."""
        settings = self.settings
        blob: dict[int, Any] = {number: part.open() for number, part in self._sections.items() if number in _OPENED}
        self.model = Served(settings.kind, blob.get(sections.MODEL))
        timed = settings.label_ttl is not None
        self.pending = Buffer(blob.get(sections.PENDING, b""), timed)
        self.early = Buffer(blob.get(sections.EARLY, b""), timed)
        self.seen = SeenRing(settings.dedupe_size, settings.label_ttl, blob.get(sections.SEEN, b""))
        marks = blob.get(sections.MARKS, b"")
        waiting = blob.get(sections.WAITING, b"")
        self.marks = InOrder(marks, waiting) if settings.order == "sequence" else Marks(marks)
        self.waiting = ByTime(waiting) if settings.order == "event_time" else None
        self.live = True
        self.bound = -INF

    def _adopt(self, data: bytes | memoryview) -> None:
        """Take over a cell's bytes; only the head is opened."""
        self._sections = sections.split(data)
        self._data = data
        self.live = False
        head = _head(self._sections)
        self.clock, self.last, self.generation, self.version, self.parent, self.counts = head[:6]
        self.left = head[6] if len(head) == 7 else None

    def _put(self, number: int, blob: bytes | memoryview) -> None:
        present = self._sections.get(number)
        if present is None or present.blob is not blob:  # an untouched section keeps its bytes and their checksum
            self._sections[number] = sections.section(blob)


_OPENED = frozenset((
    sections.MARKS, sections.MODEL, sections.SEEN, sections.PENDING, sections.EARLY, sections.WAITING,
))


def with_model(cell: bytes, model: bytes, *, version: int, parent: int) -> bytes:
    """A cell's bytes with another model in them, as the given version; nothing else changes."""
    parts = sections.split(cell)
    clock, last, generation, _, _, *rest = _head(parts)
    parts[sections.HEAD] = sections.section(pack((clock, last, generation, version, parent, *rest)))
    parts[sections.MODEL] = sections.section(model)
    return sections.join(parts)


def high_marks(cell: bytes) -> dict[str, int]:
    """The highest sequence number that a cell has handled of each source."""
    parts = sections.split(cell) if cell else {}
    return highest(bytes(parts[sections.MARKS].open())) if sections.MARKS in parts else {}


def _head(parts: dict[int, Section]) -> tuple[Any, ...]:
    """(clock, last, generation, version, parent, counts), and the generation that left, if one did."""
    head = unpack(parts[sections.HEAD].open()) if sections.HEAD in parts else None
    if not (isinstance(head, tuple) and len(head) in (6, 7) and tuple(map(type, head[:2])) == (float, float)):
        raise StateError("the head of a cell is missing or not what was written")
    return head
