# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""Sentences -> numbers, compiled: `tokens.code` and what `_chain.pyx` reads one sentence by.

What is unusual in a token (other mappings, values and names) goes through `tokens.token` first, which also words what
is refused. Values of 0 are left out: such a feature neither scores nor moves.
"""

from cpython.dict cimport PyDict_Next
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

import numpy as np

from pa_river import tokens as reading
from pa_river.features import canonical

cdef extern from "Python.h":
    PyObject *PyDict_GetItemWithError(object, object) except? NULL
    int PyUnicode_CheckExact(object)
    int PyBool_Check(object)
    double PyLong_AsDouble(PyObject *)
    PyObject *PyErr_Occurred()
    void PyErr_Clear()
    long PyLong_AsLong(object) except? -1

# What rows of numpy arrays bring; a float in memory, too.
cdef object float64 = np.float64

# Up to here a token's names are compared with each other; beyond, a set tells whether one comes twice.
cdef Py_ssize_t FEW = 64


cdef inline bint plain(object name):
    kind = type(name)
    return kind is str or kind is int or kind is bytes or kind is tuple and all(map(plain_part, name))


def plain_part(name):
    """Whether a part of a name that is a tuple is itself a name as it is stored."""
    return plain(name)


cdef class Coder:
    """A growing table of coded tokens: codes and values of their features, one token after the other."""

    def __cinit__(self, dict rows=None):
        self.rows = {} if rows is None else rows
        self.make_room(256)
        self.ends = <int64_t *>realloc(NULL, 64 * sizeof(int64_t))
        if self.ends == NULL:
            raise MemoryError()
        self.room_tokens = 64
        self.forget()

    def __dealloc__(self):
        free(self.codes)
        free(self.values)
        free(self.ends)

    cdef int forget(self) except -1:
        """Begin anew."""
        self.features = self.tokens = 0
        self.ends[0] = 0
        self.ones = True
        self.names, self.numbers = [], {}
        return 0

    cdef int make_room(self, Py_ssize_t features) except -1:
        cdef Py_ssize_t room
        cdef void *more
        if self.features + features <= self.room_features:
            return 0
        room = 2 * (self.features + features)
        more = realloc(self.codes, room * sizeof(int32_t))
        if more == NULL:
            raise MemoryError()
        self.codes = <int32_t *>more
        more = realloc(self.values, room * sizeof(double))
        if more == NULL:
            raise MemoryError()
        self.values = <double *>more
        self.room_features = room
        return 0

    cdef int read(self, object tokens) except -1:
        """Add the tokens of a sentence; `ValueError` that names the token."""
        cdef Py_ssize_t i = 0
        cdef void *more
        if not isinstance(tokens, (list, tuple)):
            reading.sentence(tokens)  # raises
        for token in tokens:
            if self.tokens + 2 > self.room_tokens:
                more = realloc(self.ends, 2 * self.room_tokens * sizeof(int64_t))
                if more == NULL:
                    raise MemoryError()
                self.ends = <int64_t *>more
                self.room_tokens *= 2
            try:
                self.read_token(token)
            except ValueError as error:
                raise ValueError(f"token {i}: {error}") from error
            self.tokens += 1
            self.ends[self.tokens] = self.features
            i += 1
        return 0

    cdef int read_token(self, object token) except -1:
        cdef Py_ssize_t begin = self.features
        if PyUnicode_CheckExact(token):
            self.make_room(1)
            return self.add(token, 1.0)
        if PyList_CheckExact(token) or PyTuple_CheckExact(token):
            if self.read_names(token):
                return 0
        elif type(token) is dict and self.read_mapping(<dict>token):
            return 0
        self.features = begin
        self.read_mapping(canonical(reading.token(token)))
        return 0

    cdef int read_names(self, object token) except -1:
        """Return 1; or 0 where an item is no plain text or comes twice."""
        cdef bint is_list = PyList_CheckExact(token)
        cdef Py_ssize_t n = PyList_GET_SIZE(token) if is_list else PyTuple_GET_SIZE(token), i, j
        cdef Py_ssize_t begin = self.features
        cdef int32_t *own
        cdef int32_t code
        cdef int twice = 0
        cdef object name
        self.make_room(n)
        for i in range(n):
            name = <object>(PyList_GET_ITEM(token, i) if is_list else PyTuple_GET_ITEM(token, i))
            if not PyUnicode_CheckExact(name):
                return 0
            self.add(name, 1.0)
        if n > FEW:
            return len(set(token)) == n
        own = self.codes + begin
        for i in range(1, n):
            code = own[i]
            for j in range(i):
                twice |= own[j] == code
        return not twice

    cdef int read_mapping(self, dict phi) except -1:
        """Return 1; or 0 where a name or value is not plain, as `canonical` would make it."""
        cdef Py_ssize_t at = 0
        cdef PyObject *key
        cdef PyObject *held
        cdef double value
        self.make_room(len(phi))
        while PyDict_Next(phi, &at, &key, &held):
            if PyFloat_CheckExact(<object>held) or type(<object>held) is float64:
                value = PyFloat_AS_DOUBLE(<object>held)
            elif PyLong_CheckExact(<object>held) or PyBool_Check(<object>held):
                value = PyLong_AsDouble(held)
                if value == -1.0 and PyErr_Occurred() != NULL:  # an int beyond float range
                    PyErr_Clear()
                    return 0
            else:
                return 0
            if value - value != 0.0 or not plain(<object>key):
                return 0
            if value != 0.0:
                self.add(<object>key, value)
        return 1

    cdef int32_t[::1] unplaced(self):
        """What `_chain.Loops.place` is while no name without a row has got one."""
        return -1 - np.arange(len(self.names) + 1, dtype=np.int32)

    cdef int add(self, object name, double value) except -1:
        """Add a feature for which there is room."""
        cdef PyObject *found = PyDict_GetItemWithError(self.rows, name)
        cdef int32_t code
        if found != NULL:
            code = <int32_t>PyLong_AsLong(<object>found)
        else:
            found = PyDict_GetItemWithError(self.numbers, name)
            if found != NULL:
                code = -1 - <int32_t>PyLong_AsLong(<object>found)
            else:
                code = -1 - <int32_t>len(self.names)
                self.numbers[name] = len(self.names)
                self.names.append(name)
        self.codes[self.features] = code
        self.values[self.features] = value
        self.ones &= value == 1.0
        self.features += 1
        return 0


def code(X):
    """Return sentences as `tokens.code` does."""
    cdef Coder coder = Coder()
    cdef list ends = [0]
    cdef int32_t[::1] codes
    cdef double[::1] values
    cdef int64_t[::1] bounds
    for number, tokens in enumerate(X):
        try:
            coder.read(tokens)
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from error
        ends.append(coder.tokens)
    codes, bounds = np.empty(coder.features, np.int32), np.empty(coder.tokens + 1, np.int64)
    memcpy(&bounds[0], coder.ends, (coder.tokens + 1) * sizeof(int64_t))
    weights = None
    if coder.features:
        memcpy(&codes[0], coder.codes, coder.features * sizeof(int32_t))
        if not coder.ones:
            values = np.empty(coder.features)
            memcpy(&values[0], coder.values, coder.features * sizeof(double))
            weights = values.base
    return coder.names, ~codes.base, weights, bounds.base, np.array(ends, np.int64)
