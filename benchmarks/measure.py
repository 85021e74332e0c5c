"""How every figure is taken: competitors take turns, CPU time, the median of the ratios of each turn."""

from __future__ import annotations

import gc
import importlib.util
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import river

import pa_river

#: Prepares one fresh competitor and returns what is timed; what it returns is how many examples it handled.
Contestant = Callable[[], Callable[[], int]]


@dataclass
class Row:
    """One line of the table: what was done, by how much ours is faster than each peer, and the times behind it."""

    what: str
    ratios: dict[str, float] = field(default_factory=dict)
    #: lower and upper quartile of the per-turn ratios
    spread: dict[str, tuple[float, float]] = field(default_factory=dict)
    #: median CPU microseconds an example
    micros: dict[str, float] = field(default_factory=dict)
    #: what else was measured: bytes, counts
    figures: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def compare(what: str, ours: str, contestants: Mapping[str, Contestant | str], turns: int) -> Row:
    """Let the contestants run `turns` times, one after the other, in turns of alternating order.

    Parameters
    ----------
    what
        The line's name.
    ours
        Which contestant is ours; the ratios are the others' time over its time, turn by turn.
    contestants
        Name -> a contestant, or the reason why it cannot run here.

    """
    row = Row(what, skipped={name: reason for name, reason in contestants.items() if isinstance(reason, str)})
    able = {name: contestant for name, contestant in contestants.items() if not isinstance(contestant, str)}
    times: dict[str, list[float]] = {name: [] for name in able}
    for turn in range(turns):
        for name in list(able) if turn % 2 else list(reversed(able)):
            times[name].append(_seconds_each(able[name]))
    for name, seconds in times.items():
        row.micros[name] = statistics.median(seconds) * 1e6
        if name != ours:
            ratios = sorted(theirs / own for theirs, own in zip(seconds, times[ours]))
            row.ratios[name] = statistics.median(ratios)
            row.spread[name] = (ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4])
    return row


def _seconds_each(contestant: Contestant) -> float:
    run = contestant()
    gc.collect()
    gc.disable()
    try:
        begin = time.process_time()
        count = run()
        return (time.process_time() - begin) / count
    finally:
        gc.enable()


def needs(module: str, contestant: Callable[[], Contestant]) -> Contestant | str:
    """Return the contestant, or the reason to skip it where an optional peer is not installed."""
    if importlib.util.find_spec(module) is None:
        return f"{module} is not installed"
    return contestant()


def one_thread() -> None:
    """Ask numeric libraries for one thread; to be called before they are imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = "1"


def machine() -> dict[str, Any]:
    """Describe where the figures come from: without it they say nothing."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": [round(value, 1) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(), "numpy": np.__version__, "river": river.__version__,
        "pa_river": pa_river.__version__, "compiled": pa_river.NATIVE,
    }
