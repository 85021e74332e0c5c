"""The command end to end: files, exit codes, bad records, times to live, going on after a run."""

import gzip
import json
import math
import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import pa_river
from beam_pipelines import run, sinks
from pa_river.stream import Event

FILES = {"predictions.jsonl", "outcomes.jsonl", "rejected.jsonl", "orphans.jsonl", "drift.jsonl", "snapshots.db"}
JSONL = sorted(name for name in FILES if name.endswith(".jsonl"))


def lines(output, tag):
    with open(output / f"{tag}.jsonl") as file:
        return [json.loads(line) for line in file]


def models(output, columns="key, version, model, cell"):
    with closing(sqlite3.connect(output / "snapshots.db")) as database:
        return database.execute(f"SELECT {columns} FROM snapshots").fetchall()


def write(path, events):
    lines = [event.to_json() if isinstance(event, Event) else event for event in events]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def events(count=60, keys=3):
    """Features now, labels five steps later, keys taking turns; every seventh label never comes."""
    found = []
    for step in range(count):
        key = f"k{step % keys}"
        found.append(Event(key, str(step), float(step), {"a": float(step % 5 - 2), "b": 1.0}))
        late = step - 5
        if late >= 0 and late % 7:
            found.append(Event(f"k{late % keys}", str(late), float(step), None, late % 5 > 2))
    return found


def ran(tmp_path, *args, name="out", given=None):
    """Run over `given` (or `events()`) with a small folder of output; the exit code must be 0."""
    output = tmp_path / name
    source = write(tmp_path / f"{name}.jsonl", events() if given is None else given)
    assert run.main(["--input", str(source), "--output", str(output), "--no_report", *args]) == 0
    return output


def test_a_run_leaves_every_file_and_a_table(tmp_path, capsys):
    output = tmp_path / "new" / "out"
    source = write(tmp_path / "in.jsonl", events())
    assert run.main(["--input", str(source), "--output", str(output)]) == 0
    assert {path.name for path in output.iterdir()} == FILES | {"report.html", "fingerprint.json"}
    shown = capsys.readouterr().out
    assert "all 3" in shown and "60" in shown and "unlabelled" in shown and "report.html" in shown
    assert len(lines(output, "predictions")) == 60
    assert len(lines(output, "outcomes")) + len(lines(output, "orphans")) == 60


def test_lines_stand_in_the_sources_order_and_what_is_flushed_by_time_key_and_id(tmp_path):
    output = ran(tmp_path)
    assert [int(line["id"]) for line in lines(output, "predictions")] == list(range(60))
    answered = [int(line["id"]) for line in lines(output, "outcomes")]
    assert answered == sorted(answered)
    flushed = [(line["time"], line["key"], line["id"]) for line in lines(output, "orphans")]
    assert len(flushed) == 60 - len(answered) and flushed == sorted(flushed)


@pytest.mark.parametrize("order", ["arrival", "sequence"])
def test_rerunning_every_bundle_with_its_state_restored_changes_no_byte(tmp_path, order):
    once = ran(tmp_path, "--order", order, "--label_ttl", "20", "--snapshot_every", "3", name="once")
    thrice = ran(tmp_path, "--order", order, "--label_ttl", "20", "--snapshot_every", "3",
                 "--direct_runner_bundle_repeat", "2", name="thrice")  # fmt: skip
    for name in JSONL:
        assert (once / name).read_bytes() == (thrice / name).read_bytes()
    assert models(once) == models(thrice)


def test_two_processes_with_other_hash_seeds_give_the_same_files_and_models(tmp_path):
    outputs = []
    source = write(tmp_path / "in.jsonl", events())
    for seed in ("1", "2"):
        outputs.append(tmp_path / seed)
        command = [sys.executable, "-m", "beam_pipelines.run", "--input", str(source), "--output", str(outputs[-1]),
                   "--order", "sequence", "--model", "StandardScaler() | PAClassifier(PA1(C=0.1))", "--no_report"]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""  # no progress bar where there is no terminal, no warning from an import
    first, second = outputs
    for name in JSONL:
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert models(first) == models(second)


