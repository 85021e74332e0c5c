# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic, auto_pickle=False
"""The names of a compiled store: `Names`, a map from feature names to slots (`_arena.h`), and the scan of a record.

What is unusual (other mappings and values, text, names that are no str or int) goes through `features.canonical` first.

What the scan of a record finds lies in one module-wide table, `hand`, until the next scan; no Python code may run
between a scan and what uses it. The module is not marked as safe for free-threaded builds, so those switch their lock
back on when it is imported.
"""

from cpython.object cimport PyObject
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy, memset

from pa_river._blocks cimport as_spelled, bytes_of, plain
from pa_river._laws cimport LARGEST_SQUARE, LEAST_SQUARE

import sys

import numpy as np

from pa_river import _pack
from pa_river.features import canonical

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
    bint likely(bint)  # Cython's own

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
SEED = <uint64_t>(hash("pa_river") & 0xFFFFFFFFFFFFFFFF)

# np.float64 is a float in memory too, and what rows of numpy arrays bring.
cdef object float64 = np.float64
cdef void *FLOAT64 = <void *>float64

# What stands in the place of a slot: no such name, not looked up, not hashed either.
cdef enum:
    ABSENT = -1
    NO_SLOT = -2
    NO_HASH = -3

# Names that are looked up at a time; and the table, in places, from which on that goes by stages.
cdef enum:
    BLOCK = 64
    FAR = 1 << 13

cdef list texts_in_hand = None  # the encoded names of a record that came through `canonical`

cdef uint8_t int_text[10]
int_text[0], int_text[1] = 0xFF, c"i"


cdef int make_room(Py_ssize_t count) except -1:
    cdef Py_ssize_t room = count + count // 2 + 16
    cdef void *more = realloc(hand.seen, room * sizeof(Seen))
    if more == NULL:
        raise MemoryError()
    hand.seen = <Seen *>more
    memset(hand.seen + hand.room, 0, (room - hand.room) * sizeof(Seen))
    more = realloc(hand.before, room * sizeof(double))
    if more == NULL:
        raise MemoryError()
    hand.before = <double *>more
    more = realloc(hand.fresh, room * sizeof(int32_t))
    if more == NULL:
        raise MemoryError()
    hand.fresh = <int32_t *>more
    hand.room = room
    return 0


cdef int open_hand(Py_ssize_t count) except -1:
    """Begin a record of at most `count` features that no scan brings: slots are then good for it alone."""
    global texts_in_hand
    if count > hand.room:
        make_room(count)
    hand.owner, hand.known, hand.count, texts_in_hand = 0, 0, 0, None
    hand.stamp += 1
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
    """The bytes of the i-th name in hand."""
    if texts_in_hand is None:
        return text_of(hand.seen[i].key, length)
    length[0] = PyBytes_GET_SIZE(texts_in_hand[i])
    return <const uint8_t *>PyBytes_AS_STRING(texts_in_hand[i])


cdef uint64_t last_identity = 0


