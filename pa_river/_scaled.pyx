# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""`scaled.ScaledPA`, compiled: the spread of a feature's values beside its weight, scaler and step in one pass.

The maths stands in `scaled.py`, `binary.py`, `regression.py` and `steps.py`; here are only its formulas, in the same
order. Another store (the reference) sends a call on to the Python method.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from pa_river._blocks cimport names_in
from pa_river._laws cimport LARGEST_NORM, LARGEST_SQUARE, LEAST_NORM, LEAST_SQUARE
from pa_river._names cimport SEED, Names, arena_bytes, arena_truncate, hand
from pa_river._native cimport Ruled, length_by, weight_of

import numpy as np

from pa_river import _compiled, _pack, labels

cdef extern from "Python.h":
    const char *PyBytes_AS_STRING(object)

ctypedef struct Spread:
    double count, mean, variance

# The spreads of the record in hand with its values among them, its values scaled by those, and its weights.
ctypedef struct After:
    Spread spread
    double value, weight

cdef After *after = NULL
cdef Py_ssize_t after_room = 0


cdef inline double scaled_by(const Spread *spread, double value) noexcept:
    return (value - spread.mean) / sqrt(spread.variance) if spread.variance > 0.0 else 0.0


cdef class ScaledArena(Names):
    """One weight and one spread a feature name; see `scaled.ScaledStore`. 40 bytes a name beside those of its text."""

    cdef public double intercept
    cdef Spread *by_slot
    cdef size_t room

    def __dealloc__(self):
        free(self.by_slot)

    cdef double score_seen(self) except? -1.0:
        """The score of the record in hand by the spreads so far."""
        cdef Py_ssize_t i
        cdef double score = 0.0
        for i in range(hand.count):
            if hand.seen[i].slot >= 0:
                score += self.arena.entries[hand.seen[i].slot].weight * scaled_by(
                    &self.by_slot[hand.seen[i].slot], hand.seen[i].value)
        score += self.intercept
        if score - score != 0.0:
            raise ValueError("the score would not be finite; nothing was learned")
        return score

    cdef double observe(self, double *square) except? -1.0:
        """Fill `after` for the record in hand; return its score by the new spreads, and the square of its length."""
        global after, after_room
        cdef Py_ssize_t i
        cdef After *a
        cdef double value, before, score = 0.0, spread = 0.0
        cdef void *more
        if hand.count > after_room:
            more = realloc(after, 2 * hand.count * sizeof(After))
            if more == NULL:
                raise MemoryError()
            after, after_room = <After *>more, 2 * hand.count
        square[0] = 0.0
        for i in range(hand.count):
            a, value = &after[i], hand.seen[i].value
            if hand.seen[i].slot >= 0:
                a.spread = self.by_slot[hand.seen[i].slot]
                a.weight = self.arena.entries[hand.seen[i].slot].weight
            else:
                a.spread.count = a.spread.mean = a.spread.variance = a.weight = 0.0
            before = a.spread.mean
            a.spread.count += 1.0
            a.spread.mean += (value - before) / a.spread.count
            a.spread.variance += ((value - before) * (value - a.spread.mean) - a.spread.variance) / a.spread.count
            spread += a.spread.variance - a.spread.variance
            a.value = scaled_by(&a.spread, value)
            square[0] += a.value * a.value
            score += a.weight * a.value
        if spread != 0.0:
            for i in range(hand.count):
                if after[i].spread.variance - after[i].spread.variance != 0.0:
                    name = self.name_seen(i)
                    raise ValueError(f"the variance of feature {name!r} would not be finite; nothing was learned")
        score += self.intercept
        if score - score != 0.0:
            raise ValueError("the score would not be finite; nothing was learned")
        return score

    cdef double length_of_after(self, double square) noexcept:
        cdef double largest = 1.0 if self._extra else 0.0
        cdef Py_ssize_t i
        square += self._extra
        if LEAST_SQUARE <= square <= LARGEST_SQUARE:
            return sqrt(square)
        for i in range(hand.count):
            largest = max(largest, fabs(after[i].value))
        if largest == 0.0:
            return 0.0
        square = self._extra / largest / largest
        for i in range(hand.count):
            square += (after[i].value / largest) * (after[i].value / largest)
        return largest * sqrt(square)

    cdef int keep(self, double length, double norm) except -1:
        """Take the step along the scaled record, unless `length` is 0, and keep its spreads; ValueError, nothing changed,
        if a weight would not be finite."""
        cdef Py_ssize_t i
        cdef size_t names
        cdef double tau = 0.0, intercept = self.intercept
        cdef bint ordinary = LEAST_NORM <= norm <= LARGEST_NORM
        cdef void *more
        if length != 0.0:
            tau = length / norm
            for i in range(hand.count):
                if after[i].value != 0.0:
                    after[i].weight += tau * after[i].value if ordinary else length * (after[i].value / norm)
                    if after[i].weight - after[i].weight != 0.0:
                        name = self.name_seen(i)
                        raise ValueError(f"the weight of feature {name!r} would not be finite; nothing was learned")
            if self._extra:
                intercept += tau
            if intercept - intercept != 0.0:
                raise ValueError("the intercept would not be finite; nothing was learned")
        names = self.arena.count + self.reserve_seen(True)
        if names > self.room:
            more = realloc(self.by_slot, (names + names // 4 + 4) * sizeof(Spread))
            if more == NULL:
                raise MemoryError("the model has no room for more feature names")
            self.by_slot, self.room = <Spread *>more, names + names // 4 + 4
        for i in range(hand.count):
            if hand.seen[i].slot < 0:
                self.insert_seen(i, after[i].weight)
            self.arena.entries[hand.seen[i].slot].weight = after[i].weight
            self.by_slot[hand.seen[i].slot] = after[i].spread
        self.intercept = intercept
        return 0

    @property
    def weights(self):
        """The weights that are not 0, a fresh dict: name -> weight."""
        cdef uint32_t slot
        return {self.name(slot): self.arena.entries[slot].weight for slot in range(self.arena.count)
                if self.arena.entries[slot].weight}

    @property
    def spreads(self):
        """The spread of every feature, a fresh dict: name -> (count, mean, variance)."""
        cdef uint32_t slot
        return {self.name(slot): (self.by_slot[slot].count, self.by_slot[slot].mean, self.by_slot[slot].variance)
                for slot in range(self.arena.count)}

    def mark(self, phis):
        """Return a function that restores what learning `phis` may change: the undo of a batch."""
        cdef Py_ssize_t i
        cdef uint32_t count = self.arena.count, slot
        before = {}
        for phi in phis:
            self.measure(phi)
            for i in range(hand.count):
                if hand.seen[i].slot >= 0:
                    slot = hand.seen[i].slot
                    before[slot] = self.arena.entries[slot].weight, self.by_slot[slot]
        return lambda intercept=self.intercept: self.restore(intercept, before, count)

    def restore(self, double intercept, dict before, uint32_t count):
        for slot, (weight, spread) in before.items():
            self.arena.entries[<uint32_t>slot].weight = weight
            self.by_slot[<uint32_t>slot] = spread
        if count < self.arena.count:
            arena_truncate(&self.arena, count, SEED)
        self.intercept = intercept
        self.renew()

    def get_state(self):
        """Return what `set_state` needs, as plain values; the bytes are those of `ScaledStore.get_state`."""
        cdef uint32_t slot, count = self.arena.count
        cdef double[:, ::1] columns = np.empty((4, count))
        for slot in range(count):
            columns[0, slot] = self.arena.entries[slot].weight
            columns[1, slot], columns[2, slot] = self.by_slot[slot].count, self.by_slot[slot].mean
            columns[3, slot] = self.by_slot[slot].variance
        weights, counts, means, variances = columns.base.copy()
        return {"names": self.block(), "weights": weights.copy(), "counts": counts.copy(), "means": means.copy(),
                "variances": variances.copy(), "intercept": self.intercept}

    def set_state(self, values):
        """Take over a state; `StateError` if it is not one. Every length is checked before it is used."""
        block, weights, intercept = values["names"], _pack.finite_vector(values["weights"]), values["intercept"]
        columns = [_pack.finite_vector(values[key]) for key in ("counts", "means", "variances")]
        intercept = _pack.finite_float(intercept)
        cdef uint32_t count = names_in(block), slot
        if len(weights) != count:
            raise _pack.StateError(f"{count} names for {len(weights)} weights")
        if {len(column) for column in columns} != {count}:
            raise _pack.StateError("a spread is missing for a name")
        if (columns[0] < 1.0).any():
            raise _pack.StateError("a spread of no values")
        cdef const double[::1] numbers = np.ascontiguousarray(weights)
        cdef const double[:, ::1] rows = np.ascontiguousarray(np.array(columns).T.reshape(-1, 3))
        cdef ScaledArena fresh = ScaledArena.__new__(ScaledArena)
        fresh.fill(<const uint8_t *>PyBytes_AS_STRING(block), count, <const uint8_t *>&numbers[0] if count else NULL)
        if count:
            fresh.by_slot = <Spread *>realloc(NULL, count * sizeof(Spread))
            if fresh.by_slot == NULL:
                raise MemoryError()
            memcpy(fresh.by_slot, &rows[0, 0], count * sizeof(Spread))
        self.arena, fresh.arena = fresh.arena, self.arena
        self.by_slot, fresh.by_slot = fresh.by_slot, self.by_slot
        self.room, self.intercept = count, intercept
        self.renew()

    def __deepcopy__(self, memo):
        twin = ScaledArena(bool(self._extra))
        twin.set_state(self.get_state())
        return twin

    def __reduce__(self):
        # by way of a function that also runs where there is no compiled core
        return _compiled.restored_scaled, (bool(self._extra), self.get_state())

    def __sizeof__(self):
        return object.__sizeof__(self) + arena_bytes(&self.arena) + self.room * sizeof(Spread)


cdef class Scaled(Ruled):
    """The hot half of `scaled.ScaledPA`."""

    cdef ScaledArena arena  # the store, if it is one

    cdef void take(self) noexcept:
        self.arena = self.store if type(self.store) is ScaledArena else None
        self.is_native = self.arena is not None

    cdef object answer(self, object x, object y, object w, bint ask):
        cdef ScaledArena store = self.arena
        cdef object eps = self.__dict__["eps"]
        cdef double weight = weight_of(w), score = 0.0, now, square = 0.0, sign, loss, target = 0.0, norm, length = 0.0
        cdef uint64_t stamp
        if eps is None:
            target = 1.0 if (y if type(y) is bool else labels.binary(y)) else -1.0
        else:
            target = labels.target(y)
        store.measure(x)
        if ask:
            score = store.score_seen()
        if weight > 0.0:
            now = store.observe(&square)
            if eps is None:
                sign, loss = target, 1.0 - target * now
            else:
                sign, loss = (1.0 if target > now else -1.0), fabs(target - now) - <double>eps
            norm = store.length_of_after(square)
            if loss > 0.0:
                stamp = store.stamp()
                length = sign * length_by(self.chosen, loss, norm, weight)
                if store.stamp() != stamp:  # a rule of the user's own asked a model something: x is no longer in hand
                    store.measure(x)
                    store.observe(&square)
            store.keep(length, norm)
            self._version += 1
        return None if not ask else self.said(score)

    cdef object said(self, double score):
        return score > 0.0 if self.__dict__["eps"] is None else score

    def decision_one(self, x):
        """Return the raw score of the scaled x. Never changes the model."""
        if self.arena is None:
            return super().decision_one(x)
        self.arena.measure(x)
        return self.arena.score_seen()

    def predict_one(self, x, **kwargs):
        """Return the prediction for x. Never changes the model; `ValueError` as in `learn_one`."""
        if self.arena is None:
            return super().predict_one(x)
        self.arena.measure(x)
        return self.said(self.arena.score_seen())

    # What the batches of `learner.Learner` ask of one row.

    def _scores(self, phi):
        return super()._scores(phi) if self.arena is None else self.decision_one(phi)

    def _learn(self, phi, y, w, scores):
        if self.arena is None:
            super()._learn(phi, y, w, scores)
        else:
            self.answer(phi, y, w, False)
