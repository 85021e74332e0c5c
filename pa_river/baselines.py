"""The paper's baselines: the multiclass Perceptron, and MIRA with its quadratic programme solved exactly."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import NamedTuple

from river import base

from pa_river import _validate, prototypes, state
from pa_river.budget import Budget
from pa_river.kernels import Kernel
from pa_river.terms import Features, Term


@state.storable
class MulticlassPerceptron(prototypes.SingleLabelLearner, base.Classifier):
    """Multiclass Perceptron: on a mistake the right prototype gains x, and the rivals at fault share its loss.

    Parameters
    ----------
    learn_intercept
        Whether a nameless feature of constant value 1 is learned too, one weight a label.
    kernel
        None for weights by feature name; `Linear()`, `Polynomial(degree)` or `RBF(gamma)` for support vectors.
    budget
        `Budget(size)` bounds the support vectors; None or `Budget(math.inf)` does not.
    update
        Who is at fault: "uniform", every label that scores at least as much as the right one, each by an equal share;
        or "max", the best of them only.

    Notes
    -----
    x: feature name -> finite number, absent means 0. y: any hashable but None and NaN. An equal score is a mistake.
    There is no step size, so a weight other than 0 is ignored, and features of 1e-200 move weights that score 0. Until
    a second label comes, a nameless prototype is the first one's rival; the second label takes it over. Raises
    `ValueError` naming a feature that is not finite, before any weight moves. O(len(x) * labels) time; one float a name
    and label.
    Source: Crammer and Singer, Ultraconservative Online Algorithms for Multiclass Problems, JMLR 3, 2003; the baseline
    of Crammer et al., JMLR 7, 2006, section 10.

    Examples
    --------
    >>> from pa_river import MulticlassPerceptron
    >>> model = MulticlassPerceptron(learn_intercept=False)
    >>> for y in ("a", "b", "c"):
    ...     model.learn_one({"f": 2.0}, y)
    >>> model.weights
    {'a': {'f': -1.0}, 'b': {'f': -1.0}, 'c': {'f': 2.0}}

    """

    _least_slots = 2

    def __init__(
        self, *, learn_intercept: bool = True, kernel: Kernel | None = None, budget: Budget | None = None,
        update: str = "uniform",
    ):
        super().__init__(learn_intercept=learn_intercept, kernel=kernel, budget=budget)
        self.update = _validate.require_choice(type(self).__name__, "update", update, ("uniform", "max"))

    def _update(self, phi: Features, y: Hashable, w: float, scores: list[float]) -> None:
        own, scores = self._place(y, scores)
        if self.update == "uniform":
            at_fault = [slot for slot, score in enumerate(scores) if slot != own and score >= scores[own]]
        else:
            rival = prototypes.best(scores, without=own)
            at_fault = [rival] if scores[rival] >= scores[own] else []
        norm = self._store.norm(phi)
        if at_fault and norm > 0.0:
            share = -1.0 / len(at_fault)
            self._store.add((Term(1.0, phi, own), *[Term(share, phi, slot) for slot in at_fault]), norm, norm)


@state.storable
class MIRAClassifier(prototypes.SingleLabelLearner, base.Classifier):
    """MIRA: the smallest move of all prototypes that puts the right label `margin` ahead of every other one.

    Parameters
    ----------
    learn_intercept
        Whether a nameless feature of constant value 1, inside the norm, is learned too, one weight a label.
    kernel
        None for weights by feature name; `Linear()`, `Polynomial(degree)` or `RBF(gamma)` for support vectors.
    budget
        `Budget(size)` bounds the support vectors; None or `Budget(math.inf)` does not.
    C
        Aggressiveness, finite and > 0: the cost of a unit of slack, and the largest `tau` of the right prototype.
    margin
        How far ahead the right label should be, finite and > 0.

    Notes
    -----
    Solves min 1/2 sum |w_r - w_r,t|^2 + C xi subject to w_y . x - w_r . x >= margin - xi for all r != y, exactly, by
    sorting the losses. x: feature name -> finite number, absent means 0. y: any hashable but None and NaN; an example's
    weight scales C. Until a second label comes, a nameless prototype is the first one's rival; the second label takes
    it over. Raises `ValueError` naming a feature that is not finite, before any weight moves.
    O(len(x) * labels + labels log labels) time; one float a name and label.
    Source: Crammer and Singer, Ultraconservative Online Algorithms for Multiclass Problems, JMLR 3, 2003; the baseline
    of Crammer et al., JMLR 7, 2006, section 10.

    Examples
    --------
    >>> from pa_river import MIRAClassifier
    >>> model = MIRAClassifier(learn_intercept=False)
    >>> for y in ("a", "b", "c"):
    ...     model.learn_one({"f": 1.0}, y)
    >>> {label: round(score, 9) for label, score in model.decision_one({"f": 1.0}).items()}
    {'a': -0.5, 'b': -0.25, 'c': 0.75}

    """

    _least_slots = 2

    C = _validate.Positive()
    margin = _validate.Positive()

    def __init__(
        self, *, learn_intercept: bool = True, kernel: Kernel | None = None, budget: Budget | None = None,
        C: float = 1.0, margin: float = 1.0,
    ):
        super().__init__(learn_intercept=learn_intercept, kernel=kernel, budget=budget)
        self.C = C
        self.margin = margin

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"C", "margin"}

    def _update(self, phi: Features, y: Hashable, w: float, scores: list[float]) -> None:
        own, scores = self._place(y, scores)
        losses = {
            slot: self.margin - (scores[own] - score)
            for slot, score in enumerate(scores) if slot != own and self.margin > scores[own] - score
        }
        norm = self._store.norm(phi)
        if losses and norm > 0.0:
            length, shares = solve(list(losses.values()), norm, self.C * w)
            rivals = [Term(-share, phi, slot) for slot, share in zip(losses, shares) if share]
            self._store.add((Term(1.0, phi, own), *rivals), length, norm)


class Move(NamedTuple):
    """How far the right prototype moves along x, and which share of it each rival moves the other way."""

    length: float
    shares: list[float]


def solve(losses: list[float], norm: float, C: float) -> Move:
    """Return the solution of MIRA's programme for positive `losses` and an input of length `norm` > 0.

    With alpha_r >= 0 a multiplier for each constraint, A their sum and q = norm^2, the optimum has
    q alpha_r = max(0, loss_r - theta), where theta = q A if that keeps A <= C, and A = C otherwise. Either way theta is
    a threshold in the sorted losses. In the second case the search runs over the gaps below the largest loss, because
    theta may differ from it by less than a rounding error.

    Examples
    --------
    >>> solve([1.0, 1.0], norm=1.0, C=10.0)  # alpha = 1/3 each
    Move(length=0.6666666666666666, shares=[0.5, 0.5])
    >>> solve([1.0, 0.5], norm=1.0, C=0.25)  # the larger loss takes all that C allows
    Move(length=0.25, shares=[1.0, 0.0])

    """
    ordered = sorted(losses, reverse=True)
    total = theta = 0.0
    for active, loss in enumerate(ordered, 1):
        if loss <= theta:
            break
        total += loss
        theta = total / (active + 1)
    if theta / norm <= C * norm:
        return Move(theta / norm, _shares([max(0.0, loss - theta) for loss in losses]))
    gaps = [ordered[0] - loss for loss in losses]
    total = depth = 0.0
    for active, gap in enumerate(sorted(gaps), 1):
        if 0.0 < gap >= depth:
            break
        total += gap
        depth = (C * norm * norm + total) / active
    parts = [max(0.0, depth - gap) for gap in gaps]
    if not any(parts):  # C q underflowed: in the limit the largest losses share alike
        parts = [float(gap == 0.0) for gap in gaps]
    return Move(C * norm, _shares(parts))


def _shares(parts: list[float]) -> list[float]:
    whole = sum(parts)
    if not 0.0 < whole < math.inf:
        raise ValueError("the losses would not be finite; nothing was learned")
    return [part / whole for part in parts]
