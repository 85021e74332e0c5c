"""What one key's cell does on an event or at a deadline: score, keep, evaluate, then learn."""

from __future__ import annotations

from typing import Any

from pa_river.state import StateError
from pa_river.stream import control
from pa_river.stream.buffers import Buffer, size_of
from pa_river.stream.cell_state import INF, CellState
from pa_river.stream.order import DUPLICATE, NEW, InOrder, Marks
from pa_river.stream.parsing import check_values, malformed
from pa_river.stream.records import Event, Outcome, Output, Prediction, Snapshot
from pa_river.stream.seen import ANSWERED, CONTROL, NO_FEATURES, UNLABELLED, Seen, digest_x, digest_y


class Cell(CellState):
    """The rules of one key: `CellState`, and what an event or a deadline does to it."""

    __slots__ = ()

    def on_event(self, event: Event) -> list[Output]:
        """Handle one event, or keep it until its turn; then those that waited for it."""
        out: list[Output] = []
        order = self.settings.order
        if event.seq is None and order == "arrival":
            self._handle(event, out)
            return out
        if not self.live:
            self.touch()
        if order == "event_time":
            self._by_time(event, out)
            return out
        try:
            source, seq = _number_of(event)
            admitted = self.marks.admit(source, seq)
        except ValueError as error:
            self.reject(event, "validate", str(error), out)
            return out
        if admitted != NEW:
            self.count(admitted)
        elif isinstance(self.marks, Marks):
            self._handle(event, out)
        else:
            self._in_turn(self.marks, source, seq, event, out)
        return out

    def on_due(self, now: float) -> list[Output]:
        """Handle everything whose deadline lies before `now`; a stale wake-up does nothing."""
        out: list[Output] = []
        if self.deadline() < now:
            self._release(now, out)
            if self.generation is not None:
                self.expire(now, INF if self.is_held() else self.idle_deadline(), out)
            if self.generation is not None:
                self.clock = max(self.clock, now)
            elif not self.settings.keep_marks:
                self.clear()
        return out

    def on_end(self) -> list[Output]:
        """The bounded input is over: what waits for its turn is handled, then flushed, and a snapshot leaves."""
        out: list[Output] = []
        if not self.live:
            self.touch()
        if isinstance(self.marks, InOrder):
            while len(self.marks):
                self._skip(self.marks, None, out)
        self._release(INF, out)
        if self.generation is None:
            if self.settings.at_end == "flush":
                self.clear()
            return out
        if self.settings.at_end == "flush":
            self.flush(self.clock, out)
        out.append(self.snapshot("end"))
        if self.settings.at_end == "flush":
            self.clear()
        return out

    def _by_time(self, event: Event, out: list[Output]) -> None:
        """Let an event wait until nothing earlier can come; one that comes behind a later one is handled at once."""
        waiting, settings = self.waiting, self.settings
        assert waiting is not None
        if (fault := malformed(event)) is not None:
            self.reject(event, "validate", fault, out)
            return
        if type(event.time) is not float:
            event = event._replace(time=float(event.time))
        try:
            if event.seq is not None or type(event.source) not in (str, type(None)):
                source, seq = _number_of(event)
                assert isinstance(self.marks, Marks)
                known = self.marks.look(source, seq)
                if known == NEW and waiting.holds(source, seq):
                    known = DUPLICATE
                if known != NEW:
                    self.count(known)
                    return
            if event.time < self.last:
                self.count("out_of_order")
                self._admitted(event, out)
                return
            waiting.add(event)
        except ValueError as error:
            self.reject(event, "validate", str(error), out)
            return
        if event.time < self.bound:
            self.bound = event.time
        while len(waiting) > settings.max_pending or waiting.bytes > settings.max_pending_bytes:
            self.count("overflow")
            self._admitted(waiting.pop(), out)
        passed = -INF if settings.lateness is None else max(waiting.newest, self.last) - settings.lateness
        self._release(max(passed, self.clock), out)

    def _release(self, now: float, out: list[Output]) -> None:
        """Handle, in order, what waits and is of a time before `now`."""
        waiting = self.waiting
        while waiting is not None and waiting.earliest() < now:
            self._admitted(waiting.pop(), out)

    def _admitted(self, event: Event, out: list[Output]) -> None:
        """Mark an event's number, if it has one, and handle it."""
        if event.seq is not None:
            try:
                self.marks.admit(event.source or "", event.seq)
            except ValueError as error:
                self.reject(event, "validate", str(error), out)
                return
        self._handle(event, out)
        if not self.version and self.is_unmoved():  # a cell in which nothing else waits is gone then, too
            waiting = self.waiting
            self.clear()
            self.waiting = waiting

    def _in_turn(self, order: InOrder, source: str, seq: int, event: Event, out: list[Output]) -> None:
        if not order.is_turn(source, seq):
            try:
                size = size_of(tuple(event))
            except ValueError as error:
                self.reject(event, "validate", str(error), out)
                return
            order.wait(source, seq, size, event)
            settings = self.settings
            while len(order) > settings.max_pending or order.bytes > settings.max_pending_bytes:
                self.count("overflow")
                self._skip(order, source, out)
            return
        order.done(source)
        self._handle(event, out)
        self._released(source, out)

    def _released(self, source: str, out: list[Output]) -> None:
        """Handle what waited for its predecessor; the order is asked anew, since an idle cell begins a new one."""
        order = self.marks
        while isinstance(order, InOrder) and (event := order.take(source)) is not None:
            order.done(source)
            self._handle(event, out)
            order = self.marks

    def _skip(self, order: InOrder, source: str | None, out: list[Output]) -> None:
        passed = order.skip(source) or order.skip()
        if passed is not None:
            self.count("gaps", passed[1])
            self._released(passed[0], out)

    def _handle(self, event: Event, out: list[Output]) -> None:
        if not self.live:
            self.touch()
        if (fault := malformed(event)) is not None:
            self.reject(event, "validate", fault, out)
            return
        time = event.time
        if type(time) is not float:  # an int of an event built by hand: stored and written as the float it equals
            time = float(time)
            event = event._replace(time=time)
        if time > self.bound and self.generation is not None and time > self.clock:
            self.deadline()
            if self.bound < time:
                self.expire(time, self.idle_deadline(), out)
                if self.generation is None:
                    snapshot = out[-1]
                    assert isinstance(snapshot, Snapshot)
                    self.begin(time, snapshot)
        if self.generation is None:
            self.begin(time)
        if time > self.clock:
            self.clock = time
        if time > self.last:
            self.last = time
        if not self.settings.kind.atomic:
            self.model.begin()
        if event.op is not None:
            control.handle(self, event, out)
        elif event.x is not None:
            self._on_features(event, out)
        elif event.id is not None:
            self._on_label(event, event.id, out)

    def _on_features(self, event: Event, out: list[Output]) -> None:
        id, x, y = event.id, event.x, event.y
        kind = self.settings.kind
        try:
            if not kind.atomic:
                check_values("x", x)
            size = size_of(x)
            if y is not None:
                y = kind.normalise(y)
        except ValueError as error:
            self.reject(event, "validate", str(error), out)
            return
        if id is not None and self._is_known(event, id, x, y, out):
            return
        model, version = self.model, self.version
        try:
            prediction, score = model.predict(x)
        except (StateError, MemoryError):
            raise
        except Exception as error:  # whatever a model raises costs this event alone
            self._fail(event, "predict", error, out)
            return
        said = Prediction(self.key, id, event.time, prediction, score, version)
        w, segment, delay = event.w, event.segment, 0.0
        waited = id is not None and id in self.early
        if waited and id is not None:
            y, early_w, early_segment = self.early.content(id)
            delay = self.early.time(id) - event.time
            w = w if early_w is None else early_w
            segment = segment if early_segment is None else early_segment
        elif y is None and id is not None and kind.supervised:
            out.append(said)
            self.waits(self.pending, id, event.time, size, (x, prediction, version, w, segment))
            while self._is_over(self.pending):
                self.count("overflow")
                self.drop_features(self.pending.oldest(), self.clock, out)
            return
        learned = self._learn(event, x, y, w, prediction, out)
        if learned is None:
            return
        out.append(said)
        if y is not None:
            out.append(Outcome(self.key, id, event.time, segment, prediction, y, learned[0], delay, version))
        if id is not None:
            if waited:
                self.early.remove(id)
                if event.y is not None:  # a label of its own, after the one that waited
                    self._repeated(event, id, kind.normalise(event.y) == y, out)
            self.seen.add(id, ANSWERED, digest_x(x), digest_y(y), self.clock)
        if self.version != version:
            self.moved(out)

    def _on_label(self, event: Event, id: str, out: list[Output]) -> None:
        kind = self.settings.kind
        try:
            y = kind.normalise(event.y)
        except ValueError as error:
            self.reject(event, "validate", str(error), out)
            return
        if id in self.pending:
            self._answer(event, id, y, out)
        elif (seen := self.seen.get(id, self.clock)) is not None:
            self._again(event, id, seen, y, out)
        elif not kind.supervised:
            self.orphan("no_features", id, event.time, y, None, out)
        elif id in self.early:
            self._repeated(event, id, self.early.content(id)[0] == y, out)
        else:
            try:
                size = size_of(y)
            except ValueError as error:
                self.reject(event, "validate", str(error), out)
                return
            self.waits(self.early, id, event.time, size, (y, event.w, event.segment))
            while self._is_over(self.early):
                self.count("overflow")
                self.drop_label(self.early.oldest(), self.clock, out)

    def _answer(self, event: Event, id: str, y: Any, out: list[Output]) -> None:
        """The label of features that wait: evaluate what was said of them, then learn."""
        x, prediction, said_at, w, segment = self.pending.content(id)
        version = self.version
        learned = self._learn(event, x, y, w if event.w is None else event.w, prediction, out)
        if learned is None:
            return
        delay = event.time - self.pending.time(id)
        self.pending.remove(id)
        segment = segment if event.segment is None else event.segment
        out.append(Outcome(self.key, id, event.time, segment, prediction, y, learned[0], delay, said_at))
        self.seen.add(id, ANSWERED, digest_x(x), digest_y(y), self.clock)
        if self.version != version:
            self.moved(out)

    def _is_known(self, event: Event, id: str, x: Any, y: Any, out: list[Output]) -> bool:
        """Deal with features whose id was seen before; False if they are new, or are what a label waits for."""
        if id in self.pending:
            if self.pending.content(id)[0] != x:
                self.reject(event, "validate", "id seen before with other features", out)
            elif y is None:
                self.count("duplicates")
            else:
                self._answer(event, id, y, out)
            return True
        seen = self.seen.get(id, self.clock)
        if seen is None or seen[0] == NO_FEATURES:
            return False
        if seen[0] != CONTROL and seen[1] != digest_x(x):
            self.reject(event, "validate", "id seen before with other features", out)
        elif y is None and seen[0] != CONTROL:
            self.count("duplicates")
        else:
            self._again(event, id, seen, y, out)
        return True

    def _again(self, event: Event, id: str, seen: Seen, y: Any, out: list[Output]) -> None:
        """A label whose id has ended already."""
        if seen[0] == CONTROL:
            self.reject(event, "validate", "id is that of a control event", out)
        elif seen[0] == UNLABELLED:
            self.orphan("late", id, event.time, y, None, out)
        else:
            self._repeated(event, id, seen[2] == digest_y(y), out)

    def _repeated(self, event: Event, id: str, same: bool, out: list[Output]) -> None:
        if same:
            self.count("duplicates")
        else:
            self.orphan("corrected", id, event.time, event.y, None, out)

    def _learn(
        self, event: Event, x: Any, y: Any, w: float | None, prediction: Any, out: list[Output]
    ) -> tuple[float | None] | None:
        """Evaluate, then learn: (loss,); None if the event was rejected, with the model as before."""
        kind, model = self.settings.kind, self.model
        try:
            loss = kind.loss(y, prediction)
            if w != 0.0:
                model.learn(x, y, w, event.id)
        except (StateError, MemoryError):
            raise
        except Exception as error:  # whatever a model raises costs this event alone
            self._fail(event, "learn", error, out)
            return None
        if w != 0.0:
            self.parent = self.version
            self.version += 1
        return (loss,)

    def _fail(self, event: Event, stage: str, error: Exception, out: list[Output]) -> None:
        self.model.undo()
        self.reject(event, stage, f"{type(error).__name__}: {error}", out)

    def _is_over(self, buffer: Buffer) -> bool:
        return len(buffer) > self.settings.max_pending or buffer.bytes > self.settings.max_pending_bytes


def _number_of(event: Event) -> tuple[str, int]:
    """(source, seq) of an event; `ValueError` if they are none that marks can hold."""
    source = "" if event.source is None else event.source
    if type(event.seq) is not int or not 0 <= event.seq < 2**63 or type(source) is not str:
        raise ValueError(f"seq must be an integer >= 0 and source text, got {event.seq!r} and {source!r}")
    return source, event.seq
