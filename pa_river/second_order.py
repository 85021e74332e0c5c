"""Second-order relatives of PA: AROW and SCW, which move an unsure weight further than a sure one."""

from __future__ import annotations

import abc
import math
from collections.abc import Hashable, Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

from river import base

from pa_river import _compiled, _validate, prototypes, state
from pa_river.binary import BinaryLearner
from pa_river.confidence import ConfidenceStore
from pa_river.features import features
from pa_river.terms import Features, Name, Term


class Step(NamedTuple):
    """How far along the unit direction (in the metric of S), and the share of the variance along it that is left."""

    length: float
    left: float


class AROW(abc.ABC):
    """Adaptive Regularization of Weights: squared hinge loss and variance, both priced by 1 / (2 r)."""

    r = _validate.Positive()

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"r"}

    def _step(self, margin: float, deviation: float, w: float) -> Step | None:
        loss = 1.0 - margin
        if loss <= 0.0:
            return None
        noise = self.r / w / deviation
        ratio = noise / deviation  # r / (w v), v the variance
        return Step(loss / (deviation + noise), ratio / (1.0 + ratio) if ratio < math.inf else 1.0)


class SCW(abc.ABC):
    """Soft Confidence-Weighted: the margin should be at least phi deviations; slack costs C, linear or squared."""

    C = _validate.Positive()

    def _set(self, C: float, eta: float, variant: str) -> None:
        owner = type(self).__name__
        self.C = C
        if not (_validate.is_number(eta) and 0.5 < eta < 1.0):
            raise ValueError(f"{owner}(eta=...) must be a probability above 0.5 and below 1, got {eta!r}")
        self.eta = float(eta)
        self.variant = _validate.require_choice(owner, "variant", variant, ("I", "II"))
        self._phi = NormalDist().inv_cdf(self.eta)

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"C"}

    def _step(self, margin: float, deviation: float, w: float) -> Step | None:
        phi, surplus = self._phi, margin / deviation  # in deviations; from here on nothing depends on the scale
        C, square = self.C * w, phi * phi
        if surplus >= phi or not C:  # w may be so small that nothing of C is left
            return None
        if self.variant == "I":
            zeta = 1.0 + square
            length = (math.hypot(0.5 * square * surplus, phi * math.sqrt(zeta)) - (1.0 + 0.5 * square) * surplus) / zeta
            length = min(C * deviation, length)
        else:
            n = 1.0 + 0.5 / C / deviation / deviation
            if n > 1e100:  # the limit: n squared may leave the floats
                length = (phi - surplus) / n
            else:
                root = phi * math.hypot(phi * surplus, 2.0 * math.sqrt(n * (n + square)))
                length = (root - (2.0 * n + square) * surplus) / (2.0 * n * (n + square))
        spread = length * phi
        return Step(length, 4.0 / (spread + math.hypot(spread, 2.0)) ** 2) if spread < 1e150 else Step(length, 0.0)


class SecondOrderBinary(BinaryLearner):
    """A binary learner with one weight vector and its variances."""

    _store: ConfidenceStore

    def __init__(self, *, learn_intercept: bool):
        self.learn_intercept = _validate.require_bool(type(self).__name__, "learn_intercept", learn_intercept)
        self._store = _compiled.confidence_store(learn_intercept)

    @abc.abstractmethod
    def _step(self, margin: float, deviation: float, w: float) -> Step | None:
        """Return how far to move an example of this margin; None where the model stays passive."""

    @property
    def weights(self) -> dict[Name, float]:
        """The learned weights, a fresh dict: name -> weight, without the intercept."""
        return self._store.weights(0)

    @property
    def variances(self) -> dict[Name, float]:
        """The variances that are not 1 any more, a fresh dict: name -> variance, without the intercept's."""
        return self._store.variances(0)

    @property
    def intercept(self) -> float:
        """The learned weight of the constant feature; 0.0 if there is none."""
        return self._store.intercept(0)

    def decision_one(self, x: Mapping[Any, Any]) -> float:
        """Return the raw score w . x + intercept. Never changes the model."""
        return self._scores(features(x))

    def _scores(self, phi: Features) -> float:
        return self._store.scores(phi, 1)[0]

    def _update(self, phi: Features, y: bool, w: float, scores: float) -> None:
        sign = 1.0 if y else -1.0
        deviation = self._store.deviation(phi, (0,))
        step = self._step(sign * scores, deviation, w) if deviation > 0.0 else None
        if step is not None and step.length > 0.0:
            self._store.tilt((Term(sign, phi),), step.length, deviation, step.left)


