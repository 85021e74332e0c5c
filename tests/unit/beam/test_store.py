"""The live job's file: however units overtake each other and jobs die, every event counts once."""

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines.broker import Partition
from beam_pipelines.store import LiveStore
from beam_pipelines.units import Record, Unit, spans

LOG = Partition("t", 0, 0, 0, 0, "first")


def unit(key="k", serial=1, ids=(), blob=None, handled=(), is_new=True, word=""):
    records = [Record("predictions", str(id), "prediction", json.dumps({"id": str(id), "said": word})) for id in ids]
    return Unit(key, serial, records, [], spans("t-0", handled), blob, is_new)


def begun(tmp_path, **log):
    store = LiveStore(tmp_path / "snapshots.db")
    run, (partition,) = store.begin([LOG._replace(**log)])
    return store, run, partition


def again(store, **log):
    run, (partition,) = store.begin([LOG._replace(end=100, **log)])
    return run, partition.start


def ids(store):
    return [made.id for _, made in store.records()]


def test_the_first_copy_of_a_record_stays_and_another_word_is_counted(tmp_path):
    store, run, _ = begun(tmp_path)
    store.write(run, [unit(ids=[1, 2], word="yes")])
    store.write(run, [unit(serial=2, ids=[2], word="yes")])
    assert store.conflicts() == 0
    store.write(run, [unit(serial=3, ids=[1, 3], word="no")])
    assert [(made.id, json.loads(made.line)["said"]) for _, made in store.records()] == [
        ("1", "yes"), ("2", "yes"), ("3", "no")]  # fmt: skip
    assert store.conflicts() == 1


def test_a_resume_point_counts_once_every_unit_before_it_is_stored(tmp_path):
    store, run, _ = begun(tmp_path)
    store.write(run, [unit(serial=2, handled=[1], blob=b"two")])
    assert store.blob("k") is None
    store.write(run, [unit(serial=1, handled=[0], blob=b"one")])
    assert store.blob("k") == b"two"


def test_what_no_resume_point_covers_is_read_again(tmp_path):
    store, run, _ = begun(tmp_path)
    store.write(run, [unit(handled=[0, 1], blob=b"one"), unit("other", handled=[2]), unit(serial=2, handled=[3])])
    assert again(store)[1] == 2
    assert store.blob("k") == b"one" and store.blob("other") is None


def test_what_never_arrived_is_read_again_although_later_numbers_did(tmp_path):
    store, run, _ = begun(tmp_path)
    store.write(run, [unit(handled=[0, 1], blob=b"one"), unit("other", handled=[5, 6], blob=b"other")])
    assert again(store)[1] == 2


def test_a_unit_of_nothing_new_holds_nothing_back(tmp_path):
    store, run, _ = begun(tmp_path)
    store.write(run, [unit(handled=[0, 1], blob=b"one"), unit(serial=0, handled=[2, 3], is_new=False)])
    assert again(store)[1] == 4


def test_units_of_a_dead_run_add_records_and_no_resume_point(tmp_path):
    store, run, _ = begun(tmp_path)
    store.write(run, [unit(serial=1, handled=[0], blob=b"one")])
    now, start = again(store)
    store.write(run, [unit(serial=1, ids=[7], handled=[1], blob=b"late")])
    assert ids(store) == ["7"] and store.blob("k") == b"one" and start == 1
    store.write(now, [unit(serial=1, handled=[1], blob=b"two")])
    assert store.blob("k") == b"two"


@pytest.mark.parametrize(
    ("log", "word"),
    [
        ({"end": 3}, "was made anew"),
        ({"end": 9, "incarnation": "second"}, "was made anew"),
        ({"end": 9, "first": 7}, "what lies between is gone"),
    ],
)
def test_a_log_that_is_not_the_one_read_before_stops_the_start_in_one_line(tmp_path, log, word):
    store, run, _ = begun(tmp_path)
    store.write(run, [unit(handled=range(5))])
    with pytest.raises(ValueError, match=word) as stopped:
        store.begin([LOG._replace(**log)])
    assert "\n" not in str(stopped.value)
    assert again(store)[1] == 0  # and nothing was begun or lost


