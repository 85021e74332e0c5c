"""The snapshot store: what is written, found, compared and rolled back."""

from __future__ import annotations

import pickle
import sqlite3

import pytest
from pa_river import PA1, PAClassifier, loads
from pa_river.stream import CellSpec, Event, Snapshot, SnapshotStore, checksum, diff, rollback_event


def history(key="k", **settings):
    """Three snapshots of one key, after one, two and three examples."""
    spec = CellSpec(PAClassifier(PA1(1.0), learn_intercept=False), snapshot_every=1, **settings)
    held, found = spec.open(key, None), []
    for at, name in enumerate("abc"):
        event = Event(key, name, 10.0 * at, {name: 1.0}, True, source="t", seq=5 * at)
        found += [output for output in held.on_event(event) if isinstance(output, Snapshot)]
    return spec, held, found


@pytest.fixture
def store(tmp_path):
    return SnapshotStore(tmp_path / "snapshots.db")


def test_snapshots_are_listed_by_key_and_found_by_version(store):
    _, _, snapshots = history()
    _, _, others = history("j")
    store.write(snapshots)
    store.write(others)
    assert [(row.key, row.version, row.time, row.reason) for row in store.list()] == [
        (key, version, 10.0 * version - 10.0, "periodic") for key in "jk" for version in (1, 2, 3)
    ]
    assert [row.model_bytes for row in store.list("k")] == [len(snapshot.model) for snapshot in snapshots]
    assert store.get("k", 2) == snapshots[1]
    assert store.get("k", 2, generation=1) is None
    assert store.newest("k") == snapshots[2]
    assert store.newest("k", until=15.0) == snapshots[1]
    assert [snapshot.key for snapshot in store.newest_of_all()] == ["j", "k"]


def test_the_table_is_the_one_that_the_contract_names(store):
    store.write(history()[2])
    with sqlite3.connect(store.path) as connection:
        columns = [(name, kind) for _, name, kind, *_ in connection.execute("PRAGMA table_info(snapshots)")]
        (model,) = connection.execute("SELECT model FROM snapshots WHERE version = 3").fetchone()
    assert columns == [
        ("key", "TEXT"), ("generation", "INTEGER"), ("version", "INTEGER"), ("time", "REAL"), ("reason", "TEXT"),
        ("model", "BLOB"), ("cell", "BLOB"),
    ]
    assert loads(model).weights == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_writing_again_changes_nothing_and_an_older_state_of_a_version_never_wins(store):
    _, _, snapshots = history()
    store.write(snapshots)
    store.write(snapshots)
    assert len(store.list()) == 3
    store.write([snapshots[2]._replace(time=1.0, reason="stale"), snapshots[1]._replace(time=99.0, reason="later")])
    assert [row.reason for row in store.list()] == ["periodic", "later", "periodic"]


def test_a_write_that_fails_leaves_the_store_as_it_was(store):
    _, _, snapshots = history()
    with pytest.raises(sqlite3.Error):
        store.write([snapshots[0], snapshots[1]._replace(model=None)])
    assert store.list() == []


def test_the_newest_snapshot_before_an_event_is_the_one_that_has_not_handled_it(store):
    store.write(history()[2])
    assert store.newest("k", before=("t", 11)).version == 3
    assert store.newest("k", before=("t", 10)).version == 2
    assert store.newest("k", before=("t", 0)) is None
    assert store.newest("k", before=("another source", 0)).version == 3


def test_rolling_back_restores_the_model_and_nothing_else(store):
    spec, held, snapshots = history()
    held.on_event(Event("k", "open", 30.0, {"a": 1.0}, source="t", seq=99))
    held.on_event(Event("k", "d", 31.0, {"d": 1.0}, True, source="t", seq=100))
    store.write(snapshots)
    (last,) = held.on_end()[-1:]
    store.write([last])
    written = store.roll_back("k", 1)
    assert (written.version, written.reason, written.generation) == (5, "rollback", last.generation)
    assert store.newest("k") == written
    cell = CellSpec(PAClassifier(), on_return="restore", reader=store).open("k", None)
    (said,) = cell.on_event(Event("k", "next", 40.0, {"a": 1.0}, source="t", seq=101))
    assert (said.score, said.version) == (1.0, 5)
    assert cell.model().weights == {"a": 1.0}
    assert cell.on_event(Event("k", "d", 41.0, {"d": 1.0}, True, source="t", seq=100)) == []
    with pytest.raises(ValueError, match="no snapshot of key 'k' with version 77"):
        store.roll_back("k", 77)


def test_a_rollback_event_takes_a_running_cell_back_to_a_snapshot():
    _, held, snapshots = history(keep_every=1)
    event = rollback_event(snapshots[0], "back", 50.0)
    assert (event.op, event.target, event.checksum) == ("rollback", 1, checksum(snapshots[0].model))
    answer, snapshot = held.on_event(event._replace(source="t", seq=20))
    assert (snapshot.version, snapshot.reason) == (4, "periodic")
    assert answer.action == "rollback"
    assert held.model().weights == {"a": 1.0}


def test_a_difference_names_the_weights_and_parameters_that_changed():
    _, _, snapshots = history()
    assert diff(snapshots[0], snapshots[2]) == {"b": (None, 1.0), "c": (None, 1.0)}
    assert diff(snapshots[0], snapshots[0]) == {}


def test_a_store_travels_to_other_processes_and_a_file_that_is_none_is_named(store, tmp_path):
    store.write(history()[2])
    assert pickle.loads(pickle.dumps(store)).newest("k").version == 3
    (tmp_path / "other.db").write_bytes(b"not a database" * 100)
    with pytest.raises(ValueError, match="other.db is not a snapshot store"):
        SnapshotStore(tmp_path / "other.db").list()
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").touch()
    assert SnapshotStore(tmp_path / "empty.db").newest("k") is None
