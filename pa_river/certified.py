"""A learner that carries its own proof: the two sides of the paper's master inequality, live."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from river import base

from pa_river import _validate, state, steps
from pa_river.binary import PAClassifier
from pa_river.comparators import Comparator, comparator
from pa_river.features import features
from pa_river.learner import ScoreLearner
from pa_river.multilabel import PAMultilabel
from pa_river.prototypes import PALabelLearner
from pa_river.regression import PARegressor
from pa_river.scaled import ScaledPA
from pa_river.terms import Features, Violation
from pa_river.uniclass import AnomalyDetector, PAUniclass

_READ = (
    "budget_loss", "center", "decision_one", "intercept", "radius", "rank_one", "rule", "support", "weights",
)


class Bound(NamedTuple):
    """What a theorem limits (`of`), its value so far, and the limit."""

    of: str
    value: float
    limit: float


#: The rule that a theorem is about, and its C; the name is empty for a rule of the user's own, of which none tells.
Law: TypeAlias = tuple[str, float]
LAWS = ("", "PA", "PA1", "PA2")


def law(rule: steps.StepRule | None) -> Law:
    """Return which theorem holds for a rule."""
    rule = rule or steps.DEFAULT
    known = type(rule) in (steps.PA, steps.PA1, steps.PA2)
    return (type(rule).__name__, getattr(rule, "C", 0.0)) if known else ("", 0.0)


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

    `Certified(model)` is a `CertifiedClassifier`, `CertifiedMultiLabelClassifier`, `CertifiedRegressor` or
    `CertifiedDetector`, whatever the model is.

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

    def __new__(cls, model: Any = None, u: Any = None) -> Certified:
        # the class follows the model, as a Path is a PosixPath; copies ask for the class itself, without a model
        chosen = next((own for own, kind in _KINDS if isinstance(model, kind)), cls) if cls is Certified else cls
        return object.__new__(chosen)

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
        self._plain = True  # every weight was 1, and the rule always the same
        self._law: Law | None = None  # the rule of the first example
        self._rounds = 0

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Any:
        """Return a fresh one with the same parameters, or with all that was learned too; see River's `Base.clone`."""
        twin = super().clone(new_params, include_attributes)
        if include_attributes and "model" not in (new_params or {}):  # a parameter for River, which makes it anew
            twin.model = copy.deepcopy(self.model)
        return twin

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
        """Return the theorem of the model's rule; None without a comparator and where none applies.

        None also where the rule was changed on the way, and for one of the user's own.
        PA: the sum of squared losses, if the comparator never loses; PA-I: the rounds with a loss of at least 1, among
        them every mistake; PA-II: the sum of squared losses. Only while every example weighs 1. With one prototype a
        label, the comparator's losses are those on the constraints that the model broke, which is all that the proofs
        ask for, and R is the longest direction; for a cost-sensitive model no loss is below the root of the cost, so
        the sum of squared losses is no smaller than that of the costs, and a loss of 1 need be no mistake.
        """
        if self._u is None or not self._plain:
            return None
        sums, square, (rule, C) = self._sums, self._square, self._law or law(self.model.rule)
        longest = sums.longest * sums.longest
        if rule == "PA1":
            limit = max(longest, 1.0 / C) * (square + 2.0 * C * sums.losses_of_u)
            return Bound("large_losses", sums.large, limit)
        if rule == "PA2":
            limit = (longest + 0.5 / C) * (square + 2.0 * C * sums.squares_of_u)
            return Bound("square_loss", sums.squares, limit)
        if rule == "PA" and sums.losses_of_u == 0.0:
            return Bound("square_loss", sums.squares, square * longest)
        return None

    def predict_one(self, x: Any, **kwargs: Any) -> Any:
        """Return the model's prediction for x. Never changes anything."""
        return self.model.predict_one(x, **kwargs)

    def learn_one(self, x: Any, y: Any, w: float = 1.0, **kwargs: Any) -> None:
        """Learn one example, as the model does."""
        self._certify(x, y, w, **kwargs)

    def step(self, x: Any, y: Any, w: float = 1.0) -> Any:
        """Return what the model's `predict_one(x)` returns, then learn."""
        return self._certify(x, y, w)

    def _certify(self, x: Mapping[Any, Any], y: Any, w: float, **kwargs: Any) -> Any:
        model = self.model
        if self._rounds != model.version:
            raise ValueError("a certified model learns through its certificate only, from the first example on")
        w, phi = _validate.example_weight(w), features(x)
        if self._supervised:
            y = model._normalise_y(y)
        scores = model._scores(phi) if self._supervised else model._store.distance(phi)
        sums, now = self._after(phi, y, w, scores), law(model.rule)
        answer = model.step(x, y, w, **kwargs) if self._supervised else model.step(x, w=w, **kwargs)
        if w:
            self._sums, self._rounds, self._law = sums, self._rounds + 1, self._law or now
            self._plain = self._plain and w == 1.0 and now == self._law
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
        return {"sums": tuple(self._sums), "plain": self._plain, "rounds": self._rounds, "law": self._law}

    def _set_state(self, values: dict[str, Any]) -> None:
        self._sums = Sums(*map(state.finite_float, values["sums"]))
        self._plain = _validate.require_bool("Certified", "plain", values["plain"])
        self._rounds = _validate.require_count("Certified", "rounds", values["rounds"], least=0)
        # states of before keep no rule: that of the model, which nothing says was another one
        stored = values.get("law", law(self.model.rule) if self._rounds else None)
        if stored is not None:
            rule, C = stored
            stored = _validate.require_choice("Certified", "law", rule, LAWS), state.finite_float(C)
        self._law = stored


