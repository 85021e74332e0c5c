# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""The hot methods of the learners, compiled: they stand before the Python ones among a learner's bases.

The maths stands in `learner.py`, `binary.py`, `regression.py` and `steps.py`; here are only its formulas, in the same
order, over an `ArenaStore`. Another store (kernels, the reference) sends a call on to the Python method.
"""

from cpython.object cimport PyObject
from libc.math cimport fabs
from libc.stdint cimport int64_t, uint64_t

from pa_river._arena cimport ArenaStore

import copy
import sys

from pa_river import _batch, labels, steps
from pa_river._validate import example_weight

cdef extern from "Python.h":
    PyObject *PyDict_GetItemWithError(object, object) except? NULL
    object PyObject_GenericGetDict(object, void *)


cdef inline double parameter(dict attributes, str name) except? -1.0:
    """A parameter that its class has checked, read without the look-ups of an attribute."""
    cdef PyObject *found = PyDict_GetItemWithError(attributes, name)
    if found == NULL:
        raise AttributeError(name)
    return <object>found


cdef double weight_of(object w) except? -1.0:
    cdef double weight
    if type(w) is float:
        weight = w
        if 0.0 <= weight and weight - weight == 0.0:
            return weight
    return example_weight(w)


cdef object PA = steps.PA, PA1 = steps.PA1, PA2 = steps.PA2, DEFAULT = steps.DEFAULT
cdef dict DEFAULTS = DEFAULT.__dict__


cdef double length_by(object rule, double loss, double norm, double weight) except? -1.0:
    """`rule.length`; that of the three known rules without a call. C is read each time: it may have been mutated."""
    cdef double C
    kind = PA1 if rule is None else type(rule)
    if kind is PA1 or kind is PA2:
        if norm <= 0.0:
            return 0.0
        C = parameter(DEFAULTS if rule is None else PyObject_GenericGetDict(rule, NULL), "C")
        return min(C * weight * norm, loss / norm) if kind is PA1 else loss / (norm + 0.5 / C / weight / norm)
    if kind is PA:
        return loss / norm if norm > 0.0 else 0.0
    return rule.length(loss, norm, weight)


cdef class Core:
    """The hot half of a learner: it stands before the Python classes among its bases.

    `_store`, `_version` and a `rule` live in the object itself, where C reaches them without a look-up. As long as the
    store is a compiled one, the methods of the classes below do the work; else they hand the call on to the Python ones.
    """

    @property
    def _store(self):
        return self.store

    @_store.setter
    def _store(self, store):
        self.store = store
        self.take()

    cdef void take(self) noexcept:
        """Note which kind of store it is."""

    cdef object answer(self, object x, object y, object w, bint ask):
        """Learn one example; to whom asks, return what was predicted before it."""
        raise NotImplementedError

    def learn_one(self, x, y, w=1.0):
        """Learn one example of weight w; see `learner.PALearner.learn_one`."""
        if self.is_native:
            self.answer(x, y, w, False)
        else:
            super().learn_one(x, y, w)

    def step(self, x, y, w=1.0):
        """Return what `predict_one(x)` returns, then learn: one look-up of the features for both."""
        if self.is_native:
            return self.answer(x, y, w, True)
        return super().step(x, y, w)

    def __getstate__(self):
        return {**self.__dict__, "_store": self.store, "_version": self._version}

    def __setstate__(self, state):
        rest = dict(state)
        for name in ("_store", "_version", "rule"):
            if name in rest:
                setattr(self, name, rest.pop(name))
        self.__dict__.update(rest)

    def clone(self, new_params=None, include_attributes=False):
        """Return a fresh model with the same parameters, or with the learned state too; see River's `Base.clone`."""
        twin = super().clone(new_params, include_attributes)
        if include_attributes:  # River looks for them in the `__dict__`
            twin._store, twin._version = copy.deepcopy(self.store), self._version
        return twin


cdef class Ruled(Core):
    """The hot half of a learner that moves by a step rule."""

    @property
    def rule(self):
        return self.chosen

    @rule.setter
    def rule(self, rule):
        self.chosen = steps.require(type(self).__name__, rule)

    def __getstate__(self):
        return {**Core.__getstate__(self), "rule": self.chosen}


