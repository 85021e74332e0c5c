"""Problems that are driven through random changes, and compared with the oracle after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pa_river import kernels
from pa_river.odm import compiled, loops
from pa_river.odm.frozen import FrozenEngine
from pa_river.odm.inverse import PivotEngine
from pa_river.odm.path import PathEngine
from pa_river.odm.primal import PrimalEngine
from pa_river.odm.problem import Problem
from pa_river.odm.rows import DenseRows
from tests.unit.odm import oracle

#: Every engine, the references and, where they were built, the compiled ones.
ENGINES: dict[str, type] = {
    "path": PathEngine, "pivot": PivotEngine, "frozen": FrozenEngine, "primal": PrimalEngine,
}
if loops.native is not None:
    ENGINES["compiled path"] = compiled.CompiledPathEngine
    ENGINES["compiled frozen"] = compiled.CompiledFrozenEngine
    ENGINES["compiled primal"] = compiled.CompiledPrimalEngine


class Stream:
    """One engine over a problem on [0, 1]^d whose true boundary is the diagonal, with noise, copies and flips."""

    def __init__(
        self, engine: type, *, lam: float, theta: float, d: int = 3, right: float | None = None, seed: int = 0,
        copies: float = 0.3, kernel: Any = None,
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.lam, self.right, self.copies, self.d = lam, lam if right is None else right, copies, d
        self.problem = Problem(theta, DenseRows(kernel or kernels.RBF(1.0 / d), d))
        self.engine = engine(self.problem)
        self.live: list[int] = []

    def draw(self) -> tuple[np.ndarray, float]:
        """Return an example: now and then one that is there already, with either label."""
        if self.live and self.rng.random() < self.copies:
            slot = self.live[self.rng.integers(len(self.live))]
            return self.problem.rows.X[slot].copy(), float(self.rng.choice([-1.0, 1.0]))
        x = self.rng.random(self.d)
        return x, 1.0 if x.sum() + 0.3 * self.rng.normal() > self.d / 2 else -1.0

    def change(self, coming: int, leaving: int | list[int]) -> list[int]:
        """Let examples come and leave in one change; return the slots of those that came."""
        if isinstance(leaving, int):
            leaving = [int(slot) for slot in self.rng.choice(self.live, leaving, replace=False)] if leaving else []
        drawn = [self.draw() for _ in range(coming)]
        weights = np.ones(coming) if self.lam == self.right else self.rng.choice([0.5, 1.0, 2.0], coming)
        slots = self.problem.admit(
            [x for x, _ in drawn], [y for _, y in drawn], list(self.lam * weights), list(self.right * weights)
        ) if drawn else []
        self.engine.change(slots, leaving)
        self.live = [slot for slot in self.live if slot not in leaving] + slots
        return slots

    def random(self, changes: int) -> Iterator[int]:
        """Run random changes of up to 5 arrivals and 3 departures; empty the problem half-way."""
        for t in range(changes):
            if t == changes // 2:
                self.change(0, list(self.live))
            else:
                most = 15 if t % 7 == 0 else 6
                self.change(int(self.rng.integers(0, most)), min(len(self.live), int(self.rng.integers(0, 4))))
            yield t

    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return H and the costs of what is there, H computed anew from the examples."""
        live = np.array(sorted(self.live), dtype=int)
        X, y = self.problem.rows.X[live], self.problem.y[live]
        kernel = self.problem.rows._kernel
        if isinstance(kernel, kernels.RBF):
            H = oracle.rbf_gram(X, y, kernel.gamma)
        else:
            H = (X @ X.T) * np.outer(y, y)
        return H, self.problem.costs[0, live], self.problem.costs[1, live]

    def error(self) -> float:
        """Return the relative distance of the refined multipliers from retraining."""
        assert sorted(self.live) == self.problem.live().tolist()
        if not self.live:
            return 0.0
        expected = oracle.retrained(*self.parts(), self.problem.theta)
        found = self.engine.refined()[self.problem.live()]
        scale = np.abs(expected).max()
        return float(np.abs(found - expected).max() / scale) if scale else float(np.abs(found).max())
