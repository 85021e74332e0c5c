"""Slow truths: the paper's problems solved by general means, and its formulas in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from scipy.optimize import minimize


def exact_score(weights: Mapping[object, float], intercept: float, x: Mapping[object, float]) -> Fraction:
    """w . x + intercept without rounding."""
    return sum((Fraction(weights.get(name, 0.0)) * Fraction(value) for name, value in x.items()), Fraction(intercept))


def magnitude(weights: Mapping[object, float], intercept: float, x: Mapping[object, float]) -> float:
    """sum |w_i x_i|, intercept included: what rounding errors of a score are measured against."""
    return abs(intercept) + math.fsum(abs(weights.get(name, 0.0) * value) for name, value in x.items())


def solved(w: np.ndarray, direction: np.ndarray, loss: float, rule: str, C: float) -> np.ndarray:
    """Return argmin 1/2 |v - w|^2 (+ C xi, + C xi^2) s.t. direction . (v - w) >= loss - xi, by a general solver."""
    d = len(w)
    margin = {"type": "ineq", "fun": lambda z: direction @ (z[:d] - w) - loss + (z[d] if rule != "PA" else 0.0)}
    slack = {"type": "ineq", "fun": lambda z: z[d]}
    price = {"PA": lambda xi: 0.0, "PA-I": lambda xi: C * xi, "PA-II": lambda xi: C * xi**2}[rule]
    constraints = [margin, slack] if rule == "PA-I" else [margin]
    start = np.array([*w, max(loss, 0.0)])
    result = minimize(lambda z: 0.5 * np.sum((z[:d] - w) ** 2) + price(z[d]), start, constraints=constraints,
                      tol=1e-14, options={"maxiter": 500})
    assert result.success, result.message
    return result.x[:d]