cdef class ScoreCore(Ruled):
    """The hot half of `learner.ScoreLearner`."""

    cdef void take(self) noexcept:
        self.arena = self.store if type(self.store) is ArenaStore else None
        self.is_native = self.arena is not None

    def decision_one(self, x):
        """Return the raw score w . x + intercept. Never changes the model."""
        if self.arena is None:
            return super().decision_one(x)
        self.arena.measure(x)
        return self.arena.finite_score()

    cdef int move(self, ArenaStore store, object x, double loss, double sign, double weight) except -1:
        """Take the step for a broken constraint along sign * x, the record in hand."""
        cdef uint64_t stamp = store.stamp()
        cdef double norm = store.length_of_seen(), length = length_by(self.chosen, loss, norm, weight)
        if length > 0.0:
            if store.stamp() != stamp:  # a rule of the user's own asked a model something: x is no longer in hand
                store.measure(x)
            store.move(sign * length, norm)
        return 0

    def learn_many(self, X, y, w=None):
        """Learn the rows of X in order, all or nothing; see `learner.PALearner.learn_many`."""
        cdef int64_t counted = -1
        if self.arena is not None:
            counted = _batch.learn(self.arena, self.chosen, self.width(), X, y, w)
        if counted < 0:
            super().learn_many(X, y, w)
        else:
            self._version += counted

    def predict_many(self, X):
        """Return the predictions for the rows of X: a Series for a frame, with its index; else an array."""
        scores = None if self.arena is None else _batch.scores(self.arena, X)
        if scores is None:
            return super().predict_many(X)
        answers = scores > 0.0 if self.width() is None else scores
        pandas = sys.modules.get("pandas")
        return answers if pandas is None or not isinstance(X, pandas.DataFrame) else pandas.Series(answers, X.index)

    cdef object width(self):
        """The half width of the tube; None for a margin."""
        return None


cdef class Margin(ScoreCore):
    """`binary.PAClassifier`, compiled: loss 1 - y (w . x)."""

    cdef object answer(self, object x, object y, object w, bint ask):
        cdef ArenaStore store = self.arena
        cdef double weight = weight_of(w), loss, score = 0.0
        cdef double sign = 1.0 if (y if type(y) is bool else labels.binary(y)) else -1.0
        store.measure(x)
        if ask or weight > 0.0:
            score = store.finite_score()
        if weight > 0.0:
            loss = 1.0 - sign * score
            if loss > 0.0:
                self.move(store, x, loss, sign, weight)
            self._version += 1
        return score > 0.0 if ask else None

    def predict_one(self, x, **kwargs):
        """Return the prediction for x. Never changes the model; `ValueError` as in `learn_one`."""
        if self.arena is None:
            return super().predict_one(x)
        self.arena.measure(x)
        return self.arena.finite_score() > 0.0


cdef class Tube(ScoreCore):
    """`regression.PARegressor`, compiled: loss |y - w . x| - eps."""

    cdef object width(self):
        return self.__dict__["eps"]

    cdef object answer(self, object x, object y, object w, bint ask):
        cdef ArenaStore store = self.arena
        cdef double weight = weight_of(w), target = labels.target(y) if type(y) is not float else y
        cdef double error, loss, score = 0.0
        if target - target != 0.0:
            labels.target(y)  # raises
        store.measure(x)
        if ask or weight > 0.0:
            score = store.finite_score()
        if weight > 0.0:
            error = target - score
            loss = fabs(error) - parameter(PyObject_GenericGetDict(self, NULL), "eps")
            if loss > 0.0:
                self.move(store, x, loss, 1.0 if error > 0.0 else -1.0, weight)
            self._version += 1
        return score if ask else None

    def predict_one(self, x, **kwargs):
        """Return the prediction for x. Never changes the model; `ValueError` as in `learn_one`."""
        if self.arena is None:
            return super().predict_one(x)
        self.arena.measure(x)
        return self.arena.finite_score()
