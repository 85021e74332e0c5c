"""Epochs of a sequence tagger: ours over sentences that were read once, against python-crfsuite's averaged `pa`."""

from __future__ import annotations

import gc
import importlib.util
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import pa_river
from benchmarks.measure import Row
from pa_river import _compiled

Sentence = tuple[list[list[str]], list[str]]

SENTENCES, LENGTH, WORDS = 2000, 25, 2000
#: Epochs a turn; crfsuite says itself how much CPU time each of its own took.
EPOCHS = 6


def corpus(tags: int, seed: int = 0) -> list[Sentence]:
    """Return sentences of 25 tokens with 20 names each: words by tag and windows over them, 15 % of the words any."""
    rng = np.random.default_rng(seed)
    follow = np.cumsum(rng.dirichlet(np.full(tags, 0.3), tags), axis=1)
    emit = np.cumsum([rng.dirichlet(np.full(WORDS, 0.01)) for _ in range(tags)], axis=1)
    sentences, names = [], [f"tag{tag}" for tag in range(tags)]
    for _ in range(SENTENCES):
        path = [int(rng.integers(tags))]
        for _ in range(LENGTH - 1):
            path.append(min(int(np.searchsorted(follow[path[-1]], rng.random())), tags - 1))
        words = [min(int(np.searchsorted(emit[tag], rng.random())), WORDS - 1) if rng.random() > 0.15
                 else int(rng.integers(WORDS)) for tag in path]
        sentences.append(([_token(words, i) for i in range(LENGTH)], [names[tag] for tag in path]))
    return sentences


def _token(words: list[int], i: int) -> list[str]:
    names = []
    for offset in (-2, -1, 0, 1, 2):
        word = words[i + offset] if 0 <= i + offset < len(words) else -1
        names += [f"word{offset}={word}", f"stem{offset}={word % 97}", f"class{offset}={word % 13}"]
    word = words[i]
    before = words[i - 1] if i else -1
    return [*names, "bias", f"pair={before},{word}", f"c={word % 31}", f"z={word % 7}", f"q={word % 500}"]


def _epochs(model: Any, X: Any, y: list[list[str]]) -> float:
    """Return the median CPU seconds of an epoch."""
    times = []
    gc.collect()
    gc.disable()
    for _ in range(EPOCHS):
        begin = time.process_time()
        model.learn_many(X, y)
        times.append(time.process_time() - begin)
    gc.enable()
    return statistics.median(times)


def _read(sentences: list[Any], build: Any) -> tuple[Any, float]:
    begin = time.process_time()
    return build(sentences), time.process_time() - begin


def _trainer(sentences: list[Sentence]) -> Any:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="pa", verbose=False)
    for X, y in sentences:
        trainer.append(X, y)
    trainer.set_params({"max_iterations": EPOCHS, "type": 1, "c": 1.0, "epsilon": 0.0})
    return trainer


def _iterations(trainer: Any) -> float:
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(str(Path(folder) / "model"))
    return float(statistics.median(entry["time"] for entry in trainer.logparser.iterations))


def sequences(turns: int) -> list[Row]:
    """PASequence.learn_many, averaged, float64, an epoch; and reading the sentences from lists of texts."""
    peer = importlib.util.find_spec("pycrfsuite") is not None
    return [row for tags in (9, 22, 45) for row in _rows(tags, turns, peer)]


def _rows(tags: int, turns: int, peer: bool) -> list[Row]:
    sentences = corpus(tags)
    X, y = [x for x, _ in sentences], [y for _, y in sentences]
    epoch, reading = Row(f"PASequence, averaged, an epoch, {tags} tags"), Row(f"sentences read from lists, {tags} tags")
    times: dict[str, list[float]] = {"ours": [], "ours, reference": [], "crfsuite pa": []}
    reads: dict[str, list[float]] = {"ours": [], "crfsuite": []}
    for turn in range(turns):
        for name in ("ours", "crfsuite pa") if turn % 2 else ("crfsuite pa", "ours"):
            if name == "ours":
                prepared, seconds = _read(X, pa_river.Sentences)
                reads["ours"].append(seconds)
                times["ours"].append(_epochs(pa_river.PASequence(average=True), prepared, y))
            elif peer:
                trainer, seconds = _read(sentences, _trainer)
                reads["crfsuite"].append(seconds)
                times["crfsuite pa"].append(_iterations(trainer))
    begin = time.process_time()
    part = SENTENCES // 20
    _compiled.on_reference(pa_river.PASequence(average=True)).learn_many(X[:part], y[:part])
    times["ours, reference"].append((time.process_time() - begin) * SENTENCES / part)
    for row, taken in ((epoch, times), (reading, reads)):
        _fill(row, taken)
        if not peer:
            row.skipped["crfsuite"] = "pycrfsuite is not installed"
    return [epoch, reading]


def _fill(row: Row, times: dict[str, list[float]]) -> None:
    for name, seconds in times.items():
        if seconds:
            row.micros[name] = statistics.median(seconds) * 1e6 / (SENTENCES * LENGTH)
        if name != "ours" and len(seconds) == len(times["ours"]):
            ratios = sorted(theirs / own for theirs, own in zip(seconds, times["ours"]))
            row.ratios[name] = statistics.median(ratios)
            row.spread[name] = (ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4])


BENCHMARKS = {"sequences": sequences}