cdef class Names:
    """The names of a model, each with a slot in order of arrival."""

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

    cdef int settle(self) except -1:
        """Bring the arena up to date, where a batch left it behind."""
        return 0

    cdef int measure(self, object x) except -1:
        """Take x in hand: slots, values, plain sum of squares and w . x without an intercept; ValueError if refused."""
        cdef Py_ssize_t i
        cdef list texts
        cdef dict clean
        if self.loose:
            self.settle()
        if type(x) is not dict or not self.scan(<dict>x, None):
            clean = canonical(x)
            texts = [_pack.name_bytes(name) for name in clean]
            self.scan(clean, texts)
        elif hand.square - hand.square != 0.0:  # NaN or inf among the values, or only in their squares
            for i in range(hand.count):
                if hand.seen[i].value - hand.seen[i].value != 0.0:
                    canonical(x)  # raises, naming the feature
        return 0

    cdef int scan(self, dict x, list texts) except -1:
        """Return 1, x in hand; or 0 where a name or value is not plain. `texts`: the encoded names, if it has to be.

        A key at the place where it stood in the last record costs a comparison of pointers: names that were there keep
        their slots, and names that were not are still new as long as none was added. Others are looked up at once: the
        processor overlaps the cache misses of neighbouring names by itself. Only where the arena is far larger than the
        cache are they left to `find_far`.
        """
        global texts_in_hand
        cdef Py_ssize_t size = PyDict_Size(x), at = 0, length = 0, left = 0, absent = 0
        cdef PyObject *key
        cdef PyObject *value
        cdef Seen *f
        cdef Seen *known
        cdef Seen *last
        cdef const uint8_t *text
        cdef Arena *arena = &self.arena
        cdef double number, square = 0.0, score = 0.0
        cdef bint more, far = arena.mask >= FAR and texts is None
        if size > hand.room:
            make_room(size)
        f = known = last = hand.seen
        if hand.owner == self.identity and texts is None:
            known += hand.known
            if hand.names == arena.count:
                last += hand.count
        hand.owner, hand.known, hand.count, texts_in_hand = self.identity, 0, 0, texts
        hand.stamp += 1
        more = PyDict_Next(x, &at, &key, &value)
        while more and likely(f < last and f.key == key and PyFloat_CheckExact(value)):
            number = PyFloat_AS_DOUBLE(value)
            f.value = number
            square += number * number
            score += number * arena_weight(arena, f.slot)
            absent += f.slot < 0
            f += 1
            more = PyDict_Next(x, &at, &key, &value)
        while more:
            if likely(PyFloat_CheckExact(value) or type_of(value) == FLOAT64):
                number = PyFloat_AS_DOUBLE(value)
            elif PyLong_CheckExact(value) or PyBool_Check(value):
                number = PyLong_AsDouble(value)
                if number == -1.0 and PyErr_Occurred() != NULL:  # an int beyond float range
                    PyErr_Clear()
                    return 0
            else:
                return 0
            if f.key != key or not (f < last or f < known and f.slot >= 0):
                if far:
                    left += 1
                    if f.key != key:
                        prefetch(<char *>key + 48)  # its text
                        incref(key)
                        xdecref(f.key)
                        f.key, f.slot = key, NO_HASH
                    elif f.slot != NO_HASH:
                        f.slot = NO_SLOT
                else:
                    if texts is None:
                        text = text_of(key, &length)
                        if text == NULL:
                            return 0
                        if f.key != key or f.slot == NO_HASH:
                            incref(key)
                            xdecref(f.key)
                            f.key = key
                            f.hash = arena_hash(text, length, SEED)
                    else:
                        xdecref(f.key)
                        f.key = NULL
                        text = text_at(f - hand.seen, &length)
                        f.hash = arena_hash(text, length, SEED)
                    f.slot = arena_find(arena, text, length, f.hash)
            f.value = number
            square += number * number
            score += number * arena_weight(arena, f.slot)
            absent += f.slot < 0
            f += 1
            more = PyDict_Next(x, &at, &key, &value)
        hand.count = f - hand.seen
        if left:
            if not self.find_far():
                hand.count = 0
                return 0
            score, absent = 0.0, 0
            for f in hand.seen[:hand.count]:
                score += f.value * arena_weight(arena, f.slot)
                absent += f.slot < 0
        hand.known = max(known - hand.seen, hand.count)  # what lies behind this record is from the same owner
        hand.names, hand.absent, hand.square, hand.score = arena.count, absent, square, score
        return 1

    cdef int find_far(self) noexcept:
        """Look up what a scan left open, in stages, each of which asks for the memory of the next; return 0 where a name is
        not plain."""
        cdef Arena *arena = &self.arena
        cdef Seen *f
        cdef const uint8_t *text
        cdef Py_ssize_t length = 0, i, j, left, found, begin
        cdef int32_t open[BLOCK]
        for begin in range(0, hand.count, BLOCK):
            left = found = 0
            for i in range(begin, min(begin + BLOCK, hand.count)):
                f = &hand.seen[i]
                if f.slot < ABSENT:
                    if f.slot == NO_HASH:
                        text = text_of(f.key, &length)
                        if text == NULL:
                            return 0
                        f.hash = arena_hash(text, length, SEED)
                        f.slot = NO_SLOT
                    arena_ask_place(arena, f.hash)
                    open[left] = i
                    left += 1
            for j in range(left):
                f = &hand.seen[open[j]]
                f.slot = arena_first(arena, f.hash)
                arena_ask_entry(arena, f.slot)
                open[found] = open[j]
                found += f.slot >= 0
            for j in range(found):
                arena_ask_name(arena, hand.seen[open[j]].slot)
            for j in range(found):
                f = &hand.seen[open[j]]
                text = text_of(f.key, &length)
                if not arena_named(arena, f.slot, text, length):
                    f.slot = arena_find(arena, text, length, f.hash)
        return 1

    cdef int32_t seat(self, Py_ssize_t i, object name) except -2:
        """Put a str or int in the i-th place of the hand and return its slot, -1 where the model has no such name."""
        cdef Py_ssize_t length = 0
        cdef Seen *f = &hand.seen[i]
        cdef const uint8_t *text = text_of(<PyObject *>name, &length)
        if text == NULL:
            raise ValueError(f"the feature name {name!r} has no bytes of its own")
        incref(<PyObject *>name)
        xdecref(f.key)
        f.key, f.hash = <PyObject *>name, arena_hash(text, length, SEED)
        f.slot = arena_find(&self.arena, text, length, f.hash)
        return f.slot

    cdef uint64_t stamp(self) noexcept:
        """The number of the last scan: while it stays, the record in hand is the same."""
        return hand.stamp

    cdef double length_of_seen(self) noexcept:
        """The Euclidean length of the record in hand, intercept included; see `_loops.norm`."""
        cdef double square = hand.square + self._extra, largest, part
        cdef Py_ssize_t i
        if LEAST_SQUARE <= square <= LARGEST_SQUARE:
            return sqrt(square)
        largest = 1.0 if self._extra else 0.0
        for i in range(hand.count):
            largest = max(largest, fabs(hand.seen[i].value))
        if largest == 0.0:
            return 0.0
        square = 0.0
        for i in range(hand.count):
            part = hand.seen[i].value / largest
            square += part * part
        return largest * sqrt(square + self._extra / largest / largest)

    cdef size_t reserve_seen(self, bint zeros) except? 1:
        """Make room for the names in hand that are new, those with `zeros` too or not, and return how many there are."""
        cdef Py_ssize_t i, text_length = 0, names = 0
        cdef size_t room = 0
        hand.news = 0
        if hand.absent == 0:
            return 0
        for i in range(hand.count):  # no branches: which names are new is anybody's guess
            hand.fresh[names] = i
            names += (hand.seen[i].slot < 0) & (zeros | (hand.seen[i].value != 0.0))
        for i in range(names):
            text_at(hand.fresh[i], &text_length)
            room += text_length
        if names and arena_reserve(&self.arena, names, room, 0, SEED) < 0:
            raise MemoryError("the model has no room for more feature names")
        hand.news = names
        return names

    cdef int insert_seen(self, Py_ssize_t i, double weight) noexcept:
        """Add the i-th name in hand, after `reserve_seen`."""
        cdef Py_ssize_t text_length = 0
        cdef const uint8_t *text = text_at(i, &text_length)
        hand.seen[i].slot = arena_insert(&self.arena, text, text_length, hand.seen[i].hash, weight)
        return hand.seen[i].slot

    cdef object name_seen(self, Py_ssize_t i):
        if texts_in_hand is not None:
            return _pack.name_of(texts_in_hand[i])
        return <object>hand.seen[i].key if hand.seen[i].key != NULL else self.name(hand.seen[i].slot)

    cdef object name(self, uint32_t slot):
        cdef const char *text = <const char *>self.arena.blob + self.arena.entries[slot].begin
        cdef Py_ssize_t length = arena_length(&self.arena, slot)
        if length and <uint8_t>text[0] == 0xFF:
            return _pack.name_of(PyBytes_FromStringAndSize(text, length))
        return PyUnicode_DecodeUTF8(text, length, b"surrogatepass")

    cdef object block(self):
        """The names as `_pack.pack_names` packs them."""
        cdef uint32_t count = self.arena.count
        cdef object block = PyBytes_FromStringAndSize(NULL, 4 + 4 * <Py_ssize_t>count + self.arena.used)
        cdef uint8_t *to = <uint8_t *>PyBytes_AS_STRING(block)
        memcpy(to, &count, 4)
        arena_spill_names(&self.arena, to + 4)
        return block

    cdef int fill(self, const uint8_t *block, uint32_t count, const uint8_t *weights) except -1:
        """Insert the names of a checked block, with weights that may lie at any address; NULL: weight 0."""
        cdef const uint8_t *text = block + 4 + 4 * <size_t>count
        cdef size_t left = bytes_of(block + 4, count)
        if arena_reserve(&self.arena, count, left, 1, SEED) < 0:
            raise MemoryError("the model has too many feature names")
        if not as_spelled(block, count, left):
            return self.fill_spelled(block, count, weights, left)
        if arena_fill(&self.arena, block + 4, count, text, left, weights, SEED) < 0:
            raise _pack.StateError("a feature name is stored twice")
        return 0

    cdef int fill_spelled(self, const uint8_t *block, uint32_t count, const uint8_t *weights, size_t left) except -1:
        """`fill`, after it has made room, where a name may be spelled in another way than here."""
        cdef const uint8_t *text = block + 4 + 4 * <size_t>count
        cdef const uint8_t *own
        cdef uint32_t i, length
        cdef double weight = 0.0
        for i in range(count):
            memcpy(&length, block + 4 + 4 * <size_t>i, 4)
            if weights != NULL:
                memcpy(&weight, weights + 8 * <size_t>i, 8)
            own = text
            text += length
            left -= length
            if not plain(own, length):
                # one spelling a name: whoever made the bytes may have known another
                spelled = _pack.name_bytes(_pack.name_of(PyBytes_FromStringAndSize(<const char *>own, length)))
                own, length = <const uint8_t *>PyBytes_AS_STRING(spelled), <uint32_t>PyBytes_GET_SIZE(spelled)
                if arena_reserve(&self.arena, count - i, left + length, 0, SEED) < 0:
                    raise MemoryError("the model has too many feature names")
            if arena_add(&self.arena, own, length, arena_hash(own, length, SEED), weight) < 0:
                raise _pack.StateError("a feature name is stored twice")
        return 0

    cdef int copy_names(self, Names source) except -1:
        source.settle()
        if arena_copy(&self.arena, &source.arena, SEED) < 0:
            raise MemoryError()
        self._extra = source._extra
        return 0

    def __copy__(self):
        return self.__deepcopy__({})

    def __len__(self):
        self.settle()
        return self.arena.count
