# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""The compiled store: `ArenaStore` in the place of `stores.LinearStore`, one weight a name in an arena.

The maths stands in `_loops.py` and `stores.py`; here are its loops, in the same order, over slots.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pa_river._blocks cimport names_in
from pa_river._laws cimport LARGEST_NORM, LEAST_NORM
from pa_river._names cimport (
    SEED, Arena, ArenaEntry, Names, arena_bytes, arena_find, arena_hash, arena_insert, arena_reserve, arena_truncate,
    Seen, hand,
)

import numpy as np

from pa_river import _compiled, _pack

cdef extern from "_columns.h" nogil:
    void columns_close(Columns *)
    int columns_widen(Columns *, size_t width)
    int columns_settle(Columns *, Arena *, uint64_t seed)
    int32_t column_slot(Columns *, const Arena *, uint64_t seed, int32_t column)
    size_t columns_bytes(const Columns *)

cdef extern from "Python.h":
    const char *PyBytes_AS_STRING(object)
    Py_ssize_t PyBytes_GET_SIZE(object)


cdef class ArenaStore(Names):
    """One weight a feature name, and the intercept as a nameless feature of constant value 1; see `stores.LinearStore`.

    12 bytes a name, its own bytes and 6 to 12 of table. O(len(phi)) time for each method but the states.
    """

    def __dealloc__(self):
        columns_close(&self.columns)

    cdef int settle(self) except -1:
        if columns_settle(&self.columns, &self.arena, SEED) < 0:
            raise MemoryError("the model has no room for more feature names")
        self.loose = False
        return 0

    cdef double finite_score(self) except? -1.0:
        """The score of the record in hand, intercept included."""
        cdef double score = hand.score + self.intercept
        if score - score != 0.0:
            raise ValueError("the score would not be finite; nothing was learned")
        return score

    cdef int move(self, double length, double norm) except -1:
        """Add length * (record in hand / norm); ValueError, nothing moved, if a weight would not be finite.

        Weights move in place while the old ones are kept; new names are added last, when nothing can fail any more.
        """
        cdef Arena *arena = &self.arena
        cdef ArenaEntry *entry
        cdef ArenaEntry spare
        cdef Seen *f
        cdef Py_ssize_t i
        cdef size_t names = self.reserve_seen(False)
        cdef double tau = length / norm, move, spread = 0.0, intercept = self.intercept, weight
        cdef bint ordinary = LEAST_NORM <= norm <= LARGEST_NORM
        for i in range(hand.count):
            f = &hand.seen[i]
            spare.weight = 0.0
            entry = &arena.entries[f.slot] if f.slot >= 0 else &spare
            weight = entry.weight
            hand.before[i] = weight
            if f.value != 0.0:
                move = weight + (tau * f.value if ordinary else length * (f.value / norm))
                spread += move - move  # NaN as soon as one weight is not finite
                entry.weight = move
                if names:
                    hand.before[i] = weight if f.slot >= 0 else move
        if self._extra:
            intercept += tau
        if spread != 0.0 or intercept - intercept != 0.0:
            self.refuse(spread != 0.0)
        self.intercept = intercept
        for i in range(<Py_ssize_t>names):
            self.insert_seen(hand.fresh[i], hand.before[hand.fresh[i]])
        return 0

    cdef int refuse(self, bint weight) except -1:
        """Put the old weights back and raise."""
        cdef Py_ssize_t i, guilty = -1
        cdef ArenaEntry *entry
        for i in range(hand.count):
            if hand.seen[i].slot >= 0:
                entry = &self.arena.entries[hand.seen[i].slot]
                if guilty < 0 and entry.weight - entry.weight != 0.0:
                    guilty = i
                entry.weight = hand.before[i]
            elif guilty < 0 and hand.before[i] - hand.before[i] != 0.0:
                guilty = i
        if not weight:
            raise ValueError("the intercept would not be finite; nothing was learned")
        name = self.name_seen(guilty)
        raise ValueError(f"the weight of feature {name!r} would not be finite; nothing was learned")

    # The interface of `stores.Store`, as the variants and the tests use it.

    def score(self, phi):
        """Return w . phi, intercept included; `ValueError` if it is not finite."""
        self.measure(phi)
        return self.finite_score()

    def norm(self, phi):
        """Return the length of phi, intercept included."""
        self.measure(phi)
        return self.length_of_seen()

    def add(self, terms, double length, double norm):
        """Add length * term / norm; `ValueError`, and nothing moves, if a weight would not be finite."""
        (sign, phi, _), *more = terms
        if more:
            raise ValueError("a flat store takes one term a step")
        self.measure(phi)
        self.move(<double>sign * length, norm)

    def mark(self, phis):
        """Return a function that restores what moves along `phis` may change: the undo of a batch."""
        self.settle()
        cdef Py_ssize_t i
        cdef uint32_t count = self.arena.count
        before = {}
        for phi in phis:
            self.measure(phi)
            for i in range(hand.count):
                if hand.seen[i].slot >= 0:
                    before[hand.seen[i].slot] = self.arena.entries[hand.seen[i].slot].weight
        return lambda intercept=self.intercept: self.restore(intercept, before, count)

    cdef restore(self, double intercept, dict before, uint32_t count):
        self.settle()
        for slot, weight in before.items():
            self.arena.entries[<uint32_t>slot].weight = weight
        self.forget(count, intercept)

    # What a batch asks for; see `_batch.pyx` and `_sparse.pyx`.

    cdef Columns *open_columns(self, size_t width) except NULL:
        """The weights by column, for names 0 up to `width`; the arena is behind until `settle`."""
        if columns_widen(&self.columns, width) < 0:
            raise MemoryError("there is no room for that many columns")
        self.loose = True
        return &self.columns

    cdef int gather(self, object names, Py_ssize_t width, double *weights, int32_t *slots) except -1:
        """Look up the weights of columns, 0 where a name has none, and their slots, -1 where there is none."""
        cdef Py_ssize_t j, length = 0
        cdef const uint8_t *text
        cdef bint counted = type(names) is range
        self.settle()
        if counted and columns_widen(&self.columns, width) < 0:
            raise MemoryError("there is no room for that many columns")
        for j in range(width):
            if counted:
                slots[j] = column_slot(&self.columns, &self.arena, SEED, j)
            else:
                spelled = _pack.name_bytes(names[j])
                text, length = <const uint8_t *>PyBytes_AS_STRING(spelled), PyBytes_GET_SIZE(spelled)
                slots[j] = arena_find(&self.arena, text, length, arena_hash(text, length, SEED))
            weights[j] = self.arena.entries[slots[j]].weight if slots[j] >= 0 else 0.0
        return 0

    cdef int scatter(self, object names, Py_ssize_t width, const double *weights, const int32_t *slots,
                     const int32_t *order, Py_ssize_t fresh) except -1:
        """Write the weights of columns back; the `fresh` ones of `order` are new, in this order."""
        cdef Py_ssize_t j, length = 0
        cdef const uint8_t *text
        cdef list spelled = [_pack.name_bytes(names[order[j]]) for j in range(fresh)]
        if spelled and arena_reserve(&self.arena, len(spelled), sum(map(len, spelled)), 0, SEED) < 0:
            raise MemoryError("the model has no room for more feature names")
        for j in range(width):
            if slots[j] >= 0:
                self.arena.entries[slots[j]].weight = weights[j]
        for j in range(fresh):
            text, length = <const uint8_t *>PyBytes_AS_STRING(spelled[j]), PyBytes_GET_SIZE(spelled[j])
            arena_insert(&self.arena, text, length, arena_hash(text, length, SEED), weights[order[j]])
        return 0

    cdef int forget(self, uint32_t count, double intercept) except -1:
        """Keep the first `count` names only: those that a refused batch brought stand last."""
        arena_truncate(&self.arena, count, SEED)
        columns_close(&self.columns)
        self.intercept = intercept
        self.renew()
        return 0

    @property
    def weights(self):
        """The weights, a fresh dict: name -> weight."""
        cdef uint32_t slot
        self.settle()
        return {self.name(slot): self.arena.entries[slot].weight for slot in range(self.arena.count)}

    def get_state(self):
        """Return what `set_state` needs, as plain values; the bytes are those of `LinearStore.get_state`."""
        self.settle()
        cdef uint32_t slot, count = self.arena.count
        cdef double[::1] weights = np.empty(count)
        for slot in range(count):
            weights[slot] = self.arena.entries[slot].weight
        return {"names": self.block(), "weights": weights.base, "intercept": self.intercept}

    def set_state(self, values):
        """Take over a state; `StateError` if it is not one. Every length is checked before it is used."""
        block, weights = values["names"], _pack.finite_vector(values["weights"])
        intercept = _pack.finite_float(values["intercept"])
        cdef double[::1] numbers = np.ascontiguousarray(weights)
        cdef uint32_t count = names_in(block)
        if <Py_ssize_t>count != numbers.shape[0]:
            raise _pack.StateError(f"{count} names for {numbers.shape[0]} weights")
        cdef ArenaStore fresh = ArenaStore.__new__(ArenaStore)
        fresh.fill(<const uint8_t *>PyBytes_AS_STRING(block), count, <const uint8_t *>&numbers[0] if count else NULL)
        self.arena, fresh.arena = fresh.arena, self.arena
        columns_close(&self.columns)
        self.loose = False
        self.intercept = intercept
        self.renew()

    def __deepcopy__(self, memo):
        cdef ArenaStore twin = ArenaStore.__new__(ArenaStore)
        twin.copy_names(self)
        twin.intercept = self.intercept
        return twin

    def __reduce__(self):
        # by way of a function that also runs where there is no compiled core
        return _compiled.restored_store, (bool(self._extra), self.get_state())

    def __sizeof__(self):
        return object.__sizeof__(self) + arena_bytes(&self.arena) + columns_bytes(&self.columns)
