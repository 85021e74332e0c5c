"""What the incremental engines are compared with: retraining by coordinate descent, cold and warm, and by Newton."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pa_river.odm import loops
from pa_river.odm.problem import GONE, Problem

Array = NDArray[np.float64]


class Retraining:
    """Solves the problem anew on every change, behind the `change` of an engine.

    Parameters
    ----------
    problem
        The problem; its kernel values are kept, so that retraining does not pay for them again.
    method
        "cold": dual coordinate descent from zero; "warm": from the multipliers before, with the margins carried along;
        "newton": `newton` from zero.
    tol
        Largest residual, in units of the margin, at which coordinate descent stops.
    epochs
        Sweeps after which it stops in any case.

    Notes
    -----
    Coordinate descent at 1e-3 is not exact: at lam = 1000 its multipliers are far from the optimum. It is what the
    paper compares with, and as a baseline it is the faster the looser it is.

    """

    def __init__(self, problem: Problem, method: str = "cold", tol: float = 1e-3, epochs: int = 1500) -> None:
        if method not in ("cold", "warm", "newton"):
            raise ValueError(f"Retraining(method=...) must be 'cold', 'warm' or 'newton', got {method!r}")
        self.problem = problem
        self.name = method
        self.tol = tol
        self.epochs = epochs
        self.sweeps: list[int] = []  # of every change
        self._gamma: Array = problem.margins() if problem.count else np.zeros(0)

    def change(self, added: Sequence[int], removed: Sequence[int], release: bool = True) -> None:
        """Bring the solution to the optimum with `added` (fresh slots) and without `removed`, as an engine does."""
        problem = self.problem
        problem.side[list(removed)] = GONE
        if self.name == "newton":
            problem.alpha[: problem.count] = 0.0
            problem.solve()
        else:
            self._descend(added, removed)
        if release:
            problem.release(removed)
            self._gamma = self._gamma[: problem.count]

    def _descend(self, added: Sequence[int], removed: Sequence[int]) -> None:
        problem, n = self.problem, self.problem.count
        alpha = problem.alpha[:n]
        if self.name == "cold":
            alpha[:] = 0.0
            gamma = np.zeros(n)
        else:
            gamma = np.append(self._gamma, np.zeros(n - len(self._gamma)))
            for slot in removed:
                if alpha[slot]:
                    gamma -= alpha[slot] * problem.H[slot, :n]
                    alpha[slot] = 0.0
            for slot in added:
                gamma[slot] = problem.H[slot, :n] @ alpha
        live = problem.live()
        self.sweeps.append(loops.coordinate_descent(
            problem.H, live, alpha, gamma, problem.costs[0], problem.costs[1], problem.theta, self.tol, self.epochs,
            len(self.sweeps) + 1,
        ))
        problem.side[live] = np.sign(alpha[live]).astype(np.int8)
        self._gamma = gamma
