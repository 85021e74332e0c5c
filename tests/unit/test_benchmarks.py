"""The benchmarks' command and page: what is kept, what is shown, what a goal belongs to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import measure, page, summary
from benchmarks.measure import Row


def test_ratios_are_the_peers_time_over_ours(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(measure.time, "process_time", lambda: clock[0])

    def worker(seconds, count):
        def prepare():
            def run():
                clock[0] += seconds
                return count
            return run
        return prepare

    contestants = {"ours": worker(1.0, 4), "slow": worker(5.0, 2), "absent": "not installed"}
    row = measure.compare("sums", "ours", contestants, 3)
    assert row.ratios == {"slow": 10.0} and row.spread == {"slow": (10.0, 10.0)}
    assert row.micros == {"ours": 250_000.0, "slow": 2_500_000.0} and row.skipped == {"absent": "not installed"}


def test_figures_of_other_benchmarks_stay_in_the_file_and_the_page_shows_all(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    made = {
        "first": lambda turns: [Row("learn_many, d=10, 1000 rows", {"sklearn": 30.0}, {"sklearn": (28.0, 31.0)})],
        "second": lambda turns: [Row("learn_many, d=100, 1000 rows", {"sklearn": 5.0}, {}, {"ours": 2.0}),
                                 Row("alone", figures={"bytes": 3.0}, skipped={"peer": "not installed"})],
    }
    monkeypatch.setattr(command, "found", lambda: made)
    monkeypatch.setattr(command, "measured", lambda name, turns: made[name](turns))
    kept, shown = tmp_path / "speed" / "figures.json", tmp_path / "speed.md"
    for name in made:
        assert command.main([name, "--turns", "1", "--json", str(kept), "--page", str(shown)]) == 0
    assert set(json.loads(kept.read_text())) == {"first", "second"}
    text = shown.read_text()
    assert "| learn_many, d=10, 1000 rows | sklearn | 30 | 28 to 31 | 25 |" in text
    assert "| learn_many, d=100, 1000 rows | sklearn | 5 | 5 to 5 | 13 | ours 2 |" in text
    assert "skipped: not installed" in text and (tmp_path / "speed" / "ratios.svg").exists()
    assert command.main(["third"]) == 2 and "third" in capsys.readouterr().err


@pytest.mark.parametrize("what, peer, ratio", [
    ("learn_many, d=10, 1000 rows a call", "sklearn", 25), ("learn_many, d=1000, 1000 rows a call", "sklearn", 7),
    ("PASequence, averaged, an epoch, 9 tags", "crfsuite", 6),
    ("PASequence, averaged, an epoch, 45 tags", "crfsuite", 8),
    ("multiclass, k=10, d=100", "ours, step", None),
    ("step, d=10, fresh keys", "river", None), ("step, d=10, shared keys", "river", 70),
])
def test_a_goal_belongs_to_the_line_that_it_was_set_for(what, peer, ratio):
    assert page.goal({"what": what}, peer) == ratio


def kept_row(what, ratios, **figures):
    return {"what": what, "ratios": ratios, "spread": {}, "micros": {}, "figures": figures, "skipped": {}}


def test_the_readme_gets_the_short_table_between_its_marks_and_nothing_else_moves(tmp_path, monkeypatch, capsys):
    machine = {"cpu": "chip", "cores": 2, "load": [0.5, 0, 0], "python": "3", "numpy": "2", "river": "0"}
    kept = {
        "regression": {"machine": machine, "turns": 1, "rows": [
            kept_row("PARegressor predict + learn, d=100, shared keys", {"river": 123.4}),
            kept_row("PARegressor predict + learn, d=10, shared keys", {"river": 9.87})]},
        "operator": {"machine": {**machine, "load": [2.0, 0, 0]}, "turns": 1, "rows": [
            kept_row(f"operator, 100 features, {keys} keys", {"counter": 0.5, "river": 0.8}) for keys in (1, 100)]},
    }
    figures, readme = tmp_path / "figures.json", tmp_path / "README.md"
    figures.write_text(json.dumps(kept))
    readme.write_text(f"before\n{summary.BEGIN}\nold\n{summary.END}\nafter\n")
    monkeypatch.setattr(command, "found", dict)
    for _ in range(2):
        assert command.main(["--report", "--json", str(figures), "--readme", str(readme)]) == 0
    text = readme.read_text()
    assert text.startswith(f"before\n{summary.BEGIN}\n") and text.endswith(f"{summary.END}\nafter\n")
    assert "old" not in text and text.count("| what |") == 1 and "(chip, 2 cores, load 0.5 to 2.0)" in text
    assert "| `PARegressor`, 10 / 100 | River | 9.9 / 123 | 40 / 25 |" in text
    assert "| times a bare counter in state | 2 / 2 | at most 1.5 |" in text
    assert json.loads(figures.read_text()) == kept
    readme.write_text("no marks")
    with pytest.raises(ValueError, match="lacks the marks"):
        summary.update(kept, readme)


def test_every_line_of_the_short_table_finds_the_rows_that_are_kept():
    kept = json.loads((Path(__file__).parents[2] / "docs" / "speed" / "figures.json").read_text())
    lines = [line for line in summary.LINES if line.benchmark in kept]
    assert summary.table(kept).count("\n| ") == len(lines) + 2 > 10


def test_each_benchmark_is_measured_in_a_process_of_its_own():
    rows = command.measured("memory", 1)
    assert [row.what for row in rows][:1] == ["bytes a weight, 100 names"] and rows[0].figures["dict"] > 0.0
