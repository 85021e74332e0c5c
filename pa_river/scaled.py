"""A standard scaler and a PA learner in one pass: what River's `StandardScaler() | model` does, at the price of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from river import base

from pa_river import _compiled, _validate, batch, binary, learner, regression, state, steps
from pa_river.features import features
from pa_river.spread import ScaledStore, scaled
from pa_river.terms import Features, Name


class ScaledPA(learner.ScoreLearner):
    """A standard scaler fused with a Passive-Aggressive learner: each feature less its mean, over its deviation.

    `ScaledPA(...)` is a `ScaledPAClassifier`, or with `eps` a `ScaledPARegressor`.

    Parameters
    ----------
    rule
        Step rule; `PA1(C=1.0)` if None. `C` caps `tau`, in weight per deviation of a feature.
    learn_intercept
        Whether a nameless feature of constant value 1, inside the norm and not scaled, is learned too.
    eps
        None for a classifier; for a regressor the half width of the tube in which an error costs nothing.

    Notes
    -----
    Equal, but for rounding, to `river.preprocessing.StandardScaler() | PAClassifier(rule)`, or `| PARegressor(rule)`:
    what is predicted uses the means and deviations so far; what is learned counts the example first. A feature that
    never varied is 0. A value of 0 is a value like any other, so `{"a": 1, "b": 0}` is not `{"a": 1}` here. x: feature
    name -> finite number. Raises `ValueError` naming a feature that is not finite, or so large that its variance would
    not be, before anything moves. O(len(x)) time; four floats a name. Sources: Welford, Note on a Method for
    Calculating Corrected Sums of Squares and Products, Technometrics 4, 1962; `PAClassifier`, `PARegressor`.

    Examples
    --------
    >>> from pa_river import PA, ScaledPA
    >>> model = ScaledPA(PA(), learn_intercept=False)
    >>> model.learn_one({"a": 10.0}, True)  # one value has no deviation: a is 0
    >>> model.learn_one({"a": 30.0}, True)  # mean 20, deviation 10: a is 1
    >>> model.weights
    {'a': 1.0}
    >>> model.decision_one({"a": 40.0})
    2.0

    """

    _store: ScaledStore

    def __new__(
        cls, rule: steps.StepRule | None = None, *, learn_intercept: bool = True, eps: float | None = None,
    ) -> ScaledPA:
        # the class follows eps, as a Path is a PosixPath; named as in __init__: states are read by this signature
        chosen = cls if cls is not ScaledPA else ScaledPAClassifier if eps is None else ScaledPARegressor
        return _compiled.Scaled.__new__(chosen)

    def __init__(
        self, rule: steps.StepRule | None = None, *, learn_intercept: bool = True, eps: float | None = None,
    ):
        owner = type(self).__name__
        self.rule = rule
        self.learn_intercept = _validate.require_bool(owner, "learn_intercept", learn_intercept)
        self.eps = self._tube(owner, eps)
        self._store = _compiled.scaled_store(learn_intercept)

    @staticmethod
    def _tube(owner: str, eps: float | None) -> float | None:
        return None if eps is None else _validate.require_non_negative(owner, "eps", eps)

    @property
    def weights(self) -> dict[Name, float]:
        """The learned weights of the scaled features that are not 0, a fresh dict: name -> weight."""
        weights = self._store.weights
        return {name: weights[name] for name in self._store.spreads if weights.get(name)}

    @property
    def means(self) -> dict[Name, float]:
        """The mean of every feature so far, a fresh dict: name -> mean."""
        return {name: spread[1] for name, spread in self._store.spreads.items()}

    @property
    def variances(self) -> dict[Name, float]:
        """The variance of every feature so far, a fresh dict: name -> mean squared distance from its mean."""
        return {name: spread[2] for name, spread in self._store.spreads.items()}

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one example of weight w; see `learner.PALearner.learn_one`. What it would score before is not asked."""
        w, phi, y = _validate.example_weight(w), features(x), self._normalise_y(y)
        if w:
            self._learn(phi, y, w, 0.0)

    def _inputs(self, X: Any) -> Iterable[Any]:
        return batch.whole_rows(X)

    def _scores(self, phi: Features) -> float:
        return self._store.score(self._store.scaled(phi))

    def _learn(self, phi: Features, y: Any, w: float, scores: float) -> None:
        after = self._store.observed(phi)
        phi = scaled(phi, after)
        self._update(phi, y, w, self._store.score(phi))
        self._store.spreads.update(after)
        self._version += 1


@state.storable
class ScaledPAClassifier(_compiled.Scaled, ScaledPA, binary.MarginLearner, base.MiniBatchClassifier):
    """What `ScaledPA` is without `eps`."""

    @staticmethod
    def _tube(owner: str, eps: float | None) -> None:
        if eps is not None:
            raise ValueError(f"{owner}(eps=...) must be None: a tube is for a ScaledPARegressor, got {eps!r}")


@state.storable
class ScaledPARegressor(_compiled.Scaled, ScaledPA, regression.TubeLearner, base.MiniBatchRegressor):
    """What `ScaledPA` is with `eps`."""

    @staticmethod
    def _tube(owner: str, eps: float | None) -> float:
        return _validate.require_non_negative(owner, "eps", 0.1 if eps is None else eps)
