"""What the pages on real data share: reading the sets, passing over a stream once, and choosing C before it counts."""

from __future__ import annotations

import csv
import gzip
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pa_river import NATIVE

M = TypeVar("M")
K = TypeVar("K")
Floats = npt.NDArray[np.float64]

#: said on every page whose times were measured
TIMES = ("Seconds are CPU time of one process, every model after the other in the same run: read them as ratios. They "
         f"hold {'with' if NATIVE else 'without'} the compiled core.")


class Once(NamedTuple):
    """One pass of a model over a stream: what each example cost, before it was learned, and the CPU seconds."""

    losses: Floats
    seconds: float


def read_csv(path: Path, target: str) -> list[tuple[dict[str, Any], str]]:
    """Return (features, target as text) a row; a value that reads as a number is one, any other stays text."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = []
        for row in csv.DictReader(file):
            y = row.pop(target)
            rows.append(({name: _value(text) for name, text in row.items()}, y))
    return rows


def read_svmlight(path: Path) -> list[tuple[dict[int, float], str]]:
    """Return (features, label as written) a line of svmlight text; an index is the feature's name."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = []
        for line in file:
            parts = line.split()
            # a line that opens with a pair has no label
            label = parts.pop(0) if parts and ":" not in parts[0] else ""
            rows.append(({int(name): float(value) for name, value in (pair.split(":") for pair in parts)}, label))
    return rows


def read_lines(path: Path) -> list[str]:
    """Return the lines of a compressed text."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().splitlines()


def at_unit_length(x: dict[Any, float]) -> dict[Any, float]:
    """Return x divided by its Euclidean length; x itself if that is 0."""
    norm = math.sqrt(sum(value * value for value in x.values()))
    return {name: value / norm for name, value in x.items()} if norm > 0.0 else x


class Idf:
    """log(1 + count) times log((1 + documents) / documents with the term), of those seen so far, at length 1.

    The weights of a document are counted with it, before its label is known: nothing later is looked at.
    """

    def __init__(self) -> None:
        self._documents = 0
        self._with: dict[Any, int] = {}

    def weigh(self, counts: Mapping[Any, float]) -> dict[Any, float]:
        """Count a document and return its weights."""
        self._documents += 1
        for name in counts:
            self._with[name] = self._with.get(name, 0) + 1
        return at_unit_length({name: math.log1p(count) * math.log((1 + self._documents) / self._with[name])
                               for name, count in counts.items()})


def once(
    stream: Iterable[tuple[Any, Any]], predict: Callable[[Any], Any], learn: Callable[[Any, Any], Any],
    loss: Callable[[Any, Any], float],
) -> Once:
    """Predict, then learn, each example once; the time of counting the loss is left out."""
    losses, seconds = [], 0.0
    for x, y in stream:
        begun = time.process_time()
        predicted = predict(x)
        learn(x, y)
        seconds += time.process_time() - begun
        losses.append(loss(y, predicted))
    return Once(np.array(losses), seconds)


def missed(y: Any, predicted: Any) -> float:
    """1.0 for a wrong prediction, 0.0 for a right one."""
    return float(y != predicted)


def run(model: Any, stream: Iterable[tuple[Any, Any]], loss: Callable[[Any, Any], float] = missed) -> Once:
    """Pass a model over the stream once, as `once` does."""
    return once(stream, model.predict_one, model.learn_one, loss)


def choose(
    makes: Mapping[K, Callable[[], M]], first: Sequence[tuple[Any, Any]],
    loss: Callable[[Any, Any], float] = missed,
) -> tuple[K, Callable[[], M]]:
    """Return the key and maker of least progressive loss over `first`, the stated first part; a tie to the first."""
    totals = {name: float(run(make(), first, loss).losses.sum()) for name, make in makes.items()}
    best = min(totals, key=totals.__getitem__)
    return best, makes[best]


def best_on_first(passes: Mapping[K, Once], first: int) -> K:
    """Return the key of the pass with the least loss over its first examples; a tie goes to the first."""
    return min(passes, key=lambda key: float(passes[key].losses[:first].sum()))


def cumulative(losses: Floats) -> Floats:
    """Return the mean of the losses up to and with each example."""
    means: Floats = np.cumsum(losses) / np.arange(1, len(losses) + 1)
    return means


def every(count: int, points: int = 200) -> Iterator[int]:
    """Yield at most `points` positions of a curve of `count` values, the last one included: plots stay small."""
    step = max(1, -(-count // points))
    yield from range((count - 1) % step, count, step)


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
