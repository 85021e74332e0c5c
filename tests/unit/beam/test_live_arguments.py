"""The arguments of the live job: refused in one line, before a broker is asked."""

import json

import pytest

from beam_pipelines import live, live_arguments, run
from beam_pipelines.store import LiveStore
from beam_pipelines.units import unit
from pa_river import PA2, PAClassifier, PAMulticlass
from pa_river.stream import CellSpec, Event

GIVEN = ["--bootstrap", "nowhere:1", "--topic", "t", "--output", "o"]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "--bootstrap is required"),
        (["--bootstrap", "b:1", "--output", "o"], "--topic is required"),
        ([*GIVEN, "--resume", "--overwrite"], "not both"),
        ([*GIVEN, "--order", "sequence"], "whose offsets are marks only"),
        ([*GIVEN, "--idle_ttl", "0"], "--idle_ttl must be greater than 0"),
        ([*GIVEN, "--order", "event_time", "--expansion_service", "h:1"], "leave out --expansion_service"),
        ([*GIVEN, "--shards", "0"], "--shards must be greater than 0"),
        ([*GIVEN, "--save_every", "0"], "--save_every must be a whole number >= 1"),
        ([*GIVEN, "--lateness", "-1"], "--lateness"),
        ([*GIVEN, "--tombstones", "eat"], "--tombstones"),
        ([*GIVEN, "--since", "yesterday"], "--since"),
        ([*GIVEN, "--since", "2024-05-01", "--expansion_service", "b:1"], "--since is for the command's own reader"),
        ([*GIVEN, "--warm_start", "no.db"], "no.db: no such file"),
        ([*GIVEN, "--model", "PAClasifier()"], "did you mean PAClassifier"),
        ([*GIVEN, "--kafka", "sasl.password=x"], "PA_RIVER_KAFKA_SASL_PASSWORD"),
        ([*GIVEN[:-1], "{file}"], "is not a folder"),
        ([*GIVEN[:-1], "{folder}"], "is not empty: give --resume"),
        ([*GIVEN[:-1], "{folder}", "--resume"], "holds no live job"),
        (["--output", "{folder}", "--export"], "there is no snapshots.db"),
    ],
)
def test_wrong_arguments_exit_with_2_and_one_line_that_names_them(tmp_path, monkeypatch, capsys, args, word):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "something").write_text("")
    assert live.main([arg.format(file="file", folder="folder") for arg in args]) == 2
    error = capsys.readouterr().err
    assert word in error and error.count("\n") == 1 and "Traceback" not in error
    assert not (tmp_path / "o").exists()


def test_another_model_over_the_models_of_a_folder_needs_a_word(tmp_path):
    given = ["--bootstrap", "b:1", "--topic", "t", "--output", str(tmp_path), "--resume"]
    args, _ = live_arguments.parse(given)
    live_arguments.write_fingerprint(args)
    live_arguments.check_output(args)
    changed, _ = live_arguments.parse([*given, "--model", "PAClassifier(PA2(0.5))"])
    with pytest.raises(live_arguments.ArgumentError, match="model changed"):
        live_arguments.check_output(changed)
    kept, _ = live_arguments.parse([*given, "--model", "PAClassifier(PA2(0.5))", "--on_change", "keep"])
    live_arguments.check_output(kept)
    assert json.loads((tmp_path / "fingerprint.json").read_text())["model"] == "PAClassifier(PA1(1.0))"


@pytest.mark.parametrize("changed", [["--order", "event_time"], ["--shards", "4"]])
def test_what_lies_in_the_cells_bytes_cannot_change_under_them(tmp_path, changed):
    given = ["--bootstrap", "b:1", "--topic", "t", "--output", str(tmp_path), "--resume", "--on_change", "keep"]
    live_arguments.write_fingerprint(live_arguments.parse(given)[0])
    with pytest.raises(live_arguments.ArgumentError, match=f"{changed[0][2:]} cannot change"):
        live_arguments.check_output(live_arguments.parse([*given, *changed])[0])


