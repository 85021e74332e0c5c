"""One problem and the engine that keeps it solved: which engine, when from scratch, and all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pa_river.odm.compiled import engines
from pa_river.odm.engine import Engine
from pa_river.odm.frozen import FrozenEngine
from pa_river.odm.inverse import PivotEngine
from pa_river.odm.path import PathEngine
from pa_river.odm.primal import WIDEST as WIDEST_PRIMAL
from pa_river.odm.primal import PrimalEngine, TooWide
from pa_river.odm.problem import GONE, Certificate, Problem
from pa_river.odm.rows import WIDEST, DenseRows, rows_for
from pa_river.terms import Features

Array = NDArray[np.float64]

#: Engines by name; "auto" takes "primal" where the numerical rank is below a quarter of |S|, else "frozen".
ENGINES = engines({"path": PathEngine, "pivot": PivotEngine, "frozen": FrozenEngine, "primal": PrimalEngine})

_PRIMAL: Any = ENGINES["primal"]

#: A change of more than this share of the instances is solved from scratch.
_BULK = 0.3

#: Below this many instances outside the strip no low rank is looked for.
_SMALL = 64


def automatic(problem: Problem) -> Engine:
    """Return the engine that "auto" stands for: by size and numerical rank."""
    return _low_rank(problem) or ENGINES["frozen"](problem)


def _low_rank(problem: Problem) -> Engine | None:
    outside = len(problem.outside())
    if outside < _SMALL:
        return None
    try:
        engine: Engine = _PRIMAL(problem, min(outside // 4, WIDEST_PRIMAL))
    except TooWide:
        return None
    return engine


class Arrival(NamedTuple):
    """An instance that comes: features, label as 1 or -1, and what a squared distance costs on either side."""

    x: Features
    y: float
    below: float
    above: float


class Solver:
    """Keeps the multipliers of the instances it holds optimal; knows them by slot."""

    def __init__(self, theta: float, kernel: Any, engine: str = "auto") -> None:
        self._kernel = kernel
        self._choice = engine
        self._engine: Engine | None = None
        self._judged = 0  # instances when "auto" last looked at the rank
        self._exact: Array | None = None
        self._doubtful = False  # the multipliers were loaded, and nobody has looked yet
        self.problem = Problem(theta, rows_for(kernel))
        self._features: dict[int, Features] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Factors follow from the problem, and compiled ones hold addresses: a copy builds its own.
        return {**self.__dict__, "_engine": None, "_exact": None}

    @property
    def engine(self) -> Engine:
        """The engine, built on first use."""
        if self._engine is None:
            self._build()
        assert self._engine is not None
        return self._engine

    def change(self, arriving: Sequence[Arrival], leaving: Sequence[int]) -> list[int]:
        """Let instances come and leave, all or nothing; return the slots of those that came.

        Raises
        ------
        ValueError
            If a kernel value is not finite, or the kernel matrix cannot be factored. Nothing has changed then.

        """
        problem = self.problem
        self._verify()
        if arriving:
            self._widen(arriving)
        encoded = [problem.rows.encode(arrival.x) for arrival in arriving]
        alpha, side = problem.alpha[: problem.count].copy(), problem.side[: problem.count].copy()
        try:
            slots = problem.admit(
                encoded, [a.y for a in arriving], [a.below for a in arriving], [a.above for a in arriving]
            )
        except ValueError:
            problem.rows.trim()
            raise
        try:
            self._solve(slots, leaving)
        except BaseException as error:  # whatever stopped it, an interrupt included: nothing has changed
            problem.restore(alpha, side, slots)
            self._engine = None
            if isinstance(error, np.linalg.LinAlgError):
                raise ValueError(
                    "the kernel matrix cannot be factored in double precision: scale the features or lower lam"
                ) from error
            raise
        self._exact = None
        for slot in leaving:
            del self._features[slot]
        for slot, arrival in zip(slots, arriving):
            self._features[slot] = arrival.x
        return slots

    def load(self, instances: Sequence[Arrival], alpha: Array) -> list[int]:
        """Take over instances with their multipliers; kernel values and factors are computed when first needed."""
        self._widen(instances)
        problem = self.problem
        encoded = [problem.rows.encode(instance.x) for instance in instances]
        slots = problem.adopt(
            encoded, [a.y for a in instances], [a.below for a in instances], [a.above for a in instances], alpha
        )
        self._features = {slot: instance.x for slot, instance in zip(slots, instances)}
        self._doubtful = True
        return slots

    def exact(self) -> Array:
        """Return the refined multipliers by slot; the solution itself stays as it is."""
        if self._exact is None:
            self._exact = self.engine.refined() if self.problem.count else np.zeros(0)
        return self._exact

    def decision(self, x: Features) -> float:
        """Return f(x) = sum_i alpha_i y_i kappa(x_i, x)."""
        problem = self.problem
        n = problem.count
        if not n:
            return 0.0
        return float(problem.rows.look(x, n) @ (problem.alpha[:n] * problem.y[:n]))

    def certificate(self) -> Certificate:
        """Return duality gap and largest residual of the refined multipliers."""
        self.problem.ready()
        return self.problem.certificate(self.exact())

    def leave_one_out(self) -> Array:
        """Return by slot the margin each instance would have if it alone had never been there.

        On a copy every instance outside the strip leaves and comes back; inside it, its margin is what it is.
        """
        self.problem.ready()
        alpha = self.exact().copy()
        shadow = self.problem.shadow()
        n = shadow.count
        shadow.alpha[:n] = alpha
        margins = shadow.margins(alpha)
        engine = PivotEngine(shadow)
        for slot in shadow.outside().tolist():
            side = shadow.side[:n].copy()
            engine.change([], [slot], release=False)
            margins[slot] = shadow.H[slot, :n] @ shadow.alpha[:n]
            shadow.side[slot] = 0
            engine.change([slot], [], release=False)
            if (shadow.side[:n] == side).all():
                shadow.alpha[:n] = alpha  # no rounding piles up
        return margins

    def _solve(self, slots: list[int], leaving: Sequence[int]) -> None:
        problem = self.problem
        live = len(problem.live())
        if len(slots) + len(leaving) > max(8.0, _BULK * live):
            self._from_scratch(slots, leaving)
            return
        try:
            self.engine.change(slots, leaving)
        except TooWide:
            # Half a change may have been made: the sides of what leaves say which instances are out.
            self._engine = None
            self._from_scratch(slots, leaving)
        if self._choice == "auto" and len(problem.live()) >= 2 * self._judged and not isinstance(
            self._engine, PrimalEngine
        ):
            self._look_for_low_rank()

    def _from_scratch(self, slots: list[int], leaving: Sequence[int]) -> None:
        problem = self.problem
        problem.side[list(leaving)] = GONE
        problem.solve()
        if self._engine is not None:
            self._engine.forget()
            self._engine = None
        problem.release(np.flatnonzero(problem.side[: problem.count] == GONE).tolist())

    def _verify(self) -> None:
        """Have H, and multipliers that solve: loaded ones may be anything."""
        problem = self.problem
        problem.ready()
        if self._doubtful:
            if not problem.certificate(problem.alpha[: problem.count]).residual <= 1e-6:
                problem.solve()
            self._doubtful = False

    def _build(self) -> None:
        problem = self.problem
        self._verify()
        if self._choice == "auto":
            self._judged = max(len(problem.live()), _SMALL)
            self._engine = automatic(problem)
        else:
            self._engine = ENGINES[self._choice](problem)

    def _look_for_low_rank(self) -> None:
        """Go over to the primal engine where the instances have become many for their rank."""
        self._judged = max(len(self.problem.live()), _SMALL)
        engine = _low_rank(self.problem)
        if engine is not None:
            if self._engine is not None:
                self._engine.forget()
            self._engine = engine

    def _widen(self, arriving: Sequence[Arrival]) -> None:
        """Go over to sparse rows before a matrix of very many names is made."""
        rows = self.problem.rows
        if isinstance(rows, DenseRows):
            names = rows.width + sum(len(arrival.x) for arrival in arriving)
            if names > WIDEST and rows.width + len(rows.unknown(arrival.x for arrival in arriving)) > WIDEST:
                if self._engine is not None:
                    self._engine.forget()
                    self._engine = None
                wide = rows_for(self._kernel, wide=True)
                for slot, x in self._features.items():
                    wide.put(slot, wide.encode(x))
                self.problem.rows = wide
