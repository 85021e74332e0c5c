"""Any joint feature map: the right output should score enough more than the other candidates for the same input."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from river import base

from pa_river import _validate, batch, cost_sensitive, labels, prototypes, state, steps
from pa_river.features import features, short
from pa_river.learner import PALearner
from pa_river.stores import LinearStore
from pa_river.terms import Features, Name, Term, Violation

#: The candidates themselves, or a function of x that returns them.
Candidates: TypeAlias = "Sequence[Hashable] | Callable[[Any], Iterable[Hashable]]"


class Outputs(NamedTuple):
    """An input with the features of each candidate output, checked."""

    x: Any
    phis: dict[Hashable, Features]


@state.storable
class PAJoint(PALearner[dict[Hashable, float]], base.Estimator):
    """Passive-Aggressive learner over a joint feature map: a structured task without a class of its own.

    Parameters
    ----------
    phi
        phi(x, y) -> features of input and output together: name -> finite number. Pure: the same x and y give the same.
    candidates
        The outputs to choose from, in the order that decides ties: a list or tuple, or a callable of x.
    rule
        Step rule; `PA1(C=1.0)` if None. `C` caps `tau`, in weight per unit of feature.
    cost
        What it costs to predict r where y is right, as `{y: {r: cost}}` or a callable cost(y, r), finite and >= 0;
        the margin is its square root. None for a margin of 1 against the best other candidate, whatever `update` says.
    update
        With a cost, which constraint a step satisfies: "prediction", that of the predicted output, passive whenever
        the prediction is right; or "max_loss", the one broken most.

    Notes
    -----
    x is whatever `phi` takes; outputs are hashable, and y must be a candidate where the candidates are a list. Loss
    w . phi(x, q) - w . phi(x, y) + margin, q the output picked; the direction is phi(x, y) - phi(x, q), and one of
    length 0 moves nothing. There is no intercept: a constant feature cancels in the difference. Raises `ValueError`
    naming a feature that is not finite, before any weight moves. `loads` wants the callables back. O(candidates *
    features). Source: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 7, 2006, sections 7 to 9.

    Examples
    --------
    >>> from pa_river import PA, PAJoint
    >>> def phi(x, y):
    ...     return {(y, word): 1.0 for word in x.split()}
    >>> model = PAJoint(phi, ("yes", "no"), PA())
    >>> model.learn_one("no way", "no")  # loss 1, squared norm 4
    >>> model.decision_one("way out")
    {'yes': -0.25, 'no': 0.25}

    """

    _store: LinearStore

    def __init__(
        self, phi: Callable[[Any, Any], Mapping[Any, Any]], candidates: Candidates,
        rule: steps.StepRule | None = None, *, cost: cost_sensitive.Cost | None = None, update: str = "prediction",
    ):
        owner = type(self).__name__
        if not callable(phi):
            raise ValueError(f"{owner}(phi=...) must be a callable phi(x, y), got {short(phi)}")
        if not (callable(candidates) or isinstance(candidates, (tuple, list))):
            raise ValueError(f"{owner}(candidates=...) must be a tuple or a callable, got {short(candidates)}")
        if not callable(candidates):
            prototypes.declared(owner, candidates, "candidates")
            if not candidates:
                raise ValueError(f"{owner}(candidates=...) must hold an output to choose")
        self.phi = phi
        self.candidates = list(candidates) if isinstance(candidates, list) else candidates
        self.rule = rule
        self.update = _validate.require_choice(owner, "update", update, cost_sensitive.UPDATES)
        self._costs = cost_sensitive.Costs(owner, cost_sensitive.zero_one if cost is None else cost)
        self._counts = cost is None
        self._store = LinearStore(learn_intercept=False)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"phi": per_label, "candidates": (False, True)}

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"rule"}

    @property
    def cost(self) -> cost_sensitive.Cost | None:
        """The costs as they were given: None, a callable, or a fresh copy of the mapping."""
        return None if self._counts else self._costs.given

    @property
    def weights(self) -> dict[Name, float]:
        """The learned weights, a fresh dict: name of a joint feature -> weight."""
        return dict(self._store.weights)

    def decision_one(self, x: Any) -> dict[Hashable, float]:
        """Return candidate -> raw score w . phi(x, candidate). Never changes the model."""
        return self._scores(self._input(x))

    _normalise_y = staticmethod(labels.label)

    def _input(self, x: Any) -> Outputs:
        listed = self.candidates(x) if callable(self.candidates) else self.candidates
        return Outputs(x, {y: features(self.phi(x, y)) for y in map(labels.label, listed)})

    def _inputs(self, X: Any) -> Iterator[Outputs]:
        return batch.numbered(X, self._input)

    def _scores(self, outputs: Outputs) -> dict[Hashable, float]:
        return {y: self._store.score(phi) for y, phi in outputs.phis.items()}

    def _predicted(self, scores: dict[Hashable, float]) -> Hashable | None:
        return max(scores, key=scores.__getitem__, default=None)

    def _violation(self, outputs: Outputs, y: Hashable, scores: dict[Hashable, float]) -> Violation | None:
        phis = outputs.phis
        if y not in phis:
            if not callable(self.candidates):
                raise ValueError(f"{type(self).__name__}: y must be one of the candidates, got {short(y)}")
            # a search may have missed the right output: it is no prediction, but it has features and a score
            phis = {**phis, y: features(self.phi(outputs.x, y))}
            scores = {**scores, y: self._store.score(phis[y])}
        names = list(phis)
        update = "max_loss" if self._counts else self.update
        picked, loss = cost_sensitive.worst(list(scores.values()), names.index(y), names, self._costs, update)
        if loss <= 0.0:
            return None
        direction = _difference(phis[y], phis[names[picked]])
        return Violation(loss, self._store.norm(direction), (Term(1.0, direction),))

    def _mark(self, phis: list[Outputs]) -> Callable[[], None]:
        # which joint features a batch touches is known only as it learns: everything is kept
        version, restore_store = self._version, self._store.mark([self._store.weights])

        def undo() -> None:
            self._version = version
            restore_store()

        return undo


def per_label(x: Mapping[Any, Any], y: Hashable) -> dict[Any, Any]:
    """Return every feature of x under the name (y, name): the joint features of one prototype a label.

    Examples
    --------
    >>> per_label({"a": 1.0}, "spam")
    {('spam', 'a'): 1.0}

    """
    return {(y, name): value for name, value in x.items()}


def _difference(plus: Features, minus: Features) -> Features:
    """Return plus - minus, checked; what both have alike leaves no trace."""
    direction = dict(plus)
    for name, value in minus.items():
        direction[name] = direction.get(name, 0.0) - value
    return features({name: value for name, value in direction.items() if value})