def test_a_bad_record_costs_itself_and_the_models_are_those_of_the_stream_without_it(tmp_path):
    good = events()
    bad = [
        "not JSON",
        '{"key": "k0", "id": "n", "time": 10, "x": {"a": NaN}}',
        '{"key": "k0", "id": "n", "time": 10}',
        '{"key": "k0", "id": "n", "x": {"a": 1}}',
        Event("k0", "0", 10.0, None, "maybe"),  # a label of the wrong type for a prediction that waits
        Event("k0", "n", 10.0, {"a": 1e200}, True, w=-1.0),
        '{"key": "k0", "id": "n", "time": 10, "x": {"a": "' + "b" * 10_000_000 + '"}}',
        '{"key": "k0", "id": "n", "time": 10, "x": {' + ",".join(f'"f{i}": 1' for i in range(1_000_000)) + "}}",
        '{"key": "k0", "id": "n", "time": 10, "x": ' + "[" * 10_000 + "]" * 10_000 + "}",
        '{"key": "k0", "id": "n", "time": 10, "x": {"a": {"nested": 1}}}',
    ]
    clean = ran(tmp_path, name="clean")
    output = ran(tmp_path, name="bad", given=[*good[:15], *bad, *good[15:]])
    rejected = lines(output, "rejected")
    assert len(rejected) == len(bad)
    assert all(line["reason"] and len(line["payload"]) <= 64_000 for line in rejected)
    assert [line["stage"] for line in rejected[:2]] == ["parse", "parse"]
    assert {line["key"] for line in rejected[2:6]} == {"k0"}
    for name in ("predictions.jsonl", "outcomes.jsonl", "orphans.jsonl"):
        assert (clean / name).read_bytes() == (output / name).read_bytes()
    assert [row[:3] for row in models(clean)] == [row[:3] for row in models(output)]


def test_max_rejected_fails_the_run_and_leaves_the_folder_as_it_was(tmp_path, capsys):
    output = ran(tmp_path)
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    source = write(tmp_path / "in.jsonl", [*events(), "bad", "worse"])
    given = ["--input", str(source), "--output", str(output), "--overwrite", "--no_report", "--max_rejected"]
    capsys.readouterr()
    assert run.main([*given, "1"]) == 1
    assert "2 rejected records are more than --max_rejected 1" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before
    assert run.main([*given, "2"]) == 0


def test_a_prediction_whose_label_is_late_leaves_by_its_time_to_live_and_a_silent_key_by_its_own(tmp_path):
    given = [
        Event("k", "1", 1.0, {"a": 1.0}, True),
        Event("k", "2", 2.0, {"a": 1.0}),
        Event("k", "3", 100.0, {"a": 1.0}),
        Event("k", "2", 101.0, None, True),
        Event("still", "4", 3.0, {"a": 1.0}),
    ]
    output = ran(tmp_path, "--label_ttl", "10", "--idle_ttl", "50", given=given)
    orphans = [(o["id"], o["kind"], o["time"]) for o in lines(output, "orphans")]
    assert orphans[0] == ("2", "unlabelled", 12.0)
    assert ("4", "unlabelled") in [(id, kind) for id, kind, _ in orphans]
    (back,) = [line for line in lines(output, "predictions") if line["id"] == "3"]
    assert (back["score"], back["version"]) == (0.0, 0)  # a new generation: the old one left at 52
    assert ("k", "idle", 1) in models(output, "key, reason, version")


def test_csv_and_json_lines_of_the_same_events_give_the_same_files(tmp_path):
    rows = ["key,id,time,a,b,y"]
    for event in events():
        x, y = event.x or {"a": "", "b": ""}, "" if event.y is None else str(event.y).lower()
        rows.append(f"{event.key},{event.id},{event.time},{x['a']},{x['b']},{y}")
    source = tmp_path / "in.csv"
    source.write_text("\n".join(rows))
    given = ["--columns", "key=key,id=id,time=time,y=y,x=a+b", "--no_report"]
    assert run.main(["--input", str(source), "--output", str(tmp_path / "csv"), *given]) == 0
    by_json = ran(tmp_path)
    for name in JSONL:
        assert (tmp_path / "csv" / name).read_bytes() == (by_json / name).read_bytes()


def test_a_run_that_goes_on_equals_one_run_over_both_inputs(tmp_path):
    given = events()
    together = ran(tmp_path, "--at_end", "snapshot", name="together")
    output = ran(tmp_path, "--at_end", "snapshot", given=given[:40])
    second = write(tmp_path / "second.jsonl", given[40:])
    again = ["--output", str(output), "--at_end", "snapshot", "--no_report", "--resume", "--input"]
    assert run.main([*again, str(second)]) == 0
    for tag in ("predictions", "outcomes"):
        assert (output / f"{tag}.jsonl").read_bytes() == (together / f"{tag}.jsonl").read_bytes()
    newest = {key: (version, model) for key, version, model, _ in sorted(models(output))}
    assert newest == {key: (version, model) for key, version, model, _ in models(together)}


