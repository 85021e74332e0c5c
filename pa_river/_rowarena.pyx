# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""The compiled store of one prototype a label: `RowArena` in the place of `rows.RowStore`.

The rows of all names lie in one pool of floats, each as long as the highest label that ever moved there. The maths
stands in `_loops.py` and `rows.py`; here are its loops, in the same order. A row that outgrows its room moves to the end
of the pool; what it leaves behind is at most as much as what is in use.
"""

cimport cython
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from pa_river._blocks cimport names_in
from pa_river._laws cimport LARGEST_NORM, LEAST_NORM
from pa_river._lines cimport ColumnSlots, Line, Lines, lines_of
from pa_river._names cimport (
    SEED, Names, arena_bytes, arena_find, arena_hash, arena_insert, arena_reserve, arena_truncate, hand,
)

import numpy as np

from pa_river import _compiled, _pack

cdef extern from "Python.h":
    const char *PyBytes_AS_STRING(object)
    Py_ssize_t PyBytes_GET_SIZE(object)

cdef extern from *:
    """
    #if defined(__GNUC__)
    /* Ask for a row that is wanted soon: rows of a large model lie anywhere in memory. */
    static inline void fetch_row(const double *row, size_t n) {
        const char *at = (const char *)row, *end = (const char *)(row + (n < 64 ? n : 64));
        for (; at < end; at += 64) __builtin_prefetch(at);
    }
    #else
    #define fetch_row(row, n)
    #endif
    """
    void fetch_row(const double *row, size_t n) nogil

cdef extern from "_rows.h" nogil:
    void rows_add(double *totals, double value, const double *row, Py_ssize_t n)

# The scores of the record in hand, one a label.
cdef double *totals = NULL
cdef Py_ssize_t totals_room = 0


# How many names ahead of the one in work their rows are asked for.
cdef Py_ssize_t AHEAD = 4
# Up to so many bytes, notes are cheaper than a copy of a small model.
cdef size_t LEAST_NOTES = 1 << 20


cdef class RowArena(Names):
    """One weight a name and slot, and an intercept a slot; see `rows.RowStore`.

    O(len(phi) * slots) time to score, O(len(phi)) a term to move; 12 bytes a name, its own bytes and 6 to 12 of table, beside its weights.
    """

    def __dealloc__(self):
        free(self.rows)
        free(self.pool)
        free(self.intercepts)

    cdef int measure(self, object x) except -1:
        """Take x in hand, a record or a row of a batch; see `Names.measure`."""
        if type(x) is Line and (<Line>x).table.identity == self.identity:
            return (<Line>x).table.take((<Line>x).row)
        return Names.measure(self, x)

    cdef double *score_seen(self, Py_ssize_t count) except NULL:
        """The scores of the record in hand for the first `count` slots, with room for one more; ValueError if not finite."""
        global totals, totals_room
        cdef void *more
        cdef Py_ssize_t i
        cdef Row *row
        cdef double spread = 0.0
        if count >= totals_room:
            more = realloc(totals, (2 * count + 8) * sizeof(double))
            if more == NULL:
                raise MemoryError()
            totals, totals_room = <double *>more, 2 * count + 8
        memset(totals, 0, (count + 1) * sizeof(double))
        self.labels = max(self.labels, <uint32_t>count)
        for i in range(hand.count):
            if i + AHEAD < hand.count and hand.seen[i + AHEAD].slot >= 0:
                row = &self.rows[hand.seen[i + AHEAD].slot]
                fetch_row(self.pool + row.begin, min(<Py_ssize_t>row.length, count))
            if hand.seen[i].slot >= 0:
                row = &self.rows[hand.seen[i].slot]
                rows_add(totals, hand.seen[i].value, self.pool + row.begin, min(<Py_ssize_t>row.length, count))
        for i in range(min(<Py_ssize_t>self.intercept_count, count)):
            totals[i] += self.intercepts[i]
        for i in range(count):
            spread += totals[i] - totals[i]
        if spread != 0.0:
            raise ValueError("the score would not be finite; nothing was learned")
        return totals

    cdef size_t wanted(self, int32_t name, uint32_t length) noexcept:
        """How many numbers of the pool it takes until a row (-1: a new one) is that long."""
        if name < 0:
            return max(length, self.labels)
        if length <= self.rows[name].room:
            return 0
        return max(max(length, self.labels), 2 * self.rows[name].room)

    cdef int reserve_rows(self, size_t names, size_t numbers) except -1:
        """Make room for that many more names and numbers, so that nothing can fail afterwards."""
        cdef size_t room
        cdef void *more
        if self.arena.count + names > self.rows_room or self.rows == NULL:
            room = self.arena.count + names
            room += room // 4 + 4
            more = realloc(self.rows, room * sizeof(Row))
            if more == NULL:
                raise MemoryError("the model has no room for more feature names")
            self.rows, self.rows_room = <Row *>more, room
        if self.used + numbers > self.size or self.pool == NULL:
            room = self.used + numbers
            room += room // 4 + 8
            more = realloc(self.pool, room * sizeof(double))
            if more == NULL:
                raise MemoryError("the model has no room for more weights")
            self.pool, self.size = <double *>more, room
        return 0

    cdef int widen(self, int32_t name, uint32_t length) noexcept:
        """Make room for a row to become that long, after `reserve_rows`; once a step, as it takes new room each time."""
        cdef Row *row = &self.rows[name]
        cdef size_t room = self.wanted(name, length)
        if room:
            memcpy(self.pool + self.used, self.pool + row.begin, row.length * sizeof(double))
            row.begin, row.room = self.used, <uint32_t>room
            self.used += room
        return 0

    cdef int lengthen(self, int32_t name, uint32_t length) noexcept:
        """Make a row that long, after `reserve_rows`."""
        cdef Row *row = &self.rows[name]
        self.widen(name, length)
        if length > row.length:
            memset(self.pool + row.begin + row.length, 0, (length - row.length) * sizeof(double))
            row.length = length
        return 0

    cdef int put_intercept(self, int32_t slot, double weight) noexcept:
        while self.intercept_count <= <uint32_t>slot:
            self.intercepts[self.intercept_count] = 0.0
            self.intercept_count += 1
        self.intercepts[slot] = weight
        return 0

    cdef int reserve_intercepts(self, uint32_t count) except -1:
        cdef void *more
        if count > self.intercept_room:
            more = realloc(self.intercepts, 2 * <size_t>count * sizeof(double))
            if more == NULL:
                raise MemoryError()
            self.intercepts, self.intercept_room = <double *>more, 2 * count
        return 0

    cdef int move_seen(self, Py_ssize_t terms, const double *signs, const int32_t *slots, double length,
                       double norm) except -1:
        """Add length * sign * (record in hand / norm) to each of these slots, which differ; ValueError, nothing moved, if
        a weight would not be finite."""
        cdef Py_ssize_t i, t
        cdef int32_t name, highest = 0
        cdef double value, move, tau
        cdef bint ordinary = LEAST_NORM <= norm <= LARGEST_NORM
        for t in range(terms):
            highest = max(highest, slots[t])
            move, tau = signs[t] * length, signs[t] * length / norm
            for i in range(hand.count):
                value = hand.seen[i].value
                value = number_at(self, hand.seen[i].slot, slots[t]) + (tau * value if ordinary else move * (value / norm))
                if value - value != 0.0:
                    name_of = self.name_seen(i)
                    raise ValueError(f"the weight of feature {name_of!r} would not be finite; nothing was learned")
            if self._extra:
                value = (self.intercepts[slots[t]] if <uint32_t>slots[t] < self.intercept_count else 0.0) + tau
                if value - value != 0.0:
                    raise ValueError("the intercept would not be finite; nothing was learned")
        if self.journal != NULL:
            for t in range(terms):
                self.note(slots[t])
        self.make_way(highest + 1)
        for t in range(terms):
            move, tau = signs[t] * length, signs[t] * length / norm
            for i in range(hand.count):
                value, name = hand.seen[i].value, hand.seen[i].slot
                if value != 0.0:
                    value = tau * value if ordinary else move * (value / norm)
                    put_number(self, name, slots[t], number_at(self, name, slots[t]) + value)
            if self._extra:
                value = self.intercepts[slots[t]] if <uint32_t>slots[t] < self.intercept_count else 0.0
                self.put_intercept(slots[t], value + tau)
        return 0

    cdef int make_way(self, uint32_t length) except -1:
        """Give each name in hand that moves a row with room for `length` numbers, and as many intercepts room: nothing can
        fail afterwards. A value of 0 brings no name."""
        cdef Py_ssize_t i
        cdef int32_t name
        cdef size_t names = 0, numbers = 0
        self.reserve_seen(False)
        for i in range(hand.count):
            if hand.seen[i].value != 0.0:
                names += hand.seen[i].slot < 0
                numbers += self.wanted(hand.seen[i].slot, length)
        if names or numbers:
            self.reserve_rows(names, numbers)
        self.reserve_intercepts(length)
        for i in range(hand.count):
            name = hand.seen[i].slot
            if hand.seen[i].value == 0.0:
                continue
            if name < 0:
                name = self.insert_seen(i, 0.0)
                self.rows[name].begin, self.rows[name].length = self.used, 0
                self.rows[name].room = max(length, self.labels)
                self.used += self.rows[name].room
            self.widen(name, length)
        return 0

    # What a batch asks for; see `_pairs.pyx`.

    cdef int look_up(self, object names, Py_ssize_t width, int32_t *slots) except -1:
        """The slots of the names of columns, -1 where there is none."""
        cdef Py_ssize_t j, length
        cdef const uint8_t *text
        for j in range(width):
            spelled = _pack.name_bytes(names[j])
            text, length = <const uint8_t *>PyBytes_AS_STRING(spelled), PyBytes_GET_SIZE(spelled)
            slots[j] = arena_find(&self.arena, text, length, arena_hash(text, length, SEED))
        return 0

    cdef int bring(self, object names, const int32_t *order, Py_ssize_t fresh, int32_t *slots) except -1:
        """Add the names of the columns in `order`, with empty rows."""
        cdef Py_ssize_t j, length
        cdef const uint8_t *text
        cdef list spelled = [_pack.name_bytes(names[order[j]]) for j in range(fresh)]
        if spelled and arena_reserve(&self.arena, len(spelled), sum(map(len, spelled)), 0, SEED) < 0:
            raise MemoryError("the model has no room for more feature names")
        self.reserve_rows(fresh, 0)
        for j in range(fresh):
            text, length = <const uint8_t *>PyBytes_AS_STRING(spelled[j]), PyBytes_GET_SIZE(spelled[j])
            slots[order[j]] = arena_insert(&self.arena, text, length, arena_hash(text, length, SEED), 0.0)
            memset(&self.rows[slots[order[j]]], 0, sizeof(Row))
        return 0

    # The interface of `stores.MultiStore`, as the variants and the tests use it.

    def scores(self, phi, Py_ssize_t slots):
        """Return w_slot . phi for the first `slots` slots, intercepts included; `ValueError` if one is not finite."""
        cdef double *found
        cdef Py_ssize_t i
        self.measure(phi)
        found = self.score_seen(slots)
        return [found[i] for i in range(slots)]

    def norm(self, phi):
        """Return the length of phi in one slot, intercept included."""
        self.measure(phi)
        return self.length_of_seen()

    def add(self, terms, double length, double norm):
        """Add length * (sum of terms) / norm; `ValueError`, and nothing moves, if a weight would not be finite."""
        phi = terms[0].phi
        slots = [term.slot for term in terms]
        cdef const double[::1] signs = np.array([term.sign for term in terms], np.float64)
        cdef const int32_t[::1] places = np.array(slots, np.int32)
        if len(set(slots)) == len(slots) and all([term.phi is phi for term in terms]):
            self.measure(phi)
            self.move_seen(signs.shape[0], &signs[0], &places[0], length, norm)
            return
        undo = self.mark([term.phi for term in terms])
        try:
            for at in sorted(range(len(slots)), key=lambda at: slots.index(slots[at])):
                self.measure(terms[at].phi)
                self.move_seen(1, &signs[at], &places[at], length, norm)
        except ValueError:
            undo()
            raise

    def mark(self, phis):
        """Return a function that restores what moves from now on may change, for as long as somebody holds it: the undo
        of a batch. It listens to the moves, so it need not know `phis`."""
        return Undo(self)

    cdef int note(self, int32_t cell) except -1:
        """Let who listens note a place in the rows of the record in hand, before it moves."""
        cdef void *listener = self.journal
        while listener != NULL:
            (<Undo>listener).note(cell)
            listener = (<Undo>listener).outer
        return 0

    def lines(self, X):
        """Return the rows of a plain table as this store takes them, or None."""
        return self.lines_of(X)

    cdef Lines lines_of(self, object X):
        if self.columns is None:
            self.columns = ColumnSlots.__new__(ColumnSlots)
        return lines_of(self, self.columns, X)

    cdef int truncate(self, uint32_t count) except -1:
        """Keep the first `count` names only: those that a refused batch brought stand last."""
        if count < self.arena.count:
            arena_truncate(&self.arena, count, SEED)
        self.renew()
        return 0

    def weights(self, int32_t slot):
        """Return the weights of a slot that are not 0, a fresh dict, without the intercept."""
        cdef uint32_t name
        return {self.name(name): number_at(self, name, slot) for name in range(self.arena.count) if number_at(self, name, slot)}

    def intercept(self, uint32_t slot):
        """Return the weight of the constant feature in a slot; 0.0 if there is none."""
        return self.intercepts[slot] if slot < self.intercept_count else 0.0

    @property
    def slots(self):
        """How many slots hold anything: the highest that ever moved, plus 1."""
        cdef uint32_t name, highest = self.intercept_count
        for name in range(self.arena.count):
            highest = max(highest, self.rows[name].length)
        return highest

    def get_state(self):
        """Return what `set_state` needs, as plain values; the bytes are those of `RowStore.get_state`."""
        cdef uint32_t name, count = self.arena.count
        cdef int64_t[::1] lengths = np.empty(count, np.int64)
        cdef size_t total = 0, done = 0
        cdef double[::1] weights
        for name in range(count):
            lengths[name] = self.rows[name].length
            total += self.rows[name].length
        weights = np.empty(total)
        for name in range(count):
            if self.rows[name].length:
                memcpy(&weights[done], self.pool + self.rows[name].begin, self.rows[name].length * sizeof(double))
            done += self.rows[name].length
        intercepts = np.array([self.intercepts[name] for name in range(self.intercept_count)], np.float64)
        return {"names": self.block(), "lengths": lengths.base, "weights": weights.base, "intercepts": intercepts}

    def set_state(self, values):
        """Take over a state; `StateError` if it is not one. Every length is checked before it is used."""
        block, flat, lengths = values["names"], _pack.finite_vector(values["weights"]), values["lengths"]
        outer = _pack.finite_vector(values["intercepts"])
        cdef uint32_t count = names_in(block), name
        if not (isinstance(lengths, np.ndarray) and lengths.dtype == np.int64 and lengths.shape == (count,)):
            raise _pack.StateError("the lengths of the rows are missing")
        if not ((lengths > 0) & (lengths <= len(flat))).all() or sum(lengths.tolist()) != len(flat):
            raise _pack.StateError("the lengths of the rows do not add up")
        cdef const double[::1] weights = np.ascontiguousarray(flat), intercepts = np.ascontiguousarray(outer)
        cdef const int64_t[::1] sizes = np.ascontiguousarray(lengths)
        cdef RowArena fresh = RowArena.__new__(RowArena)
        fresh.fill(<const uint8_t *>PyBytes_AS_STRING(block), count, NULL)
        fresh.reserve_rows(0, weights.shape[0])
        fresh.reserve_intercepts(<uint32_t>intercepts.shape[0])
        for name in range(count):
            fresh.rows[name].begin = fresh.used
            fresh.rows[name].length = fresh.rows[name].room = <uint32_t>sizes[name]
            fresh.used += sizes[name]
        if weights.shape[0]:
            memcpy(fresh.pool, &weights[0], weights.shape[0] * sizeof(double))
        for name in range(<uint32_t>intercepts.shape[0]):
            fresh.put_intercept(name, intercepts[name])
        self.swap(fresh)

    cdef swap(self, RowArena other):
        self.arena, other.arena = other.arena, self.arena
        self.rows, other.rows = other.rows, self.rows
        self.pool, other.pool = other.pool, self.pool
        self.intercepts, other.intercepts = other.intercepts, self.intercepts
        self.rows_room, self.used, self.size = other.rows_room, other.used, other.size
        self.intercept_count, self.intercept_room, self.labels = other.intercept_count, other.intercept_room, other.labels
        self.renew()

    def __deepcopy__(self, memo):
        twin = type(self)(bool(self._extra))
        twin.set_state(self.get_state())
        return twin

    def __reduce__(self):
        # by way of a function that also runs where there is no compiled core
        return _compiled.restored_rows, (bool(self._extra), self.get_state())

    def __sizeof__(self):
        return (object.__sizeof__(self) + arena_bytes(&self.arena) + self.rows_room * sizeof(Row)
                + (self.size + self.intercept_room) * sizeof(double)
                + (0 if self.columns is None else self.columns.__sizeof__()))



# A number of a row as it was before it moved; NaN: there was none, and `at` is how long the row was.
ctypedef struct Note:
    uint32_t name, at
    double number


# The notes of the last batch: fresh pages would cost more than all the rest. Larger ones are given back.
cdef Note *spare = NULL
cdef size_t spare_room = 0
cdef size_t LARGE_NOTES = 1 << 22


@cython.no_gc  # it holds nothing that could hold it, and needs its store to the end
cdef class Undo:
    """What moves changed, noted before each; called, it takes them back and forgets the names that are new.

    Where the notes would outgrow the model, a copy of its rows takes the place of any more.
    """

    cdef RowArena store
    cdef void *outer  # who listened before and still does, a borrowed reference
    cdef Note *notes
    cdef size_t noted, room
    cdef Row *rows  # the copy of `count` rows and `used` numbers
    cdef double *pool
    cdef size_t used
    cdef uint32_t count
    cdef bytes intercepts

    def __cinit__(self, RowArena store):
        global spare, spare_room
        self.store, self.count = store, store.arena.count
        self.notes, self.room, spare, spare_room = spare, spare_room, NULL, 0
        self.intercepts = (<char *>store.intercepts)[:store.intercept_count * sizeof(double)] \
            if store.intercept_count else b""
        self.outer, store.journal = store.journal, <void *>self

    def __dealloc__(self):
        global spare, spare_room
        self.leave()
        if spare == NULL and self.room <= LARGE_NOTES:
            spare, spare_room = self.notes, self.room
        else:
            free(self.notes)
        free(self.rows)
        free(self.pool)

    cdef void leave(self) noexcept:
        """Listen no more."""
        cdef void *listener = self.store.journal
        if listener == <void *>self:
            self.store.journal = self.outer
        while listener != NULL:
            if (<Undo>listener).outer == <void *>self:
                (<Undo>listener).outer = self.outer
                break
            listener = (<Undo>listener).outer

    cdef int note(self, int32_t at) except -1:
        cdef Py_ssize_t i
        cdef int32_t name
        cdef Row *row
        cdef Note *note
        cdef void *more
        if self.rows != NULL:
            return 0
        if self.noted + hand.count > self.room:
            if self.noted * sizeof(Note) > LEAST_NOTES + self.store.used * sizeof(double):
                return self.copy()
            more = realloc(self.notes, 2 * (self.noted + hand.count) * sizeof(Note))
            if more == NULL:
                raise MemoryError()
            self.notes, self.room = <Note *>more, 2 * (self.noted + hand.count)
        for i in range(hand.count):
            name = hand.seen[i].slot
            if name < 0 or <uint32_t>name >= self.count or hand.seen[i].value == 0.0:
                continue
            row, note = &self.store.rows[name], &self.notes[self.noted]
            note.name = <uint32_t>name
            if <uint32_t>at < row.length:
                note.at, note.number = at, self.store.pool[row.begin + at]
            else:
                note.at, note.number = row.length, NAN
            self.noted += 1
        return 0

    cdef int copy(self) except -1:
        cdef RowArena store = self.store
        self.rows = <Row *>malloc((self.count + 1) * sizeof(Row))
        self.pool = <double *>malloc((store.used + 1) * sizeof(double))
        if self.rows == NULL or self.pool == NULL:
            raise MemoryError()
        memcpy(self.rows, store.rows, self.count * sizeof(Row))
        memcpy(self.pool, store.pool, store.used * sizeof(double))
        self.used = store.used
        return 0

    def __call__(self):
        cdef RowArena store = self.store
        cdef Note *note
        cdef Row *row
        self.leave()
        if store.arena.count < self.count or store.size < self.used:
            raise RuntimeError("the model was replaced while it learned a batch")
        if self.rows != NULL:
            memcpy(store.rows, self.rows, self.count * sizeof(Row))
            memcpy(store.pool, self.pool, self.used * sizeof(double))
        while self.noted:
            self.noted -= 1
            note = &self.notes[self.noted]
            row = &store.rows[note.name]
            if note.at <= row.length:
                if note.number != note.number:
                    row.length = note.at
                elif note.at < row.length:
                    store.pool[row.begin + note.at] = note.number
        store.reserve_intercepts(<uint32_t>(len(self.intercepts) // sizeof(double)))
        store.intercept_count = <uint32_t>(len(self.intercepts) // sizeof(double))
        if store.intercept_count:
            memcpy(store.intercepts, PyBytes_AS_STRING(self.intercepts), len(self.intercepts))
        store.truncate(self.count)
