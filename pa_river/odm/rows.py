"""Examples by slot, and one row of kernel values at a time: dense, sparse, or through the kernel's own call."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pa_river import kernels
from pa_river.odm import loops
from pa_river.terms import Features, Name

Array = NDArray[np.float64]

#: Above this many names a record is kept sparse: a dense row of 4,096 floats is 32 kB.
WIDEST = 4096


class Rows(abc.ABC):
    """The stored inputs. A slot is a small integer, used again after its example has left."""

    @abc.abstractmethod
    def encode(self, x: Features) -> Any:
        """Return x as this class keeps it; names it has never seen get a place."""

    @abc.abstractmethod
    def put(self, slot: int, x: Any) -> None:
        """Store an encoded example."""

    @abc.abstractmethod
    def drop(self, slot: int) -> None:
        """Forget the example of a slot; the values later rows give for it mean nothing."""

    @abc.abstractmethod
    def row(self, x: Any, count: int) -> Array:
        """Return kappa(x, x_i) for the slots 0 .. count - 1."""

    @abc.abstractmethod
    def norm(self, x: Any) -> float:
        """Return kappa(x, x)."""

    def look(self, x: Features, count: int) -> Array:
        """Return kappa(x, x_i) for features that are only looked at, and leave no trace."""
        return self.row(self.encode(x), count)

    def gram(self, xs: list[Any]) -> Array:
        """Return kappa between the encoded examples."""
        held = self.empty()
        result = np.empty((len(xs), len(xs)))
        for i, x in enumerate(xs):
            held.put(i, x)
            result[i, : i + 1] = result[: i + 1, i] = held.row(x, i + 1)
            result[i, i] = self.norm(x)
        return result

    def cross(self, xs: list[Any], count: int) -> Array:
        """Return kappa between encoded examples and the slots 0 .. count - 1."""
        return np.stack([self.row(x, count) for x in xs]) if xs else np.empty((0, count))

    def trim(self) -> None:
        """Forget names that no stored example uses: those of an example that was encoded and then refused."""

    @abc.abstractmethod
    def empty(self) -> Rows:
        """Return rows of the same kind that hold nothing but read the same encoding."""


def rows_for(kernel: Any, wide: bool = False) -> Rows:
    """Return rows that give this kernel's values: many at once where it is a `Kernel`, else a call each."""
    if isinstance(kernel, kernels.Kernel):
        return SparseRows(kernel) if wide else DenseRows(kernel)
    return AnyRows(kernel)


class _Pairs:
    """One record with many, or many with many, as `Kernel.of` asks for them."""

    def __init__(self, dots: Callable[[], Array], squares: Callable[[], Array]) -> None:
        self.dots, self.squares = dots, squares


class DenseRows(Rows):
    """A matrix, one column a name. Columns that no stored example uses are given to the next new name.

    Distances are sums of squared differences: |x|^2 + |z|^2 - 2 x.z would lose what far-off but close examples differ
    by.
    """

    def __init__(self, kernel: kernels.Kernel, width: int = 0) -> None:
        self._kernel: Any = kernel
        self._rbf = type(kernel) is kernels.RBF
        self._gamma: float = self._kernel.gamma if self._rbf else 0.0
        self._columns: dict[Name, int] = {}
        self._uses = np.zeros(0, np.int64)  # by column, how many stored examples have it
        self._free: list[int] = []
        self._names: list[Name] = []
        self.X: Array = np.zeros((0, width))
        self._reach(0, width)

    @property
    def width(self) -> int:
        """How many names have a column."""
        return len(self._columns)

    def encode(self, x: Features) -> Array:
        """Return x as a vector; new names get columns."""
        columns = self._columns
        for name in x:
            if name not in columns and x[name] != 0.0:
                self._open(name)
        encoded = np.zeros(self.X.shape[1])
        for name, value in x.items():
            if value != 0.0:
                encoded[columns[name]] = value
        return encoded

    def look(self, x: Features, count: int) -> Array:
        """Return kappa(x, x_i); names without a column only add their squares to the distance."""
        columns = self._columns
        encoded, rest = np.zeros(self.X.shape[1]), 0.0
        for name, value in x.items():
            column = columns.get(name)
            if column is not None:
                encoded[column] = value
            else:
                rest += value * value
        return self._values(encoded, count, rest)

    def put(self, slot: int, x: Array) -> None:
        self._reach(slot + 1, len(x))
        self.X[slot, : len(x)] = x
        if self._names:
            n = min(len(x), len(self._uses))
            self._uses[:n] += x[:n] != 0.0

    def drop(self, slot: int) -> None:
        if self._names:
            self._uses -= self.X[slot] != 0.0
            self._unused()
        self.X[slot] = 0.0

    def unknown(self, xs: Iterable[Features]) -> set[Name]:
        """Return the names among these records that have no column yet."""
        return {name for x in xs for name in x if name not in self._columns}

    def trim(self) -> None:
        self._unused()

    def row(self, x: Array, count: int) -> Array:
        width = self.X.shape[1]
        if len(x) < width:  # encoded before others brought new names
            x = np.concatenate([x, np.zeros(width - len(x))])
        return self._values(x, count, 0.0)

    def norm(self, x: Array) -> float:
        if self._rbf:
            return 1.0
        with np.errstate(all="ignore"):  # what is not finite is refused by who asked
            return float(self._kernel.of(_Pairs(lambda: np.array([x @ x]), lambda: np.zeros(1)))[0])

    def gram(self, xs: list[Any]) -> Array:
        stacked = self._stack(xs)
        values: Array = self._kernel.matrix(stacked, stacked)
        return values

    def cross(self, xs: list[Any], count: int) -> Array:
        values: Array = self._kernel.matrix(self._stack(xs), self.X[:count])
        return values

    def empty(self) -> Rows:
        return DenseRows(self._kernel, self.X.shape[1])

    def _stack(self, xs: list[Array]) -> Array:
        stacked = np.zeros((len(xs), self.X.shape[1]))
        for i, x in enumerate(xs):
            stacked[i, : len(x)] = x
        return stacked

    def _values(self, x: Array, count: int, rest: float) -> Array:
        if self._rbf:
            return loops.rbf_row(self.X, count, x, self._gamma, rest)
        X = self.X[:count]
        with np.errstate(all="ignore"):
            values: Array = self._kernel.of(_Pairs(lambda: X @ x, lambda: ((X - x) ** 2).sum(axis=1) + rest))
        return values

    def _unused(self) -> None:
        """Free the columns that no stored example has."""
        n = len(self._names)
        if np.count_nonzero(self._uses[:n]) + len(self._free) < n:
            for column in np.flatnonzero(self._uses[:n] == 0).tolist():
                name = self._names[column]
                if self._columns.get(name) == column:
                    del self._columns[name]
                    self._free.append(column)

    def _open(self, name: Name) -> None:
        if self._free:
            column = self._free.pop()
            self._names[column] = name
        else:
            column = len(self._names)
            self._names.append(name)
            self._reach(0, column + 1)
        self._columns[name] = column

    def _reach(self, slots: int, width: int) -> None:
        rows, columns = self.X.shape
        if slots > rows or width > columns:
            deep = max(16, 2 * slots) if slots > rows else rows
            X = np.zeros((deep, max(8, 2 * width) if width > columns else columns))
            X[:rows, :columns] = self.X
            self.X = X
            self._uses = np.append(self._uses, np.zeros(X.shape[1] - len(self._uses), np.int64))


