"""`python -m beam_pipelines.snapshots` over the store of a real run."""

import json
from contextlib import closing
from sqlite3 import connect

import pytest

import pa_river
from beam_pipelines import run, snapshots
from pa_river.stream import Event, SnapshotStore, checksum


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with versions 2, 4, 6 and 7 of key "k" and one of key "l"."""
    folder = tmp_path_factory.mktemp("run")
    xs = [{"a": float(step + 1), "b": -1.0} for step in range(7)]
    events = [Event("k", str(step), float(step), x, bool(step % 2)) for step, x in enumerate(xs)]
    events.append(Event("l", "x", 9.0, {"a": 1.0}, True))
    source = folder / "in.jsonl"
    source.write_text("".join(event.to_json() + "\n" for event in events))
    assert run.main(["--input", str(source), "--output", str(folder / "out"), "--snapshot_every", "2", "--no_report",
                     "--at_end", "snapshot"]) == 0  # fmt: skip
    return folder / "out" / "snapshots.db"


@pytest.fixture
def db(made, tmp_path):
    """A copy that a test may change."""
    copy = tmp_path / "snapshots.db"
    copy.write_bytes(made.read_bytes())
    return copy


def test_the_store_has_the_table_of_the_contract(db):
    with closing(connect(db)) as database:
        columns = [(name, kind) for _, name, kind, *_ in database.execute("PRAGMA table_info(snapshots)")]
    assert columns == [
        ("key", "TEXT"), ("generation", "INTEGER"), ("version", "INTEGER"), ("time", "REAL"), ("reason", "TEXT"),
        ("model", "BLOB"), ("cell", "BLOB"),
    ]  # fmt: skip


def test_list_shows_every_snapshot_oldest_first(db, capsys):
    assert snapshots.main(["list", str(db)]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["key", "generation", "version", "time", "reason", "model", "bytes", "cell", "bytes"]
    assert [row.split()[0:3:2] for row in rows] == [["k", "2"], ["k", "4"], ["k", "6"], ["k", "7"], ["l", "1"]]
    assert "1970-01-01T00:00:06Z" in rows[3] and " end " in rows[3] and " periodic " in rows[0]
    assert snapshots.main(["list", str(db), "--key", "l"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_show_names_the_heaviest_weights_first(db, capsys):
    assert snapshots.main(["show", str(db), "k", "--top", "2"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "k, version 7, 1970-01-01T00:00:06Z, end"
    model = pa_river.loads(SnapshotStore(db).newest("k").model)
    weights = {**model.weights, "intercept": model.intercept}
    heaviest = sorted(weights, key=lambda name: -abs(weights[name]))[:2]
    assert [line.split()[-1] for line in shown[-3:-1]] == heaviest
    assert shown[-1] == "... and 1 more"


def test_diff_names_what_changed_between_two_versions(db, capsys):
    assert snapshots.main(["diff", str(db), "k", "2", "4"]) == 0
    shown = capsys.readouterr().out
    assert " -> " in shown and shown.splitlines()[-1] == "3 in all"
    assert snapshots.main(["diff", str(db), "k", "4", "4"]) == 0
    assert capsys.readouterr().out == "no difference\n"


def test_rollback_makes_an_older_model_the_newest_and_keeps_the_rest_of_the_cell(db, capsys):
    store = SnapshotStore(db)
    before = store.newest("k")
    assert snapshots.main(["rollback", str(db), "k", "2"]) == 0
    assert "version 8 has the model of version 2" in capsys.readouterr().out
    after = store.newest("k")
    assert (after.version, after.model, after.reason) == (8, store.get("k", 2).model, "rollback")
    assert after.cell != before.cell


def test_rollback_all_writes_a_control_event_a_key_with_version_and_checksum(db, tmp_path, capsys):
    source = tmp_path / "events.jsonl"
    source.write_text("")
    for _ in range(2):  # appended, the same events again: their ids are those of what they ask for
        assert snapshots.main(
            ["rollback", str(db), "--all", "--to", "1970-01-01T00:00:04Z", "--output", str(source)]
        ) == 0
    first, second = map(json.loads, source.read_text().splitlines())
    assert first == second
    assert (first["key"], first["op"], first["target"], first["time"]) == ("k", "rollback", 4, 6.0)
    assert first["checksum"] == checksum(SnapshotStore(db).get("k", 4).model)
    assert "1 events appended" in capsys.readouterr().out


def test_the_events_of_a_rollback_are_carried_out_by_the_job_that_reads_them(db, tmp_path):
    """The cell still holds the model of version 4? Only where it kept it: else the job says so in `rejected`."""
    source = tmp_path / "events.jsonl"
    assert snapshots.main(["rollback", str(db), "--all", "--to", "4", "--output", str(source)]) == 0
    output = tmp_path / "out"
    assert run.main(["--input", str(source), "--output", str(output), "--no_report"]) == 0
    answers = (output / "rejected.jsonl").read_text() + (output / "drift.jsonl").read_text()
    assert len(answers.splitlines()) == 1 and '"stage":"control"' in answers


def test_export_writes_bytes_that_loads_opens(db, tmp_path, capsys):
    target = tmp_path / "model.bin"
    assert snapshots.main(["export", str(db), "k", str(target), "--version", "4"]) == 0
    assert pa_river.loads(target.read_bytes()).version == 4
    assert "pa_river.loads" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "required"),
        (["lst", "{db}"], "invalid choice"),
        (["list", "nowhere.db"], "nowhere.db: no such file"),
        (["list", "{text}"], "is not a snapshot store"),
        (["list", "{db}", "--key", "z"], "no snapshot of key 'z'"),
        (["show", "{db}", "z"], "no snapshot of key 'z'"),
        (["show", "{db}", "k", "--version", "3"], "no snapshot of version 3 of key 'k'"),
        (["show", "{db}", "k", "--generation", "17"], "no snapshot"),
        (["diff", "{db}", "k", "2", "3"], "no snapshot of version 3"),
        (["rollback", "{db}", "k"], "takes KEY VERSION, or --all --to TIME"),
        (["rollback", "{db}", "k", "3"], "no snapshot of key 'k' with version 3"),
        (["rollback", "{db}", "--all"], "takes --to TIME"),
        (["rollback", "{db}", "--all", "--to", "yesterday"], "--to yesterday: not epoch seconds and not RFC 3339"),
        (["export", "{db}", "k", "{folder}"], "directory"),
    ],
)
def test_wrong_arguments_exit_with_2_and_one_line(db, tmp_path, capsys, args, word):
    text = tmp_path / "text"
    text.write_text("no database, but long enough to be taken for the header of one " * 20)
    assert snapshots.main([arg.format(db=db, text=text, folder=tmp_path) for arg in args]) == 2
    error = capsys.readouterr().err
    assert word in error and error.count("\n") == 1
