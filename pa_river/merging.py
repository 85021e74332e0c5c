"""Several models of one kind -> their weighted average: what learned apart, on shards of a stream, serves as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from pa_river import _compiled, _validate, state

T = TypeVar("T")


def merge(models: Iterable[T], weights: Iterable[float] | None = None) -> T:
    """Return a new model: the weighted average of the parameters of `models`, which stay as they are.

    Parameters
    ----------
    models
        One or more learners of the same class with the same parameters: binary, regression, uniclass, multiclass,
        multilabel, cost-sensitive, Perceptron, MIRA, AROW or SCW; linear or with a kernel.
    weights
        One number >= 0 a model, not all 0; None for the number of examples each has learned (`version`).

    Returns
    -------
    A model of that class. Its raw scores are the weighted average of theirs, and a label that a model does not know
    scores 0 there (a model with one label: its nameless rival's score, for the first label it lacks); `version` is the
    sum of theirs. AROW and SCW weigh each parameter by how sure it is, too: the normal distribution that is nearest to
    all in the weighted sum of KL divergences. A kernel model holds the support
    vectors of all, equal ones once, and never more than its `Budget`: the oldest come first, and the policy makes room
    as for newcomers; what that costs is added to the average of `budget_loss`.

    Raises
    ------
    ValueError
        For no models, models of different classes or parameters, a class that cannot be averaged, or bad weights.

    Notes
    -----
    O(size of all models) time; with a full budget, one removal a support vector beyond it. Source of averaging models
    of parts of the data: McDonald, Hall and Mann, Distributed Training Strategies for the Structured Perceptron,
    NAACL 2010.

    Examples
    --------
    >>> from pa_river import PA, PAClassifier
    >>> left, right = PAClassifier(PA(), learn_intercept=False), PAClassifier(PA(), learn_intercept=False)
    >>> left.learn_one({"a": 1.0}, True)
    >>> right.learn_one({"b": 2.0}, False)
    >>> merge([left, right]).weights
    {'a': 0.5, 'b': -0.25}

    """
    parts: list[Any] = list(models)
    if not parts:
        raise ValueError("merge needs at least one model")
    first = parts[0]
    owner = type(first).__name__
    blended: Any = _compiled.on_reference(first.clone()) if hasattr(first, "_blend") else None
    if not hasattr(getattr(blended, "_store", None), "blend"):
        raise ValueError(f"merge cannot average a {owner}")
    fresh = first.clone()
    for other in parts[1:]:
        if type(other) is not type(first):
            raise ValueError(f"merge takes models of one class, got {owner} and {type(other).__name__}")
        if not _same(fresh, other.clone()):
            raise ValueError(f"merge takes models with the same parameters, got {first!r} and {other!r}")
    shares = _shares(parts, weights)
    blended._blend(parts, shares)
    fresh._set_state(blended._get_state())
    merged: T = fresh
    return merged


def _same(model: Any, other: Any) -> bool:
    """Whether two models without any examples are the same: their bytes, and the callables that bytes do not hold."""
    if state.dumps(model) != state.dumps(other):
        return False
    one, two = state.not_stored(model), state.not_stored(other)
    return one.keys() == two.keys() and all(one[name] is two[name] for name in one)


def _shares(parts: list[Any], weights: Iterable[float] | None) -> list[float]:
    if weights is None:
        found = [float(model.version) for model in parts]
        if not any(found):  # nobody learned anything: all the same
            found = [1.0] * len(parts)
    else:
        found = [_validate.require_non_negative("merge", "weights", weight) for weight in weights]
    if len(found) != len(parts):
        raise ValueError(f"merge got {len(parts)} models and {len(found)} weights")
    largest = max(found)
    if not largest:
        raise ValueError("merge(weights=...) must not all be 0")
    scaled = [weight / largest for weight in found]  # the sum of ordinary numbers stays in float range
    return [weight / sum(scaled) for weight in scaled]
