"""What no arrangement changes: the order of arrival by event time, many cells in one engine key, a key's return."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pa_river import PA1, PAClassifier
from pa_river.stream import CellSpec, Event, Outcome, Prediction, Rejected, Snapshot, engine_key
from pa_river.stream.by_time import ByTime
from tests import strategies_stream as streams
from tests.engines import END, Checkpointing, Killed, Steps, plain, rebundled

LATENESS = 7.0


def disordered(data, stream, lateness):
    """The stream in an order in which no event comes more than `lateness` behind a later one."""
    left, arrived = sorted(stream, key=lambda event: event.time), []
    while left:
        newest = max([event.time for event in arrived], default=float("-inf"))
        # Whatever is taken now must not leave an event behind that would then come too late.
        may = [event for event in left if max(newest, event.time) - lateness <= left[0].time]
        arrived.append(left.pop(left.index(may[data.draw(st.integers(0, len(may) - 1))])))
    return arrived


def by_kind(outputs):
    """The records in their order, but for refused ones, which leave when they come, and the cells of snapshots."""
    kept = [output for output in outputs if not isinstance(output, Rejected)]
    return [output._replace(cell=b"") if isinstance(output, Snapshot) else output for output in kept]


def result(spec, stream, wakes=()):
    held, outputs = spec.open(streams.KEY, None), []
    for at, event in enumerate(stream):
        if at in wakes:
            held = spec.open(streams.KEY, held.dumps())
        outputs += held.on_event(event)
        held.wake_at()
    outputs += held.on_due(1e6)
    cell = held._cells.get(streams.KEY)
    return by_kind(outputs), cell and (cell.model_bytes(), cell.version, cell.generation)


@given(spec=streams.specs(order="event_time"), stream=streams.streams(), data=st.data(), sources=st.booleans())
def test_by_event_time_any_order_of_arrival_within_the_lateness_is_the_same(spec, stream, data, sources):
    spec.lateness, spec.max_pending = LATENESS, 10_000
    if sources:
        stream = streams.numbered(stream, ("s", "t"))
    expected = result(spec, sorted(stream, key=place))
    arrived = disordered(data, stream, LATENESS)
    assert result(spec, arrived, data.draw(st.sets(st.integers(0, 24)))) == expected


def place(event):
    """The order of the contract: time, labels first, source, seq, id."""
    from pa_river.state import pack

    rank = event.x is not None or event.op is not None
    seq = -1 if event.seq is None else event.seq
    packed = pack(tuple(event._replace(time=float(event.time))))
    return event.time, rank, event.source or "", seq, event.id or "", packed


@given(spec=streams.specs(order="event_time"), stream=streams.streams(control=False))
def test_in_order_by_event_time_is_arrival_in_that_order(spec, stream):
    spec.lateness, spec.max_pending = 0.0, 10_000
    stream = sorted(stream, key=place)
    arrival = CellSpec(
        spec.kind.fresh(), label_ttl=spec.label_ttl, idle_ttl=spec.idle_ttl, dedupe_size=spec.dedupe_size,
        snapshot_every=spec.snapshot_every, keep_every=spec.keep_every, at_end=spec.at_end,
    )
    assert result(spec, stream) == result(arrival, stream)


@given(spec=streams.specs(order="event_time"), stream=streams.streams(), data=st.data())
def test_without_a_lateness_the_watermark_alone_releases_and_any_order_before_it_is_the_same(spec, stream, data):
    spec.max_pending = 10_000
    stream = streams.numbered(stream, ("s", "t"))
    expected = result(spec, sorted(stream, key=place))
    held, outputs, left = spec.open(streams.KEY, None), [], sorted(stream, key=place)
    while left:
        some = [left.pop(data.draw(st.integers(0, len(left) - 1))) for _ in range(min(len(left), 5))]
        for event in some:
            outputs += held.on_event(event)
        watermark = min((event.time for event in left), default=1e6)
        outputs += held.on_due(watermark)
        held = spec.open(streams.KEY, held.dumps())
    outputs += held.on_due(1e6)
    assert by_kind(outputs) == expected[0]


@given(stream=streams.streams(control=False), data=st.data())
def test_queries_beside_learning_events_change_nothing_that_is_learned(stream, data):
    spec = CellSpec(PAClassifier(PA1(0.5)), order="event_time", lateness=LATENESS, label_ttl=20.0)
    queries = data.draw(st.lists(st.builds(
        lambda id, time, x: Event(streams.KEY, f"q{id}", time, x, op="query"), streams.ids, streams.times,
        streams.features), max_size=8))  # fmt: skip
    alone = result(spec, disordered(data, stream, LATENESS))
    beside = result(spec, disordered(data, stream + queries, LATENESS))
    answered = [output for output in beside[0] if isinstance(output, Prediction) and output.id.startswith("q")]
    assert len(answered) <= len(queries)
    assert [output for output in beside[0] if output not in answered] == alone[0]
    assert bool(beside[1]) == bool(alone[1]) and (not alone[1] or beside[1][:2] == alone[1][:2])


@given(stream=streams.streams(control=False), data=st.data(), model=st.sampled_from(sorted(streams.MODELS)))
def test_beyond_the_lateness_and_over_the_bound_every_event_still_has_its_say(stream, data, model):
    most = data.draw(st.integers(1, 30))
    spec = CellSpec(streams.MODELS[model](), order="event_time", lateness=1.0, max_pending=most)
    stream = [event._replace(id=str(number)) for number, event in enumerate(streams.numbered(stream))]
    held, outputs = spec.open(streams.KEY, None), []
    for event in data.draw(st.permutations(stream)):
        outputs += held.on_event(event)
        held = spec.open(streams.KEY, held.dumps())
        held.wake_at()
    outputs += held.on_end()
    told = {output.id for output in outputs if not isinstance(output, Snapshot)}
    assert told == {event.id for event in stream}
    assert sum(isinstance(output, (Outcome, Rejected)) for output in outputs) <= len(stream)


def test_what_comes_behind_a_later_one_is_handled_at_once_and_counted():
    held = CellSpec(PAClassifier(), order="event_time", lateness=10.0).open("k", None)
    assert held.on_event(Event("k", "a", 100.0, {"a": 1.0})) == []
    assert [output.id for output in held.on_event(Event("k", "b", 150.0, {"a": 1.0}))] == ["a"]
    assert [output.id for output in held.on_event(Event("k", "late", 99.0, {"a": 1.0}))] == ["late"]
    assert held.counts() == {"out_of_order": 1}
    assert held.on_event(Event("k", "in time", 140.0, {"a": 1.0})) == []
    assert [output.id for output in held.on_event(Event("k", "c", 151.0, {"a": 1.0}))] == ["in time"]
    assert [output.id for output in held.on_end() if isinstance(output, Prediction)] == ["b", "c"]


def test_over_the_bound_the_oldest_goes_early_and_is_counted():
    held = CellSpec(PAClassifier(), order="event_time", max_pending=2).open("k", None)
    outputs = [output.id for at in (5, 3, 4, 1) for output in held.on_event(Event("k", str(at), float(at), {"a": 1.0}))]
    assert outputs == ["3", "1"]
    assert held.counts() == {"overflow": 1, "out_of_order": 1}


@given(st.lists(st.tuples(streams.times, st.sampled_from("st"), st.booleans(), st.booleans()), max_size=30), st.data())
def test_what_waits_for_its_time_is_a_sorted_list_whatever_part_of_it_is_bytes(steps, data):
    waiting, plain_list = ByTime(), []
    for number, (time, source, is_label, numbered) in enumerate(steps):
        event = Event("k", str(number % 3), float(time), None if is_label else {"a": 1.0}, is_label or None,
                      source=source, seq=number if numbered else None)  # fmt: skip
        waiting.add(event)
        plain_list = sorted([*plain_list, event], key=place)
        if data.draw(st.booleans()):
            waiting = ByTime(waiting.encode())
        for _ in range(data.draw(st.integers(0, 2))):
            if plain_list:
                assert waiting.earliest() == plain_list[0].time
                assert waiting.pop() == plain_list.pop(0)
        assert len(waiting) == len(plain_list)
        assert waiting.holds(source, number) == any((e.source, e.seq) == (source, number) for e in plain_list)
        assert waiting.newest >= max([e.time for e in plain_list], default=float("-inf"))
    assert bool(waiting.encode()) == bool(plain_list)


KEYS = [f"key {number}" for number in range(9)]


@pytest.mark.parametrize("order", ["arrival", "event_time"])
@given(data=st.data(), stream=streams.streams(), shards=st.integers(1, 4))
def test_shards_put_out_what_cells_of_their_own_put_out(order, data, stream, shards):
    spec = data.draw(streams.specs(order=order))
    apart = CellSpec(
        spec.kind.fresh(), label_ttl=spec.label_ttl, idle_ttl=spec.idle_ttl, order=order, shards=shards,
        dedupe_size=spec.dedupe_size, max_pending=spec.max_pending, snapshot_every=spec.snapshot_every,
        keep_every=spec.keep_every, at_end=spec.at_end,
    )
    stream = [event._replace(key=data.draw(st.sampled_from(KEYS))) for event in stream]
    cuts = data.draw(st.sets(st.integers(1, 24)))
    watermarks = data.draw(st.lists(streams.times, min_size=30, max_size=30))
    engines = [Checkpointing(given_spec) for given_spec in (spec, apart)]
    for bundle, watermark in zip(rebundled(stream, cuts), watermarks):
        for engine in engines:
            engine.bundle(bundle)
            engine.fire(watermark)
    for engine in engines:
        engine.fire(END)
    assert engines[1].result() == engines[0].result()
    assert len(engines[1].state) <= shards


def test_a_touch_of_one_cell_leaves_the_others_bytes():
    spec = CellSpec(PAClassifier(), label_ttl=100.0, shards=1)
    held = spec.open(engine_key("", 1), None)
    for number in range(50):
        held.on_event(Event(f"k{number}", "1", float(number), {"a": 1.0}))
    held.wake_at()
    held = spec.open(engine_key("", 1), held.dumps())
    held.on_event(Event("k7", "2", 60.0, {"a": 1.0}))
    assert held.wake_at() is None  # that of k0 is armed
    assert list(held._cells) == ["k7"]
    assert [output.key for output in held.on_due(100.001)] == ["k0"]
    assert list(held._cells) == ["k7", "k0"]
    assert held.wake_at() == 101.001


def test_bytes_that_outlived_their_engine_open_without_its_timer():
    spec = CellSpec(PAClassifier(), label_ttl=10.0)
    held = spec.open("k", None)
    held.on_event(Event("k", "1", 5.0, {"a": 1.0}))
    assert held.wake_at() == 15.001
    assert spec.open("k", held.dumps()).wake_at() is None
    assert spec.open("k", held.dumps(), is_armed=False).wake_at() == 15.001


def test_an_event_of_another_shard_is_a_defect_of_the_engine():
    spec = CellSpec(PAClassifier(), shards=4)
    with pytest.raises(ValueError, match="reached the state of 'shard 0 of 4'"):
        spec.open("shard 0 of 4", None).on_event(Event("de-17", "1", 0.0, {"a": 1.0}))


@given(data=st.data(), stream=streams.streams(False, least=1), order=st.sampled_from(["arrival", "event_time"]))
def test_a_key_that_keeps_its_marks_knows_what_it_is_told_again_after_it_left(data, stream, order):
    spec = CellSpec(PAClassifier(PA1(0.5)), idle_ttl=5.0, keep_marks=True, order=order, at_end="snapshot")
    stream = streams.numbered(sorted(stream, key=lambda event: event.time))
    expected = by_kind(plain(spec, stream)["outputs"].get(streams.KEY, []))
    engine, passed = Checkpointing(spec), []
    for bundle in rebundled(stream, data.draw(st.sets(st.integers(1, 24)))):
        with Steps(data.draw(st.integers(1, 2000)), Killed):
            engine.bundle(bundle)
        passed += bundle
        engine.fire(passed[-1].time)
        again = data.draw(st.integers(0, len(passed)))
        engine.bundle(passed[again:again + data.draw(st.integers(0, 3))])
    engine.fire(END)
    engine.bundle(passed)
    assert by_kind(engine.outputs) == expected
    generations = [output.generation for output in engine.outputs if isinstance(output, Snapshot)]
    assert len(generations) == len(set(generations))


@pytest.mark.parametrize("keep", [False, True])
def test_a_generation_number_is_given_once_where_the_stub_of_a_key_is_kept(keep):
    spec = CellSpec(PAClassifier(), idle_ttl=5.0, keep_marks=keep)
    held = spec.open("k", None)
    held.on_event(Event("k", "1", 1.0, {"a": 1.0}, True))
    (first,) = held.on_due(100.0)
    data = held.dumps()
    assert (data is not None) == keep
    assert held.wake_at() is None
    held = spec.open("k", data)
    held.on_event(Event("k", "2", 1.0, {"a": 1.0}, True))  # older than the timer that fired
    held = spec.open("k", held.dumps())
    (second,) = held.on_due(200.0)
    assert (first.generation, second.generation) == (1000, 1001 if keep else 1000)


class Store:
    """A snapshot store in memory."""

    def __init__(self, outputs=()):
        self.found = {}
        self.add(outputs)

    def add(self, outputs):
        for output in outputs:
            if isinstance(output, Snapshot):
                known = self.found.get(output.key)
                if known is None or (known.generation, known.version) <= (output.generation, output.version):
                    self.found[output.key] = output

    def newest(self, key):
        return self.found.get(key)


@given(spec=streams.specs(order="arrival"), stream=streams.streams(), cut=st.integers(0, 25), idle=st.booleans())
def test_two_runs_of_which_the_second_goes_on_from_the_snapshots_of_the_first_are_one_run(spec, stream, cut, idle):
    stream = sorted(stream, key=lambda event: event.time)
    spec.at_end, spec.idle_ttl, spec.keep_marks = "snapshot", 10.0 if idle else None, True
    whole = spec.open(streams.KEY, None)
    expected = [output for event in stream for output in whole.on_event(event)] + whole.on_end()
    first = spec.open(streams.KEY, None)
    outputs = [output for event in stream[:cut] for output in first.on_event(event)]
    ends = first.on_end()
    spec.reader = Store(outputs + ends)
    second = spec.open(streams.KEY, None)
    outputs += [output for event in stream[cut:] for output in second.on_event(event)] + second.on_end()
    said, wanted = ([output for output in some if not isinstance(output, Snapshot)] for some in (outputs, expected))
    assert said == wanted
    model = second._cells.get(streams.KEY) or (first._cells.get(streams.KEY) if cut >= len(stream) else None)
    if model is not None and whole._cells.get(streams.KEY) is not None:
        assert model.model_bytes() == whole._cells[streams.KEY].model_bytes()
        assert (model.version, model.generation) == (whole._cells[streams.KEY].version,
                                                     whole._cells[streams.KEY].generation)  # fmt: skip


def test_a_key_opened_from_a_snapshot_goes_on_and_one_that_had_left_begins_anew():
    spec = CellSpec(PAClassifier(), idle_ttl=10.0, keep_marks=True)
    held = spec.open("k", None)
    held.on_event(Event("k", "1", 1.0, {"a": 1.0}, True, source="s", seq=0))
    (left,) = held.on_due(50.0)
    again = spec.open_from(left)
    assert (again.version(), again.on_event(Event("k", "1", 1.0, {"a": 1.0}, True, source="s", seq=0))) == (0, [])
    assert again.on_event(Event("k", "2", 1.0, {"a": 1.0}, source="s", seq=1))[0].version == 0
    assert again._cells["k"].generation == 1001
    ended = spec.open("k", None)
    ended.on_event(Event("k", "1", 1.0, {"a": 1.0}, True))
    assert spec.open_from(ended.on_end()[-1]).on_event(Event("k", "2", 2.0, {"a": 1.0}))[0].version == 1


def test_a_key_that_is_to_be_restored_comes_back_as_it_left_at_once_and_later():
    store = Store()
    spec = CellSpec(PAClassifier(), idle_ttl=10.0, on_return="restore", reader=store)
    held = spec.open("k", None)
    held.on_event(Event("k", "1", 1.0, {"a": 1.0}, True))
    idle, said = held.on_event(Event("k", "2", 90.0, {"a": 1.0}))  # it leaves and comes back in one event
    assert (idle.reason, said.version, held._cells["k"].generation) == ("idle", 1, 1000)
    store.add(held.on_due(500.0))
    assert held.dumps() is None
    (said,) = held.on_event(Event("k", "3", 900.0, {"a": 1.0}))
    assert (said.version, held._cells["k"].generation) == (1, 1000)
