"""First-order chains: the lattice of scores, its best path by Viterbi, and the path of the largest loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pa_river import _loops

Array = npt.NDArray[np.float64]


class Lattice(NamedTuple):
    """What a first-order chain of m tokens over k tags scores: `emit` (m, k), `move` (k, k), `start` (k,).

    The score of tags s_1 ... s_m is start[s_1] + emit[1, s_1] + sum over i > 1 of move[s_(i-1), s_i] + emit[i, s_i].
    """

    emit: Array
    move: Array
    start: Array


def best_path(lattice: Lattice) -> list[int]:
    """Return the tags of the highest score, as slots: Viterbi, exact.

    Ties go to the tag seen first (the lower slot), decided from the last token to the first: of all best paths it is
    the one whose last tag was seen first, among these the one whose last but one was, and so on.

    Notes
    -----
    O(m k^2) time, O(m k + k^2) memory. Sums run from the first token to the last, and rounding keeps an order, so no
    path has a higher score summed that way. Source: Crammer et al., JMLR 7, 2006, section 9.

    Raises
    ------
    ValueError
        If the best score is not finite.

    Examples
    --------
    >>> emit, move = np.array([[1.0, 0.0], [1.0, 1.5]]), np.array([[0.0, -1.0], [0.0, 0.0]])
    >>> best_path(Lattice(emit, move, np.zeros(2)))  # 1 + 1 beats 1 - 1 + 1.5 and 0 + 1.5
    [0, 0]

    """
    emit, move, start = lattice
    m, k = emit.shape
    if m == 0 or k == 0:
        return []
    into, every = np.ascontiguousarray(move.T), np.arange(k)  # a row a tag, so that argmax runs along memory
    back = np.zeros((m, k), dtype=np.intp)
    with np.errstate(over="ignore", invalid="ignore"):  # what leaves the floats is told below, in words
        best = start + emit[0]
        for i in range(1, m):
            through = into + best
            back[i] = origin = through.argmax(axis=1)  # the first of equals
            best = through[every, origin] + emit[i]
    last = int(best.argmax())
    _loops.finite(float(best[last]))
    path = [last]
    for row in back[:0:-1].tolist():
        path.append(row[path[-1]])
    path.reverse()
    return path


def with_cost(lattice: Lattice, gold: Sequence[int]) -> Lattice:
    """Return the lattice in which every tag that differs from `gold` scores 1 more: its best path has the largest loss.

    The count of wrong tags is a sum over tokens, so it fits into the emissions; its square root is not, and does not.

    Examples
    --------
    >>> with_cost(Lattice(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2)), [0, 1]).emit.tolist()
    [[0.0, 1.0], [1.0, 0.0]]

    """
    cost = np.ones_like(lattice.emit)
    cost[np.arange(len(gold)), np.asarray(gold, dtype=np.intp)] = 0.0
    return lattice._replace(emit=lattice.emit + cost)


def score(lattice: Lattice, path: Sequence[int]) -> float:
    """Return the score of the tags `path`, summed from the first token to the last; `ValueError` if it is not finite.

    Examples
    --------
    >>> score(Lattice(np.array([[1.0, 0.0], [1.0, 1.5]]), np.full((2, 2), 0.25), np.zeros(2)), [0, 1])
    2.75

    """
    emit, move, start = lattice
    if not path:
        return 0.0
    total = float(start[path[0]]) + float(emit[0, path[0]])
    for i in range(1, len(path)):
        total += float(move[path[i - 1], path[i]])
        total += float(emit[i, path[i]])
    return _loops.finite(total)


def wrong(path: Sequence[object], gold: Sequence[object]) -> int:
    """Return the Hamming cost: how many tags of `path` differ from those of `gold`.

    Examples
    --------
    >>> wrong(["DET", "VERB"], ["DET", "NOUN"])
    1

    """
    return sum(map(lambda one, other: one != other, path, gold))
