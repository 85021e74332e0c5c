"""Multilabel: every relevant label should score at least 1 more than every irrelevant one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from river import base

from pa_river import _proba, batch, prototypes, state, steps
from pa_river import labels as normal
from pa_river.budget import Budget
from pa_river.kernels import Kernel
from pa_river.terms import Features, Term, Violation


@state.storable
class PAMultilabel(prototypes.Declaring, prototypes.PALabelLearner, base.MultiLabelClassifier):
    """Passive-Aggressive multilabel ranking: the lowest relevant label against the highest irrelevant one.

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
    x: feature name -> finite number, absent means 0. y: label -> bool; a known label that y leaves out is irrelevant.
    Loss max(0, 1 - (lowest relevant score - highest irrelevant score)). Where one side is empty, the constant 0 stands
    for it: relevant labels should score at least 1, or irrelevant ones at most -1, and the squared length of the
    direction is |x|^2 instead of 2 |x|^2. Only such examples say where 0 lies: what all others teach is an order. So
    trust `rank_one`; `predict_one` cuts at a score of 0, which splits label sets well only where one side is empty
    often enough (on Reuters topics, where neither ever is: micro-F1 0.08, with the best label right in 92 %).
    Raises `ValueError` naming a feature that is not finite, before any weight moves. O(len(x) * labels) time; one
    float a name and label. Source: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7, 2006, section 7.

    Examples
    --------
    >>> from pa_river import PA, PAMultilabel
    >>> model = PAMultilabel(PA(), learn_intercept=False, labels=("sport", "politics", "money"))
    >>> model.learn_one({"ball": 1.0}, {"sport": True, "money": True})  # sport against politics, tau = 1 / 2
    >>> {label: round(score, 9) for label, score in model.decision_one({"ball": 1.0}).items()}
    {'sport': 0.5, 'politics': -0.5, 'money': 0.0}
    >>> model.rank_one({"ball": 1.0})
    ['sport', 'money', 'politics']
    >>> model.predict_one({"ball": 1.0})
    {'sport': True, 'politics': False, 'money': False}

    """

    def __init__(
        self, rule: steps.StepRule | None = None, *, learn_intercept: bool = True, kernel: Kernel | None = None,
        budget: Budget | None = None, labels: Sequence[Hashable] = (),
    ):
        self.labels = prototypes.declared(type(self).__name__, labels)
        super().__init__(
            rule, learn_intercept=learn_intercept, kernel=kernel, budget=budget, declared=self.labels
        )

    def rank_one(self, x: Mapping[Any, Any]) -> list[Hashable]:
        """Return the known labels, best first; equal scores in order of arrival. Never changes the model."""
        scores = self._scores(self._input(x))
        return [self._known[slot] for slot in sorted(range(len(scores)), key=lambda slot: -scores[slot])]

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Hashable, dict[bool, float]]:
        """Return label -> the logistic of its score for True, the rest for False. No calibrated probabilities."""
        return {label: _proba.logistic(score) for label, score in self.decision_one(x).items()}

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of X in order, all or nothing: equal to a loop of `learn_one`.

        Parameters
        ----------
        X
            As for every learner: an array, a scipy sparse matrix or a pandas frame, (n, d).
        y
            n dicts of label -> bool, or a pandas frame of bools, one column a label.
        w
            n weights, or one for all; None for 1.

        """
        super().learn_many(X, y, w)

    def step_many(self, X: Any, y: Any, w: Any = None) -> Any:
        """Return what `predict_one` answers to each row before it is learned, as `predict_many` does; learn them."""
        predicted: list[Any] = []
        self._learn_rows(X, y, w, predicted)
        return self._as_came(X, predicted)

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for the rows of X: a frame of bools, one column a label, for a frame; else dicts."""
        return self._as_came(X, self._predict_rows(X))

    def _as_came(self, X: Any, found: list[Any]) -> Any:
        return batch.like(X, found) if batch.pandas_frame(X) is None else batch.proba_like(X, found)

    def _learn_rows(self, X: Any, y: Any, w: Any, predicted: list[Any] | None) -> None:
        frame = batch.pandas_frame(y)
        if frame is not None:
            batch.require_distinct(frame)  # a dict would hold the last of them only
            y = frame.to_dict("records")
        super()._learn_rows(X, y, w, predicted)

    _normalise_y = staticmethod(normal.label_set)

    def _arriving(self, y: dict[Hashable, bool]) -> Sequence[Hashable]:
        return tuple(y)

    def _predicted(self, scores: list[float]) -> dict[Hashable, bool]:
        return {label: score > 0.0 for label, score in zip(self._known, scores)}

    def _violation(self, phi: Features, y: dict[Hashable, bool], scores: list[float]) -> Violation | None:
        new = [label for label in y if label not in self._slots]
        slots = {label: slot for slot, label in enumerate([*self._known, *new])} if new else self._slots
        relevant = {slots[label] for label, flag in y.items() if flag}  # asked what it holds; its order decides nothing
        scores = [*scores, *[0.0] * len(new)]
        all_slots = range(len(scores))
        lowest = min((slot for slot in all_slots if slot in relevant), key=scores.__getitem__, default=None)
        highest = max((slot for slot in all_slots if slot not in relevant), key=scores.__getitem__, default=None)
        terms = [Term(sign, phi, slot) for sign, slot in ((1.0, lowest), (-1.0, highest)) if slot is not None]
        loss = 1.0 - sum(term.sign * scores[term.slot] for term in terms)
        if loss <= 0.0 or not terms:
            return None
        return Violation(loss, math.sqrt(len(terms)) * self._store.norm(phi), tuple(terms))
