# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""The compiled store: `ArenaStore` in the place of `stores.LinearStore`, one weight a name in an arena (`_arena.h`).

The maths stands in `_loops.py` and `stores.py`; here are its loops, in the same order, over slots. What is unusual
(other mappings and values, text, names that are no str or int) goes through `features.canonical` first.

What the scan of a record finds lies in one module-wide table, `seen`, until the next scan; no Python code may run
between a scan and what uses it. The module is not marked as safe for free-threaded builds, so those switch their lock
back on when it is imported.
"""

from cpython.object cimport PyObject
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy, memset

import sys

import numpy as np

from pa_river import _compiled, _pack
from pa_river.features import canonical

cdef extern from "_arena.h" nogil:
    uint32_t arena_hash(const uint8_t *text, size_t length, uint64_t seed)
    int32_t arena_find(const Arena *, const uint8_t *text, size_t length, uint32_t hash)
    int32_t arena_insert(Arena *, const uint8_t *text, size_t length, uint32_t hash, double weight)
    int32_t arena_add(Arena *, const uint8_t *text, size_t length, uint32_t hash, double weight)
    int arena_reserve(Arena *, size_t names, size_t bytes, int exact)
    void arena_open(Arena *)
    void arena_close(Arena *)
    void arena_truncate(Arena *, uint32_t count)
    int arena_copy(Arena *to, const Arena *source)
    size_t arena_bytes(const Arena *)

cdef extern from *:
    """
    /* The UTF-8 of a str: its own bytes where it is ASCII, else CPython's copy, kept with the str. NULL: lone surrogates. */
    static inline const uint8_t *text_of_str(PyObject *key, Py_ssize_t *length) {
        if (PyUnicode_IS_COMPACT_ASCII(key)) {
            *length = PyUnicode_GET_LENGTH(key);
            return (const uint8_t *)PyUnicode_DATA(key);
        }
        const char *text = PyUnicode_AsUTF8AndSize(key, length);
        if (text == NULL) PyErr_Clear();
        return (const uint8_t *)text;
    }
    """
    const uint8_t *text_of_str(PyObject *key, Py_ssize_t *length)

cdef extern from "Python.h":
    int PyDict_Next(dict, Py_ssize_t *at, PyObject **key, PyObject **value)
    Py_ssize_t PyDict_Size(dict) except -1
    int PyFloat_CheckExact(PyObject *)
    double PyFloat_AS_DOUBLE(PyObject *)
    int PyLong_CheckExact(PyObject *)
    int PyBool_Check(PyObject *)
    int PyUnicode_CheckExact(PyObject *)
    double PyLong_AsDouble(PyObject *)
    long long PyLong_AsLongLongAndOverflow(PyObject *, int *overflow)
    PyObject *PyErr_Occurred()
    void *type_of "Py_TYPE"(PyObject *)
    void PyErr_Clear()
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *errors)
    object PyBytes_FromStringAndSize(const char *, Py_ssize_t)
    const char *PyBytes_AS_STRING(object)
    Py_ssize_t PyBytes_GET_SIZE(object)
    void incref "Py_INCREF"(PyObject *)
    void xdecref "Py_XDECREF"(PyObject *)

if sys.byteorder != "little":
    raise ImportError("the compiled core writes its state as it lies in memory, which needs a little-endian machine")

# Python's own secret of this process: hostile names cannot be made to collide. PYTHONHASHSEED=0 fixes it.
cdef uint64_t SEED = <uint64_t>(hash("pa_river") & 0xFFFFFFFFFFFFFFFF)

# np.float64 is a float in memory too, and what rows of numpy arrays bring.
cdef object float64 = np.float64
cdef void *FLOAT64 = <void *>float64

cdef double LEAST_SQUARE = 1e-280, LARGEST_SQUARE = 1e280, LEAST_NORM = 1e-140, LARGEST_NORM = 1e140

# One feature of the record in hand. `key` is a strong reference to a str or int, or NULL.
ctypedef struct Seen:
    PyObject *key
    double value
    uint32_t hash
    int32_t slot

# The record in hand, for all models: a table a model would double the memory of small ones. The i-th key of a record
# is first compared by pointer with the i-th key of the last one, which saves hashing; slots are good only for
# `owner`, and only the first `known` of them.
cdef Seen *seen = NULL
cdef Py_ssize_t seen_room = 0, seen_count = 0, seen_known = 0
cdef uint64_t seen_owner = 0, seen_stamp = 0, last_identity = 0
cdef double seen_square = 0.0, seen_score = 0.0
cdef double *seen_weights = NULL  # the weights before a step, for as long as it may still be refused
cdef list seen_texts = None  # the encoded names of a record that came through `canonical`

cdef uint8_t int_text[10]
int_text[0], int_text[1] = 0xFF, c"i"


cdef int make_room(Py_ssize_t count) except -1:
    global seen, seen_weights, seen_room
    cdef Py_ssize_t room = count + count // 2 + 16
    cdef void *more = realloc(seen, room * sizeof(Seen))
    if more == NULL:
        raise MemoryError()
    seen = <Seen *>more
    memset(seen + seen_room, 0, (room - seen_room) * sizeof(Seen))
    more = realloc(seen_weights, room * sizeof(double))
    if more == NULL:
        raise MemoryError()
    seen_weights = <double *>more
    seen_room = room
    return 0


cdef inline const uint8_t *text_of(PyObject *key, Py_ssize_t *length) noexcept:
    """The bytes under which a str or int is stored, as `_pack.name_bytes` has them; NULL for another name."""
    cdef int overflow = 0
    cdef long long number
    if PyUnicode_CheckExact(key):
        return text_of_str(key, length)
    if PyLong_CheckExact(key):
        number = PyLong_AsLongLongAndOverflow(key, &overflow)
        if overflow == 0:
            memcpy(int_text + 2, &number, 8)
            length[0] = 10
            return int_text
    return NULL


cdef inline const uint8_t *text_at(Py_ssize_t i, Py_ssize_t *length) noexcept:
    """The bytes of the i-th name in `seen`."""
    if seen_texts is None:
        return text_of(seen[i].key, length)
    length[0] = PyBytes_GET_SIZE(seen_texts[i])
    return <const uint8_t *>PyBytes_AS_STRING(seen_texts[i])


cdef class ArenaStore:
    """One weight a feature name, and the intercept as a nameless feature of constant value 1; see `stores.LinearStore`.

    16 bytes a name, its own bytes and 6 to 12 of table. O(len(phi)) time for each method but the states.
    """

    def __cinit__(self, *args):
        arena_open(&self.arena)
        self.renew()

    def __init__(self, bint learn_intercept):
        self._extra = 1.0 if learn_intercept else 0.0

    def __dealloc__(self):
        arena_close(&self.arena)

    cdef void renew(self) noexcept:
        """Take a new identity: slots that were found before are good no more."""
        global last_identity
        last_identity += 1
        self.identity = last_identity
        self.columns = None

    cdef int measure(self, object x) except -1:
        """Fill `seen` with the slots and values of x, its plain sum of squares and its score; ValueError if refused."""
        global seen_texts
        cdef Py_ssize_t i
        cdef list texts
        cdef dict clean
        if type(x) is not dict or not self.scan(<dict>x, None):
            clean = canonical(x)
            texts = [_pack.name_bytes(name) for name in clean]
            self.scan(clean, texts)
        elif seen_square - seen_square != 0.0:  # NaN or inf among the values, or only in their squares
            for i in range(seen_count):
                if seen[i].value - seen[i].value != 0.0:
                    canonical(x)  # raises, naming the feature
        return 0

    cdef int scan(self, dict x, list texts) except -1:
        """Return 1, `seen` filled; or 0 where a name or value is not plain. `texts`: the encoded names, if it has to be.

        One pass looks up, multiplies and squares: the processor overlaps the cache misses of neighbouring names by
        itself (stages with prefetches between them were slower, on a model of 100,000 names too).
        """
        global seen_count, seen_known, seen_owner, seen_square, seen_score, seen_texts, seen_stamp
        cdef Py_ssize_t size = PyDict_Size(x), at = 0, i = 0, length = 0, known
        cdef PyObject *key
        cdef PyObject *value
        cdef const uint8_t *text
        cdef Seen *f
        cdef Arena *arena = &self.arena
        cdef double number, square = 0.0, score = 0.0
        if size > seen_room:
            make_room(size)
        known = seen_known if seen_owner == self.identity and texts is None else 0
        f = seen
        seen_owner, seen_known, seen_count, seen_texts = self.identity, 0, 0, texts
        seen_stamp += 1
        while PyDict_Next(x, &at, &key, &value):
            if PyFloat_CheckExact(value) or type_of(value) == FLOAT64:
                number = PyFloat_AS_DOUBLE(value)
            elif PyLong_CheckExact(value) or PyBool_Check(value):
                number = PyLong_AsDouble(value)
                if number == -1.0 and PyErr_Occurred() != NULL:  # an int beyond float range
                    PyErr_Clear()
                    return 0
            else:
                return 0
            if f.key != key or i >= known or f.slot < 0:
                if texts is None:
                    text = text_of(key, &length)
                    if text == NULL:
                        return 0
                    if f.key != key:
                        incref(key)
                        xdecref(f.key)
                        f.key = key
                        f.hash = arena_hash(text, length, SEED)
                else:
                    xdecref(f.key)
                    f.key = NULL
                    text = text_at(i, &length)
                    f.hash = arena_hash(text, length, SEED)
                f.slot = arena_find(arena, text, length, f.hash)
            f.value = number
            square += number * number
            if f.slot >= 0:
                score += number * arena.entries[f.slot].weight
            i += 1
            f += 1
        seen_count = i
        seen_known = max(known, seen_count)  # what lies behind this record is from the same owner
        seen_square, seen_score = square, score + self.intercept
        return 1

    cdef uint64_t stamp(self) noexcept:
        """The number of the last scan: while it stays, the record in hand is the same."""
        return seen_stamp

    cdef double finite_score(self) except? -1.0:
        if seen_score - seen_score != 0.0:
            raise ValueError("the score would not be finite; nothing was learned")
        return seen_score

    cdef double length_of_seen(self) noexcept:
        """The Euclidean length of the record in hand, intercept included; see `_loops.norm`."""
        cdef double square = seen_square + self._extra, largest, part
        cdef Py_ssize_t i
        if LEAST_SQUARE <= square <= LARGEST_SQUARE:
            return sqrt(square)
        largest = 1.0 if self._extra else 0.0
        for i in range(seen_count):
            largest = max(largest, fabs(seen[i].value))
        if largest == 0.0:
            return 0.0
        square = 0.0
        for i in range(seen_count):
            part = seen[i].value / largest
            square += part * part
        return largest * sqrt(square + self._extra / largest / largest)

    cdef int move(self, double length, double norm) except -1:
        """Add length * (record in hand / norm); ValueError, nothing moved, if a weight would not be finite.

        Weights move in place while the old ones are kept; new names are added last, when nothing can fail any more.
        """
        cdef Arena *arena = &self.arena
        cdef ArenaEntry *entry
        cdef Py_ssize_t i, text_length = 0
        cdef size_t names = 0, room = 0
        cdef double tau = length / norm, move, spread = 0.0, intercept = self.intercept
        cdef bint ordinary = LEAST_NORM <= norm <= LARGEST_NORM
        cdef const uint8_t *text
        for i in range(seen_count):
            if seen[i].slot < 0:
                if seen[i].value != 0.0:
                    text_at(i, &text_length)
                    names += 1
                    room += text_length
        if names and arena_reserve(arena, names, room, 0) < 0:
            raise MemoryError("the model has no room for more feature names")
        for i in range(seen_count):
            move = tau * seen[i].value if ordinary else length * (seen[i].value / norm)
            if seen[i].slot >= 0:
                entry = &arena.entries[seen[i].slot]
                seen_weights[i] = entry.weight
                if seen[i].value != 0.0:
                    entry.weight += move
                    move = entry.weight
            else:
                seen_weights[i] = move
            spread += move - move  # NaN as soon as one weight is not finite
        if self._extra:
            intercept += tau
        if spread != 0.0 or intercept - intercept != 0.0:
            self.refuse(spread != 0.0)
        self.intercept = intercept
        if names:
            for i in range(seen_count):
                if seen[i].slot < 0 and seen[i].value != 0.0:
                    text = text_at(i, &text_length)
                    seen[i].slot = arena_insert(arena, text, text_length, seen[i].hash, seen_weights[i])
        return 0

    cdef int refuse(self, bint weight) except -1:
        """Put the old weights back and raise."""
        cdef Py_ssize_t i, guilty = -1
        cdef ArenaEntry *entry
        for i in range(seen_count):
            if seen[i].slot >= 0:
                entry = &self.arena.entries[seen[i].slot]
                if guilty < 0 and entry.weight - entry.weight != 0.0:
                    guilty = i
                entry.weight = seen_weights[i]
            elif guilty < 0 and seen_weights[i] - seen_weights[i] != 0.0:
                guilty = i
        if not weight:
            raise ValueError("the intercept would not be finite; nothing was learned")
        name = <object>seen[guilty].key if seen_texts is None else _pack.name_of(seen_texts[guilty])
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
        cdef Py_ssize_t i
        cdef uint32_t count = self.arena.count
        before = {}
        for phi in phis:
            self.measure(phi)
            for i in range(seen_count):
                if seen[i].slot >= 0:
                    before[seen[i].slot] = self.arena.entries[seen[i].slot].weight
        return lambda intercept=self.intercept: self.restore(intercept, before, count)

    cdef restore(self, double intercept, dict before, uint32_t count):
        for slot, weight in before.items():
            self.arena.entries[<uint32_t>slot].weight = weight
        self.forget(count, intercept)

    # What a batch asks for; see `_batch.pyx`.

    cdef int32_t column(self, int64_t number) noexcept:
        """The slot of the name `number`, or -1."""
        memcpy(int_text + 2, &number, 8)
        return arena_find(&self.arena, int_text, 10, arena_hash(int_text, 10, SEED))

    cdef int32_t add_column(self, int64_t number) noexcept:
        """Add the name `number`, weight 0, after `reserve_columns`."""
        memcpy(int_text + 2, &number, 8)
        return arena_insert(&self.arena, int_text, 10, arena_hash(int_text, 10, SEED), 0.0)

    cdef int reserve_columns(self, size_t count) except -1:
        if arena_reserve(&self.arena, count, 10 * count, 0) < 0:
            raise MemoryError("the model has no room for more feature names")
        return 0

    cdef int32_t[::1] column_slots(self, Py_ssize_t width):
        """The slot of each column of a sparse matrix, -1 where none is known; kept from one batch to the next."""
        cdef Py_ssize_t known = 0 if self.columns is None else len(self.columns)
        if known < width:
            more = np.full(width, -1, np.int32)
            if known:
                more[:known] = self.columns
            self.columns = more
        return self.columns

    cdef int gather(self, object names, double[::1] weights, int32_t[::1] slots) except -1:
        """Look up the weights of columns, 0 where a name has none, and their slots, -1 where there is none."""
        cdef Py_ssize_t j, length = 0
        cdef const uint8_t *text
        cdef bint counted = type(names) is range
        for j in range(slots.shape[0]):
            if counted:
                slots[j] = self.column(j)
            else:
                spelled = _pack.name_bytes(names[j])
                text, length = <const uint8_t *>PyBytes_AS_STRING(spelled), PyBytes_GET_SIZE(spelled)
                slots[j] = arena_find(&self.arena, text, length, arena_hash(text, length, SEED))
            if slots[j] >= 0:
                weights[j] = self.arena.entries[slots[j]].weight
        return 0

    cdef int scatter(self, object names, double[::1] weights, int32_t[::1] slots, int32_t[::1] order) except -1:
        """Write the weights of columns back; those of `order` are new, in this order."""
        cdef Py_ssize_t j, length = 0
        cdef int32_t column
        cdef const uint8_t *text
        cdef list spelled = [_pack.name_bytes(names[j]) for j in order]
        if spelled and arena_reserve(&self.arena, len(spelled), sum(map(len, spelled)), 0) < 0:
            raise MemoryError("the model has no room for more feature names")
        for j in range(slots.shape[0]):
            if slots[j] >= 0:
                self.arena.entries[slots[j]].weight = weights[j]
        for j in range(order.shape[0]):
            text, length = <const uint8_t *>PyBytes_AS_STRING(spelled[j]), PyBytes_GET_SIZE(spelled[j])
            arena_insert(&self.arena, text, length, arena_hash(text, length, SEED), weights[order[j]])
        return 0

    cdef int forget(self, uint32_t count, double intercept) except -1:
        """Keep the first `count` names only: those that a refused batch brought stand last."""
        arena_truncate(&self.arena, count)
        self.intercept = intercept
        self.renew()
        return 0

    @property
    def weights(self):
        """The weights, a fresh dict: name -> weight."""
        cdef uint32_t slot
        return {self.name(slot): self.arena.entries[slot].weight for slot in range(self.arena.count)}

    cdef object name(self, uint32_t slot):
        cdef const char *text = <const char *>self.arena.blob + self.arena.entries[slot].begin
        cdef Py_ssize_t length = arena_length(&self.arena, slot)
        if length and <uint8_t>text[0] == 0xFF:
            return _pack.name_of(PyBytes_FromStringAndSize(text, length))
        return PyUnicode_DecodeUTF8(text, length, b"surrogatepass")

    def get_state(self):
        """Return what `set_state` needs, as plain values; the bytes are those of `LinearStore.get_state`."""
        cdef uint32_t slot, count = self.arena.count, length
        cdef object block = PyBytes_FromStringAndSize(NULL, 4 + 4 * <Py_ssize_t>count + self.arena.used)
        cdef char *to = <char *>PyBytes_AS_STRING(block)
        cdef double[::1] weights = np.empty(count)
        memcpy(to, &count, 4)
        for slot in range(count):
            length = <uint32_t>arena_length(&self.arena, slot)
            memcpy(to + 4 + 4 * <Py_ssize_t>slot, &length, 4)
            weights[slot] = self.arena.entries[slot].weight
        if count:
            memcpy(to + 4 + 4 * <Py_ssize_t>count, self.arena.blob, self.arena.used)
        return {"names": block, "weights": weights.base, "intercept": self.intercept}

    def set_state(self, values):
        """Take over a state; `StateError` if it is not one. Every length is checked before it is used."""
        block, weights = values["names"], _pack.finite_vector(values["weights"])
        intercept = _pack.finite_float(values["intercept"])
        if not isinstance(block, bytes) or len(block) < 4:
            raise _pack.StateError("a block of names is missing")
        cdef double[::1] numbers = np.ascontiguousarray(weights)
        cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(block)
        cdef uint64_t size = len(block), total = 0
        cdef uint32_t count, i, length
        memcpy(&count, data, 4)
        if count > (size - 4) // 4:
            raise _pack.StateError(f"{count} names in a block of {size} bytes")
        for i in range(count):
            memcpy(&length, data + 4 + 4 * <size_t>i, 4)
            total += length
        if total != size - 4 - 4 * <uint64_t>count:
            raise _pack.StateError("the lengths of the names do not add up")
        if <Py_ssize_t>count != numbers.shape[0]:
            raise _pack.StateError(f"{count} names for {numbers.shape[0]} weights")
        cdef ArenaStore fresh = ArenaStore.__new__(ArenaStore)
        fresh.fill(data, count, <const char *>&numbers[0] if count else NULL)
        self.arena, fresh.arena = fresh.arena, self.arena
        self.intercept = intercept
        self.renew()

    cdef int fill(self, const uint8_t *block, uint32_t count, const char *weights) except -1:
        """Insert the names of a checked block, with weights that may lie at any address."""
        cdef const uint8_t *text = block + 4 + 4 * <size_t>count
        cdef const uint8_t *own
        cdef uint32_t i, length
        cdef size_t left = 0
        cdef double weight
        cdef bint ascii
        for i in range(count):
            memcpy(&length, block + 4 + 4 * <size_t>i, 4)
            left += length
        if arena_reserve(&self.arena, count, left, 1) < 0:
            raise MemoryError("the model has too many feature names")
        ascii = all_ascii(text, left)
        for i in range(count):
            memcpy(&length, block + 4 + 4 * <size_t>i, 4)
            memcpy(&weight, weights + 8 * <size_t>i, 8)
            own = text
            text += length
            left -= length
            if not ascii and not plain(own, length):
                # one spelling a name: whoever made the bytes may have known another
                spelled = _pack.name_bytes(_pack.name_of(PyBytes_FromStringAndSize(<const char *>own, length)))
                own, length = <const uint8_t *>PyBytes_AS_STRING(spelled), <uint32_t>PyBytes_GET_SIZE(spelled)
                if arena_reserve(&self.arena, count - i, left + length, 0) < 0:
                    raise MemoryError("the model has too many feature names")
            if arena_add(&self.arena, own, length, arena_hash(own, length, SEED), weight) < 0:
                raise _pack.StateError("a feature name is stored twice")
        return 0

    def __deepcopy__(self, memo):
        cdef ArenaStore twin = ArenaStore.__new__(ArenaStore)
        if arena_copy(&twin.arena, &self.arena) < 0:
            raise MemoryError()
        twin._extra, twin.intercept = self._extra, self.intercept
        return twin

    def __copy__(self):
        return self.__deepcopy__({})

    def __reduce__(self):
        # by way of a function that also runs where there is no compiled core
        return _compiled.restored_store, (bool(self._extra), self.get_state())

    def __len__(self):
        return self.arena.count

    def __sizeof__(self):
        return object.__sizeof__(self) + arena_bytes(&self.arena)


cdef inline bint all_ascii(const uint8_t *text, size_t length) noexcept:
    cdef size_t i
    cdef uint8_t high = 0
    for i in range(length):
        high |= text[i]
    return high < 0x80


cdef inline bint plain(const uint8_t *text, uint32_t length) noexcept:
    """Whether a stored name is ASCII or a tagged small int: as it is spelled here, with no need of a closer look."""
    return (length == 10 and text[0] == 0xFF and text[1] == c"i") or all_ascii(text, length)
