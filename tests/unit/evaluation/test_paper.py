"""The evaluation's command, and the streams that its experiments draw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaluation import gaussians, paper, results, teaching
from pa_river import PA1


@pytest.mark.parametrize("arguments, message", [
    (["nonsense", "--data", "."], "nonsense"), (["all", "--data", "no/such/folder"], "no/such/folder"),
])
def test_a_wrong_argument_is_answered_in_one_line_with_exit_2(arguments, message, capsys):
    assert paper.main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_an_experiment_writes_its_page_and_its_plot(tmp_path, capsys):
    assert paper.main(["teaching-figures", "--data", str(tmp_path), "--output", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "teaching-figures.md").read_text()
    assert page.count("| reached |") == 12 and "not reached" not in page
    assert (tmp_path / "out" / "teaching-figures.svg").stat().st_size > 1000
    assert "12 of 12 rows reached" in capsys.readouterr().out


def test_the_gaussians_have_the_papers_moments():
    drawn = list(gaussians.examples(40_000, seed=3, sigma=1.0, flip=0.2))
    X = np.array([[x[0], x[1]] for x, _, _ in drawn])
    sign = np.array([1.0 if clean else -1.0 for _, _, clean in drawn])
    noise = X - sign[:, None]
    assert np.cov(noise.T) == pytest.approx(np.diag([1.2, 3.0]), abs=0.06)
    assert np.mean([seen != clean for _, seen, clean in drawn]) == pytest.approx(0.2, abs=0.01)
    assert np.mean(sign) == pytest.approx(0.0, abs=0.02)


def test_errors_are_counted_before_the_update():
    twice = [({0: 1.0, 1: 0.0}, True, True)] * 2
    assert gaussians.online_errors(PA1(10.0), iter(twice)).tolist() == [[True, True], [False, False]]


def test_hindsight_is_not_worse_than_the_true_weights_on_clean_data():
    X, Y = teaching.stream(noise=0.0)
    assert teaching.hindsight(X, Y) <= 400 * 0.02


def test_a_row_that_was_not_reached_says_so(tmp_path: Path):
    page = results.write(results.Result("name", "Title", "text", [
        results.Row("a claim", "1", "2", False, "why"), results.Row("shown", "", "3"),
    ]), tmp_path).read_text()
    assert "| a claim | 1 | 2 | **not reached**; why |" in page and "| shown |  | 3 |  |" in page
