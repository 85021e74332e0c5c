"""Figures kept in a JSON file -> the short table of the README, between two marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

BEGIN, END = "<!-- the figures begin: python -m benchmarks --readme -->", "<!-- the figures end -->"

Kept = dict[str, Any]
RowDict = dict[str, Any]


class Line(NamedTuple):
    """One line of the table: the rows of a benchmark whose names hold these words, in this order."""

    what: str
    against: str
    benchmark: str
    words: tuple[str, ...]
    goal: str
    value: Callable[[RowDict], float]


def over(peer: str) -> Callable[[RowDict], float]:
    """The ratio over the peer whose name begins so."""
    def value(row: RowDict) -> float:
        return float(next(ratio for name, ratio in row["ratios"].items() if name.startswith(peer)))
    return value


def times(peer: str) -> Callable[[RowDict], float]:
    """How many times the peer's time ours is."""
    return lambda row: 1.0 / over(peer)(row)


def figure(name: str) -> Callable[[RowDict], float]:
    """What was measured beside the ratios."""
    return lambda row: float(row["figures"][name])


_DENSE = ("d=10, shared", "d=100, shared")
LINES = (
    Line("`predict_one` + `learn_one`, 10 / 100 dense, ~100 of 1M sparse features", "River PAClassifier",
         "predict_learn", (*_DENSE, "1M, shared"), "40 / 20 / 10", over("river")),
    Line("the same, fresh key strings", "", "predict_learn", ("d=10, fresh", "d=100, fresh", "1M, fresh"),
         "25 / 11 / 9", over("river")),
    Line("`step`", "River, both calls", "step", (*_DENSE, "1M, shared"), "70 / 35 / 12", over("river")),
    Line("`ScaledPA`, 10 / 100", "River `StandardScaler \\| PAClassifier`", "scaled", _DENSE, "45 / 45", over("river")),
    Line("`PARegressor`, 10 / 100", "River", "regression", _DENSE, "40 / 25", over("river")),
    Line("`AROWClassifier`, 10 / 100", "River PAClassifier, first order", "second_order", _DENSE, "", over("river")),
    Line("`learn_many`, 1,000 rows a call, d = 10 / 100 / 1000", "scikit-learn pa1", "learn_many",
         ("d=10,", "d=100,", "d=1000,"), "25 / 13 / 7", over("sklearn")),
    Line("`learn_many`, CSR, names known / new", "scikit-learn pa1", "learn_many", ("names known", "names new"), "7",
         over("sklearn")),
    Line("multiclass, k = 10 / 100 / 1000", "the better of VW oaa and scikit-learn OvA", "multiclass",
         ("k=10,", "k=100,", "k=1000, d=100,"), "10", figure("over the better peer")),
    Line("kernels, an epoch of 60,000 x 784, float32 / float64", "numpy, a row at a time", "kernels",
         ("float32", "float64"), "6", over("numpy")),
    Line("the same", "times the matrix products alone", "kernels", ("float32", "float64"), "at most 1.25",
         times("products")),
    Line("sequences, an epoch, averaged, 9 / 22 / 45 tags", "python-crfsuite `pa`", "sequences",
         ("epoch, 9 ", "epoch, 22 ", "epoch, 45 "), "6 / 8 / 8", over("crfsuite")),
    Line("decode + learn + encode of 10 / 100 / 1000 / 100000 weights", "River, cloudpickled", "cycle",
         (" 10 weights", " 100 weights", "1000 weights, 100 ", "100000 weights"), "35", over("river")),
    Line("bytes a weight, models of 100 / 10000 / 1000000 names", "a dict", "memory",
         (" 100 names", "10000 names", "1000000 names"), "3.5 fewer", over("dict")),
    Line("the reference, no compiler, 10 / 100", "River", "reference", _DENSE, "4 / 1.8", over("river")),
    Line("CPU an event of `LearnPerKey`, 100 features, 1 / 100 keys", "times a bare counter in state", "operator",
         (" 1 keys", " 100 keys"), "at most 1.5", times("counter")),
    Line("the same", "River in cloudpickled state", "operator", (" 1 keys", " 100 keys"), "", over("river")),
)


def table(kept: Kept) -> str:
    """Return the table of what was measured; lines of benchmarks that were not run are left out."""
    used = [line for line in LINES if line.benchmark in kept]
    loads = [kept[line.benchmark]["machine"]["load"][0] for line in used]
    chips = sorted({kept[line.benchmark]["machine"]["cpu"] for line in used})
    cores = kept[used[0].benchmark]["machine"]["cores"]
    head = (f"CPU time of a peer over ours, in turns within one run, one thread ({' and '.join(chips)}, {cores} cores, "
            f"load {min(loads):.1f} to {max(loads):.1f}):")
    lines = [head, "", "| what | against | times faster | goal |", "| --- | --- | ---: | ---: |"]
    return "\n".join([*lines, *map("".join, (_cells(line, kept[line.benchmark]["rows"]) for line in used))])


def _cells(line: Line, rows: list[RowDict]) -> Iterator[str]:
    values = [line.value(next(row for row in rows if word in row["what"])) for word in line.words]
    yield f"| {line.what} | {line.against} | {' / '.join(map(short, values))} | {line.goal} |"


def short(value: float) -> str:
    """Two digits, or all before the point."""
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"


def update(kept: Kept, readme: Path) -> None:
    """Put the table between the marks of a file; `ValueError` if they are not there."""
    text = readme.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{readme} lacks the marks {BEGIN} and {END}")
    readme.write_text(f"{before}{BEGIN}\n\n{table(kept)}\n\n{END}{after}", encoding="utf-8")
