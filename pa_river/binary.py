"""Binary classification: the margin y (w . x) should be at least 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from river import base

from pa_river import _compiled, _proba, batch, labels, state
from pa_river.features import features
from pa_river.learner import Learner, ScoreLearner
from pa_river.terms import Features, Term, Violation


class BinaryLearner(Learner[float]):
    """A learner of two classes by the sign of one score."""

    _answer = bool

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[bool, float]:
        """Return the logistic of the raw score for both labels.

        It sums to 1 and orders as the score does, but is no calibrated probability: a margin has no scale of its own.
        """
        return _proba.logistic(self._scores(features(x)))

    def predict_proba_many(self, X: Any) -> Any:
        """Return `predict_proba_one` of every row as a pandas DataFrame with the columns False and True."""
        return batch.proba_like(X, [_proba.logistic(self._scores(phi)) for phi in self._inputs(X)])

    _normalise_y = staticmethod(labels.binary)

    def _predicted(self, scores: float) -> bool:
        return scores > 0.0


class MarginLearner(BinaryLearner, ScoreLearner):
    """A learner that asks for a margin of 1."""

    def _violation(self, phi: Features, y: bool, scores: float) -> Violation | None:
        sign = 1.0 if y else -1.0
        loss = 1.0 - sign * scores
        if loss <= 0.0:
            return None
        return Violation(loss, self._store.norm(phi), (Term(sign, phi),))


@state.storable
class PAClassifier(_compiled.Margin, MarginLearner, base.MiniBatchClassifier):
    """Passive-Aggressive binary classifier: the smallest move that restores a margin of 1.

    Parameters
    ----------
    rule
        Step rule; `PA1(C=1.0)` if None. `C` caps `tau`, in weight per unit of feature.
    learn_intercept
        Whether a nameless feature of constant value 1, inside the norm, is learned too.
    kernel
        None for weights by feature name; `Linear()`, `Polynomial(degree)` or `RBF(gamma)` for support vectors.
    budget
        `Budget(size)` bounds the support vectors; None or `Budget(math.inf)` does not.

    Notes
    -----
    x: feature name -> finite number, absent means 0. y: True, 1 or False, 0, -1. Raises `ValueError` naming a feature
    that is not finite, before any weight moves. O(len(x)) time; one float per name that ever moved.
    Source: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7, 2006, section 3. Unlike River's and
    scikit-learn's classes, the intercept counts in the norm: after a basic step the margin is 1, not more.

    Examples
    --------
    >>> from pa_river import PA, PAClassifier
    >>> model = PAClassifier(PA(), learn_intercept=False)
    >>> model.learn_one({"a": 2.0}, True)
    >>> model.weights
    {'a': 0.5}
    >>> model.decision_one({"a": 2.0})
    1.0

    """
