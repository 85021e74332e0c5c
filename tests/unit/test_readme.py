"""The README's Python runs as written, and its two commands are the Makefile's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import develop

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", BLOCKS, ids=["river", "beam"])
def test_an_example_runs_as_written(code, capsys):
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})  # our own text, not input
    said = capsys.readouterr().out
    assert "MAE: 0.85" in said or "shop-1 a False True 1.0" in said


def test_the_beam_example_shows_late_labels_and_orphans(capsys):
    exec(compile(BLOCKS[1], "README.md", "exec"), {"__name__": "readme"})
    said = capsys.readouterr().out.splitlines()
    assert set(said) == {"shop-1 b False False 0.0", "shop-1 a False True 1.0", "shop-2 c no_features"}


def test_the_two_commands_are_those_of_develop_py():
    assert {"run", "test"} <= set(develop.COMMANDS)
    for command in ("run", "test"):
        assert f"python3 develop.py {command}" in README


def test_an_unknown_command_is_answered_with_the_known_ones(capsys):
    assert develop.main(["nonsense"]) == 2 and "integration" in capsys.readouterr().err
    assert develop.main(["--help"]) == 0


def test_every_local_link_leads_somewhere():
    for link in re.findall(r"\]\((?!https?://)([^)#]+)", README):
        assert (ROOT / link).exists(), link