@pytest.mark.parametrize("more", [[], ["--shards", "2"]])
def test_keys_that_left_and_keys_that_stay_go_on_in_a_second_run_as_in_one(tmp_path, more):
    given = [event._replace(time=event.time + (100.0 if event.time >= 30 and event.key == "k1" else 0.0))
             for event in events()]  # fmt: skip
    given.sort(key=lambda event: event.time)
    whole = ran(tmp_path, "--at_end", "snapshot", "--idle_ttl", "50", *more, given=given, name="whole")
    for cut in (20, 40, len(given) - 20):
        output = ran(tmp_path, "--at_end", "snapshot", "--idle_ttl", "50", *more, given=given[:cut], name=f"out{cut}")
        second = write(tmp_path / "second.jsonl", given[cut:])
        again = ["--at_end", "snapshot", "--idle_ttl", "50", *more, "--no_report", "--resume", "--input", str(second)]
        assert run.main([*again, "--output", str(output)]) == 0
        for tag in ("predictions", "outcomes", "orphans"):
            assert (output / f"{tag}.jsonl").read_bytes() == (whole / f"{tag}.jsonl").read_bytes(), (cut, tag)
        newest = {key: (version, model) for key, version, model, _ in sorted(models(output))}
        assert newest == {key: (version, model) for key, version, model, _ in sorted(models(whole))}


def test_shards_change_no_byte_of_what_a_run_leaves(tmp_path):
    plain = ran(tmp_path, "--label_ttl", "10", "--idle_ttl", "3", name="plain")
    for shards in ("1", "2", "7"):
        output = ran(tmp_path, "--label_ttl", "10", "--idle_ttl", "3", "--shards", shards, name=shards)
        assert {name: (output / name).read_bytes() for name in JSONL} == {
            name: (plain / name).read_bytes() for name in JSONL}  # fmt: skip
        assert sorted(models(output)) == sorted(models(plain))


def test_by_event_time_the_order_of_the_lines_does_not_matter(tmp_path):
    given = [event._replace(time=event.time // 4) for event in events()]  # ties, which the events themselves decide
    sorted_out = ran(tmp_path, "--order", "event_time", given=given, name="sorted")
    for seed in range(3):
        shuffled = random.Random(seed).sample(given, len(given))
        output = ran(tmp_path, "--order", "event_time", given=shuffled, name=str(seed))
        for tag in ("predictions", "outcomes", "orphans"):
            assert sorted(map(str, lines(output, tag))) == sorted(map(str, lines(sorted_out, tag)))
        assert sorted(models(output)) == sorted(models(sorted_out))


def test_resume_keeps_models_or_starts_fresh_ones_and_refuses_to_guess(tmp_path, capsys):
    output = ran(tmp_path, given=events()[:40])
    second = write(tmp_path / "second.jsonl", events()[40:])
    given = ["--input", str(second), "--output", str(output), "--no_report"]
    for more, word in (
        ([], "is not empty: give --resume"),
        (["--resume", "--model", "PAClassifier(PA2(0.5))"], "model changed since the run"),
        (["--resume", "--order", "sequence"], "order changed since the run"),
        (["--resume", "--overwrite"], "not allowed with"),
        (["--on_change", "keep"], "--on_change needs --resume"),
        (["--resume", "--input", str(tmp_path / "out.jsonl")], "was read before"),
    ):
        assert run.main([*given, *more]) == 2
        error = capsys.readouterr().err
        assert word in error and error.count("\n") == 1
    changed = [*given, "--resume", "--model", "PAClassifier(PA2(0.5))", "--on_change"]
    assert run.main([*changed, "fresh"]) == 0
    assert [line["version"] for line in lines(output, "predictions")].count(0) > 6  # 3 keys began twice
    assert type(pa_river.loads(models(output)[-1][2]).rule) is pa_river.PA2


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--input", "nowhere.jsonl", "--output", "o"], "nowhere.jsonl: no such file"),
        (["--input", "{file}"], "--output is required"),
        (["--job", "flights"], "--output is required"),
        (["--job", "trains", "--output", "o"], "no such job (there are flights, flights_delay)"),
        (["--model", "PAClasifier()"], "did you mean PAClassifier"),
        (["--model", "PAClassifier(PA1(C=0))"], "must be a finite number > 0"),
        (["--model", "KNNClassifier()"], "cannot be kept in a cell"),
        (["--input", "{file}", "--output", "o", "--columns", "key=k"], "--columns: time=... is missing"),
        (["--input", "{file}", "--output", "o", "--columns", "key=k,time=t"], "no column 'k' for key"),
        (["--columns", "key=k,time=t"], "a job has its own reader"),
        (["--job", "flights", "--input", "{csv}", "--output", "o"], "needs the column 'month'"),
        (["--order", "random"], "no such order"),
        (["--shards", "0"], "--shards must be a whole number >= 1"),
        (["--detector", "ADWIN()"], "not in this version"),
        (["--action", "reset"], "not in this version"),
        (["--label_ttl", "-1"], "--label_ttl"),
        (["--label_ttl", "soon"], "--label_ttl"),
        (["--label_ttl", "0"], "label_ttl"),
        (["--max_rejected", "-1"], "--max_rejected"),
        (["--inputs", "{file}"], "unknown argument --inputs (did you mean --input?)"),
        (["--output", "{file}"], "is not a folder"),
        (["--output", "{folder}", "--resume"], "there is nothing in"),
        (["--runner", "NoSuchRunner", "--output", "o"], "NoSuchRunner"),
        (["--max_cache_memory_usage_mb", "100"], "must stay 0"),
    ],
)
def test_wrong_arguments_exit_with_2_and_one_line_that_names_them(tmp_path, monkeypatch, capsys, args, word):
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path / "file", events())
    csv = write(tmp_path / "csv", ["day,carrier", "1,UA"])
    (tmp_path / "folder").mkdir()
    assert run.main([arg.format(file=file, csv=csv, folder="folder") for arg in args]) == 2
    error = capsys.readouterr().err
    assert word in error and error.count("\n") == 1 and "Traceback" not in error
    assert not (tmp_path / "o").exists()