@pytest.fixture(scope="module")
def backfill(tmp_path_factory):
    """The snapshots of a bounded run with the default model."""
    folder = tmp_path_factory.mktemp("backfill")
    (folder / "older.jsonl").write_text('{"key": "k", "id": "1", "time": 1, "x": {"a": 1}, "y": true}\n')
    assert run.main(["--input", str(folder / "older.jsonl"), "--output", str(folder / "out"), "--no_report"]) == 0
    return folder / "out" / "snapshots.db"


@pytest.mark.parametrize(
    ("model", "word"),
    [
        ("StandardScaler() | PAClassifier()", "kind PAClassifier, and --model is of the kind StandardScaler | PAClass"),
        ("PAClassifier(PA1(0.5))", "PA1 ( C=1. ) learn_intercept=True kernel=None budget=None ), and --model is anoth"),
    ],
)
def test_models_that_cannot_go_on_under_another_model_are_refused(tmp_path, capsys, backfill, model, word):
    given = [*GIVEN[:-1], str(tmp_path / "o"), "--warm_start", str(backfill), "--model", model]
    assert live.main(given) == 2
    error = capsys.readouterr().err
    assert word in error and error.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_models_of_other_parameters_go_on_where_that_is_meant(tmp_path, capsys, backfill):
    given = [*GIVEN[:-1], str(tmp_path / "o"), "--warm_start", str(backfill), "--on_change", "keep", "--model"]
    assert live.main([*given, "PAClassifier(PA1(0.5))"]) == 2
    assert "broker nowhere:1" in capsys.readouterr().err  # so the models were not what it failed on


@pytest.mark.parametrize("content", [b"", b"no database at all, whatever its name says"])
def test_a_file_without_snapshots_is_refused(tmp_path, capsys, content):
    (tmp_path / "no.db").write_bytes(content)
    assert live.main([*GIVEN[:-1], str(tmp_path / "o"), "--warm_start", str(tmp_path / "no.db")]) == 2
    error = capsys.readouterr().err
    assert "no.db" in error and error.count("\n") == 1


def test_a_resumed_job_refuses_a_model_of_another_kind_although_change_is_meant(tmp_path):
    holder = CellSpec(PAClassifier()).open("k", None)
    holder.on_event(Event("k", "1", 1.0, {"a": 1.0}, True))
    store = LiveStore(tmp_path / "snapshots.db")
    number, _ = store.begin([])
    store.write(number, [unit("k", 1, [], [], holder.dumps(), True)])
    store.close()
    args, _ = live_arguments.parse([*GIVEN[:-1], str(tmp_path), "--resume", "--on_change", "keep"])
    live.begin(args, CellSpec(PAClassifier(PA2(0.5))), [])
    with pytest.raises(live_arguments.ArgumentError, match="kind PAClassifier, .* is of the kind PAMulticlass"):
        live.begin(args, CellSpec(PAMulticlass()), [])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1714521600", 1714521600.0), ("2024-05-01T00:00:00Z", 1714521600.0), ("2024-05-01", 1714521600.0),
     ("2024-05-01T02:00:00+02:00", 1714521600.0)],
)
def test_a_time_to_begin_at_is_utc_unless_it_says_otherwise(text, seconds):
    assert live_arguments.parse([*GIVEN, "--since", text])[0].since == seconds


def test_help_shows_examples_bounds_and_where_secrets_come_from(capsys):
    with pytest.raises(SystemExit) as stopped:
        live.main(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    for word in ("examples:", "--warm_start", "10,000 open predictions", "PA_RIVER_KAFKA_SASL_PASSWORD", "exit code"):
        assert word in shown


def test_a_job_without_an_end_is_not_given_up_by_beams_client():
    _, beam_args = live_arguments.parse(GIVEN)
    assert int(beam_args[beam_args.index("--job_server_timeout") + 1]) > 10**8