class SparseRows(Rows):
    """Records of very many names: a CSR matrix of what was there at the last rebuild, and the few that came since.

    Distances come from inner products here, which is exact enough for records that share few names.
    """

    _REBUILD = 64

    def __init__(self, kernel: kernels.Kernel) -> None:
        self._kernel = kernel
        self._held: dict[int, dict[Name, float]] = {}
        self._fresh: list[int] = []
        self._columns: dict[Name, int] = {}
        self._matrix: Any = None
        self._squares: Array = np.zeros(0)

    def encode(self, x: Features) -> dict[Name, float]:
        return {name: value for name, value in x.items() if value != 0.0}

    def put(self, slot: int, x: dict[Name, float]) -> None:
        self._held[slot] = x
        self._fresh.append(slot)
        if len(self._fresh) > self._REBUILD:
            self._rebuild()

    def drop(self, slot: int) -> None:
        del self._held[slot]
        if slot in self._fresh:
            self._fresh.remove(slot)

    def row(self, x: dict[Name, float], count: int) -> Array:
        products, squares = np.zeros(count), np.zeros(count)
        if self._matrix is not None and self._columns:
            dense = np.zeros(self._matrix.shape[1])
            for name, value in x.items():
                if (column := self._columns.get(name)) is not None:
                    dense[column] = value
            n = min(count, self._matrix.shape[0])
            products[:n] = (self._matrix @ dense)[:n]
            squares[:n] = self._squares[:n]
        for slot in self._fresh:
            if slot < count:
                products[slot], squares[slot] = _dot(x, self._held[slot]), _dot(self._held[slot], self._held[slot])
        own = _dot(x, x)
        with np.errstate(all="ignore"):
            return self._kernel.of(_Pairs(lambda: products, lambda: np.maximum(squares + own - 2.0 * products, 0.0)))

    def norm(self, x: dict[Name, float]) -> float:
        own = np.array([_dot(x, x)])
        with np.errstate(all="ignore"):
            return float(self._kernel.of(_Pairs(lambda: own, lambda: np.zeros(1)))[0])

    def empty(self) -> Rows:
        return SparseRows(self._kernel)

    def _rebuild(self) -> None:
        self._columns = {}
        indices: list[int] = []
        values: list[float] = []
        starts = [0]
        last = max(self._held) + 1
        self._squares = np.zeros(last)
        for slot in range(last):
            x = self._held.get(slot, {})
            indices.extend(self._columns.setdefault(name, len(self._columns)) for name in x)
            values.extend(x.values())
            starts.append(len(values))
            self._squares[slot] = _dot(x, x)
        shape = (last, max(1, len(self._columns)))
        self._matrix = sparse.csr_matrix((np.array(values), np.array(indices, dtype=np.int64), np.array(starts)), shape)
        self._fresh = []


class AnyRows(Rows):
    """Any callable k(x, z) on feature dicts: one Python call a value."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._held: dict[int, Mapping[Name, float]] = {}

    def encode(self, x: Features) -> Mapping[Name, float]:
        return dict(x)

    def put(self, slot: int, x: Mapping[Name, float]) -> None:
        self._held[slot] = x

    def drop(self, slot: int) -> None:
        del self._held[slot]

    def row(self, x: Mapping[Name, float], count: int) -> Array:
        held = self._held
        return np.array([self._value(x, held[i]) if i in held else 0.0 for i in range(count)], dtype=np.float64)

    def norm(self, x: Mapping[Name, float]) -> float:
        return self._value(x, x)

    def _value(self, x: Mapping[Name, float], z: Mapping[Name, float]) -> float:
        try:
            return float(self._kernel(x, z))
        except OverflowError:  # a power of Python's floats: refused with the infinite ones
            return np.inf

    def empty(self) -> Rows:
        return AnyRows(self._kernel)


def _dot(x: Mapping[Name, float], z: Mapping[Name, float]) -> float:
    if len(z) < len(x):
        x, z = z, x
    return float(sum(value * z[name] for name, value in x.items() if name in z))
