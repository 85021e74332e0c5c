"""A kernel epoch on digit-like rows: Gram blocks against numpy row by row, and against the products alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

import pa_river
from benchmarks.measure import Contestant, Row, compare

WIDTH, LABELS, DEGREE, COEF0, C = 784, 10, 5, 0.5, 100.0
CALL, BLOCK = 1000, 256
#: Leaves about a seventh of 10,000 rows as support vectors.
NOISE = 0.6


def digits(count: int, kinds: int = 4, seed: int = 0) -> tuple[npt.NDArray[np.float64], list[int]]:
    """Return rows of unit length around so many prototypes a label, near enough to each other to be mistaken."""
    rng = np.random.default_rng(seed)
    prototypes = rng.normal(size=(LABELS, kinds, WIDTH))
    y = rng.integers(0, LABELS, count)
    X = prototypes[y, rng.integers(0, kinds, count)] + NOISE * rng.normal(size=(count, WIDTH))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y.tolist()


def _ours(X: Any, y: list[int], dtype: str) -> Contestant:
    def prepare() -> Any:
        kernel = pa_river.Polynomial(DEGREE, coef0=COEF0, dtype=dtype)
        model = pa_river.PAMulticlass(pa_river.PA1(C), learn_intercept=False, kernel=kernel,
                                      budget=pa_river.Budget(math.inf))

        def run() -> int:
            for begin in range(0, len(y), CALL):
                model.learn_many(X[begin:begin + CALL], y[begin:begin + CALL])
            return len(y)
        return run
    return prepare


def _one_by_one(X: Any, y: list[int], dtype: str) -> tuple[Contestant, list[int]]:
    """Return plain numpy, a product of the support vectors with each row, and how many of them there were before it."""
    rows = X.astype(dtype)
    counts: list[int] = []

    def prepare() -> Any:
        vectors, table = np.empty_like(rows), np.zeros((len(y), LABELS), dtype)

        def run() -> int:
            counts.clear()
            held = 0
            for x, own in zip(rows, y):
                counts.append(held)
                base = vectors[:held] @ x + rows.dtype.type(COEF0)
                square = base * base
                scores = (square * square * base) @ table[:held]
                right, scores[own] = scores[own], -np.inf
                rival = int(scores.argmax())
                loss = float(1.0 - right + scores[rival])
                if loss > 0.0:
                    tau = min(C, loss / (2.0 * float(x @ x + COEF0) ** DEGREE))
                    vectors[held], table[held, own], table[held, rival] = x, tau, -tau
                    held += 1
            return len(y)
        return run
    return prepare, counts


def _products(X: Any, y: list[int], dtype: str, counts: list[int]) -> Contestant:
    """Return the matrix products alone that the blocks cannot do without."""
    rows = X.astype(dtype)

    def prepare() -> Any:
        def run() -> int:
            for begin in range(0, len(y), BLOCK):
                block = rows[begin:begin + BLOCK]
                block @ rows[:counts[begin]].T
                block @ block.T
            return len(y)
        return run
    return prepare


def kernel_epoch(turns: int, count: int = 10_000, kinds: int = 4) -> list[Row]:
    """PAMulticlass.learn_many, (0.5 + x.z)^5, 784 features, against numpy a row at a time and the products alone."""
    X, y = digits(count, kinds)
    rows = []
    for dtype in ("float32", "float64"):
        plain, counts = _one_by_one(X, y, dtype)
        plain()()  # so that `counts` is known before the products' turn
        row = compare(f"kernel epoch, {count} x {WIDTH}, {dtype}", "ours", {
            "ours": _ours(X, y, dtype), "numpy a row": plain,
            "products alone": _products(X, y, dtype, counts)}, turns)
        row.figures["support vectors"] = counts[-1]
        rows.append(row)
    return rows


def kernels(turns: int) -> list[Row]:
    """The same at the size of MNIST, 60,000 rows, in a seventh of the turns: minutes, nearly all of them numpy's."""
    return kernel_epoch(max(1, turns // 7), 60_000, kinds=16)


BENCHMARKS = {"kernel_epoch": kernel_epoch, "kernels": kernels}
