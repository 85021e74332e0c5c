"""What holds for the cell on every stream: bundles do not matter, every event has one fate, an expired key is gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pa_river import PA1, PAClassifier
from pa_river.stream import CellSpec, Event, Orphan, Outcome, Prediction, Rejected, Snapshot
from tests import strategies_stream as streams


def drive(spec, stream, splits=frozenset(), wakes=None):
    """All outputs and the last bytes; at `splits` the state goes through bytes, as between two bundles."""
    held, outputs = spec.open(streams.KEY, None), []
    for at, event in enumerate(stream):
        if at in splits:
            data = held.dumps()
            held = spec.open(streams.KEY, data)
            assert held.dumps() == data
        if wakes and at in wakes:
            outputs += held.on_due(wakes[at])
        outputs += held.on_event(event)
        held.wake_at()
    return outputs, held


@given(data=st.data(), spec=streams.specs(), stream=streams.streams())
def test_any_split_into_bundles_gives_the_same_outputs_and_bytes(data, spec, stream):
    splits = data.draw(st.sets(st.integers(0, max(0, len(stream) - 1))))
    wakes = data.draw(st.dictionaries(st.integers(0, 24), streams.times, max_size=3))
    together, whole = drive(spec, stream, wakes=wakes)
    apart, parts = drive(spec, stream, splits, wakes)
    assert parts.dumps() == whole.dumps()
    assert apart == together
    assert parts.counts() == whole.counts()
    assert spec.open(streams.KEY, parts.dumps()).on_end() == whole.on_end()


@given(spec=streams.specs(order="sequence"), stream=streams.streams(), data=st.data())
def test_in_sequence_the_order_of_arrival_and_the_bundles_do_not_matter(spec, stream, data):
    stream = streams.numbered(stream)
    spec.max_pending = 10_000  # an overflow handles an event early, which is a matter of arrival
    shuffled = data.draw(st.permutations(stream))
    splits = data.draw(st.sets(st.integers(0, 24)))
    in_order, first = drive(spec, stream)
    arrived, second = drive(spec, shuffled, splits)
    assert arrived == in_order
    assert cell_bytes(second) == cell_bytes(first)


def cell_bytes(held):
    """Everything but the armed timer, which says when the engine was asked to wake the key."""
    data = held.dumps()
    return None if data is None else data[:16] + data[28:]


@given(spec=streams.specs(order="sequence"), stream=streams.streams(), data=st.data())
def test_two_sources_in_sequence_lose_nothing_whatever_is_doubled_or_missing(spec, stream, data):
    stream = streams.numbered(stream, ("s", "t"))
    delivered = data.draw(st.permutations(stream + stream[: len(stream) // 2]))
    missing = data.draw(st.sets(st.integers(0, 12), max_size=3))
    delivered = [event for event in delivered if event.seq not in missing]
    handled = sorted({(event.source, event.seq) for event in delivered})
    whole, held = drive(spec, delivered)
    apart, parts = drive(spec, delivered, data.draw(st.sets(st.integers(0, 24))))
    assert (apart, parts.dumps()) == (whole, held.dumps())
    held.on_end()
    cell = held._cells.get(streams.KEY)
    if cell is not None:  # at_end="snapshot": nothing waits for a predecessor any more
        assert len(cell.marks) == 0
        assert {source: cell.marks._next[source] - 1 for source, _ in handled} == dict(handled)


class Ledger:
    """Follows every event of a stream to its fate, by what the cell says and counts."""

    def __init__(self, held):
        self.held = held
        self.fates = []
        self.features, self.labels = {}, {}  # id -> number of the event that waits

    def due(self, now):
        for output in self.held.on_due(now):
            self.left(output)
        self.held.drain_counts()

    def event(self, event):
        self.due(event.time)
        number, fates = len(self.fates), []
        self.fates.append(fates)
        outputs = self.held.on_event(event)
        news = self.held.drain_counts()
        early = event.id in self.labels
        for output in outputs:
            if isinstance(output, Rejected):
                fates.append("rejected")
            elif isinstance(output, Orphan) and output.kind in ("late", "corrected"):
                fates.append(output.kind)
            elif isinstance(output, Outcome):
                fates.append("outcome")
                for waiting in (self.features, self.labels):
                    if output.id in waiting:
                        self.fates[waiting.pop(output.id)].append("outcome")
        fates += ["duplicate"] * news.get("duplicates", 0)
        if not fates and event.op is None:
            (self.features if event.x is not None else self.labels)[event.id] = number
        if early and event.x is not None and event.y is not None and fates[0] == "outcome":
            assert fates[1:] in (["duplicate"], ["corrected"])  # its own label came after the one that waited
            del fates[1:]
        for output in outputs:
            self.left(output)

    def left(self, output):
        waiting = {"unlabelled": self.features, "no_features": self.labels}
        if isinstance(output, Orphan) and output.kind in waiting:
            self.fates[waiting[output.kind].pop(output.id)].append(output.kind)


@given(spec=streams.specs(), stream=streams.streams(control=False))
def test_every_event_has_exactly_one_fate(spec, stream):
    ledger = Ledger(spec.open(streams.KEY, None))
    for event in stream:
        ledger.event(event)
        cell = ledger.held._cells.get(streams.KEY)
        assert set(ledger.features) == set(cell.pending.ids() if cell else ())
        assert set(ledger.labels) == set(cell.early.ids() if cell else ())
    waiting = {*ledger.features.values(), *ledger.labels.values()}
    assert all(len(fates) == (number not in waiting) for number, fates in enumerate(ledger.fates))
    for output in ledger.held.on_end():
        ledger.left(output)
    if spec.at_end == "flush":
        assert all(len(fates) == 1 for fates in ledger.fates)


@given(stream=streams.streams(control=False), ttl=st.sampled_from([None, 5.0]))
def test_the_model_is_the_one_that_learned_the_outcomes_in_their_order(stream, ttl):
    spec = CellSpec(PAClassifier(PA1(0.5)), label_ttl=ttl)
    held, alone, said = spec.open(streams.KEY, None), PAClassifier(PA1(0.5)), {}
    stream = [event._replace(w=None, id=f"{event.id}/{event.x}" if event.x else event.id) for event in stream]
    for event in stream:
        for output in held.on_event(event):
            if isinstance(output, Prediction):
                assert output.prediction == alone.predict_one(event.x)
                assert output.version == alone.version
                said[output.id] = output, event.x
            elif isinstance(output, Outcome):
                before, x = said[output.id]
                assert (output.prediction, output.version) == (before.prediction, before.version)
                assert output.loss == float(output.prediction != output.y)
                alone.learn_one(x, output.y)
    model = held.model()
    assert (model.weights, model.intercept) == (alone.weights, alone.intercept) if model else not alone.version


@given(model=st.sampled_from(sorted(streams.MODELS)), stream=streams.streams(control=False))
def test_a_stream_with_refused_events_in_it_equals_the_one_without_them(model, stream):
    spec = CellSpec(streams.MODELS[model]())  # no deadlines: a refused event moves the clock, as any event does
    held, outputs, good = spec.open(streams.KEY, None), [], []
    for event in stream:
        if not any(isinstance(output, Rejected) for output in held.on_event(event)):
            good.append(event)
    clean = spec.open(streams.KEY, None)
    for event in good:
        outputs += clean.on_event(event)
    assert not any(isinstance(output, Rejected) for output in outputs)
    assert held.version() == clean.version()
    cells = [holder._cells.get(streams.KEY) for holder in (held, clean)]
    assert bool(cells[0]) == bool(cells[1])
    assert not cells[0] or cells[0].model_bytes() == cells[1].model_bytes()


@given(spec=streams.specs(), stream=streams.streams())
def test_an_expired_key_dumps_to_nothing(spec, stream):
    spec.idle_ttl = 10.0
    outputs, held = drive(spec, stream)
    version = held.version()
    had_state = held.dumps() is not None
    last = held.on_due(1e9)
    assert held.dumps() is None
    assert held.wake_at() is None
    assert [output.version for output in last if isinstance(output, Snapshot)] == [version] * had_state
    assert held.on_due(2e9) == []


@given(spec=streams.specs(), stream=streams.streams())
def test_versions_never_fall_and_snapshots_are_keyed_once(spec, stream):
    held = spec.open(streams.KEY, None)
    before, generation = 0, None
    for event in stream:
        outputs = held.on_event(event)
        cell = held._cells.get(streams.KEY)
        if cell is not None and cell.generation == generation:
            assert cell.version >= before
        before, generation = (cell.version, cell.generation) if cell else (0, None)
        keys = [(output.generation, output.version) for output in outputs if isinstance(output, Snapshot)]
        assert len(keys) == len(set(keys))


@given(spec=streams.specs(), stream=streams.streams())
def test_every_output_is_one_line_of_strict_json(spec, stream):
    import json

    def refuse(constant):
        pytest.fail(f"{constant} is no JSON")

    outputs, held = drive(spec, stream)
    for output in outputs + held.on_end():
        line = output.to_json()
        assert "\n" not in line
        fields = json.loads(line, parse_constant=refuse)
        assert tuple(fields) == output._fields


def test_waking_a_key_at_its_deadlines_equals_an_event_that_passes_them():
    """The same orphans, at the same times, whether a timer or the next event brings them."""
    spec = CellSpec(PAClassifier(), label_ttl=10.0)
    events = [Event("k", str(at), float(at), x={"a": 1.0}) for at in (0, 3, 1)]
    fired, passed = spec.open("k", None), spec.open("k", None)
    for event in events:
        fired.on_event(event)
        passed.on_event(event)
    left = []
    fired.wake_at()
    for now in (10.001, 11.001, 13.001):
        left += fired.on_due(now)
    by_event = passed.on_event(Event("k", "last", 50.0, x={"a": 1.0}))
    assert left == by_event[:3]
    assert [orphan.time for orphan in left] == [10.0, 11.0, 13.0]
