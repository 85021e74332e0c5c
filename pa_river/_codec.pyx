# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""`state.dumps` and `state.loads` of a compiled flat model in one go: the same bytes, without an object a name or field.

Between two events an operator may decode, learn and encode, so this is a hot path too. What stands before the learned
state (class and parameters) is the same for every model of a job: it is packed once, by `state.py`, and compared as
bytes from then on. Whatever is not exactly of this shape gets None, and `state.py` takes the long way, which also words
the errors.
"""

from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from pa_river._arena cimport ArenaStore
from pa_river._names cimport arena_length
from pa_river._native cimport ScoreCore

import zlib

from pa_river import _pack, state, steps

cdef extern from "Python.h":
    object PyBytes_FromStringAndSize(const char *, Py_ssize_t)
    char *PyBytes_AS_STRING(object)
    Py_ssize_t PyBytes_GET_SIZE(object)

# The body as `_pack.pack` writes it, cut at its five holes: version, names, weights, intercept, and what comes before.
cdef bytes VERSION = b"d" + b"\2\0\0\0" + _pack.pack("version") + b"i"
cdef bytes NAMES = _pack.pack("store") + b"d" + b"\3\0\0\0" + _pack.pack("names") + b"b"
cdef bytes WEIGHTS = _pack.pack("weights") + b"a" + b"\1\0\0\0"
cdef bytes INTERCEPT = _pack.pack("intercept") + b"f"
cdef bytes HEADER = state._HEADER.pack(state._MAGIC, state._VERSION, 0, 0)[:8]
cdef Py_ssize_t BODY = 12  # where the body begins: after the header and its checksum

# (class, parameters) -> what comes before the learned state; and those bytes -> how to make such a model.
cdef dict prefixes = {}
cdef dict templates = {}
cdef Py_ssize_t MOST = 64
cdef bytes last_prefix = None


cdef object signature_of(ScoreCore model):
    """What tells parameters apart, or None where they are not plain."""
    rule = model.chosen
    kind = type(rule)
    if rule is not None and kind is not steps.PA and kind is not steps.PA1 and kind is not steps.PA2:
        return None
    for value in model.__dict__.values():
        if not (value is None or type(value) is bool or type(value) is float):
            return None
    return (type(model), kind, getattr(rule, "C", None), tuple(model.__dict__.items()))


cdef bytes prefix_of(ScoreCore model):
    """The packed class and parameters of a model, or None."""
    signature = signature_of(model)
    if signature is None:
        return None
    prefix = prefixes.get(signature)
    if prefix is None:
        if state._classes.get(type(model).__name__) is not type(model):
            return None
        if len(prefixes) >= MOST:
            prefixes.clear()
            templates.clear()
        name, content = state._encode(model)
        if content[1].keys() != {"version", "store"}:
            return None
        prefix = b"t\2\0\0\0" + _pack.pack(name) + b"t\2\0\0\0" + _pack.pack(content[0], state._encode)
        prefixes[signature] = prefix
        rule = model.chosen
        templates[prefix] = (type(model), type(rule), getattr(rule, "C", None), dict(model.__dict__))
    return prefix


cdef inline char *put(char *to, const void *source, size_t size) noexcept:
    memcpy(to, source, size)
    return to + size


def dumps(model):
    """Return the bytes of `state.dumps(model)`, or None."""
    global last_prefix
    if not isinstance(model, ScoreCore) or (<ScoreCore>model).arena is None:
        return None
    cdef ScoreCore core = model
    cdef ArenaStore store = core.arena
    cdef bytes prefix = prefix_of(core)
    if prefix is None:
        return None
    last_prefix = prefix
    store.settle()
    cdef uint32_t count = store.arena.count, slot, length
    cdef size_t block = 4 + 4 * <size_t>count + store.arena.used
    cdef int64_t version = core._version
    if block >= 0xFFFFFFFF:
        return None
    cdef bytes data = PyBytes_FromStringAndSize(
        NULL, BODY + len(prefix) + len(VERSION) + 8 + len(NAMES) + 4 + block + len(WEIGHTS) + 4 + 8 * <size_t>count
        + len(INTERCEPT) + 8)
    cdef char *to = PyBytes_AS_STRING(data)
    to = put(to, PyBytes_AS_STRING(HEADER), 8) + 4
    to = put(to, PyBytes_AS_STRING(prefix), len(prefix))
    to = put(put(to, PyBytes_AS_STRING(VERSION), len(VERSION)), &version, 8)
    length = <uint32_t>block
    to = put(put(put(to, PyBytes_AS_STRING(NAMES), len(NAMES)), &length, 4), &count, 4)
    for slot in range(count):
        length = <uint32_t>arena_length(&store.arena, slot)
        to = put(to, &length, 4)
    if count:
        to = put(to, store.arena.blob, store.arena.used)
    to = put(put(to, PyBytes_AS_STRING(WEIGHTS), len(WEIGHTS)), &count, 4)
    for slot in range(count):
        to = put(to, &store.arena.entries[slot].weight, 8)
    put(put(to, PyBytes_AS_STRING(INTERCEPT), len(INTERCEPT)), &store.intercept, 8)
    length = zlib.crc32(memoryview(data)[BODY:])
    memcpy(PyBytes_AS_STRING(data) + 8, &length, 4)
    return data


cdef class Cursor:
    """A place in bytes; nothing is read beyond their end."""

    cdef const char *at
    cdef Py_ssize_t left

    cdef inline bint skip(self, bytes expected) noexcept:
        """Step over these very bytes, if they come next."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(expected)
        if size > self.left or memcmp(self.at, PyBytes_AS_STRING(expected), size) != 0:
            return False
        self.at += size
        self.left -= size
        return True

    cdef inline bint take(self, void *to, Py_ssize_t size) noexcept:
        if size > self.left:
            return False
        memcpy(to, self.at, size)
        self.at += size
        self.left -= size
        return True


