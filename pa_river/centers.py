"""A point that moves towards others: its distance to a record, and a step along the way there, in O(len(record))."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pa_river import _loops, _validate, state
from pa_river.budget import Budget, Leave
from pa_river.kernels import Kernel
from pa_river.support import SupportStore
from pa_river.terms import Features, Name, Term

#: Below this the common factor is multiplied out, so that what is divided by it stays in float range.
_LEAST_FACTOR = 1e-100
#: Squares are taken in a unit of the size of the largest coordinate; one that outgrows it by this much renews the unit.
_LARGEST_RATIO = 2.0**400


class LinearCenter:
    """center = factor * raw, coordinate by coordinate, so that a move towards x touches the features of x only.

    The distance is a sum of squared differences over x's own features, and the squares of all others: `_total` less
    those of x's own. That difference must not cancel, so the total is a sum of rounded squares kept to twice a float's
    digits: what one square adds is exactly what it takes away.
    """

    def __init__(self) -> None:
        self._raw: dict[Name, float] = {}
        self._factor = 1.0
        self._unit = 1.0  # a power of two; squares are of raw / unit
        self._total = (0.0, 0.0)
        self._age = 0  # moves since the total was summed anew

    @property
    def center(self) -> dict[Name, float]:
        """The coordinates, a fresh dict."""
        factor = self._factor
        return {name: factor * value for name, value in self._raw.items()}

    def distance(self, phi: Features) -> float:
        """Return |phi - center|; `ValueError` if it is beyond float range."""
        get, factor = self._raw.get, self._factor
        own = {name: value for name, value in phi.items() if value}
        here = math.hypot(*[value - factor * get(name, 0.0) for name, value in own.items()])
        rest = math.sqrt(max(math.fsum([*self._total, *[-square for square in self._squares(own)]]), 0.0))
        return _loops.finite(math.hypot(here, rest * factor * self._unit))

    def approach(self, phi: Features, share: float) -> None:
        """Move to (1 - share) * center + share * phi, 0 < share <= 1; never fails: it lies between the two."""
        keep = 1.0 - share
        factor = self._factor * keep
        if factor < _LEAST_FACTOR:
            self._multiply_out(phi, keep, share)
            return
        try:
            new = _loops.moved(self._raw, phi, share, factor)
        except ValueError:  # divided by the factor it would leave the floats
            self._multiply_out(phi, keep, share)
            return
        before = self._squares(new)
        self._raw.update(new)
        self._factor = factor
        self._age += 1
        largest = max(map(abs, new.values()), default=0.0)
        if self._age > len(self._raw) or largest > self._unit * _LARGEST_RATIO:
            self._sum_anew()
        else:
            self._total = _twofold([*self._total, *self._squares(new), *[-square for square in before]])

    def blend(self, parts: Sequence[tuple[float, LinearCenter, Sequence[int]]]) -> None:
        """Become the sum of share * center over `parts`; this one is empty."""
        self._raw = _loops.blended([(share, store.center) for share, store, _ in parts])
        self._sum_anew()

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        """Return a function that takes everything back: a copy of the center, since a move scales all of it."""
        raw, rest = self._raw.copy(), (self._factor, self._unit, self._total, self._age)

        def restore() -> None:
            self._raw = raw
            self._factor, self._unit, self._total, self._age = rest

        return restore

    def get_state(self) -> dict[str, Any]:
        return {
            "names": state.pack_names(list(self._raw)),
            "raw": np.fromiter(self._raw.values(), float, len(self._raw)),
            "scalars": (self._factor, self._unit, *self._total),
            "age": self._age,
        }

    def set_state(self, values: dict[str, Any]) -> None:
        names, raw = state.unpack_names(values["names"]), state.finite_vector(values["raw"])
        if len(names) != len(raw):
            raise state.StateError(f"{len(names)} names for {len(raw)} coordinates")
        self._raw = dict(zip(names, raw.tolist()))
        if len(self._raw) != len(names):
            raise state.StateError("a feature name is stored twice")
        self._factor, self._unit, high, low = map(state.finite_float, values["scalars"])
        if not (0.0 < self._factor <= 1.0 and self._unit > 0.0):
            raise state.StateError("the scale of a center is out of range")
        self._total = (high, low)
        self._age = _validate.require_count("PAUniclass", "age", values["age"], least=0)

    def _squares(self, phi: Features) -> list[float]:
        """The squares, in units, of the coordinates that phi names."""
        raw, unit = self._raw, self._unit
        scaled = [raw[name] / unit for name in phi if name in raw]
        return [value * value for value in scaled]

    def _multiply_out(self, phi: Features, keep: float, share: float) -> None:
        raw = {name: keep * value for name, value in self.center.items()} if keep else {}
        for name, value in phi.items():
            raw[name] = raw.get(name, 0.0) + share * value
        self._raw, self._factor = {name: value for name, value in raw.items() if value}, 1.0
        self._sum_anew()

    def _sum_anew(self) -> None:
        largest = max(map(abs, self._raw.values()), default=0.0)
        self._unit = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
        self._total = _twofold(self._squares(self._raw))
        self._age = 0


class KernelCenter(SupportStore):
    """center = sum of coefficient * phi over support vectors; |phi - center|^2 = k(phi, phi) - 2 score + |center|^2.

    The squared length of the center follows each move and is computed anew every so many moves as there are vectors.
    """

    def __init__(self, kernel: Kernel, limit: Budget | None):
        super().__init__(kernel, learn_intercept=False, limit=limit)
        self._length_square = 0.0
        self._age = 0

    @property
    def center(self) -> dict[Name, float]:
        """There is none by feature name; `AttributeError`."""
        raise AttributeError("a kernel model has no center by feature name, but support: [(x, coefficient)]")

    def distance(self, phi: Features) -> float:
        """Return |phi - center| in the space of the kernel; `ValueError` if it is not finite."""
        square = self._kernel(phi, phi) - 2.0 * self.score(phi) + self._length_square
        return _loops.finite(math.sqrt(max(square, 0.0)))

    def approach(self, phi: Features, share: float) -> None:
        """Move to (1 - share) * center + share * phi; `Full`, and nothing moves, where the budget has no place."""
        keep, score, own = 1.0 - share, self.score(phi), self._kernel(phi, phi)
        self.add((Term(1.0, phi),), share, 1.0, keep)
        square = keep * keep * self._length_square + 2.0 * keep * share * score + share * share * own
        self._length_square, self._age = max(square, 0.0), self._age + 1
        if self._age > len(self._vectors):
            self._square_anew()

    def blend(self, parts: Sequence[tuple[float, SupportStore, Sequence[int]]]) -> None:
        super().blend(parts)
        self._square_anew()

    def mark(self, phis: Iterable[Features]) -> Callable[[], None]:
        square, age, restore_rest = self._length_square, self._age, super().mark(phis)

        def restore() -> None:
            self._length_square, self._age = square, age
            restore_rest()

        return restore

    def get_state(self) -> dict[str, Any]:
        return {**super().get_state(), "length_square": self._length_square, "age": self._age}

    def set_state(self, values: dict[str, Any]) -> None:
        super().set_state(values)
        self._length_square = state.finite_float(values["length_square"])
        self._age = _validate.require_count("PAUniclass", "age", values["age"], least=0)

    def _square_anew(self) -> None:
        parts = [row * self.score(vector) for vector, row in zip(self._vectors, self._table[:, 0].tolist())]
        self._length_square, self._age = max(math.fsum(parts), 0.0), 0

    def _gives_way(self, leave: Leave, phi: Features) -> None:
        # |w - d|^2 = |w|^2 - 2 w . d + |d|^2, where d is what is dropped, of length `rest`
        drop = leave.rest * leave.rest
        others = np.flatnonzero(leave.shares).tolist()
        if len(others) > 1:  # d is orthogonal to all other vectors, so w . d = d . d
            inner = drop
        else:
            inner = self.score(self._vectors[leave.place]) - (leave.newcomer or 0.0) * self.score(phi)
            inner -= sum(float(leave.shares[other]) * self.score(self._vectors[other]) for other in others)
            inner *= float(self._table[leave.place, 0])
        self._length_square = max(self._length_square - 2.0 * inner + drop, 0.0)


def _twofold(parts: list[float]) -> tuple[float, float]:
    """The sum of `parts` to twice a float's digits: rounded, and what the rounding left."""
    total = math.fsum(parts)
    return total, math.fsum([*parts, -total])
