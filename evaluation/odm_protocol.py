"""The paper's protocol on one partition: tune, add what varies, delete it, against retraining on the same changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.odm_data import Split
from pa_river import kernels
from pa_river.odm.baselines import Retraining
from pa_river.odm.midsvm import MIDSVM
from pa_river.odm.newton import newton
from pa_river.odm.problem import Problem
from pa_river.odm.rows import DenseRows
from pa_river.odm.solver import ENGINES, automatic

Array = NDArray[np.float64]

#: The paper's grids.
LAMBDAS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
THETAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
BATCH = 5

#: Changes an engine makes in a row before the others make the same: neither works from caches the others have filled.
BLOCK = 25

#: Parts of the history in the grid search's cross-validation, and instances it uses at most: 315 solutions a partition.
FOLDS, TUNED_ON = 5, 800

#: Residual at which retraining by coordinate descent stops, in units of the margin, and its sweeps at most.
TOLERANCE, EPOCHS = 1e-3, 1500


def gram(A: Array, B: Array, width: int) -> Array:
    """Return the RBF kernel of width 1/d between rows."""
    values: Array = kernels.RBF(1.0 / width).matrix(A, B)
    return values


def tune(split: Split, seed: int = 0) -> tuple[float, float, float]:
    """Return lam and theta of the machine, C of MID-SVM: best in cross-validation, the smallest of the best.

    Five random parts of the history, the same for both machines; a larger history than `TUNED_ON` is cut to that.
    """
    X, y = (part[:TUNED_ON] for part in split.history)
    K = gram(X, X, split.width)
    right, right_svm = np.zeros((len(LAMBDAS), len(THETAS))), np.zeros(len(LAMBDAS))
    order = np.random.default_rng(seed).permutation(len(y))
    for held in np.array_split(order, FOLDS):
        fit = np.setdiff1d(order, held)
        H, Z = K[np.ix_(fit, fit)] * np.outer(y[fit], y[fit]), K[np.ix_(held, fit)]
        problem = _unsolved(X[fit], y[fit], split.width, 1.0, 0.0)
        for i, lam in enumerate(LAMBDAS):
            cost, start = np.full(len(fit), lam), None
            for j, theta in enumerate(THETAS):
                start, _, _ = newton(H, cost, cost, theta, start)
                right[i, j] += len(held) * accuracy(Z @ (start * y[fit]), y[held])
            right_svm[i] += len(held) * accuracy(MIDSVM(problem, lam).decision(Z), y[held])
    best, best_svm = right >= right.max() - 1e-6, right_svm >= right_svm.max() - 1e-6
    i, j = np.argwhere(best)[0]
    return LAMBDAS[i], THETAS[j], LAMBDAS[int(np.flatnonzero(best_svm)[0])]


def accuracy(scores: Array, y: Array) -> float:
    """Return the share of right signs in percent; a score of 0 says -1."""
    return 100.0 * float(np.mean((scores > 0.0) == (y > 0.0)))


def history_of(split: Split, lam: float, theta: float, room: int = 0) -> Problem:
    """Return an unsolved problem that holds the history."""
    return _unsolved(*split.history, split.width, lam, theta, room)


def _unsolved(X: Array, y: Array, width: int, lam: float, theta: float, room: int = 0) -> Problem:
    problem = Problem(theta, DenseRows(kernels.RBF(1.0 / width), width))
    problem.reserve(len(y) + room)
    problem.admit(list(X), y.tolist(), [lam] * len(y), [lam] * len(y))
    return problem


def run(split: Split, lam: float, theta: float, C: float, changes: int, seconds: float) -> dict[str, Any]:
    """Return times (ms a change), speedups, accuracies and certificates of one partition.

    Parameters
    ----------
    split, lam, theta, C
        The partition, and what `tune` chose on it.
    changes
        Varying instances that are added and deleted at most.
    seconds
        CPU time for each kind of retraining: where all of them would take longer, an even sample of the same changes
        is retrained.

    """
    many = min(changes, len(split.varying[1]))
    start = history_of(split, lam, theta)
    start.solve()
    alpha = start.alpha[: start.count].copy()
    result: dict[str, Any] = {
        "m": len(alpha), "d": split.width, "outside": int((alpha != 0).sum()), "lam": lam, "theta": theta, "C": C,
        "varied": many, "of": len(split.varying[1]),
    }
    for word, size in (("single", 1), ("batch", BATCH)):
        result[word] = _sequence(split, lam, theta, alpha, many, size, seconds)
    result["accuracy"] = _accuracies(split, lam, theta, C, alpha)
    return result


def _solved(split: Split, lam: float, theta: float, alpha: Array, room: int) -> Problem:
    problem = history_of(split, lam, theta, room=room)
    problem.alpha[: len(alpha)], problem.side[: len(alpha)] = alpha, np.sign(alpha).astype(np.int8)
    return problem


def _chunks(count: int, size: int) -> Iterator[range]:
    for begin in range(0, count, size):
        yield range(begin, min(begin + size, count))


def _sequence(
    split: Split, lam: float, theta: float, alpha: Array, many: int, size: int, seconds: float
) -> dict[str, Any]:
    """Add `many` instances by `size`, then delete them in the same order: every method sees the same changes."""
    X, y = split.varying
    engines: dict[str, tuple[Problem, Any]] = {}
    built = {}
    for name, make in (("fast", automatic), ("path", ENGINES["path"])):
        problem = _solved(split, lam, theta, alpha, many + size + 64)
        built[name], engine = _timed(make, problem)
        engines[name] = problem, engine
    times: dict[str, list[float]] = {name: [] for name in ("fast", "path", "cold", "warm")}
    sweeps: dict[str, list[int]] = {"cold": [], "warm": []}
    spent = {"cold": 0.0, "warm": 0.0}
    chunks = list(_chunks(many, size))
    slots: dict[str, list[list[int]]] = {name: [] for name in engines}
    total = 2 * len(chunks)
    grown: list[Array] = []
    for block in _chunks(len(chunks), BLOCK), _chunks(len(chunks), BLOCK):
        adding = not grown
        for steps in block:
            before: list[Problem] = []
            enter: list[float] = []
            for name, (problem, engine) in engines.items():
                for step in steps:
                    taken, fresh = 0.0, list[int]()
                    if adding:
                        xs, ys = [X[i] for i in chunks[step]], y[list(chunks[step])].tolist()
                        costs = [lam] * len(xs)
                        taken, fresh = _timed(problem.admit, xs, ys, costs, costs)
                        slots[name].append(fresh)
                    if name == "fast":
                        before.append(problem.shadow())
                        enter.append(taken)
                    more, _ = _timed(engine.change, fresh, [] if adding else slots[name][step])
                    times[name].append(1e3 * (taken + more))
            for kind, used in spent.items():
                for step, problem, taken in zip(steps, before, enter):
                    # An even sample: as long as the time spent keeps up with the share of the changes that is done.
                    done = (step + 1 + (0 if adding else len(chunks))) / total
                    if used <= seconds * done:
                        baseline = Retraining(problem.shadow(), kind, TOLERANCE, EPOCHS)
                        move = (slots["fast"][step], []) if adding else ([], slots["fast"][step])
                        more, _ = _timed(baseline.change, *move, False)
                        used += more
                        times[kind].append(1e3 * (taken + more))
                        sweeps[kind].append(baseline.sweeps[-1])
                spent[kind] = used
        if adding:
            grown = [engine.refined()[slots[name][0][0] :] for name, (_, engine) in engines.items()]
    problem, engine = engines["fast"]
    back = engine.refined()[: len(alpha)]
    scale = float(np.abs(alpha).max(initial=1e-300))
    return {
        "engine": engine.name, "changes": total, "built": built,
        "ms": {name: [round(value, 5) for value in values] for name, values in times.items()},
        "sweeps": {name: float(np.mean(values)) for name, values in sweeps.items()},
        "capped": {name: float(np.mean(np.array(values) >= EPOCHS)) for name, values in sweeps.items()},
        "identity": float(np.abs(back - alpha).max(initial=0.0)) / scale,
        "agreement": float(np.abs(grown[0] - grown[1]).max(initial=0.0)) / scale,
        "residual": problem.certificate(engine.refined()).residual,
        "refits": engine.refits,
    }


def _timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    begun = time.thread_time()
    value = call(*arguments)
    return time.thread_time() - begun, value


def _accuracies(split: Split, lam: float, theta: float, C: float, alpha: Array) -> dict[str, float]:
    """Return test accuracies with all that varies added, and of the machine and MID-SVM after 100 added instances."""
    X, y = split.varying
    test, labels = split.test
    found: dict[str, float] = {}
    problem = _solved(split, lam, theta, alpha, len(y))
    engine = automatic(problem)
    values = gram(test, np.vstack([split.history[0], X]), split.width)
    hundred = min(100, len(y))
    for chunk in _chunks(len(y), BATCH):
        fresh = problem.admit([X[i] for i in chunk], y[list(chunk)].tolist(), [lam] * len(chunk), [lam] * len(chunk))
        engine.change(fresh, [])
        if chunk.stop == hundred:
            found["odm 100"] = accuracy(_scores(problem, values), labels)
    found["odm"] = accuracy(_scores(problem, values), labels)
    problem.solve()
    found["retrained"] = accuracy(_scores(problem, values), labels)
    svm = history_of(split, lam, 0.0, room=hundred)
    machine = MIDSVM(svm, C)
    for chunk in _chunks(hundred, BATCH):
        ys, costs = y[list(chunk)].tolist(), [C] * len(chunk)
        machine.change(svm.admit([X[i] for i in chunk], ys, costs, costs), [])
    found["midsvm 100"] = accuracy(machine.decision(values), labels)
    found["midsvm retrained"] = float(machine.retrained)
    found.setdefault("odm 100", found["odm"])
    return found


def _scores(problem: Problem, values: Array) -> Array:
    n = problem.count
    scores: Array = values[:, :n] @ (problem.alpha[:n] * problem.y[:n])
    return scores


def by_size(X: Array, y: Array, sizes: Sequence[int], lam: float, theta: float) -> list[dict[str, float]]:
    """Return ms a change of every method on nested subsets of one set, 24 instances added and deleted on each."""
    points = []
    for m in sizes:
        split = Split((X[:m], y[:m]), (X[m : m + 24], y[m : m + 24]), (X[:1], y[:1]))
        start = history_of(split, lam, theta)
        start.solve()
        sequence = _sequence(split, lam, theta, start.alpha[:m].copy(), 24, 1, 3.0)
        points.append({"m": float(m), **{name: float(np.mean(values)) for name, values in sequence["ms"].items()}})
    return points