def loads(data):
    """Return the model of `state.loads(data)`, or None."""
    global last_prefix
    if type(data) is not bytes or len(data) < BODY or not templates:
        return None
    cdef Cursor cursor = Cursor.__new__(Cursor)
    cdef uint32_t checksum, block, count, weights, i
    cdef uint32_t length
    cdef int64_t version
    cdef uint64_t total = 0
    cdef double intercept, number
    cdef const char *names
    cdef const char *numbers
    cdef bytes prefix = last_prefix
    cursor.at, cursor.left = PyBytes_AS_STRING(data), len(data)
    if not cursor.skip(HEADER) or not cursor.take(&checksum, 4):
        return None
    if prefix is None or not cursor.skip(prefix):
        for prefix in templates:
            if cursor.skip(prefix):
                break
        else:
            return None
    if checksum != zlib.crc32(memoryview(data)[BODY:]):
        return None
    last_prefix = prefix
    if not (cursor.skip(VERSION) and cursor.take(&version, 8) and version >= 0 and cursor.skip(NAMES)
            and cursor.take(&block, 4) and block >= 4 and block <= cursor.left):
        return None
    names = cursor.at
    memcpy(&count, names, 4)
    if count > (block - 4) // 4:
        return None
    for i in range(count):
        memcpy(&length, names + 4 + 4 * <size_t>i, 4)
        total += length
    if total != block - 4 - 4 * <uint64_t>count:
        return None
    cursor.at += block
    cursor.left -= block
    if not (cursor.skip(WEIGHTS) and cursor.take(&weights, 4) and weights == count
            and <uint64_t>cursor.left == 8 * <uint64_t>count + len(INTERCEPT) + 8):
        return None
    numbers = cursor.at
    for i in range(count):
        cursor.take(&number, 8)
        if not isfinite(number):
            return None
    if not (cursor.skip(INTERCEPT) and cursor.take(&intercept, 8) and isfinite(intercept)):
        return None
    cls, kind, C, attributes = templates[prefix]
    cdef ScoreCore model = cls.__new__(cls)
    model.__dict__.update(attributes)
    if kind is not type(None):
        rule = kind.__new__(kind)
        if C is not None:
            rule.__dict__["C"] = C  # checked when it was first set
        model.chosen = rule
    cdef ArenaStore store = ArenaStore(attributes["learn_intercept"])
    store.fill(<const unsigned char *>names, count, numbers)
    store.intercept = intercept
    model._store = store
    model._version = version
    return model
