"""Kernels on feature dicts: how alike two records are, as an inner product in a space never written down."""

from __future__ import annotations

import abc
import math
from operator import mul
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from river import base
from scipy.spatial.distance import cdist  # River's own dependency

from pa_river import _validate, state
from pa_river.terms import Features

Array: TypeAlias = npt.NDArray[np.float64]

_PRECISIONS = ("float64", "float32")


class Pairs(Protocol):
    """Many pairs of records at once, by what a kernel may want to know of them."""

    def dots(self) -> Array:
        """Return x . z of every pair, in a new array."""

    def squares(self) -> Array:
        """Return |x - z|^2 of every pair."""


class Kernel(base.Base, abc.ABC):
    """A symmetric, positive semidefinite k(x, z) on checked features.

    Sums are rounded once (`math.fsum`), so neither the order of a dict nor the order of the arguments changes a bit.
    """

    #: In what the products of dense batches are computed.
    dtype: str = "float64"

    @abc.abstractmethod
    def __call__(self, x: Features, z: Features) -> float:
        """Return k(x, z); `ValueError` if it is beyond float range."""

    @abc.abstractmethod
    def of(self, pairs: Pairs) -> Array:
        """Return k of many pairs, to rounding what the call gives; beyond float range: inf or NaN."""

    def matrix(self, X: Array, Z: Array) -> Array:
        """Return k of every row of X with every row of Z, shapes (n, d) and (m, d), as `of` does, without a warning."""
        with np.errstate(all="ignore"):
            return self.of(_Rows(X, Z))


class _Rows:
    """Every row of X with every row of Z."""

    def __init__(self, X: Array, Z: Array):
        self._X, self._Z = X, Z

    def dots(self) -> Array:
        result: Array = self._X @ self._Z.T
        return result

    def squares(self) -> Array:
        result: Array = cdist(self._X, self._Z, "sqeuclidean")
        return result


@state.storable
class Linear(Kernel):
    """k(x, z) = x . z.

    Parameters
    ----------
    dtype
        As for `Polynomial`.

    Examples
    --------
    >>> Linear()({"a": 2.0, "b": 1.0}, {"a": 3.0, "c": 5.0})
    6.0

    """

    def __init__(self, dtype: str = "float64"):
        self.dtype = _validate.require_choice("Linear", "dtype", dtype, _PRECISIONS)

    def __call__(self, x: Features, z: Features) -> float:
        return _dot(x, z)

    def of(self, pairs: Pairs) -> Array:
        return pairs.dots()


@state.storable
class Polynomial(Kernel):
    """k(x, z) = (gamma x . z + coef0)^degree.

    Parameters
    ----------
    degree
        A whole number >= 1.
    coef0
        Finite and >= 0 (below 0 this is no kernel): the weight of the lower degrees against the highest.
    gamma
        Finite and > 0: scales the inner product, and so undoes the scale of the features.
    dtype
        "float64", or "float32" for twice the speed and half the memory where `learn_many`, `step_many` and
        `predict_many` take a dense table: kernel values then have about 6 digits and must stay below 3e38, and a batch
        no longer equals the loop of `learn_one` to 1e-9. Losses, coefficients and sums stay float64, and so does every
        call with one example.

    Examples
    --------
    >>> Polynomial(2, coef0=1.0)({"a": 2.0}, {"a": 3.0})
    49.0

    """

    coef0 = _validate.NonNegative()
    gamma = _validate.Positive()

    def __init__(self, degree: int, coef0: float = 0.0, gamma: float = 1.0, dtype: str = "float64"):
        self.degree = _validate.require_count("Polynomial", "degree", degree)
        self.coef0 = coef0
        self.gamma = gamma
        self.dtype = _validate.require_choice("Polynomial", "dtype", dtype, _PRECISIONS)

    def __call__(self, x: Features, z: Features) -> float:
        try:
            return _finite((self.gamma * _dot(x, z) + self.coef0) ** self.degree)
        except OverflowError:
            return _finite(math.inf)

    def of(self, pairs: Pairs) -> Array:
        base = pairs.dots()
        if self.gamma != 1.0:
            base *= self.gamma
        if self.coef0:
            base += self.coef0
        return _power(base, self.degree)


@state.storable
class RBF(Kernel):
    """k(x, z) = exp(-gamma |x - z|^2).

    Parameters
    ----------
    gamma
        Finite and > 0: the inverse square of the distance at which two records stop being alike.

    Notes
    -----
    The distance is a sum of squared differences, never |x|^2 - 2 x . z + |z|^2: far from the origin that loses every
    digit. Finite everywhere: an immense distance gives 0.

    Examples
    --------
    >>> RBF(gamma=0.5)({"a": 1.0}, {"a": 3.0, "b": 0.0})  # exp(-2)
    0.1353352832366127

    """

    gamma = _validate.Positive()

    def __init__(self, gamma: float = 1.0):
        self.gamma = gamma

    def __call__(self, x: Features, z: Features) -> float:
        get = z.get
        gaps = [float(value) - get(name, 0.0) for name, value in x.items()]
        gaps += [value for name, value in z.items() if name not in x]
        try:
            square = self.gamma * math.fsum(map(mul, gaps, gaps))
        except OverflowError:
            square = math.inf
        if square == math.inf:  # a small gamma may still bring an immense square back
            root = math.sqrt(self.gamma) * math.hypot(*gaps)
            square = root * root
        return math.exp(-square)

    def of(self, pairs: Pairs) -> Array:
        result: Array = np.exp(-self.gamma * pairs.squares())
        return result


def _power(base: Array, degree: int) -> Array:
    """Return base to a whole power by repeated squaring, a few times faster than a power of floats; may use up base."""
    result: Array | None = None
    while degree > 1:
        if degree & 1:
            result = base.copy() if result is None else np.multiply(result, base, out=result)
        np.multiply(base, base, out=base)
        degree >>= 1
    return base if result is None else np.multiply(result, base, out=result)


def _dot(x: Features, z: Features) -> float:
    if len(z) < len(x):
        x, z = z, x
    get = z.get
    try:
        if x is z:
            values = list(x.values())
            return _finite(math.fsum(map(mul, values, values)))
        return _finite(math.fsum([value * get(name, 0.0) for name, value in x.items()]))
    except (OverflowError, ValueError):  # a partial sum beyond float range, or inf - inf
        return _finite(math.inf)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("the kernel of two records would not be finite")
    return value
