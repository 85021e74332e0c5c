"""Retraining from scratch by a globalised Newton method: finite, exact to rounding, O(|S|^3) a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]

_STEPS = 200


def newton(H: Array, below: Array, above: Array, theta: float, start: Array | None = None) -> tuple[Array, Array, int]:
    """Solve the problem over the signed Gram matrix H.

    Parameters
    ----------
    H
        (m, m), y_i y_j kappa(x_i, x_j).
    below, above
        m costs of a squared distance below and above the strip.
    theta
        Half the width of the strip.
    start
        Multipliers to start from; zeros if None.

    Returns
    -------
    The multipliers, the margins, and the number of steps. Each step solves the system of the current sets with one
    round of refinement and goes to the exact minimum of the objective on the way there, so the sets cannot cycle.

    """
    m = len(H)
    low, high = 1.0 - theta, 1.0 + theta
    alpha = np.zeros(m) if start is None else start.copy()
    gamma = H @ alpha
    for step in range(1, _STEPS + 1):
        side = (gamma < low).astype(np.int8) - (gamma > high)
        target = _solved(H, below, above, low, high, side)
        reached = H @ target
        # Instances on the very edge may fall on either side by rounding; both sides then give them alpha = 0.
        slack = 1e-13 + 4e-16 * float(np.abs(target).sum()) * float(np.sqrt(H.diagonal().max(initial=0.0)))
        off = (side > 0) & (reached > low + slack) | (side < 0) & (reached < high - slack)
        off |= (side <= 0) & (reached < low - slack) | (side >= 0) & (reached > high + slack)
        if not off.any():
            return target, reached, step
        move, rise = target - alpha, reached - gamma
        length = _line_minimum(alpha, gamma, move, rise, below, above, low, high)
        if length == 0.0:  # rounding only: the direction no longer falls
            return target, reached, step
        alpha, gamma = alpha + length * move, gamma + length * rise
    return alpha, gamma, _STEPS


def _solved(H: Array, below: Array, above: Array, low: float, high: float, side: NDArray[np.int8]) -> Array:
    outside = np.flatnonzero(side)
    alpha = np.zeros(len(H))
    if len(outside):
        Q = H[np.ix_(outside, outside)]
        Q[np.diag_indices_from(Q)] += 1.0 / np.where(side[outside] > 0, below[outside], above[outside])
        d = np.where(side[outside] > 0, low, high)
        factor = linalg.cho_factor(Q, lower=True, check_finite=False)
        found = linalg.cho_solve(factor, d, check_finite=False)
        alpha[outside] = found + linalg.cho_solve(factor, d - Q @ found, check_finite=False)
    return alpha


def _line_minimum(
    alpha: Array, gamma: Array, move: Array, rise: Array, below: Array, above: Array, low: float, high: float
) -> float:
    """Return the step in (0, 1] at which the piecewise quadratic objective is least along `move`."""
    linear, curve = float(alpha @ rise), float(move @ rise)

    def slope(t: float) -> float:
        g = gamma + t * rise
        pull = above * np.maximum(g - high, 0.0) - below * np.maximum(low - g, 0.0)
        return linear + t * curve + float(pull @ rise)

    if slope(1.0) <= 0.0:
        return 1.0
    left, right = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (left + right)
        left, right = (left, middle) if slope(middle) > 0.0 else (middle, right)
    return left
