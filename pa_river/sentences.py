"""Many sentences, read and numbered once, to be learned from in many epochs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pa_river import _compiled, batch
from pa_river.terms import Features, Name
from pa_river.tokens import sentence

Ints: TypeAlias = "npt.NDArray[np.integer[Any]]"
#: Names, codes, values, ends of tokens, ends of sentences: the attributes of `Sentences`.
Coded: TypeAlias = "tuple[list[Name], Ints, npt.NDArray[np.float64] | None, Ints, Ints]"


class Sentences(Sequence["list[Features]"]):
    """Sentences that are read, checked and numbered once, for `PASequence.learn_many` to learn in many epochs.

    Parameters
    ----------
    X
        Sentences as `PASequence.learn_one` takes them.

    Attributes
    ----------
    names
        The features' names, in order of arrival.
    codes
        The place in `names` of every feature other than 0, token after token; int32, shape (features,).
    values
        Their values, shape (features,); None if all are 1.
    ends
        Where each token's features end, after a 0; int64, shape (tokens + 1,).
    bounds
        Where each sentence's tokens end, after a 0; int64, shape (sentences + 1,).

    Notes
    -----
    Raises `ValueError` naming the row, the token and the feature. O(features) time; 4 bytes a feature, 12 where not all
    values are 1, and each name once. An item is a fresh list of one dict a token.

    Examples
    --------
    >>> X = Sentences([["the", "dog"], [{"dog": 2.0, "length": 0}]])
    >>> len(X), X[1], X.names, X.codes.tolist()
    (2, [{'dog': 2.0}], ['the', 'dog'], [0, 1, 1])

    """

    def __init__(self, X: Iterable[Any]):
        coded: Coded = code(X) if _compiled.coders is None else _compiled.coders.code(X)
        self.names, self.codes, self.values, self.ends, self.bounds = coded
        #: row of each name in one model's store, as the compiled loops left it
        self._placed: Any = None

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        row = range(len(self))[row]
        begin, end = self.bounds[row:row + 2].tolist()
        return [self._token(*self.ends[i:i + 2].tolist()) for i in range(begin, end)]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_placed": None}

    def _token(self, begin: int, end: int) -> Features:
        names = [self.names[i] for i in self.codes[begin:end].tolist()]
        return dict.fromkeys(names, 1.0) if self.values is None else dict(zip(names, self.values[begin:end].tolist()))


def code(X: Iterable[Any]) -> Coded:
    """Return what the attributes of `Sentences` hold: the reference, and what runs without the compiled core."""
    numbers: dict[Name, int] = {}
    codes, values, ends, bounds = list[int](), list[float](), [0], [0]
    for phis in batch.numbered(X, sentence):
        for phi in phis:
            for name, value in phi.items():
                if value:
                    codes.append(numbers.setdefault(name, len(numbers)))
                    values.append(float(value))
            ends.append(len(codes))
        bounds.append(len(ends) - 1)
    weights = None if all(value == 1.0 for value in values) else np.array(values)
    return list(numbers), np.array(codes, np.int32), weights, np.array(ends), np.array(bounds)
