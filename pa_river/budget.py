"""Which support vector gives way when a kernel model is full, and who takes over its part.

Decided before the step is sized: the example that needs the place is known, its step is not. Whoever projects onto a
span that holds the newcomer leaves the newcomer's score, and so its loss and its step, as they were.
"""

from __future__ import annotations

import abc
import math
import numbers
from typing import Any, NamedTuple

import numpy as np
from river import base

from pa_river import _validate, state
from pa_river.kernels import Array

POLICIES = ("projection", "oldest", "smallest", "nearest")

#: Each squared length counts this much more in a system of equations, so that equal records have a solution too.
_RIDGE = 1e-7


@state.storable
class Budget(base.Base):
    """At most `size` support vectors, and which one gives way to a new one.

    Parameters
    ----------
    size
        A whole number >= 1, or `math.inf`: no limit, said in so many words.
    policy
        Who gives way, and what becomes of its part of the weights:

        - "projection": the one whose part is best made up by all others and the newcomer, which take it over (BPA-P).
          O(size^2) time a removal and that many floats more.
        - "nearest": the same with only its nearest neighbour and the newcomer (BPA-NN). O(size^2) floats more.
        - "smallest": the same with the newcomer alone (BPA-S). O(size) time.
        - "oldest": the one that came first; its part is gone (as the Forgetron's removal, without its shrinking).

    Notes
    -----
    Sources: Wang and Vucetic, Online Passive-Aggressive Algorithms on a Budget, AISTATS 2010 (BPA-P, BPA-NN, BPA-S);
    Dekel, Shalev-Shwartz and Singer, The Forgetron, NIPS 2005.

    Examples
    --------
    >>> Budget(100, "oldest")
    Budget (
      size=100
      policy="oldest"
    )

    """

    def __init__(self, size: float, policy: str = "projection"):
        unlimited = isinstance(size, numbers.Real) and size == math.inf
        self.size = math.inf if unlimited else _validate.require_count("Budget", "size", size)
        self.policy = _validate.require_choice("Budget", "policy", policy, POLICIES)


class Crowd(NamedTuple):
    """What a policy may know: the support vectors in order of age, and the newcomer.

    `sizes` are the lengths of their coefficients (over all slots), `squares` their k with themselves, `near` their k
    with the newcomer, `own` the newcomer's k with itself, > 0; `gram()` is their k with each other, computed on demand.
    """

    sizes: Array
    squares: Array
    near: Array
    own: float
    gram: Any


class Leave(NamedTuple):
    """Who gives way: its place, what share of its part each other and the newcomer takes over, the length of the rest.

    `shares` are those of all support vectors, 0 at `place` itself; `newcomer` is None where nobody takes over.
    """

    place: int
    shares: Array
    newcomer: float | None
    rest: float


class Policy(abc.ABC):
    """Chooses who gives way; what it keeps between two choices is replaced, never changed, so a reference undoes."""

    @abc.abstractmethod
    def choose(self, crowd: Crowd) -> Leave:
        """Return who gives way to the newcomer, and take the newcomer's place in account for the next time."""

    def memory(self) -> Any:
        """Return what the policy keeps between two choices, as plain values."""
        return None

    def recall(self, memory: Any, size: int) -> None:
        """Take over what `memory` returned, for `size` support vectors; `StateError` if it is not that."""
        if memory is not None:
            raise state.StateError("this policy keeps nothing")


class Oldest(Policy):
    def choose(self, crowd: Crowd) -> Leave:
        rest = float(crowd.sizes[0] * np.sqrt(crowd.squares[0]))
        return Leave(0, np.zeros(len(crowd.sizes)), None, rest)


class Smallest(Policy):
    def choose(self, crowd: Crowd) -> Leave:
        left = np.sqrt(np.maximum(crowd.squares - crowd.near * (crowd.near / crowd.own), 0.0)) * crowd.sizes
        place = _least(left)
        return Leave(place, np.zeros(len(left)), float(crowd.near[place] / crowd.own), float(left[place]))


class Nearest(Policy):
    """Keeps the Gram matrix of the support vectors."""

    def __init__(self) -> None:
        self._gram: Array | None = None

    def choose(self, crowd: Crowd) -> Leave:
        gram = crowd.gram() if self._gram is None else self._gram
        leave = self._choice(crowd, gram)
        self._gram = _replaced(gram, leave.place, crowd)
        return leave

    def _choice(self, crowd: Crowd, gram: Array) -> Leave:
        squares, near, own = crowd.squares, crowd.near, crowd.own
        if len(squares) == 1:
            return Smallest().choose(crowd)
        distances = squares[:, None] + squares - 2.0 * gram
        np.fill_diagonal(distances, math.inf)
        friend = distances.argmin(axis=1)
        # Gram-Schmidt: first along the friend, then along what the newcomer adds to it
        friend_square = squares[friend]
        with_friend = gram[np.arange(len(squares)), friend]
        along = with_friend / friend_square
        square = squares - along * with_friend
        fresh_square = own - near[friend] * (near[friend] / friend_square)
        fresh = near - along * near[friend]
        second = np.where(fresh_square > _RIDGE * own, fresh / np.maximum(fresh_square, _RIDGE * own), 0.0)
        left = np.sqrt(np.maximum(square - second * fresh, 0.0)) * crowd.sizes
        place = _least(left)
        shares = np.zeros(len(squares))
        shares[friend[place]] = along[place] - second[place] * near[friend[place]] / friend_square[place]
        return Leave(place, shares, float(second[place]), float(left[place]))

    def memory(self) -> Any:
        return None if self._gram is None else _triangle(self._gram)

    def recall(self, memory: Any, size: int) -> None:
        self._gram = None if memory is None else _square(memory, size)


