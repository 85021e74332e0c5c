"""A model as the cell uses it: what it says and scores, how a loss is counted, and how a failed call is undone."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from river import base

from pa_river import labels, state
from pa_river.learner import ScoreLearner
from pa_river.stream.parsing import check_values

Predict = Callable[[Any, Any], "tuple[Any, float | None]"]


class Kind:
    """All that is known of the models of one job before any is trained.

    Parameters
    ----------
    model
        The prototype; every key starts from its stored state.

    Raises
    ------
    ValueError
        If the model's class has no stored form: its state could not outlive a bundle.

    """

    def __init__(self, model: Any) -> None:
        last = getattr(model, "_last_step", model)
        if isinstance(model, type) or not (hasattr(last, "predict_one") or hasattr(last, "score_one")):
            raise ValueError("it is no model that predicts or scores")
        self.prototype = state.dumps(model)
        self.not_stored = state.not_stored(model)
        self.fresh()  # what cannot be read back is refused here, not at the first event
        self.supervised: bool = getattr(model, "_supervised", True)
        # our learners: a failed call moves nothing
        self.atomic = type(model).__module__.partition(".")[0] == "pa_river"
        self.forgets = hasattr(model, "unlearn_one")
        learns = inspect.signature(model.learn_one).parameters
        self.takes_id = self.forgets and "id" in learns
        self.normalise: Callable[[Any], Any] = functools.partial(_label, labels.of(model))
        self.predict = _predict(model, self.supervised)
        self.loss = _loss(model, self.supervised)

    def fresh(self) -> Any:
        """An untrained model."""
        return self.load(self.prototype)

    def load(self, blob: bytes) -> Any:
        """The model of these bytes; `StateError` if they are none."""
        return state.loads(blob, **self.not_stored)


class Served:
    """One key's model: bytes until it is used, live then, and again as it was if a call on it fails.

    Our own learners change nothing when they predict or raise. Any other model is rebuilt from its last encoded state
    and the calls since (measured: cheaper an event than a copy of its transformers, see docs/decisions/0003). Those are
    predictions, too: River's StandardScaler, for one, remembers the names it was asked about.
    """

    __slots__ = ("_kind", "_blob", "_live", "_since", "_mark", "_stale")

    def __init__(self, kind: Kind, blob: bytes | None = None) -> None:
        self._kind = kind
        self._blob = blob  # the last encoded state; None: the prototype
        self._live: Any = None
        # calls since then on a model that is not atomic: learn (x, y, w, id) or predict (x,)
        self._since: list[tuple[Any, ...]] = []
        self._mark = 0  # how many of them were made before the present event
        self._stale = False  # whether the live model is ahead of the bytes

    @property
    def live(self) -> Any:
        """The model itself."""
        if self._live is None:
            self._live = self._kind.fresh() if self._blob is None else self._kind.load(self._blob)
        return self._live

    def begin(self) -> None:
        """An event begins; only models that are not atomic need to know."""
        if len(self._since) >= 128 + len(self._blob or self._kind.prototype) // 500:
            self.encode()
        self._mark = len(self._since)

    def predict(self, x: Any) -> tuple[Any, float | None]:
        """(prediction, score); whatever the model raises is the caller's, who then calls `undo`."""
        kind = self._kind
        said = kind.predict(self._live if self._live is not None else self.live, x)
        if not kind.atomic:
            self._since.append((x,))
            self._stale = True
        return said

    def learn(self, x: Any, y: Any, w: float | None, id: str | None) -> None:
        """Learn one example; whatever the model raises is the caller's, who then calls `undo`."""
        kind = self._kind
        model = self._live if self._live is not None else self.live
        self._stale = True
        if kind.atomic and kind.supervised and not kind.takes_id and w is None:
            model.learn_one(x, y)
            return
        _learn(kind, model, x, y, w, id)
        if not kind.atomic:
            self._since.append((x, y, w, id))

    def undo(self) -> None:
        """After a call that raised: the model as it was before the event."""
        kind = self._kind
        if kind.atomic:
            return
        self._live = None
        del self._since[self._mark:]
        for call in self._since:
            if len(call) == 1:
                kind.predict(self.live, *call)
            else:
                _learn(kind, self.live, *call)
        self._stale = bool(self._since)
        self.encode()  # the next failure finds nothing to repeat

    def unlearn(self, id: str) -> None:
        """Take the example of this id out of the model; whatever the model raises is the caller's."""
        self.live.unlearn_one(id=id)
        self._stale = True
        if not self._kind.atomic:
            self.encode()

    def replace(self, blob: bytes | None) -> None:
        """Serve another state: these bytes, or the prototype."""
        self._live, self._blob, self._since, self._mark, self._stale = None, blob, [], 0, False

    def encode(self) -> bytes | None:
        """The model's bytes; None while it is the prototype."""
        if self._stale:
            self._blob = state.dumps(self._live)
            self._since, self._mark = [], 0
            self._stale = False
        return self._blob


