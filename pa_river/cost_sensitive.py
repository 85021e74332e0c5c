"""Cost-sensitive multiclass: the right label should win by the square root of what the mistake would cost."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from river import base

from pa_river import _validate, labels, prototypes, state, steps
from pa_river.budget import Budget
from pa_river.features import short
from pa_river.kernels import Kernel
from pa_river.terms import Features, Term, Violation

#: {right: {predicted: cost}}, or a function of (right, predicted).
Cost: TypeAlias = "Mapping[Hashable, Mapping[Hashable, float]] | Callable[[Hashable, Hashable], float]"

UPDATES = ("prediction", "max_loss")


def zero_one(y: Hashable, r: Hashable) -> float:
    """Cost 1 for every mistake: the plain count of errors as a cost function.

    Examples
    --------
    >>> zero_one("a", "b"), zero_one("a", "a")
    (1.0, 0.0)

    """
    return float(y != r)


@state.storable
class PACostSensitive(prototypes.PALabelLearner, prototypes.SingleLabelLearner, base.Classifier):
    """Passive-Aggressive classifier whose mistakes cost differently: margin sqrt(cost) against the label it picks.

    Parameters
    ----------
    cost
        What it costs to predict r where y is right, as `{y: {r: cost}}` or a callable `cost(y, r)`; finite and >= 0, in
        squared units of the margin; 0 where r = y. A mapping declares its labels, the right ones in its order, and must
        hold every pair of them; a callable comes back through `loads(data, cost=...)`.
    rule
        Step rule; `PA1(C=1.0)` if None. `C` caps `tau`, in weight per unit of feature.
    learn_intercept
        Whether a nameless feature of constant value 1, inside the norm, is learned too, one weight a label.
    kernel
        None for weights by feature name; `Linear()`, `Polynomial(degree)` or `RBF(gamma)` for support vectors.
    budget
        `Budget(size)` bounds the support vectors; None or `Budget(math.inf)` does not.
    update
        Which constraint a step satisfies: "prediction", that of the predicted label, passive whenever the prediction is
        right; or "max_loss", the one broken most, which asks for the costs of all labels.

    Notes
    -----
    x: feature name -> finite number, absent means 0. y: any hashable but None and NaN. Loss
    w_q . x - w_y . x + sqrt(cost(y, q)), q the label picked. With one known label the model is passive. Raises
    `ValueError` naming a feature that is not finite, or a cost that is missing, negative or not finite, before any
    weight moves. O(len(x) * labels) time; one float a name and label.
    Source: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7, 2006, section 8.

    Examples
    --------
    >>> from pa_river import PA, PACostSensitive
    >>> cost = {"ham": {"spam": 4.0}, "spam": {"ham": 1.0}}
    >>> model = PACostSensitive(cost, PA(), learn_intercept=False)
    >>> model.learn_one({"a": 1.0}, "spam")  # predicted ham: margin sqrt(1), squared norm 2
    >>> model.learn_one({"a": 1.0}, "ham")  # predicted spam: loss 0.5 + 0.5 + sqrt(4)
    >>> {label: round(score, 9) for label, score in model.decision_one({"a": 1.0}).items()}
    {'ham': 1.0, 'spam': -1.0}

    """

    def __init__(
        self, cost: Cost, rule: steps.StepRule | None = None, *, learn_intercept: bool = True,
        kernel: Kernel | None = None, budget: Budget | None = None, update: str = "prediction",
    ):
        owner = type(self).__name__
        self.update = _validate.require_choice(owner, "update", update, UPDATES)
        self._costs = Costs(owner, cost)
        super().__init__(
            rule, learn_intercept=learn_intercept, kernel=kernel, budget=budget, declared=self._costs.declared
        )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"cost": zero_one}

    @property
    def cost(self) -> Cost:
        """The costs as they were given: a callable, or a fresh copy of the mapping, which nothing changes any more."""
        given: Cost = self._costs.given
        return given

    def cost_one(self, y: Any, r: Any) -> float:
        """Return what it costs to predict r where y is right; `ValueError` if the pair is missing or no cost."""
        return self._costs(labels.label(y), labels.label(r))

    def _violation(self, phi: Features, y: Hashable, scores: list[float]) -> Violation | None:
        self._costs.require(y)
        own, scores = self._place(y, scores)
        picked, loss = worst(scores, own, self._known if own < len(self._known) else [*self._known, y],
                             self._costs, self.update)
        if loss <= 0.0:
            return None
        terms = (Term(1.0, phi, own), Term(-1.0, phi, picked))
        return Violation(loss, math.sqrt(2.0) * self._store.norm(phi), terms)


class Costs:
    """What each mistake costs, from a mapping or a callable; every cost that is asked for is checked."""

    def __init__(self, owner: str, cost: Any):
        self._owner = owner
        self._table = None if callable(cost) else _table(owner, cost)
        self._cost: Any = cost if callable(cost) else _copied(cost)
        #: the labels of a mapping, in its order
        self.declared = tuple(self._table or ())

    @property
    def given(self) -> Any:
        """A callable as it came, or a fresh copy of the mapping: what is learned by cannot be changed from outside."""
        return self._cost if callable(self._cost) else _copied(self._cost)

    def require(self, y: Hashable) -> None:
        """`ValueError` if the costs are a mapping in which y is never right."""
        if self._table is not None and y not in self._table:
            raise ValueError(f"{self._owner}(cost=...): the costs where {y!r} is right are missing")

    def __call__(self, y: Hashable, r: Hashable) -> float:
        """Return what it costs to predict r where y is right; `ValueError` if it is missing or no cost."""
        if y == r:
            return 0.0
        try:
            return self._table[y][r] if self._table is not None else _checked(self._owner, y, r, self._cost(y, r))
        except LookupError as error:  # of the table, or of one inside the callable
            raise ValueError(f"{self._owner}(cost=...): the cost of {r!r} where {y!r} is right is missing") from error


def worst(
    scores: list[float], own: int, names: Sequence[Hashable], cost: Callable[[Hashable, Hashable], float], update: str,
) -> tuple[int, float]:
    """Return the slot whose constraint a step is to satisfy, and by how much it is broken: not at all if <= 0."""
    if update == "prediction":
        picked = prototypes.best(scores)
        return picked, scores[picked] - scores[own] + math.sqrt(cost(names[own], names[picked]))
    losses = [score - scores[own] + math.sqrt(cost(names[own], name)) for score, name in zip(scores, names)]
    losses[own] = 0.0  # its own constraint is met
    picked = prototypes.best(losses)
    return picked, losses[picked]


def _copied(cost: Mapping[Any, Mapping[Any, Any]]) -> dict[Any, dict[Any, Any]]:
    return {y: dict(row) for y, row in cost.items()}


def _table(owner: str, cost: Any) -> dict[Hashable, dict[Hashable, float]]:
    """Return the costs of a mapping for every ordered pair of its labels, checked; `ValueError` if one is missing."""
    if not (isinstance(cost, Mapping) and all(isinstance(row, Mapping) for row in cost.values())):
        raise ValueError(f"{owner}(cost=...) must be {{y: {{r: cost}}}} or a callable of y and r, got {short(cost)}")
    table: dict[Hashable, dict[Hashable, float]] = {}
    for y, row in cost.items():
        if (y := labels.label(y)) in table:
            raise ValueError(f"{owner}(cost=...): the label {y!r} appears twice")
        table[y] = {r: _checked(owner, y, r, value) for r, value in zip(map(labels.label, row), row.values())}
    for y, costs in table.items():
        for r in costs:
            if r not in table:
                raise ValueError(f"{owner}(cost=...): the costs where {r!r} is right are missing")
        for r in table:
            if r != y and r not in costs:
                raise ValueError(f"{owner}(cost=...): the cost of {r!r} where {y!r} is right is missing")
    return table


def _checked(owner: str, y: Hashable, r: Any, value: Any) -> float:
    try:
        # a bool is a cost too: `lambda y, r: y != r` counts mistakes
        number = float(value) if isinstance(value, (numbers.Real, np.bool_)) else math.nan
    except OverflowError:  # an int beyond float range
        number = math.inf
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{owner}(cost=...): the cost of {r!r} where {y!r} is right must be a finite number >= 0, "
                         f"got {short(value)}")
    if number and r == y:
        raise ValueError(f"{owner}(cost=...): the cost of {y!r} where it is right must be 0, got {short(value)}")
    return number