class SecondOrderMulticlass(prototypes.SingleLabelLearner):
    """A multiclass learner with one weight vector a label and its variances, moved for the most violated pair."""

    _store: ConfidenceStore
    _least_slots = 2

    def __init__(self, *, learn_intercept: bool):
        super().__init__(learn_intercept=learn_intercept, kernel=None, budget=None)
        self._store = _compiled.confidence_store(learn_intercept)

    @abc.abstractmethod
    def _step(self, margin: float, deviation: float, w: float) -> Step | None:
        """Return how far to move an example of this margin; None where the model stays passive."""

    @property
    def variances(self) -> dict[Hashable, dict[Name, float]]:
        """The variances that are not 1 any more, fresh dicts: label -> name -> variance, without the intercepts'."""
        return {label: self._store.variances(slot) for slot, label in enumerate(self._known)}

    def _update(self, phi: Features, y: Hashable, w: float, scores: list[float]) -> None:
        own, scores = self._place(y, scores)
        rival = prototypes.best(scores, without=own)
        deviation = self._store.deviation(phi, (own, rival))
        step = self._step(scores[own] - scores[rival], deviation, w) if deviation > 0.0 else None
        if step is not None and step.length > 0.0:
            self._store.tilt((Term(1.0, phi, own), Term(-1.0, phi, rival)), step.length, deviation, step.left)


@state.storable
class AROWClassifier(_compiled.ConfidentMargin, AROW, SecondOrderBinary, base.MiniBatchClassifier):
    """Adaptive Regularization of Weights, binary, with a diagonal covariance.

    Parameters
    ----------
    r
        Noise of an example, finite and > 0: the larger, the smaller the steps. An example's weight w makes it r / w.
    learn_intercept
        Whether a nameless feature of constant value 1, with a variance of its own, is learned too.

    Notes
    -----
    With margin m = y w . x below 1 and v = x' S x: w += (1 - m) / (v + r) y S x, S -= diag((S x) (S x)' / (v + r)).
    x: feature name -> finite number, absent means 0. y: True, 1 or False, 0, -1. Raises `ValueError` naming a feature
    that is not finite, before any weight moves. O(len(x)) time; two floats per name that ever moved. r has a scale,
    that of x squared: features of 1e-200 move weights that score 0, as C caps those of `PA1`, and a variance stops at
    the least normal float, which features beyond 1e150 reach: it then counts as larger than it is. Rescale such data.
    Source: Crammer, Kulesza and Dredze, Adaptive Regularization of Weight Vectors, NIPS 2009, figure 1.

    Examples
    --------
    >>> from pa_river import AROWClassifier
    >>> model = AROWClassifier(r=1.0, learn_intercept=False)
    >>> model.learn_one({"a": 1.0}, True)  # v = 1: w = 1 / (1 + 1), S = 1 - 1 / (1 + 1)
    >>> model.weights, model.variances
    ({'a': 0.5}, {'a': 0.5})

    """

    def __init__(self, r: float = 1.0, *, learn_intercept: bool = True):
        super().__init__(learn_intercept=learn_intercept)
        self.r = r


