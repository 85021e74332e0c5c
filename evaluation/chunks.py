"""Chunks of a tag sequence and their F1, counted as the CoNLL shared tasks' `conlleval` counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Score(NamedTuple):
    """Shares in [0, 1]; `f1` is the harmonic mean of precision and recall of whole chunks."""

    accuracy: float
    precision: float
    recall: float
    f1: float


def chunks(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return (first token, token after the last, type) of each chunk of B-, I- and O tags.

    A chunk opens at a B, and also at an I after an O, after another type or at the start: a tagger may say so, and
    `conlleval` counts it.

    Examples
    --------
    >>> chunks(["B-NP", "I-NP", "B-NP", "O", "I-VP", "I-PP"])
    [(0, 2, 'NP'), (2, 3, 'NP'), (4, 5, 'VP'), (5, 6, 'PP')]

    """
    found: list[tuple[int, int, str]] = []
    begin, held = 0, ""  # the open chunk; no type: none is open
    for i, tag in enumerate([*tags, "O"]):
        kind, _, name = tag.partition("-")
        if held and not (kind == "I" and name == held):
            found.append((begin, i, held))
            held = ""
        if kind != "O" and not held:
            begin, held = i, name
    return found


def score(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> Score:
    """Return token accuracy and the precision, recall and F1 of chunks over all sentences.

    Examples
    --------
    >>> score([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    Score(accuracy=0.75, precision=0.5, recall=0.5, f1=0.5)

    """
    tokens = right = true = told = both = 0
    for own, other in zip(gold, predicted, strict=True):
        tokens += len(own)
        right += sum(map(str.__eq__, own, other))
        first, second = set(chunks(own)), set(chunks(other))
        true, told, both = true + len(first), told + len(second), both + len(first & second)
    precision, recall = both / told if told else 0.0, both / true if true else 0.0
    harmonic = 2.0 * precision * recall / (precision + recall) if both else 0.0
    return Score(right / tokens if tokens else 0.0, precision, recall, harmonic)