def test_a_log_whose_broker_tells_no_incarnation_goes_on_by_its_offsets(tmp_path):
    store, run, _ = begun(tmp_path, incarnation="")
    store.write(run, [unit(handled=range(5), blob=b"one")])
    assert again(store, incarnation="")[1] == 5


def test_a_new_log_is_read_from_its_first_offset(tmp_path):
    assert begun(tmp_path, first=40)[2].start == 40


def test_only_the_newest_snapshots_of_a_key_are_kept(tmp_path):
    store = LiveStore(tmp_path / "snapshots.db", keep=2)
    run, _ = store.begin([LOG])
    rows = [("k", 0, version, float(version), "periodic", b"m", b"c") for version in range(5)]
    store.write(run, [Unit("k", 1, [], rows, [], None, True), Unit("j", 1, [], [("j", *rows[0][1:])], [], None, True)])
    kept = sqlite3.connect(store.path).execute("SELECT key, version FROM snapshots ORDER BY 1, 2").fetchall()
    assert kept == [("j", 0), ("k", 3), ("k", 4)]


def test_a_failed_write_leaves_nothing_of_its_units(tmp_path):
    store, run, _ = begun(tmp_path)
    with pytest.raises(sqlite3.IntegrityError):
        store.write(run, [unit(ids=[1], handled=[0], blob=b"one"), unit("k", 2, [None], word=None)._replace(
            records=[Record(None, "2", "prediction", "")])])  # fmt: skip
    assert ids(store) == [] and store.blob("k") is None
    store.write(run, [unit(ids=[1], handled=[0], blob=b"one")])
    assert ids(store) == ["1"]


def test_the_views_read_like_tables(tmp_path):
    store, run, _ = begun(tmp_path)
    line = '{"key":"k","id":"1","time":2.0,"prediction":true,"score":0.5,"version":3}'
    store.write(run, [Unit("k", 1, [Record("predictions", "1", "prediction", line)], [], [], None, True)])
    row = sqlite3.connect(store.path).execute("SELECT id, time, prediction, score, version FROM predictions").fetchone()
    assert row == ("1", 2.0, 1, 0.5, 3)


@given(data=st.data())
def test_jobs_that_die_at_any_moment_with_any_units_under_way_learn_each_event_once(data, tmp_path_factory):
    """A job in a few lines: a key's state is the list of what it learned; the store must never make it wrong."""
    store = LiveStore(tmp_path_factory.mktemp("store") / "snapshots.db")
    keys = data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), label="log")
    log = LOG._replace(end=len(keys))
    every = data.draw(st.integers(1, 4), label="events between two resume points")
    for last in [False] * data.draw(st.integers(0, 4), label="crashes") + [True]:
        run, (partition,) = store.begin([log])
        learned, serials, unsaved = {}, {}, dict.fromkeys("abc", 0)
        under_way = []
        at = partition.start
        while at < len(keys):
            stop = min(len(keys), at + data.draw(st.integers(1, 4)))
            for key in sorted(set(keys[at:stop])):
                if key not in learned:
                    learned[key] = json.loads(store.blob(key) or "[]")
                offsets = [offset for offset in range(at, stop) if keys[offset] == key]
                fresh = [offset for offset in offsets if offset not in learned[key]]
                learned[key] += fresh
                unsaved[key] += len(fresh)
                blob = None
                if unsaved[key] >= every:
                    blob, unsaved[key] = json.dumps(learned[key]).encode(), 0
                serial = 0
                if fresh or blob:
                    serial = serials[key] = serials.get(key, 0) + 1
                under_way.append(unit(key, serial, fresh, blob, offsets, bool(fresh)))
            at = stop
            for _ in range(data.draw(st.integers(0, len(under_way)))):
                store.write(run, [under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))])
        if last:  # the timer of what is unsaved fires, and everything arrives
            under_way += [unit(key, serials[key] + 1, (), json.dumps(learned[key]).encode(), (), False)
                          for key, count in unsaved.items() if count]
            store.write(run, data.draw(st.permutations(under_way)))
    assert sorted(map(int, ids(store))) == list(range(len(keys)))
    for key in set(keys):
        assert json.loads(store.blob(key)) == [offset for offset in range(len(keys)) if keys[offset] == key]
    store.close()
