"""Regression: the prediction should be within eps of the target."""

from __future__ import annotations

from typing import Any

from river import base

from pa_river import _compiled, _validate, labels, state, steps
from pa_river.budget import Budget
from pa_river.kernels import Kernel
from pa_river.learner import ScoreLearner
from pa_river.terms import Features, Term, Violation


class TubeLearner(ScoreLearner):
    """A learner that asks for a score within eps of the target."""

    eps: Any
    _answer = float

    _normalise_y = staticmethod(labels.target)

    def _predicted(self, scores: float) -> float:
        return scores

    def _violation(self, phi: Features, y: float, scores: float) -> Violation | None:
        error = y - scores
        loss = abs(error) - self.eps
        if loss <= 0.0:
            return None
        return Violation(loss, self._store.norm(phi), (Term(1.0 if error > 0.0 else -1.0, phi),))


@state.storable
class PARegressor(_compiled.Tube, TubeLearner, base.MiniBatchRegressor):
    """Passive-Aggressive regression: the smallest move that brings the prediction within eps of the target.

    Parameters
    ----------
    rule
        Step rule; `PA1(C=1.0)` if None.
    learn_intercept
        Whether a nameless feature of constant value 1, inside the norm, is learned too.
    kernel
        None for weights by feature name; `Linear()`, `Polynomial(degree)` or `RBF(gamma)` for support vectors.
    budget
        `Budget(size)` bounds the support vectors; None or `Budget(math.inf)` does not.
    eps
        Half width of the tube in which an error costs nothing, in units of y; finite and >= 0.

    Notes
    -----
    Loss max(0, |w . x - y| - eps) on the target as given. x: feature name -> finite number, absent means 0; y: finite
    number. Raises `ValueError` naming what is not finite, before any weight moves. O(len(x)) time; one float per name
    that ever moved. Source: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7, 2006, section 5. River 0.26's
    class maps y to 2 y - 1 first and so learns another target.

    Examples
    --------
    >>> from pa_river import PA1, PARegressor
    >>> model = PARegressor(PA1(C=0.5), learn_intercept=False, eps=0.1)
    >>> model.learn_one({"a": 1.0, "b": 2.0}, 5.0)  # tau = min(0.5, 4.9 / 5)
    >>> model.predict_one({"a": 1.0, "b": 2.0})
    2.5

    """

    eps = _validate.NonNegative()

    def __init__(
        self, rule: steps.StepRule | None = None, *, learn_intercept: bool = True, kernel: Kernel | None = None,
        budget: Budget | None = None, eps: float = 0.1,
    ):
        super().__init__(rule, learn_intercept=learn_intercept, kernel=kernel, budget=budget)
        self.eps = eps

    @property
    def _mutable_attributes(self) -> set[str]:
        return super()._mutable_attributes | {"eps"}
