"""Whatever fails, and wherever: every event counts once, and the models are those of a run that nothing interrupted."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines import store
from beam_pipelines.store import LiveStore
from pa_river import PA1, PAClassifier, StateError
from pa_river.stream import CellSpec, Event, Rejected, Snapshot, SnapshotStore
from tests import strategies_stream as streams
from tests.engines import END, SOURCE, Checkpointing, Journaling, Killed, Steps, journal_of, plain, rebundled


def a_log(examples=5, keys=2, behind=2):
    """Features now, labels some steps later, the last ones never."""
    found = []
    for step in range(examples):
        found.append(Event(f"k{step % keys}", str(step), float(step), {"a": step % 3 - 1.0, "b": 1.0}))
        if step >= behind:
            found.append(Event(f"k{(step - behind) % keys}", str(step - behind), float(step), None, step % 5 > 2))
    return [event._replace(source=SOURCE, seq=offset) for offset, event in enumerate(found)]


def a_spec(**options):
    options = {"label_ttl": 3.0, "at_end": "snapshot", "snapshot_every": 2, "keep_every": 1, **options}
    return CellSpec(PAClassifier(PA1(0.5)), **options)


@pytest.fixture(autouse=True)
def no_disk(monkeypatch):
    """A process that is killed leaves what it wrote to the system: nothing here needs to wait for a disk."""
    connect = store._connect

    def quick(path):
        db = connect(path)
        db.execute("PRAGMA synchronous = OFF")
        return db

    monkeypatch.setattr(store, "_connect", quick)


def without_cells(result):
    """The same, but for the counters in snapshots, which know of deliveries that came again."""
    outputs = {
        key: [output._replace(cell=b"") if isinstance(output, Snapshot) else output for output in found]
        for key, found in result["outputs"].items()
    }
    return {**result, "outputs": outputs}


def steps_of(run):
    """How many steps a run takes in which nothing fails."""
    steps = Steps()
    run(steps)
    return steps.taken


@pytest.mark.parametrize("error", [Killed, MemoryError])
def test_a_bundle_that_fails_at_any_of_its_steps_is_as_if_it_had_not_been_tried(error):
    spec, log = a_spec(), a_log()
    bundles, expected = list(rebundled(log, [3, 5])), plain(spec, log)

    def run(steps):
        engine = Checkpointing(spec)
        with steps:
            for bundle in bundles:
                engine.bundle(bundle)
            engine.fire(END)
        return engine

    for at in range(1, steps_of(run) + 1):
        engine = run(Steps(at, error))
        assert engine.failures == 1, at
        assert engine.result() == expected, at


def test_a_job_that_dies_at_any_of_its_steps_goes_on_from_its_file(tmp_path):
    spec, log = a_spec(), a_log(3)
    expected = journal_of(plain(spec, log))
    last = steps_of(Journaling(spec, tmp_path / "whole.db", log).run)
    for at in range(1, last + 1):
        job = Journaling(spec, tmp_path / f"{at}.db", log)
        assert job.run(Steps(at)) == expected, at
        assert job.failures == 1, at


@pytest.mark.parametrize("options", [
    {"shards": 1}, {"order": "event_time"}, {"order": "event_time", "shards": 2}, {"idle_ttl": 1.5, "keep_marks": True},
], ids=["shards", "event_time", "event_time in shards", "idle"])  # fmt: skip
def test_so_does_one_that_orders_shares_or_lets_go(options, tmp_path):
    spec, log = a_spec(**options), a_log(4)
    expected = journal_of(plain(spec, log))
    last = steps_of(Journaling(spec, tmp_path / "whole.db", log).run)
    for at in range(1, last + 1, 13):
        job = Journaling(spec, tmp_path / f"{at}.db", log)
        assert job.run(Steps(at)) == expected, at
        assert job.failures == 1, at


@given(data=st.data(), spec=streams.specs(), stream=streams.streams(least=1))
def test_retried_bundles_stray_timers_and_second_deliveries_change_nothing(data, spec, stream):
    stream = streams.numbered(sorted(stream, key=lambda event: event.time))
    spec.idle_ttl = None  # what a key knew of numbers leaves with it, unless it is told to keep them
    expected = without_cells(plain(spec, stream))
    engine, passed = Checkpointing(spec), []
    for bundle in rebundled(stream, data.draw(st.sets(st.integers(1, 24)))):
        with Steps(data.draw(st.integers(1, 2000)), data.draw(st.sampled_from([Killed, MemoryError]))):
            engine.bundle(bundle)
        passed += bundle
        if data.draw(st.booleans()):  # early, stale, doubled: whatever fires, nothing is due that was not handled
            for at in data.draw(st.lists(st.floats(-1.0, passed[-1].time), max_size=3)):
                engine.wake(streams.KEY, at)
        again = data.draw(st.integers(0, len(passed)))
        engine.bundle(passed[again:again + data.draw(st.integers(0, 3))])
    engine.fire(END)
    engine.fire(END)
    assert without_cells(engine.result()) == expected


@pytest.mark.parametrize("order", ["sequence", "event_time"])
@given(data=st.data(), stream=streams.streams(least=1), shards=st.sampled_from([None, 2]))
def test_bundles_out_of_order_dropped_at_first_and_doubled_give_the_models_of_the_order(order, data, stream, shards):
    spec = data.draw(streams.specs(order=order))
    spec.max_pending, spec.idle_ttl, spec.keep_marks = 10_000, data.draw(st.sampled_from([None, 10.0])), True
    spec.label_ttl = None if order == "sequence" else spec.label_ttl  # time does not order what numbers do
    spec.idle_ttl = None if order == "sequence" else spec.idle_ttl
    keyed = {key: streams.numbered([event._replace(key=key) for event in stream[at::2]]) for at, key in enumerate("ab")}
    stream = [event for events in keyed.values() for event in events]
    expected = in_order(plain(spec, sorted(stream, key=lambda event: (event.time, event.x is not None or event.op is
                                                                      not None, event.seq))))  # fmt: skip
    spec.shards = shards
    engine, to_come = Checkpointing(spec), list(rebundled(data.draw(st.permutations(stream)), data.draw(
        st.sets(st.integers(1, 24)))))  # fmt: skip
    while to_come:
        bundle = to_come.pop(data.draw(st.integers(0, len(to_come) - 1)))
        fate = data.draw(st.sampled_from(["once", "once", "dropped", "twice"]))
        if fate == "dropped" and to_come:  # it is sent again, later
            to_come.insert(data.draw(st.integers(0, len(to_come))), bundle)
            continue
        for _ in range(2 if fate == "twice" else 1):
            with Steps(data.draw(st.integers(1, 3000)), data.draw(st.sampled_from([Killed, MemoryError]))):
                engine.bundle(bundle)
        if order == "event_time" and to_come:  # the watermark: nothing before it is to come for the first time
            engine.fire(min(event.time for bundle in to_come for event in bundle))
    engine.fire(END)
    assert in_order(engine.result()) == expected


def in_order(result):
    """The same, without what the order of arrival may decide: when a malformed event is refused."""
    result = without_cells(result)
    outputs = {key: [output for output in found if not isinstance(output, Rejected)]
               for key, found in result["outputs"].items()}  # fmt: skip
    return {**result, "outputs": {key: found for key, found in outputs.items() if found}}


@given(data=st.data(), every=st.integers(1, 5), ttl=st.sampled_from([None, 2.0]))
def test_jobs_that_die_again_and_again_with_units_under_way_tell_the_same(data, every, ttl, tmp_path_factory):
    spec, log = a_spec(label_ttl=ttl), a_log(data.draw(st.integers(1, 12)), keys=data.draw(st.integers(1, 3)))
    cuts = data.draw(st.lists(st.tuples(st.integers(1, 4), st.integers(-1, 3)), min_size=1, max_size=6))
    path = tmp_path_factory.mktemp("job") / "snapshots.db"
    for at in data.draw(st.lists(st.integers(1, 3000), max_size=4)):  # of one run each, so that several die
        job = Journaling(spec, path, log, save_every=every, cut=lambda number: cuts[number % len(cuts)])
        job.once(Steps(at))
    job = Journaling(spec, path, log, save_every=every, cut=lambda number: cuts[number % len(cuts)])
    assert job.run() == journal_of(plain(spec, log))


def test_a_full_disk_fails_the_bundle_and_loses_nothing(tmp_path, monkeypatch):
    spec, log = a_spec(), a_log()
    connect, failed = store._connect, 0
    for pages in range(1, 80):
        def limited(path, pages=pages):
            db = connect(path)
            db.execute(f"PRAGMA max_page_count = {pages}")
            return db

        job = Journaling(spec, tmp_path / f"{pages}.db", log)
        monkeypatch.setattr(store, "_connect", limited)
        failed += not job.once(Steps())
        monkeypatch.setattr(store, "_connect", connect)
        assert job.run() == journal_of(plain(spec, log)), pages
    assert 5 < failed < 79  # some were too small and some were not


def test_a_file_that_another_process_holds_fails_the_bundle_and_loses_nothing(tmp_path, monkeypatch):
    spec, log = a_spec(), a_log()
    job = Journaling(spec, tmp_path / "snapshots.db", log)
    write, connect, calls = LiveStore.write, store._connect, []

    def held(self, run, units):
        calls.append(run)
        if len(calls) in (1, 3):
            with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                return write(self, run, units)
        return write(self, run, units)

    monkeypatch.setattr(store, "_connect", lambda path: _impatient(connect(path)))
    monkeypatch.setattr(LiveStore, "write", held)
    assert job.run() == journal_of(plain(spec, log))
    assert job.failures == 2


def _impatient(db):
    db.execute("PRAGMA busy_timeout = 0")
    return db


@pytest.mark.parametrize("table, column", [("cells", "blob"), ("snapshots", "cell"), ("snapshots", "model")])
def test_damaged_bytes_in_the_file_stop_the_job_and_are_never_learned_from(table, column, tmp_path):
    spec, log = a_spec(), a_log()
    path = tmp_path / "snapshots.db"
    Journaling(spec, path, log).once(Steps(steps_of(Journaling(spec, tmp_path / "whole.db", log).run) * 3 // 4))
    with closing(sqlite3.connect(path)) as db:
        (blob,) = db.execute(f"SELECT {column} FROM {table} WHERE key = 'k0' LIMIT 1").fetchone()
    warm = CellSpec(PAClassifier(PA1(0.5)), on_return="restore", reader=SnapshotStore(path))
    asked = Event("k0", "new", 99.0, {"a": 1.0}, True)
    expected, refused = warm.open("k0", None).on_event(asked), 0
    for at in range(0, len(blob), 11):
        damaged = blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1:]
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE key = 'k0'", (damaged,))
        try:
            if table == "cells":
                Journaling(spec, path, log).once(Steps())
            else:
                assert warm.open("k0", None).on_event(asked) == expected  # in a part that nothing has opened
        except StateError:
            refused += 1
    assert refused > len(blob) / 11 * 0.4  # a cell holds its ring of old models, and once more its model
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE {table} SET {column} = ? WHERE key = 'k0'", (blob,))
    assert Journaling(spec, path, log).run() == journal_of(plain(spec, log))


@pytest.mark.parametrize("cut", [0, 10, 100, 5000])
def test_a_file_that_is_no_store_any_more_is_refused_in_words(cut, tmp_path):
    path = tmp_path / "snapshots.db"
    Journaling(a_spec(), path, a_log()).run()
    path.write_bytes(b"x" * 100 + path.read_bytes()[100:] if cut == 0 else path.read_bytes()[:cut])
    with pytest.raises((ValueError, sqlite3.DatabaseError), match="not a (snapshot store|database)|malformed"):
        list(SnapshotStore(path).newest_of_all())
        LiveStore(path).begin([])