@state.storable
class AROWMulticlass(_compiled.ConfidentPair, AROW, SecondOrderMulticlass, base.MiniBatchClassifier):
    """Adaptive Regularization of Weights, multiclass: the most violated pair moves, each by its own variances.

    Parameters
    ----------
    r
        Noise of an example, finite and > 0: the larger, the smaller the steps. An example's weight w makes it r / w.
    learn_intercept
        Whether a nameless feature of constant value 1 is learned too, one weight and variance a label.

    Notes
    -----
    The binary step on the margin between the right label's score and its best rival's, with v = x' (S_y + S_r) x.
    y: any hashable but None and NaN. Until a second label comes, a nameless prototype is the first one's rival; the
    second label takes it over. O(len(x) * labels) time; two floats a name and label that moved.
    Source: as `AROWClassifier`; the pair as in Crammer et al., JMLR 7, 2006, section 7.

    Examples
    --------
    >>> from pa_river import AROWMulticlass
    >>> model = AROWMulticlass(r=2.0, learn_intercept=False)
    >>> model.learn_one({"a": 1.0}, "spam")  # v = 1 + 1: w = 1 / (2 + 2)
    >>> model.weights
    {'spam': {'a': 0.25}}

    """

    def __init__(self, r: float = 1.0, *, learn_intercept: bool = True):
        super().__init__(learn_intercept=learn_intercept)
        self.r = r


@state.storable
class SCWClassifier(_compiled.ConfidentMargin, SCW, SecondOrderBinary, base.MiniBatchClassifier):
    """Soft Confidence-Weighted learning, binary, with a diagonal covariance.

    Parameters
    ----------
    C
        Aggressiveness, finite and > 0; an example's weight scales it.
    eta
        Probability of a right prediction that is asked for, above 0.5 and below 1: the margin should be at least
        phi = inverse normal distribution of eta, in deviations sqrt(x' S x).
    variant
        "I", slack costs C; "II", squared slack costs C.
    learn_intercept
        Whether a nameless feature of constant value 1, with a variance of its own, is learned too.

    Notes
    -----
    w += alpha y S x and S -= beta diag((S x) (S x)') by the closed forms of the source, written in units of the
    deviation, so that nothing overflows at any scale; but C has one, as in `PA1`, and a variance stops at the least
    normal float, which features beyond 1e150 reach: rescale such data. x: feature name -> finite number, absent means
    0. y: True, 1 or False, 0, -1. Raises `ValueError` naming a feature that is not finite, before any weight moves.
    O(len(x)) time; two floats per name that ever moved.
    Source: Wang, Zhao and Hoi, Exact Soft Confidence-Weighted Learning, ICML 2012, propositions 1 and 2.

    Examples
    --------
    >>> from pa_river import SCWClassifier
    >>> model = SCWClassifier(C=0.25, learn_intercept=False)
    >>> model.learn_one({"a": 2.0}, True)  # alpha = C: w = 0.25 * 2
    >>> model.weights
    {'a': 0.5}

    """

    def __init__(self, C: float = 1.0, eta: float = 0.9, variant: str = "I", *, learn_intercept: bool = True):
        super().__init__(learn_intercept=learn_intercept)
        self._set(C, eta, variant)


@state.storable
class SCWMulticlass(_compiled.ConfidentPair, SCW, SecondOrderMulticlass, base.MiniBatchClassifier):
    """Soft Confidence-Weighted learning, multiclass: the most violated pair moves, each by its own variances.

    Parameters
    ----------
    C
        Aggressiveness, finite and > 0; an example's weight scales it.
    eta
        Probability of a right prediction that is asked for, above 0.5 and below 1.
    variant
        "I", slack costs C; "II", squared slack costs C.
    learn_intercept
        Whether a nameless feature of constant value 1 is learned too, one weight and variance a label.

    Notes
    -----
    The binary step on the margin between the right label's score and its best rival's, with the variance
    x' (S_y + S_r) x. y: any hashable but None and NaN. Until a second label comes, a nameless prototype is the first
    one's rival; the second label takes it over. O(len(x) * labels) time; two floats a name and label that moved.
    Source: as `SCWClassifier`; the pair as in Crammer et al., JMLR 7, 2006, section 7.

    Examples
    --------
    >>> from pa_river import SCWMulticlass
    >>> model = SCWMulticlass(C=0.25, learn_intercept=False)
    >>> model.learn_one({"a": 2.0}, "spam")
    >>> model.weights
    {'spam': {'a': 0.5}}

    """

    def __init__(self, C: float = 1.0, eta: float = 0.9, variant: str = "I", *, learn_intercept: bool = True):
        super().__init__(learn_intercept=learn_intercept)
        self._set(C, eta, variant)