class Projection(Policy):
    """Keeps the inverse of the Gram matrix, bordered and reduced in O(size^2), inverted anew every `size` times."""

    def __init__(self) -> None:
        self._inverse: Array | None = None
        self._age = 0

    def choose(self, crowd: Crowd) -> Leave:
        if self._inverse is None or self._age >= max(len(crowd.squares), 32):
            inverse = np.linalg.inv(crowd.gram() + np.diag(_RIDGE * crowd.squares))
            self._inverse, self._age = (inverse + inverse.T) / 2.0, 0
        inverse = _bordered(self._inverse, crowd)
        diagonal = inverse.diagonal()[:-1]
        place = _least(crowd.sizes / np.sqrt(diagonal))
        column = inverse[:, place] / diagonal[place]
        shares = -column
        shares[place] = 0.0
        # the ridge is no part of what is lost
        squares = np.append(crowd.squares, crowd.own)
        square = 1.0 / diagonal[place] - _RIDGE * (squares[place] + (shares * shares) @ squares)
        rest = crowd.sizes[place] * math.sqrt(max(square, 0.0))
        root = inverse[:, place] / math.sqrt(diagonal[place])
        self._inverse, self._age = _without(inverse - np.outer(root, root), place), self._age + 1
        return Leave(place, shares[:-1], float(shares[-1]), float(rest))

    def memory(self) -> Any:
        return None if self._inverse is None else (_triangle(self._inverse), self._age)

    def recall(self, memory: Any, size: int) -> None:
        self._inverse, self._age = None, 0
        if memory is not None:
            triangle, age = memory
            self._inverse = _square(triangle, size)
            self._age = _validate.require_count("Budget", "age", age, least=0)


_policies: dict[str, type[Policy]] = {
    "projection": Projection, "oldest": Oldest, "smallest": Smallest, "nearest": Nearest,
}


def policy(budget: Budget) -> Policy:
    """Return a fresh chooser of the budget's policy."""
    return _policies[budget.policy]()


def _least(left: Array) -> int:
    """The place of the smallest, the oldest of equals."""
    if not np.isfinite(left).all():
        raise ValueError("the length of a support vector would not be finite; nothing was learned")
    return int(left.argmin())


def _replaced(gram: Array, place: int, crowd: Crowd) -> Array:
    """The Gram matrix without one support vector and with the newcomer as the last."""
    near = np.delete(crowd.near, place)
    return _with_border(_without(gram, place), near, crowd.own)


def _bordered(inverse: Array, crowd: Crowd) -> Array:
    """The inverse of the Gram matrix with the newcomer as its last row and column."""
    solved = inverse @ crowd.near
    # what the newcomer adds: never less than its ridge
    fresh = max(crowd.own * (1.0 + _RIDGE) - float(crowd.near @ solved), 0.5 * _RIDGE * crowd.own)
    root = solved / math.sqrt(fresh)  # the square of one vector, so that the matrix stays symmetric to the bit
    return _with_border(inverse + np.outer(root, root), -solved / fresh, 1.0 / fresh)


def _with_border(matrix: Array, border: Array, corner: float) -> Array:
    size = len(matrix)
    larger = np.empty((size + 1, size + 1))
    larger[:size, :size] = matrix
    larger[size, :size] = larger[:size, size] = border
    larger[size, size] = corner
    return larger


def _without(matrix: Array, place: int) -> Array:
    kept = np.flatnonzero(np.arange(len(matrix)) != place)
    # one order in memory, also after loading: a product adds up along it
    return np.ascontiguousarray(matrix[np.ix_(kept, kept)])


def _triangle(matrix: Array) -> Array:
    return matrix[np.tril_indices(len(matrix))]


def _square(triangle: Any, size: int) -> Array:
    values = state.finite_vector(triangle)
    if len(values) != size * (size + 1) // 2:
        raise state.StateError(f"{len(values)} numbers for a matrix of {size} support vectors")
    matrix = np.zeros((size, size))
    lower = np.tril_indices(size)
    matrix[lower] = values
    matrix.T[lower] = values  # put there, not added to 0, which would make 0.0 of -0.0
    return matrix
