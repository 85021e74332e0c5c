"""The experiment's protocol on a small set, and the command from files to page."""

import gzip
import json

import numpy as np
import pytest

from evaluation import odm, odm_data, odm_protocol, odm_report


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) * [1.0, 50.0, 0.0]
    lines = [f"{'+1' if row[0] + 0.2 * rng.normal() > 0 else '-1'} 1:{row[0]:.6f} 2:{row[1]:.6f}\n" for row in X]
    (tmp_path / "libsvm").mkdir()
    with gzip.open(tmp_path / "libsvm" / "heart.svm.gz", "wt") as file:
        file.writelines(lines)
    return tmp_path


def test_a_set_is_read_scaled_and_cut_as_the_protocol_says(data):
    X, y = odm_data.read(data, "heart")
    assert X.shape == (120, 2) and X.min(axis=0).tolist() == [0.0, 0.0] and X.max(axis=0).tolist() == [1.0, 1.0]
    assert set(y.tolist()) == {1.0, -1.0}
    split = odm_data.partition(X, y, 1, 1000)
    assert [len(part[1]) for part in (split.history, split.varying, split.test)] == [72, 24, 24]
    rows = np.vstack([split.history[0], split.varying[0], split.test[0]])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, X))
    again = odm_data.partition(X, y, 1, 1000)
    assert (again.test[0] == split.test[0]).all()
    assert len(odm_data.partition(X, y, 1, 50).test[1]) == 10


def test_every_method_makes_the_same_changes_and_ends_where_it_began(data):
    split = odm_data.partition(*odm_data.read(data, "heart"), 0, 1000)
    found = odm_protocol.run(split, 10.0, 0.1, 1.0, changes=12, seconds=60.0)
    assert found["m"] == 72 and found["varied"] == 12 and found["of"] == 24
    for word, changes in (("single", 24), ("batch", 6)):
        one = found[word]
        assert one["changes"] == changes
        assert {name: len(values) for name, values in one["ms"].items()} == dict.fromkeys(
            ("fast", "path", "cold", "warm"), changes)
        assert one["identity"] <= 1e-9 and one["agreement"] <= 1e-9 and one["residual"] <= 1e-10
        assert one["sweeps"]["warm"] < one["sweeps"]["cold"]
    assert found["accuracy"]["odm"] == found["accuracy"]["retrained"] >= 75.0
    assert found["accuracy"]["midsvm 100"] >= 75.0


def test_retraining_beyond_its_budget_is_sampled_evenly(data):
    split = odm_data.partition(*odm_data.read(data, "heart"), 0, 1000)
    found = odm_protocol.run(split, 10.0, 0.1, 1.0, changes=20, seconds=0.0)
    assert 1 <= len(found["single"]["ms"]["cold"]) <= 2  # the first is taken, then nothing is left
    assert len(found["single"]["ms"]["fast"]) == 40


def test_the_command_writes_page_plots_and_measurements_and_reports_again_from_them(data, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["--data", str(data), "--sets", "heart", "--partitions", "2", "--changes", "10", "--seconds", "1",
               "--sizes", "", "--output", str(out)]
    assert odm.main(command) == 0
    page = (out / "incremental-odm.md").read_text()
    assert "| heart | 2 | 72 | 2 |" in page and "geometric mean" in page and "least set" in page
    assert (out / "odm-cumulative.svg").exists() and (out / "odm-accuracy.svg").exists()
    assert len(json.loads((out / "measurements.json").read_text())["sets"]["heart"]) == 2
    assert odm.main(["--report", "--output", str(out)]) == 0
    assert (out / "incremental-odm.md").read_text() == page
    assert "heart 0: m=72" in capsys.readouterr().out


def test_a_run_goes_on_where_the_last_one_ended_and_starts_afresh_when_told(data, tmp_path, capsys):
    command = ["--data", str(data), "--sets", "heart", "--changes", "10", "--sizes", "", "--output", str(tmp_path)]
    store = tmp_path / "measurements.json"

    def measured(*more):
        assert odm.main([*command, *more]) == 0
        lines = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()[:-1]]
        return lines, json.loads(store.read_text())["sets"]["heart"]

    lines, first = measured("--partitions", "1", "--seconds", "1")
    assert lines == ["heart 0"]
    lines, both = measured("--partitions", "2", "--seconds", "0.5")
    assert lines == ["heart 1"] and both[0] == first[0] and [one["seconds"] for one in both] == [1.0, 0.5]
    assert measured("--partitions", "2") == ([], both)
    assert "| heart | 2 | 72 | 2 |" in (tmp_path / "incremental-odm.md").read_text()
    lines, afresh = measured("--partitions", "1", "--again", "--seconds", "2")
    assert lines == ["heart 0"] and [one["seconds"] for one in afresh] == [2.0]


@pytest.mark.parametrize(
    "arguments, message",
    [(["--sets", "iris"], "no set is called 'iris'"), (["--data", "nowhere"], "nowhere is no folder"),
     (["--partitions", "0"], "must be positive"), (["--report", "--output", "nowhere"], "nothing was measured")],
)
def test_wrong_arguments_end_with_one_line_and_2(arguments, message, capsys):
    assert odm.main(arguments) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_numbers_are_written_with_the_digits_they_have():
    assert [odm_report._short(value, 3) for value in (0.0, 0.012345, 1.2345, 123.4, 12345.6)] == [
        "0", "0.0123", "1.23", "123", "12,346"]
