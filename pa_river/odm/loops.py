"""The inner loops in numpy, and in their place the compiled ones of `_native` where they were built."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: What has a compiled twin of the same name.
LOOPS = ("rbf_row", "tame", "enter", "grow_inverse", "shrink_inverse", "coordinate_descent", "smo")


def rbf_row(X: Array, count: int, x: Array, gamma: float, rest: float) -> Array:
    """Return exp(-gamma (|X_i - x|^2 + rest)) for the first `count` rows."""
    with np.errstate(over="ignore"):  # a distance beyond float range is a kernel value of 0
        difference = X[:count] - x
        distances = np.einsum("ij,ij->i", difference, difference) + rest
        return np.asarray(np.exp(-gamma * distances))


def tame(values: Array, side: NDArray[np.int8], held: int, largest: float) -> bool:
    """Return whether the kernel values with instances that are there are finite and within `largest`."""
    return bool((np.abs(values[:held][side[:held] < 2]) <= largest).all())


def enter(H: Array, y: Array, slot: int, held: int, values: Array, own: float) -> None:
    """Write kernel values, signed by the labels, into row and column `slot` of H."""
    row = values * y[:held] * own
    H[slot, :held] = row
    H[:held, slot] = row


def grow_inverse(B: Array, n: int, u: Array, s: float) -> None:
    """Border the inverse B of order n: the new row is -u / s, the corner 1 / s, the rest gains u u' / s."""
    scaled = u / s
    B[:n, :n] += scaled[:, None] * u
    B[:n, n] = B[n, :n] = -scaled
    B[n, n] = 1.0 / s


def shrink_inverse(B: Array, n: int, p: int) -> Array:
    """Take row p out of the inverse B of order n, the last row in its place; return the row, its own entry last."""
    last = n - 1
    b = B[p, :n].copy()
    if p != last:
        b[p], b[last] = b[last], b[p]
        B[p, :n] = B[last, :n]
        B[:n, p] = B[:n, last]
        B[p, p] = B[last, last]
    rest = b[:last]
    B[:last, :last] -= (rest / b[last])[:, None] * rest
    return b


def coordinate_descent(
    H: Array, slots: NDArray[np.int64], alpha: Array, gamma: Array, below: Array, above: Array, theta: float,
    tol: float, epochs: int, seed: int,
) -> int:
    """Solve the dual by signed coordinate descent over `slots`, in place; return the sweeps, `epochs` if it ran out."""
    m = len(slots)
    rng = np.random.default_rng(seed)
    active, bound = slots, np.inf
    for epoch in range(epochs):
        worst = 0.0
        keep = []
        for i in rng.permutation(active).tolist():
            old, diagonal = float(alpha[i]), float(H[i, i])
            z = 1.0 - float(gamma[i]) + diagonal * old
            if z > theta:
                q = diagonal + 1.0 / float(below[i])
                new = (z - theta) / q
            elif z < -theta:
                q = diagonal + 1.0 / float(above[i])
                new = (z + theta) / q
            else:
                q, new = diagonal + 1.0 / float(below[i]), 0.0
                if old == 0.0 and theta - abs(z) > bound:
                    continue  # far inside the strip: left out until the others have settled
            keep.append(i)
            worst = max(worst, abs(new - old) * q)
            if new != old:
                alpha[i] = new
                gamma += (new - old) * H[i, : len(gamma)]
        if worst <= tol:
            if len(active) == m:
                return epoch + 1
            active, bound = slots, np.inf
        else:
            active, bound = np.array(keep), worst
    return epochs


def smo(H: Array, slots: NDArray[np.int64], y: Array, alpha: Array, C: float, tol: float, most: int) -> int:
    """Solve the dual of a support vector machine with bias by pairs, the second by second-order gain; return the steps.

    alpha, by slot, is where it starts and where it ends.
    """
    Q, signs, a = H[np.ix_(slots, slots)], y[slots], alpha[slots]
    gradient = Q @ a - 1.0
    diagonal = Q.diagonal()
    for step in range(most):
        pull = -signs * gradient
        up, down = np.where(signs > 0, a < C, a > 0.0), np.where(signs > 0, a > 0.0, a < C)
        if not up.any() or not down.any():
            break
        i = int(np.argmax(np.where(up, pull, -np.inf)))
        gap = np.where(down, pull[i] - pull, -np.inf)
        if gap.max() <= tol:
            break
        curve = np.maximum(diagonal[i] + diagonal - 2.0 * signs[i] * signs * Q[i], 1e-12)
        j = int(np.argmax(np.where(gap > 0.0, gap * gap / curve, -np.inf)))
        length = gap[j] / curve[j]
        length = min(length, C - a[i] if signs[i] > 0 else a[i], a[j] if signs[j] > 0 else C - a[j])
        a[i] += signs[i] * length
        a[j] -= signs[j] * length
        gradient += length * (signs[i] * Q[i] - signs[j] * Q[j])
    alpha[slots] = np.clip(a, 0.0, C)
    return step + 1 if most else 0


def _compiled(module: str) -> Any:
    wanted = os.environ.get("PA_RIVER_NATIVE", "")
    if wanted == "0":
        return None
    try:
        return importlib.import_module(f"pa_river.odm.{module}")
    except ImportError:
        if wanted == "1":
            raise
        return None


#: The compiled modules, or None each: no compiler when this was installed, or `PA_RIVER_NATIVE=0`.
native, frozen_core, path_core, primal_core = map(_compiled, ("_loops", "_frozen", "_path", "_primal"))

if native is not None:
    globals().update({name: getattr(native, name) for name in LOOPS})
