"""Multiclass: the right label should score at least 1 more than the best of the others."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from river import base

from pa_river import _compiled, prototypes, state, steps
from pa_river.budget import Budget
from pa_river.kernels import Kernel
from pa_river.terms import Features, Term, Violation


@state.storable
class PAMulticlass(
    _compiled.Pair, prototypes.Declaring, prototypes.PALabelLearner, prototypes.SingleLabelLearner,
    base.MiniBatchClassifier,
):
    """Passive-Aggressive multiclass classifier: one prototype a label, moved for the most violated pair.

    Parameters
    ----------
    rule
        Step rule; `PA1(C=1.0)` if None. `C` caps `tau`, in weight per unit of feature.
    learn_intercept
        Whether a nameless feature of constant value 1, inside the norm, is learned too, one weight a label.
    kernel
        None for weights by feature name; `Linear()`, `Polynomial(degree)` or `RBF(gamma)` for support vectors.
    budget
        `Budget(size)` bounds the support vectors; None or `Budget(math.inf)` does not.
    labels
        Labels known from the start, in the order that decides ties. Others may come at any time.

    Notes
    -----
    x: feature name -> finite number, absent means 0; text is an indicator feature. y: any hashable but None and NaN;
    equality is Python's, so 1, 1.0 and True are one label, in the spelling seen first. Loss
    max(0, 1 - (w_y . x - max of w_r . x over r != y)); the step moves w_y and the best rival's prototype by tau x, in
    opposite directions, so the squared length of the direction is 2 |x|^2. Until a second label comes, a nameless
    prototype is the first one's rival; the second label takes it over. Raises `ValueError` naming a feature that is not
    finite, before any weight moves. O(len(x) * labels) time; one float a name and label.
    Source: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7, 2006, section 7.

    Examples
    --------
    >>> from pa_river import PA, PAMulticlass
    >>> model = PAMulticlass(PA(), learn_intercept=False)
    >>> model.learn_one({"a": 2.0}, "spam")  # loss 1, squared norm 2 * 2^2: tau = 1/8
    >>> model.learn_one({"b": 1.0, "a": 2.0}, "work")  # loss 1 + 1, squared norm 2 * 5: tau = 1/5
    >>> {label: round(score, 9) for label, score in model.decision_one({"a": 2.0}).items()}
    {'spam': -0.3, 'work': 0.3}
    >>> model.predict_one({"a": 2.0})
    'work'

    """

    _least_slots = 2

    def __init__(
        self, rule: steps.StepRule | None = None, *, learn_intercept: bool = True, kernel: Kernel | None = None,
        budget: Budget | None = None, labels: Sequence[Hashable] = (),
    ):
        self.labels = prototypes.declared(type(self).__name__, labels)
        super().__init__(
            rule, learn_intercept=learn_intercept, kernel=kernel, budget=budget, declared=self.labels
        )

    def _violation(self, phi: Features, y: Hashable, scores: list[float]) -> Violation | None:
        own, scores = self._place(y, scores)
        rival = prototypes.best(scores, without=own)
        loss = 1.0 - (scores[own] - scores[rival])
        if loss <= 0.0:
            return None
        terms = (Term(1.0, phi, own), Term(-1.0, phi, rival))
        return Violation(loss, math.sqrt(2.0) * self._store.norm(phi), terms)