def test_a_source_that_breaks_off_fails_the_run_with_1_and_one_line(tmp_path, capsys):
    draw = random.Random(0)  # digits that do not compress: the file must be longer than what is read at the start
    lines = (Event("k", str(draw.random()), 0.0, {"a": draw.random()}).to_json().encode() + b"\n" for _ in range(5_000))
    source = tmp_path / "in.gz"
    source.write_bytes(gzip.compress(b"".join(lines))[:-30])
    assert run.main(["--input", str(source), "--output", str(tmp_path / "out"), "--no_report"]) == 1
    error = capsys.readouterr().err
    assert "in.gz" in error and error.strip().count("\n") == 0
    assert list((tmp_path / "out").iterdir()) == []


def test_a_disk_that_refuses_fails_the_run_with_1(tmp_path, capsys, monkeypatch):
    def full(folder, output):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sinks, "publish", full)
    source = write(tmp_path / "in.jsonl", events())
    assert run.main(["--input", str(source), "--output", str(tmp_path / "out"), "--no_report"]) == 1
    assert "No space left on device" in capsys.readouterr().err


def test_duplicates_and_overflow_leave_no_record_and_are_shown(tmp_path, capsys):
    first = Event("k", "1", 1.0, {"a": 1.0})
    ran(tmp_path, given=[first, first, Event("k", "1", 2.0, None, True), Event("k", "1", 3.0, None, True)])
    assert "duplicates: 2" in capsys.readouterr().out


def test_help_shows_examples_and_the_bounds(capsys):
    with pytest.raises(SystemExit) as stopped:
        run.main(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "examples:" in shown and "10,000 open predictions or 4 MB" in shown and "exit code" in shown


def test_any_model_that_can_be_kept_is_served(tmp_path):
    targets = [event._replace(y=None if event.y is None else float(event.y)) for event in events()]
    for model, given in (
        ("LogisticRegression()", events()),
        ("StandardScaler() | LinearRegression()", targets),
        ("StandardScaler() | PARegressor(PA2(C=0.5), eps=0.2)", targets),
    ):
        output = ran(tmp_path, "--model", model, name=model[:3] + model[-6:-3], given=given)
        losses = [line["loss"] for line in lines(output, "outcomes")]
        assert losses and all(math.isfinite(loss) for loss in losses)
