"""The arguments of the live job: refused in one line, before a broker is asked."""

import json

import pytest

from beam_pipelines import live, live_arguments

GIVEN = ["--bootstrap", "nowhere:1", "--topic", "t", "--output", "o"]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "--bootstrap is required"),
        (["--bootstrap", "b:1", "--output", "o"], "--topic is required"),
        ([*GIVEN, "--resume", "--overwrite"], "not both"),
        ([*GIVEN, "--order", "sequence"], "whose offsets are marks only"),
        ([*GIVEN, "--idle_ttl", "0"], "--idle_ttl must be greater than 0"),
        ([*GIVEN, "--shards", "0"], "--shards must be greater than 0"),
        ([*GIVEN, "--save_every", "0"], "--save_every must be a whole number >= 1"),
        ([*GIVEN, "--lateness", "-1"], "--lateness"),
        ([*GIVEN, "--tombstones", "eat"], "--tombstones"),
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
