"""What an add and a remove of the margin machine cost, against one read of the inverse's triangle; five at a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Row, compare
from pa_river import kernels
from pa_river.odm.problem import Problem
from pa_river.odm.rows import DenseRows
from pa_river.odm.solver import ENGINES

WIDTH, LAM, THETA = 14, 1.0, 0.1
#: Additions and removals of a turn.
CHANGES = 25


class _Machine:
    """The frozen-base engine over `count` noisy rows, nearly all of them outside the strip."""

    def __init__(self, count: int, lam: float = LAM, seed: int = 0) -> None:
        self._rng, self._lam = np.random.default_rng(seed), lam
        self.problem = Problem(THETA, DenseRows(kernels.RBF(1.0 / WIDTH), WIDTH))
        self.problem.reserve(count + 128)
        self.admit(count)
        self.problem.solve()
        self.engine: Any = ENGINES["frozen"](self.problem)

    def draw(self, count: int) -> tuple[list[npt.NDArray[np.float64]], list[float]]:
        """Return rows and labels."""
        X = self._rng.random((count, WIDTH))
        return list(X), np.where(X.sum(axis=1) + 0.8 * self._rng.normal(size=count) > WIDTH / 2, 1.0, -1.0).tolist()

    def admit(self, count: int) -> list[int]:
        """Give rows kernel values and slots; the engine does not know them yet."""
        costs = [self._lam] * count
        return self.problem.admit(*self.draw(count), costs, costs)

    def outside(self, count: int) -> list[int]:
        """Return random instances outside the strip."""
        found: list[int] = self._rng.choice(self.problem.outside(), count, replace=False).tolist()
        return found


def odm_change(turns: int, count: int = 4300) -> list[Row]:
    """Add and remove single instances at about 4,000 support instances, each next to one read of such a triangle.

    The three take turns one by one, so that each finds the memory as the others have left it. An add is the whole
    change, further instances that cross the strip and the folds of the base included, the kernel values of the newcomer
    not; a remove takes an instance outside the strip.
    """
    machine = _Machine(count)
    engine = machine.engine
    order = engine.n
    triangle = np.random.default_rng(1).random(order * (order + 1) // 2)
    times: dict[str, list[float]] = {"add": [], "remove": [], "read": []}
    pivots, passes = engine.pivots, engine.core.passes if hasattr(engine, "core") else 0

    def timed(name: str, call: Callable[..., Any], *arguments: Any) -> None:
        begin = time.process_time()
        call(*arguments)
        times[name].append(time.process_time() - begin)

    for _ in range(turns * CHANGES):
        timed("add", engine.change, machine.admit(1), [])
        timed("read", triangle.dot, triangle)
        timed("remove", engine.change, [], machine.outside(1))
    row = Row(f"ODM, one instance at {order} support instances")
    read = statistics.mean(times["read"])
    for name, seconds in times.items():
        row.micros[name] = statistics.median(seconds) * 1e6
        row.micros[f"{name}, mean"] = statistics.mean(seconds) * 1e6
    row.figures["add in % of a read"] = 100.0 * statistics.median(times["add"]) / statistics.median(times["read"])
    row.figures["add in % of a read, mean"] = 100.0 * statistics.mean(times["add"]) / read
    row.figures["pivots a change"] = (engine.pivots - pivots) / (2 * turns * CHANGES)
    if hasattr(engine, "core"):
        row.figures["passes a change"] = (engine.core.passes - passes) / (2 * turns * CHANGES)
    return [row]


def _contestant(count: int, size: int, lam: float) -> Callable[[], Callable[[], int]]:
    machine = _Machine(count, lam)

    def prepare() -> Callable[[], int]:
        fresh = [machine.draw(size) for _ in range(30 // size)]
        costs = [lam] * size

        def run() -> int:
            held = []
            for xs, ys in fresh:
                held.append(machine.problem.admit(xs, ys, costs, costs))
                machine.engine.change(held[-1], [])
            for slots in held:
                machine.engine.change([], slots)
            return 60
        return run
    return prepare


def odm_batches(turns: int) -> list[Row]:
    """Add 30 instances and remove them, five at a time against one by one, kernel values included."""
    return list(_batches(turns))


def _batches(turns: int) -> Iterator[Row]:
    for count, lam in ((150, 1.0), (600, 10.0), (1500, 10.0), (3000, 1.0)):
        yield compare(f"ODM, five instances a change, m = {count}, lam = {lam:g}", "five", {
            "five": _contestant(count, 5, lam), "one by one": _contestant(count, 1, lam)}, turns)


BENCHMARKS = {"odm_change": odm_change, "odm_batches": odm_batches}