@state.storable
class CertifiedClassifier(Certified, base.Classifier):
    """What `Certified` is of a classifier."""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": PAClassifier()}

    @property
    def _multiclass(self) -> bool:
        multiclass: bool = self.model._multiclass
        return multiclass

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the model's `predict_proba_one`; no calibrated probability either."""
        return self.model.predict_proba_one(x, **kwargs)  # type: ignore[no-any-return]


@state.storable
class CertifiedMultiLabelClassifier(Certified, base.MultiLabelClassifier):
    """What `Certified` is of a multilabel classifier."""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": PAMultilabel()}

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, dict[bool, float]]:
        """Return the model's `predict_proba_one`; no calibrated probability either."""
        return self.model.predict_proba_one(x, **kwargs)  # type: ignore[no-any-return]


@state.storable
class CertifiedRegressor(Certified, base.Regressor):
    """What `Certified` is of a regressor."""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": PARegressor()}


@state.storable
class CertifiedDetector(Certified, AnomalyDetector):
    """What `Certified` is of a detector; it learns records without a label."""

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": PAUniclass()}

    def learn_one(  # type: ignore[override]
        self, x: Mapping[Any, Any], *, w: float = 1.0, **kwargs: Any
    ) -> None:
        """Learn one record, as the model does."""
        self._certify(x, None, w, **kwargs)

    def step(self, x: Mapping[Any, Any], *, w: float = 1.0) -> Any:  # type: ignore[override]
        """Return what the model's `score_one(x)` returns, then learn."""
        return self._certify(x, None, w)

    def score_one(self, x: Mapping[Any, Any], **kwargs: Any) -> float:
        """Return the model's `score_one(x)`. Never changes anything."""
        return self.model.score_one(x, **kwargs)  # type: ignore[no-any-return]


#: Which class a certified model is, by River's class of the model.
_KINDS: list[tuple[type[Certified], type]] = [
    (CertifiedMultiLabelClassifier, base.MultiLabelClassifier), (CertifiedClassifier, base.Classifier),
    (CertifiedRegressor, base.Regressor), (CertifiedDetector, AnomalyDetector),
]
