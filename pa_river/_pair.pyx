# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""`multiclass.PAMulticlass`, compiled: the right label's prototype and its best rival's move apart.

The maths stands in `multiclass.py`, `prototypes.py` and `steps.py`; here are only its formulas, in the same order, over
a `RowArena`. Another store (kernels, the reference) sends a call on to the Python method.
"""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t

from pa_river._linewise cimport learn_lines, predict_lines
from pa_river._native cimport Core, Ruled, length_by, weight_of
from pa_river._rowarena cimport RowArena, best_of

import sys

from pa_river import _pairs, labels
from pa_river.batch import like

cdef double ROOT = sqrt(2.0)
SIGNS[0], SIGNS[1] = 1.0, -1.0


cdef object answer_label(Core core, RowArena store, object x, object y, object w, bint ask, Push push):
    """Learn one example by `push`; return to whom asks which label was predicted before it."""
    cdef double weight = weight_of(w)
    cdef double *scores
    cdef int32_t[2] slots
    cdef list known = core._known
    cdef dict places = core._slots
    cdef Py_ssize_t count = max(2, len(known)), own, winner = -1
    if type(y) is not str and type(y) is not int:
        y = labels.label(y)
    own = places.get(y, len(known))
    store.measure(x)
    if ask or weight > 0.0:
        scores = store.score_seen(count)
        if ask and known:
            winner = best_of(scores, len(known), -1)
        if weight > 0.0:
            if own >= count:
                scores[own], count = 0.0, own + 1  # a new label's
            slots[0], slots[1] = <int32_t>own, <int32_t>best_of(scores, count, own)
            push(core, x, scores, count, slots, weight)
            core._version += 1
            if own == len(known):
                places[y] = own
                known.append(y)
    return known[winner] if winner >= 0 else None


cdef object label_of(Core core, RowArena store, object x):
    """The label of the highest score; None where none is known yet."""
    cdef list known = core._known
    cdef double *scores
    store.measure(x)
    scores = store.score_seen(max(2, len(known)))
    return known[best_of(scores, len(known), -1)] if known else None


cdef int push_by_rule(Core core, object x, const double *scores, Py_ssize_t count, const int32_t *slots,
                      double weight) except -1:
    cdef RowArena store = (<Pair>core).arena
    cdef double loss = 1.0 - (scores[slots[0]] - scores[slots[1]]), norm, length
    cdef uint64_t stamp
    if loss > 0.0:
        stamp = store.stamp()
        norm = ROOT * store.length_of_seen()
        length = length_by((<Pair>core).chosen, loss, norm, weight)
        if length > 0.0:
            if store.stamp() != stamp:  # a rule of the user's own asked a model something
                store.measure(x)
            store.labels = max(store.labels, <uint64_t>count)
            store.move_seen(2, SIGNS, slots, length, norm)
    return 0


cdef class Pair(Ruled):
    """The hot half of a label learner for which two prototypes move."""

    cdef RowArena arena  # the store, if it is one

    cdef void take(self) noexcept:
        self.arena = self.store if type(self.store) is RowArena else None
        self.is_native = self.arena is not None

    cdef object answer(self, object x, object y, object w, bint ask):
        return answer_label(self, self.arena, x, y, w, ask, push_by_rule)

    def predict_one(self, x, **kwargs):
        """Return the prediction for x. Never changes the model; `ValueError` as in `learn_one`."""
        return super().predict_one(x) if self.arena is None else label_of(self, self.arena, x)

    def learn_many(self, X, y, w=None):
        """Learn the rows of X in order, all or nothing; see `learner.PALearner.learn_many`."""
        cdef int64_t counted = -1
        if self.arena is not None:
            counted = _pairs.learn(self.arena, self.chosen, self._known, self._slots, X, y, w)
        if counted < 0:
            super().learn_many(X, y, w)
        else:
            self._version += counted

    def predict_many(self, X):
        """Return the predictions for the rows of X: a Series for a frame, with its index; else an array."""
        best = None if self.arena is None else _pairs.best(self.arena, len(self._known), X)
        if best is None:
            return super().predict_many(X)
        known = self._known
        return like(X, [known[slot] for slot in best] if known else [None] * len(best))

    def _learn_rows(self, X, y, w, predicted):
        if self.arena is None or not learn_lines(self, self.arena, X, y, w, predicted):
            super()._learn_rows(X, y, w, predicted)

    def _predict_rows(self, X):
        found = None if self.arena is None else predict_lines(self, self.arena, X)
        return super()._predict_rows(X) if found is None else found