def _label(normalise: Callable[[Any], Any], y: Any) -> Any:
    """y as the model compares it; `ValueError` unless the state and a line of JSON hold it, too.

    A model may learn any hashable label: one that its bytes cannot hold would fail every later bundle of the key.
    """
    y = normalise(y)
    if type(y) is bool or type(y) is str or (type(y) is float and y - y == 0.0):
        return y
    check_values("y", y)
    state.pack(y)
    return y


def _learn(kind: Kind, model: Any, x: Any, y: Any, w: float | None, id: str | None) -> None:
    if not kind.supervised:
        if w is None or w == 1.0:
            model.learn_one(x)
        else:
            model.learn_one(x, w=w)
    elif kind.takes_id:
        model.learn_one(x, y, 1.0 if w is None else w, id=id)
    elif w is None or w == 1.0:
        model.learn_one(x, y)
    else:
        model.learn_one(x, y, w=w)


def _predict(model: Any, supervised: bool) -> Predict:
    last = getattr(model, "_last_step", model)
    piped = last is not model
    if not supervised:
        return _detect if hasattr(last, "score_one") else _assign
    if isinstance(last, ScoreLearner):
        return _decide_piped if piped else _decide
    if hasattr(last, "decision_one"):
        return _choose_piped if piped else _choose
    if isinstance(last, base.Classifier) and hasattr(last, "predict_proba_one"):
        return _classify
    return _assign


def _decide(model: Any, x: Any) -> tuple[Any, float | None]:
    score = model.decision_one(x)
    return model._predicted(score), score


def _decide_piped(model: Any, x: Any) -> tuple[Any, float | None]:
    x, last = model._transform_one(x)
    return _decide(last, x)


def _choose(model: Any, x: Any) -> tuple[Any, float | None]:
    """Label models: the prediction and the winner's score."""
    prediction, scores = model.predict_one(x), model.decision_one(x)
    score = max(scores.values(), default=None) if isinstance(scores, Mapping) else scores
    return _plain(prediction), None if score is None else float(score)


def _choose_piped(model: Any, x: Any) -> tuple[Any, float | None]:
    x, last = model._transform_one(x)
    return _choose(last, x)


def _classify(model: Any, x: Any) -> tuple[Any, float | None]:
    """A River classifier: the prediction and its probability, where the model has one."""
    prediction = model.predict_one(x)
    try:
        chances = model.predict_proba_one(x)
    except NotImplementedError:
        return _plain(prediction), None
    chance = chances.get(prediction) if chances else None
    return _plain(prediction), None if chance is None else _finite(float(chance))


def _assign(model: Any, x: Any) -> tuple[Any, float | None]:
    """Anything with `predict_one` alone: regressors, sequences, clusterers."""
    return _plain(model.predict_one(x)), None


def _detect(model: Any, x: Any) -> tuple[Any, float | None]:
    """A detector: its score; a filter's verdict, where it has one."""
    score = model.score_one(x)
    last = getattr(model, "_last_step", model)
    return (_plain(last.classify(score)) if hasattr(last, "classify") else None), _finite(float(score))


def _plain(value: Any) -> Any:
    """Python's own type for numpy's, all the way down: what JSON and the state hold."""
    if type(value) is float:
        return _finite(value)
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, Mapping):
        return {_plain(name): _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value)([_plain(item) for item in value])
    return value


def _finite(value: float) -> float:
    if value - value != 0.0:
        raise ValueError(f"the model's answer is {value!r}")
    return value


def _loss(model: Any, supervised: bool) -> Callable[[Any, Any], float | None]:
    """How far a prediction is from its label; module functions, so that the settings can be sent to workers."""
    last = getattr(model, "_last_step", model)
    if not supervised:
        return _no_loss
    if isinstance(last, base.Regressor):
        return _absolute
    return functools.partial(_priced, last) if hasattr(last, "cost_one") else _share


def _no_loss(y: Any, prediction: Any) -> float | None:
    return None


def _priced(model: Any, y: Any, prediction: Any) -> float | None:
    """What the model's own costs say; None where nothing was predicted, which no cost has to know."""
    return None if prediction is None else float(model.cost_one(y, prediction))


def _absolute(y: float, prediction: float) -> float:
    return min(abs(y - prediction), sys.float_info.max)


def _share(y: Any, prediction: Any) -> float | None:
    """0 or 1; of a sequence or a set of labels, the share that is wrong."""
    if type(y) is list:
        pairs = list(zip(y, prediction or ()))
        wrong = len(y) - sum(tag == guess for tag, guess in pairs)
        return wrong / len(y) if y else 0.0
    if type(y) is dict:
        guess = prediction or {}
        names = {**y, **guess}
        return sum(bool(y.get(name)) != bool(guess.get(name)) for name in names) / len(names) if names else 0.0
    return 0.0 if y == prediction else 1.0
