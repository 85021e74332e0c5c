"""Slow truths about the optimal margin distribution machine, without the package: Newton, refinement, duality gap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rbf_gram(X: Array, y: Array, gamma: float) -> Array:
    """H_ij = y_i y_j exp(-gamma |x_i - x_j|^2), by differences."""
    distances = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(np.exp(-gamma * distances) * np.outer(y, y))


def refined_solve(Q: Array, d: Array) -> Array:
    """Solve Q x = d with residuals in extended precision."""
    x = np.linalg.solve(Q, d)
    wide = Q.astype(np.longdouble)
    for _ in range(3):
        rest = (d - wide @ x.astype(np.longdouble)).astype(np.float64)
        x = x + np.linalg.solve(Q, rest)
    return np.asarray(x)


def retrained(H: Array, below: Array, above: Array, theta: float) -> Array:
    """Multipliers of the optimum: Newton on the dual variables, damped by halving the primal objective's step."""
    m = len(H)
    low, high = 1.0 - theta, 1.0 + theta
    alpha = np.zeros(m)

    def objective(a: Array) -> float:
        g = H @ a
        xi, eps = np.maximum(low - g, 0.0), np.maximum(g - high, 0.0)
        return float(0.5 * a @ g + 0.5 * below @ xi**2 + 0.5 * above @ eps**2)

    for _ in range(500):
        gamma = H @ alpha
        left, right = gamma < low, gamma > high
        S = np.flatnonzero(left | right)
        target = np.zeros(m)
        if len(S):
            cost = np.where(left[S], below[S], above[S])
            Q = H[np.ix_(S, S)] + np.diag(1.0 / cost)
            target[S] = refined_solve(Q, np.where(left[S], low, high))
        reached = H @ target
        if ((reached < low) == left).all() and ((reached > high) == right).all():
            return target
        step, start = 1.0, objective(alpha)
        if np.abs(target - alpha).max() <= 1e-13 * max(1.0, np.abs(alpha).max()):
            return target
        while step > 1e-12 and objective(alpha + step * (target - alpha)) > start:
            step *= 0.5
        alpha = alpha + step * (target - alpha)
    return alpha


def gap(H: Array, below: Array, above: Array, theta: float, alpha: Array) -> float:
    """Primal minus dual objective: 0 at the optimum, and nowhere else."""
    gamma = H @ alpha
    xi, eps = np.maximum(1.0 - theta - gamma, 0.0), np.maximum(gamma - 1.0 - theta, 0.0)
    primal = 0.5 * alpha @ gamma + 0.5 * below @ xi**2 + 0.5 * above @ eps**2
    cost = np.where(alpha > 0.0, below, above)
    dual = alpha.sum() - theta * np.abs(alpha).sum() - 0.5 * alpha @ gamma - 0.5 * (alpha**2 / cost).sum()
    return float(primal - dual)
