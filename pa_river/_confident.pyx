# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""AROW and SCW, compiled: how far a step goes and how sure it leaves the weights.

The maths stands in `second_order.py` and `prototypes.py`; here are only its formulas, in the same order, over a
`ConfidenceArena`. Another store (the reference) sends a call on to the Python method.
"""

from cpython.object cimport PyObject
from libc.math cimport HUGE_VAL, hypot, sqrt
from libc.stdint cimport int32_t

from pa_river._confidence cimport ConfidenceArena
from pa_river._linewise cimport learn_lines, predict_lines
from pa_river._native cimport Core, weight_of
from pa_river._pair cimport SIGNS, answer_label, label_of

from pa_river import labels

cdef extern from "Python.h":
    PyObject *PyDict_GetItemWithError(object, object) except? NULL
    object PyObject_GenericGetDict(object, void *)

# How far along the unit direction (in the metric of S), and the share of the variance along it that is left.
ctypedef struct Step:
    double length, left


cdef inline Step arow(double r, double margin, double deviation, double w) noexcept:
    cdef double noise = r / w / deviation, ratio = noise / deviation
    cdef Step step
    step.length = (1.0 - margin) / (deviation + noise)
    step.left = ratio / (1.0 + ratio) if ratio < HUGE_VAL else 1.0
    return step


cdef Step scw(double C, double phi, bint first, double margin, double deviation, double w) noexcept:
    cdef double surplus = margin / deviation, square = phi * phi, zeta, length, n, root, spread
    cdef Step step
    step.length = step.left = 0.0
    if surplus >= phi:
        return step
    C *= w
    if first:
        zeta = 1.0 + square
        length = (hypot(0.5 * square * surplus, phi * sqrt(zeta)) - (1.0 + 0.5 * square) * surplus) / zeta
        length = min(C * deviation, length)
    else:
        n = 1.0 + 0.5 / C / deviation / deviation
        if n > 1e100:
            length = (phi - surplus) / n
        else:
            root = phi * hypot(phi * surplus, 2.0 * sqrt(n * (n + square)))
            length = (root - (2.0 * n + square) * surplus) / (2.0 * n * (n + square))
    spread = length * phi
    step.length = length
    if spread < 1e150:
        root = spread + hypot(spread, 2.0)
        step.left = 4.0 / (root * root)
    return step


cdef class Confident(Core):
    """The hot half of a learner whose weights have variances."""

    cdef ConfidenceArena arena  # the store, if it is one

    cdef void take(self) noexcept:
        self.arena = self.store if type(self.store) is ConfidenceArena else None
        self.is_native = self.arena is not None

    cdef int tilt(self, double margin, double weight, Py_ssize_t terms, const double *signs,
                  const int32_t *slots) except -1:
        """Move these slots along the record in hand, if its margin asks for it. The parameters are read each time: they
        may have been mutated."""
        cdef ConfidenceArena store = self.arena
        cdef object params = PyObject_GenericGetDict(self, NULL)
        cdef PyObject *r = PyDict_GetItemWithError(params, "r")
        cdef double deviation
        cdef Step step
        if r != NULL and 1.0 - margin <= 0.0:
            return 0
        deviation = store.deviation_seen(slots[0])
        if terms == 2:
            deviation = hypot(deviation, store.deviation_seen(slots[1]))
        if not deviation > 0.0:
            return 0
        if r != NULL:
            step = arow(<object>r, margin, deviation, weight)
        else:
            step = scw(params["C"], params["_phi"], params["variant"] == "I", margin, deviation, weight)
        if step.length > 0.0:
            store.tilt_seen(terms, signs, slots, step.length, deviation, step.left)
        return 0

    def _learn_rows(self, X, y, w, predicted):
        if self.arena is None or not learn_lines(self, self.arena, X, y, w, predicted):
            super()._learn_rows(X, y, w, predicted)

    def _predict_rows(self, X):
        found = None if self.arena is None else predict_lines(self, self.arena, X)
        return super()._predict_rows(X) if found is None else found


cdef class ConfidentMargin(Confident):
    """The hot half of `second_order.SecondOrderBinary`."""

    cdef object answer(self, object x, object y, object w, bint ask):
        cdef ConfidenceArena store = self.arena
        cdef double weight = weight_of(w), score = 0.0
        cdef double sign = 1.0 if (y if type(y) is bool else labels.binary(y)) else -1.0
        cdef int32_t slot = 0
        store.measure(x)
        if ask or weight > 0.0:
            score = store.score_seen(1)[0]
        if weight > 0.0:
            self.tilt(sign * score, weight, 1, &sign, &slot)
            self._version += 1
        return score > 0.0 if ask else None

    def decision_one(self, x):
        """Return the raw score w . x + intercept. Never changes the model."""
        if self.arena is None:
            return super().decision_one(x)
        self.arena.measure(x)
        return self.arena.score_seen(1)[0]

    def predict_one(self, x, **kwargs):
        """Return the prediction for x. Never changes the model; `ValueError` as in `learn_one`."""
        if self.arena is None:
            return super().predict_one(x)
        self.arena.measure(x)
        return self.arena.score_seen(1)[0] > 0.0


cdef int push_apart(Core core, object x, const double *scores, Py_ssize_t count, const int32_t *slots,
                    double weight) except -1:
    return (<Confident>core).tilt(scores[slots[0]] - scores[slots[1]], weight, 2, SIGNS, slots)


cdef class ConfidentPair(Confident):
    """The hot half of `second_order.SecondOrderMulticlass`."""

    cdef object answer(self, object x, object y, object w, bint ask):
        return answer_label(self, self.arena, x, y, w, ask, push_apart)

    def decision_one(self, x):
        """Return label -> raw score w_label . x + intercept, in order of arrival. Never changes the model."""
        cdef list known
        cdef double *scores
        cdef Py_ssize_t slot
        if self.arena is None:
            return super().decision_one(x)
        known = self._known
        self.arena.measure(x)
        scores = self.arena.score_seen(max(2, len(known)))
        return {known[slot]: scores[slot] for slot in range(len(known))}

    def predict_one(self, x, **kwargs):
        """Return the prediction for x. Never changes the model; `ValueError` as in `learn_one`."""
        return super().predict_one(x) if self.arena is None else label_of(self, self.arena, x)
