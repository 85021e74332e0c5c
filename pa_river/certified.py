"""A learner that carries its own proof: the two sides of the paper's master inequality, live."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from river import base

from pa_river import _validate, state, steps
from pa_river.comparators import Comparator, comparator
from pa_river.features import features
from pa_river.learner import ScoreLearner
from pa_river.prototypes import PALabelLearner
from pa_river.regression import PARegressor
from pa_river.scaled import ScaledPA
from pa_river.terms import Features, Violation
from pa_river.uniclass import PAUniclass

_READ = (
    "budget_loss", "center", "decision_one", "intercept", "predict_proba_one", "radius", "rank_one", "rule",
    "score_one", "support", "weights",
)


class Bound(NamedTuple):
    """What a theorem limits (`of`), its value so far, and the limit."""

    of: str
    value: float
    limit: float


class Sums(NamedTuple):
    """Both sides so far: sum of tau (2 l - tau n^2), of tau l*, l^2, l* and l*^2; the longest n; rounds with l >= 1."""

    left: float = 0.0
    slack: float = 0.0
    squares: float = 0.0
    losses_of_u: float = 0.0
    squares_of_u: float = 0.0
    longest: float = 0.0
    large: float = 0.0


@state.storable
class Certified(base.Wrapper, base.Estimator):
    """A Passive-Aggressive learner with a live certificate.

    Parameters
    ----------
    model
        `PAClassifier`, `PARegressor`, `PAUniclass` or a learner with one prototype a label, untrained, without a limit
        on its support vectors.
    u
        A comparator fixed before the stream, or None: {name: weight}, the intercept's weight under the name None; with
        a kernel [(x, coefficient), ...]; for label models {label: comparator}, all labels declared. For a uniclass
        learner a center, {name: coordinate}; with `max_radius` the radius under the name None.

    Notes
    -----
    With loss l, tau the multiplier and n the length of the direction in each round, and l* the comparator's loss on the
    constraint that was violated: left = sum of tau (2 l - tau n^2) <= right = |u|^2 + 2 sum of tau l*, for every
    stream, comparator and weight of the examples. For a uniclass learner with `max_radius` |u|^2 becomes |u|^2 plus the
    square of its radius. Costs a second look at each example.
    Source: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7, 2006, lemma 1, theorems 2, 4 and 5, section 6.

    Examples
    --------
    >>> from pa_river import PA, Certified, PAClassifier
    >>> model = Certified(PAClassifier(PA(), learn_intercept=False), u={"a": 1.0})
    >>> model.learn_one({"a": 2.0}, True)  # tau 1/4: 1/4 (2 - 1/4 * 4); u has no loss here
    >>> model.left, model.right
    (0.25, 1.0)
    >>> model.bound()  # theorem 2: no loss of u, so at most |u|^2 R^2
    Bound(of='square_loss', value=1.0, limit=4.0)

    """

    def __init__(self, model: Any, u: Any = None):
        if isinstance(model, ScaledPA):
            raise ValueError("Certified(model=...) must see features as they come: no bound holds for a moving scale")
        if not isinstance(model, (ScoreLearner, PALabelLearner, PAUniclass)):
            raise ValueError(f"Certified(model=...) must be a Passive-Aggressive learner, got {type(model).__name__}")
        if model.budget is not None and model.budget.size < math.inf:
            raise ValueError("Certified(model=...) must keep all its support vectors: what a budget drops has no bound")
        self.model: Any = model
        self.u = u
        self._u = comparator(model, u)
        self._square = 0.0 if self._u is None else self._u.square
        self._sums = Sums()
        self._plain = True  # every weight was 1
        self._rounds = 0

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def _supervised(self) -> bool:
        return not isinstance(self.model, PAUniclass)

    @property
    def _normalise_y(self) -> Any:
        return self.model._normalise_y

    def __getattr__(self, name: str) -> Any:
        if name in _READ:
            return getattr(self.model, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def left(self) -> float:
        """The left side of the master inequality: the progress that the steps have made for certain."""
        return self._sums.left

    @property
    def right(self) -> float | None:
        """The right side: |u|^2 + 2 sum of tau l*; None without a comparator."""
        return None if self._u is None else self._square + 2.0 * self._sums.slack

    @property
    def version(self) -> int:
        """How many examples were learned: weight above 0, passive ones included."""
        version: int = self.model.version
        return version

    def bound(self) -> Bound | None:
        """Return the theorem of the model's rule; None without a comparator, for label models and where none applies.

        PA: the sum of squared losses, if the comparator never loses; PA-I: the rounds with a loss of at least 1, among
        them every mistake; PA-II: the sum of squared losses. Only while every example weighs 1.
        """
        if self._u is None or not self._plain or isinstance(self.model, PALabelLearner):
            return None
        sums, square, rule = self._sums, self._square, self.model.rule or steps.DEFAULT
        longest = sums.longest * sums.longest
        if isinstance(rule, steps.PA1):
            limit = max(longest, 1.0 / rule.C) * (square + 2.0 * rule.C * sums.losses_of_u)
            return Bound("large_losses", sums.large, limit)
        if isinstance(rule, steps.PA2):
            limit = (longest + 0.5 / rule.C) * (square + 2.0 * rule.C * sums.squares_of_u)
            return Bound("square_loss", sums.squares, limit)
        return Bound("square_loss", sums.squares, square * longest) if sums.losses_of_u == 0.0 else None

    def predict_one(self, x: Any, **kwargs: Any) -> Any:
        """Return the model's prediction for x. Never changes anything."""
        return self.model.predict_one(x, **kwargs)

    def learn_one(self, x: Any, y: Any = None, w: float = 1.0) -> None:
        """Learn one example, as the model does; a detector takes no y."""
        self._certify(x, y, w)

    def step(self, x: Any, y: Any = None, w: float = 1.0) -> Any:
        """Return what the model's `predict_one(x)` or `score_one(x)` returns, then learn."""
        return self._certify(x, y, w)

    def _certify(self, x: Mapping[Any, Any], y: Any, w: float) -> Any:
        model = self.model
        if self._rounds != model.version:
            raise ValueError("a certified model learns through its certificate only, from the first example on")
        w, phi = _validate.example_weight(w), features(x)
        if self._supervised:
            y = model._normalise_y(y)
        scores = model._scores(phi) if self._supervised else model._store.distance(phi)
        sums = self._after(phi, y, w, scores)
        answer = model.step(x, y, w) if self._supervised else model.step(x, w=w)
        if w:
            self._sums, self._rounds, self._plain = sums, self._rounds + 1, self._plain and w == 1.0
        return answer

    def _after(self, phi: Features, y: Any, w: float, scores: Any) -> Sums:
        """Return the sums once this example is learned; `ValueError` if one is not finite."""
        violation: Violation | None = self.model._violation(phi, y, scores) if w else None
        labelled = isinstance(self.model, PALabelLearner)
        left = slack = loss = theirs = norm = 0.0
        if self._u is not None and not labelled:
            theirs = self._loss_of_u(self._u, phi, y)
        if violation is not None:
            loss, norm = violation.loss, violation.norm
            if self._u is not None and labelled:
                theirs = self._loss_along(self._u, violation, scores)
            if norm > 0.0:
                length = (self.model.rule or steps.DEFAULT).length(loss, norm, w)
                tau = length / norm
                left, slack = 2.0 * tau * loss - length * length, tau * theirs
        old = self._sums
        sums = Sums(
            old.left + left, old.slack + slack, old.squares + loss * loss, old.losses_of_u + theirs,
            old.squares_of_u + theirs * theirs, max(old.longest, norm), old.large + (loss >= 1.0),
        )
        if not all(map(math.isfinite, sums)):
            raise ValueError("the certificate would not be finite; nothing was learned")
        return sums

    def _loss_of_u(self, u: Comparator, phi: Features, y: Any) -> float:
        model = self.model
        if isinstance(model, PAUniclass):
            return max(0.0, math.hypot(u.distance(phi), u.lift) - model._bound)
        if isinstance(model, PARegressor):
            error: float = abs(y - u.dot(phi, 0))
            return max(0.0, error - model.eps)
        return max(0.0, 1.0 - (1.0 if y else -1.0) * u.dot(phi, 0))

    def _loss_along(self, u: Comparator, violation: Violation, scores: list[float]) -> float:
        """The comparator's loss on the violated constraint: its margin is the model's loss plus the model's score."""
        margin, score = violation.loss, 0.0
        for sign, phi, slot in violation.terms:
            margin += sign * (scores[slot] if slot < len(scores) else 0.0)
            score += sign * u.dot(phi, slot)
        return max(0.0, margin - score)

    def _get_state(self) -> dict[str, Any]:
        return {"sums": tuple(self._sums), "plain": self._plain, "rounds": self._rounds}

    def _set_state(self, values: dict[str, Any]) -> None:
        self._sums = Sums(*map(state.finite_float, values["sums"]))
        self._plain = _validate.require_bool("Certified", "plain", values["plain"])
        self._rounds = _validate.require_count("Certified", "rounds", values["rounds"], least=0)
