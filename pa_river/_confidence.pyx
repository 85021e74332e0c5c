# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""The compiled store of AROW and SCW: `ConfidenceArena` in the place of `confidence.ConfidenceStore`.

A row arena in which each slot of a name takes two numbers, the weight and beside it the variance; a variance of 0
stands for 1, that of a weight which never moved. The maths stands in `confidence.py` and `_loops.py`; here are its
loops, in the same order.
"""

from libc.float cimport DBL_MIN
from libc.math cimport fabs, hypot, sqrt
from libc.stdint cimport int32_t, uint32_t
from libc.stdlib cimport realloc
from libc.string cimport memset

from pa_river._laws cimport LARGEST_SQUARE, LEAST_SQUARE
from pa_river._names cimport hand
from pa_river._rowarena cimport Row, RowArena, number_at, put_number

import numpy as np

from pa_river import _compiled, _pack

# Scores of the record in hand, one a slot; its weights and variances after a step, as long as it may still be refused.
cdef double *numbers = NULL
cdef Py_ssize_t numbers_room = 0


cdef double *room_for(Py_ssize_t count) except NULL:
    global numbers, numbers_room
    cdef void *more
    if count > numbers_room:
        more = realloc(numbers, 2 * count * sizeof(double))
        if more == NULL:
            raise MemoryError()
        numbers, numbers_room = <double *>more, 2 * count
    return numbers


cdef inline double shrunk(double variance, double part, double left) noexcept:
    cdef double share = variance * part * part
    return max(variance * (max(1.0 - share, 0.0) + share * left), DBL_MIN)


cdef inline double variance_at(ConfidenceArena store, int32_t name, Py_ssize_t slot) noexcept:
    """The variance of a name in a slot; -1: one that is not there."""
    cdef double variance = number_at(store, name, <int32_t>(2 * slot + 1))
    return variance if variance else 1.0


cdef inline double intercept_at(ConfidenceArena store, Py_ssize_t slot) noexcept:
    return store.intercepts[2 * slot] if 2 * slot < <Py_ssize_t>store.intercept_count else 0.0


cdef inline double intercept_variance_at(ConfidenceArena store, Py_ssize_t slot) noexcept:
    cdef double variance = store.intercepts[2 * slot + 1] if 2 * slot < <Py_ssize_t>store.intercept_count else 0.0
    return variance if variance else 1.0


cdef class ConfidenceArena(RowArena):
    """One weight and one variance a name and slot, and so with the intercepts; see `confidence.ConfidenceStore`.

    O(len(phi) * slots) time to score, O(len(phi)) a term to move; 32 bytes a name, and its own, beside the numbers.
    """

    cdef double *score_seen(self, Py_ssize_t count) except NULL:
        """The scores of the record in hand for the first `count` slots, with room for one more; ValueError if not finite."""
        cdef double *totals = room_for(count + 1)
        cdef double *cells
        cdef double value, spread = 0.0
        cdef Py_ssize_t i, c, length
        cdef Row *row
        memset(totals, 0, (count + 1) * sizeof(double))
        if count > 1:
            self.labels = max(self.labels, <uint32_t>(2 * count))
        for i in range(hand.count):
            if hand.seen[i].slot >= 0:
                row, value = &self.rows[hand.seen[i].slot], hand.seen[i].value
                cells, length = self.pool + row.begin, min(<Py_ssize_t>row.length // 2, count)
                for c in range(length):
                    totals[c] += cells[2 * c] * value
        for c in range(min(<Py_ssize_t>self.intercept_count // 2, count)):
            totals[c] += self.intercepts[2 * c]
        for c in range(count):
            spread += totals[c] - totals[c]
        if spread != 0.0:
            raise ValueError("the score would not be finite; nothing was learned")
        return totals

    cdef double deviation_seen(self, Py_ssize_t slot) noexcept:
        """sqrt(phi' S phi) of the record in hand in one slot; see `_loops.norm`."""
        cdef double extra = self._extra * intercept_variance_at(self, slot), square = extra, rest = 0.0, largest, part
        cdef Py_ssize_t i
        for i in range(hand.count):
            if hand.seen[i].value != 0.0:
                part = sqrt(variance_at(self, hand.seen[i].slot, slot)) * hand.seen[i].value
                square += part * part
        if LEAST_SQUARE <= square <= LARGEST_SQUARE:
            return sqrt(square)
        largest = 1.0 if extra else 0.0
        for i in range(hand.count):
            largest = max(largest, fabs(sqrt(variance_at(self, hand.seen[i].slot, slot)) * hand.seen[i].value))
        if largest == 0.0:
            return 0.0
        for i in range(hand.count):
            part = sqrt(variance_at(self, hand.seen[i].slot, slot)) * hand.seen[i].value / largest
            rest += part * part
        return largest * sqrt(rest + extra / largest / largest)

    cdef int tilt_seen(self, Py_ssize_t terms, const double *signs, const int32_t *slots, double length, double deviation,
                       double left) except -1:
        """Move these slots, which differ, along the record in hand, as `ConfidenceStore.tilt` does; ValueError, nothing
        moved, if a weight would not be finite."""
        cdef Py_ssize_t i, t
        cdef int32_t name, highest = 0
        cdef double value, variance, part, far
        cdef double *after = room_for(2 * terms * (hand.count + 1))
        cdef double *to = after
        for t in range(terms):
            highest, far = max(highest, slots[t]), signs[t] * length
            for i in range(hand.count):
                value, name = hand.seen[i].value, hand.seen[i].slot
                if value == 0.0:
                    continue
                variance, part = variance_at(self, name, slots[t]), value / deviation
                to[0], to[1] = number_at(self, name, 2 * slots[t]) + far * (variance * part), shrunk(variance, part, left)
                if to[0] - to[0] != 0.0:
                    name_of = self.name_seen(i)
                    raise ValueError(f"the weight of feature {name_of!r} would not be finite; nothing was learned")
                to += 2
            if self._extra:
                variance, part = intercept_variance_at(self, slots[t]), 1.0 / deviation
                to[0] = intercept_at(self, slots[t]) + far * (variance * part)
                to[1] = shrunk(variance, part, left)
                if to[0] - to[0] != 0.0:
                    raise ValueError("the intercept would not be finite; nothing was learned")
                to += 2
        if self.journal != NULL:
            for t in range(terms):
                self.note(2 * slots[t])
                self.note(2 * slots[t] + 1)
        self.make_way(2 * highest + 2)
        to = after
        for t in range(terms):
            for i in range(hand.count):
                if hand.seen[i].value != 0.0:
                    put_number(self, hand.seen[i].slot, 2 * slots[t] + 1, to[1])
                    put_number(self, hand.seen[i].slot, 2 * slots[t], to[0])
                    to += 2
            if self._extra:
                self.put_intercept(2 * slots[t] + 1, to[1])
                self.put_intercept(2 * slots[t], to[0])
                to += 2
        return 0

    # The interface of `confidence.ConfidenceStore`, as the learners' Python methods and the tests use it.

    def deviation(self, phi, slots):
        """Return sqrt(sum over the slots of phi' S phi)."""
        cdef double found = 0.0
        self.measure(phi)
        for slot in slots:
            found = hypot(found, self.deviation_seen(slot))
        return found

    def tilt(self, terms, double length, double deviation, double left):
        """Move and shrink along terms of one record in slots that differ; see `ConfidenceStore.tilt`."""
        cdef const double[::1] signs = np.array([term.sign for term in terms], np.float64)
        cdef const int32_t[::1] slots = np.array([term.slot for term in terms], np.int32)
        self.measure(terms[0].phi)
        self.tilt_seen(signs.shape[0], &signs[0], &slots[0], length, deviation, left)

    def pairs(self, Py_ssize_t slot):
        """Return name -> (weight, variance) of all that a slot holds, a fresh dict; None names the intercept."""
        cdef uint32_t name
        found = {self.name(name): (number_at(self, name, <int32_t>(2 * slot)), variance_at(self, name, slot))
                 for name in range(self.arena.count) if <Py_ssize_t>self.rows[name].length > 2 * slot}
        if 2 * slot < <Py_ssize_t>self.intercept_count:
            found[None] = self.intercepts[2 * slot], intercept_variance_at(self, slot)
        return found

    def variances(self, Py_ssize_t slot):
        """Return the variances of a slot that are not 1, a fresh dict, without the intercept's."""
        return {name: variance for name, (_, variance) in self.pairs(slot).items()
                if name is not None and variance != 1.0}

    def weights(self, int32_t slot):
        """Return the weights of a slot that are not 0, a fresh dict, without the intercept."""
        return RowArena.weights(self, 2 * slot)

    def intercept(self, uint32_t slot):
        """Return the weight of the constant feature in a slot; 0.0 if there is none."""
        return intercept_at(self, slot)

    @property
    def slots(self):
        """How many slots hold anything: the highest that ever moved, plus 1."""
        cdef uint32_t name, highest = self.intercept_count
        for name in range(self.arena.count):
            highest = max(highest, self.rows[name].length)
        return highest // 2

    def get_state(self):
        """Return what `set_state` needs, as plain values; the bytes are those of `ConfidenceStore.get_state`."""
        cells = RowArena.get_state(self)
        weights, intercepts = cells["weights"], cells["intercepts"]
        variances = np.concatenate([weights[1::2], intercepts[1::2]])
        variances[variances == 0.0] = 1.0
        return {"names": cells["names"], "lengths": cells["lengths"] // 2, "weights": weights[::2].copy(),
                "intercepts": intercepts[::2].copy(), "variances": variances}

    def set_state(self, values):
        """Take over a state; `StateError` if it is not one. Every length is checked before it is used."""
        weights, intercepts, variances = [
            _pack.finite_vector(values[key]) for key in ("weights", "intercepts", "variances")]
        lengths = values["lengths"]
        if len(variances) != len(weights) + len(intercepts) or (variances <= 0.0).any():
            raise _pack.StateError("a variance above 0 is missing for a weight")
        if isinstance(lengths, np.ndarray) and lengths.dtype == np.int64:
            if not ((lengths > 0) & (lengths <= len(weights))).all():  # before they are doubled
                raise _pack.StateError("the lengths of the rows do not add up")
            lengths = 2 * lengths
        beside = np.split(variances, [len(weights)])
        RowArena.set_state(self, {
            "names": values["names"], "lengths": lengths,
            "weights": np.column_stack([weights, beside[0]]).ravel(),
            "intercepts": np.column_stack([intercepts, beside[1]]).ravel()})

    def __reduce__(self):
        # by way of a function that also runs where there is no compiled core
        return _compiled.restored_confidence, (bool(self._extra), self.get_state())
