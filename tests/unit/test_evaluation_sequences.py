"""The scorer of chunks against cases counted by hand, and the command on a few sentences."""

from __future__ import annotations

import gzip
import sys

import pytest

from evaluation import chunks, sequences


@pytest.mark.parametrize(("tags", "expected"), [
    ([], []),
    (["O", "O"], []),
    (["B-NP"], [(0, 1, "NP")]),
    (["B-NP", "I-NP", "I-NP"], [(0, 3, "NP")]),
    (["B-NP", "B-NP"], [(0, 1, "NP"), (1, 2, "NP")]),  # a B closes what is open
    (["I-NP", "I-NP", "O", "I-VP"], [(0, 2, "NP"), (3, 4, "VP")]),  # an I after an O opens
    (["B-NP", "I-VP", "I-VP"], [(0, 1, "NP"), (1, 3, "VP")]),  # another type opens
    (["B-A-B", "I-A-B"], [(0, 2, "A-B")]),
])
def test_chunks_open_and_close_as_conlleval_says(tags, expected):
    assert chunks.chunks(tags) == expected


def test_a_sentence_scored_by_hand():
    """Gold NP(0-2) VP(2-3) NP(3-5) PP(6-7); told NP(0-2) VP(2-4) NP(4-5) PP(6-7): two of four are whole."""
    gold = ["B-NP", "I-NP", "B-VP", "B-NP", "I-NP", "O", "B-PP"]
    told = ["B-NP", "I-NP", "B-VP", "I-VP", "B-NP", "O", "B-PP"]
    assert chunks.score([gold], [told]) == chunks.Score(5 / 7, 0.5, 0.5, 0.5)


def test_more_chunks_told_than_there_are_cost_precision_and_fewer_cost_recall():
    """Gold has 1 chunk, told 2 of which 1 is right; then gold 3, told 1."""
    first = chunks.score([["B-NP", "O", "O"]], [["B-NP", "B-VP", "O"]])
    assert (first.precision, first.recall, first.f1) == (0.5, 1.0, pytest.approx(2 / 3))
    second = chunks.score([["B-NP", "B-NP", "B-VP"]], [["B-NP", "O", "O"]])
    assert (second.precision, second.recall, second.f1) == (1.0, pytest.approx(1 / 3), 0.5)


def test_nothing_told_scores_zero_and_divides_nothing():
    assert chunks.score([["B-NP"]], [["O"]]) == chunks.Score(0.0, 0.0, 0.0, 0.0)
    assert chunks.score([], []) == chunks.Score(0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("word", "shape"), [
    ("McGrath-42", "XxXx-9"), ("the", "x"), ("U.S.", "X.X."), ("3,000", "9,9"),
])
def test_shapes_are_runs_of_kinds(word, shape):
    assert sequences._shape(word) == shape


@pytest.mark.parametrize("task", [sequences.CHUNKING, sequences.TAGGING], ids=lambda task: task.name)
def test_no_token_names_a_feature_twice(task):
    tokens, tags = task.example([["The", "DT", "B-NP"], ["U.S.", "NNP", "I-NP"], ["a", "DT", "B-NP"]])
    assert len(tokens) == len(tags) == 3
    assert all(len(set(token)) == len(token) for token in tokens)


@pytest.fixture
def data(tmp_path):
    """Both tasks in small: three sentences to learn, which are also the test."""
    text = "The DT B-NP\ndog NN I-NP\nbarks VBZ B-VP\n\nA DT B-NP\ncat NN I-NP\n\nit PRP B-NP\nbarks VBZ B-VP\n"
    for task in (sequences.CHUNKING, sequences.TAGGING):
        for name in (task.train, task.test):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_the_command_writes_a_page_and_a_plot_a_task(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pycrfsuite", None)  # as if it were not installed
    out = tmp_path / "pages"
    assert sequences.main(["--data", str(data), "--output", str(out), "--epochs", "8"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["chunking.md", "chunking.svg", "tagging.md", "tagging.svg"]
    page = (out / "chunking.md").read_text(encoding="utf-8")
    assert "| PASequence, averaged | 8 | 100.00 | 100.00 | 100.00 | 100.00 |" in page
    assert "python-crfsuite is not installed" in page and "python-crfsuite is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(("args", "message"), [(["--epochs", "0"], "at least 1"), ([], "is not there")])
def test_wrong_arguments_are_told_in_a_line(args, message, tmp_path, capsys):
    assert sequences.main(["--data", str(tmp_path), *args]) == 2
    assert message in capsys.readouterr().err
