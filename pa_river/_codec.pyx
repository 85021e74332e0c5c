# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""`state.dumps` and `state.loads` of a compiled flat model in one go: the same bytes, without an object a name or field.

Between two events an operator may decode, learn and encode, so this is a hot path too. What stands before the learned
state (class and parameters) is the same for every model of a job: it is packed once, by `state.py`, and compared as
bytes from then on. Whatever is not exactly of this shape gets None, and `state.py` takes the long way, which also words
the errors.
"""

from cpython.object cimport PyObject, PyTypeObject
from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from pa_river._arena cimport ArenaStore
from pa_river._blocks cimport bytes_of
from pa_river._names cimport arena_spill_names, arena_spill_weights
from pa_river._native cimport ScoreCore

import zlib

from pa_river import _pack, state, steps

cdef extern from "Python.h":
    object PyBytes_FromStringAndSize(const char *, Py_ssize_t)
    char *PyBytes_AS_STRING(object)
    Py_ssize_t PyBytes_GET_SIZE(object)
    int PyDict_Next(dict, Py_ssize_t *at, PyObject **key, PyObject **value)
    int PyFloat_CheckExact(PyObject *)
    double PyFloat_AS_DOUBLE(PyObject *)
    object PyObject_GenericGetDict(object, void *)
    int PyObject_GenericSetDict(object, object, void *) except -1

cdef extern from "_crc.h":
    bint crc_open()
    uint32_t crc_sum(const uint8_t *data, size_t size)

cdef extern from *:
    """
    /* Whether all of these floats, which may lie at any address, are finite: exponents of ones only carry into the sign. */
    static inline int all_finite_at(const uint8_t *numbers, size_t count) {
        const uint64_t exponent = UINT64_C(0x7FF0000000000000), one = UINT64_C(0x0010000000000000);
        uint64_t found = 0, bits;
        for (size_t i = 0; i < count; i++) {
            memcpy(&bits, numbers + 8 * i, 8);
            found |= (bits & exponent) + one;
        }
        return (found >> 63) == 0;
    }
    """
    bint all_finite_at(const uint8_t *numbers, size_t count)

# The body as `_pack.pack` writes it, cut at its five holes: version, names, weights, intercept, and what comes before.
cdef bytes VERSION = b"d" + b"\2\0\0\0" + _pack.pack("version") + b"i"
cdef bytes NAMES = _pack.pack("store") + b"d" + b"\3\0\0\0" + _pack.pack("names") + b"b"
cdef bytes WEIGHTS = _pack.pack("weights") + b"a" + b"\1\0\0\0"
cdef bytes INTERCEPT = _pack.pack("intercept") + b"f"
cdef bytes HEADER = state._HEADER.pack(state._MAGIC, state._VERSION, 0, 0)[:8]
cdef Py_ssize_t BODY = 12  # where the body begins: after the header and its checksum

cdef bint FOLDS = crc_open()
cdef tuple NOTHING = ()


cdef class Template:
    """What models of a class and its parameters have in common: how to make one, and how its bytes begin."""

    cdef object cls, kind, C
    cdef dict attributes
    cdef bytes prefix
    cdef double extra

    cdef bint fits(self, ScoreCore model) except -1:
        """Whether this is the model's template. A look at pointers; where it says no, the signature may say yes."""
        cdef Py_ssize_t at = 0, place = 0
        cdef PyObject *key
        cdef PyObject *value
        cdef PyObject *own_key
        cdef PyObject *own
        cdef object given
        if type(model) is not self.cls or type(model.chosen) is not self.kind:
            return False
        if model.chosen is not None and self.C is not getattr(model.chosen, "C", None):
            return False
        given = PyObject_GenericGetDict(model, NULL)
        if len(<dict>given) != len(self.attributes):
            return False
        while PyDict_Next(<dict>given, &at, &key, &value):
            PyDict_Next(self.attributes, &place, &own_key, &own)
            if key != own_key or value != own:
                return False
        return True

    cdef ScoreCore make(self):
        """A model without a store, unless its class makes one by itself."""
        cdef ScoreCore model = (<PyTypeObject *>self.cls).tp_new(self.cls, <PyObject *>NOTHING, NULL)
        PyObject_GenericSetDict(model, self.attributes.copy(), NULL)
        if self.kind is not type(None):
            rule = self.kind.__new__(self.kind)
            if self.C is not None:
                rule.__dict__["C"] = self.C  # checked when it was first set
            model.chosen = rule
        return model


# By (class, parameters), and by the bytes of these. The one that came last is asked first.
cdef dict by_signature = {}
cdef dict by_prefix = {}
cdef Py_ssize_t MOST = 64
cdef Template last = None


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


cdef Template template_of(ScoreCore model):
    """The template of a model, or None."""
    cdef Template template
    signature = signature_of(model)
    if signature is None:
        return None
    template = by_signature.get(signature)
    if template is None:
        if state._classes.get(type(model).__name__) is not type(model):
            return None
        if len(by_signature) >= MOST:
            by_signature.clear()
            by_prefix.clear()
        name, content = state._encode(model)
        if content[1].keys() != {"version", "store"}:
            return None
        template = Template.__new__(Template)
        template.prefix = b"t\2\0\0\0" + _pack.pack(name) + b"t\2\0\0\0" + _pack.pack(content[0], state._encode)
        template.cls, template.kind, template.C = type(model), type(model.chosen), getattr(model.chosen, "C", None)
        template.attributes = dict(model.__dict__)
        template.extra = 1.0 if model.__dict__["learn_intercept"] else 0.0
        by_signature[signature] = by_prefix[template.prefix] = template
    return template


cdef uint32_t checksum_of(bytes data) except? 0:
    """The CRC-32 of the body."""
    if FOLDS:
        return crc_sum(<const uint8_t *>PyBytes_AS_STRING(data) + BODY, PyBytes_GET_SIZE(data) - BODY)
    return zlib.crc32(memoryview(data)[BODY:])


cdef inline uint8_t *put(uint8_t *to, const void *source, size_t size) noexcept:
    memcpy(to, source, size)
    return to + size


cdef inline uint8_t *put_bytes(uint8_t *to, bytes source) noexcept:
    return put(to, PyBytes_AS_STRING(source), PyBytes_GET_SIZE(source))


def dumps(model):
    """Return the bytes of `state.dumps(model)`, or None."""
    global last
    if not isinstance(model, ScoreCore) or (<ScoreCore>model).arena is None:
        return None
    cdef ScoreCore core = <ScoreCore>model
    cdef ArenaStore store = core.arena
    cdef Template template = last
    if template is None or not template.fits(core):
        template = template_of(core)
        if template is None:
            return None
        last = template
    store.settle()
    cdef uint32_t count = store.arena.count, block, checksum
    cdef size_t size = 4 + 4 * <size_t>count + store.arena.used
    if size >= 0xFFFFFFFF:
        return None
    block = <uint32_t>size
    cdef bytes data = PyBytes_FromStringAndSize(
        NULL, BODY + len(template.prefix) + len(VERSION) + 8 + len(NAMES) + 4 + size + len(WEIGHTS) + 4
        + 8 * <size_t>count + len(INTERCEPT) + 8)
    cdef uint8_t *to = <uint8_t *>PyBytes_AS_STRING(data)
    to = put_bytes(put_bytes(to, HEADER) + 4, template.prefix)
    to = put(put_bytes(to, VERSION), &core._version, 8)
    to = put(put(put_bytes(to, NAMES), &block, 4), &count, 4)
    to = put_bytes(arena_spill_names(&store.arena, to), WEIGHTS)
    to = arena_spill_weights(&store.arena, put(to, &count, 4))
    put(put_bytes(to, INTERCEPT), &store.intercept, 8)
    checksum = checksum_of(data)
    memcpy(PyBytes_AS_STRING(data) + 8, &checksum, 4)
    return data


# A place in bytes; nothing is read beyond their end.
ctypedef struct Cursor:
    const uint8_t *at
    size_t left


cdef inline bint skip(Cursor *cursor, bytes expected) noexcept:
    """Step over these very bytes, if they come next."""
    cdef size_t size = PyBytes_GET_SIZE(expected)
    if size > cursor.left or memcmp(cursor.at, PyBytes_AS_STRING(expected), size) != 0:
        return False
    cursor.at += size
    cursor.left -= size
    return True


cdef inline bint take(Cursor *cursor, void *to, size_t size) noexcept:
    if size > cursor.left:
        return False
    memcpy(to, cursor.at, size)
    cursor.at += size
    cursor.left -= size
    return True


def loads(data):
    """Return the model of `state.loads(data)`, or None."""
    global last
    if type(data) is not bytes or len(<bytes>data) < BODY or last is None:
        return None
    cdef Cursor cursor
    cdef uint32_t checksum, block, count, weights
    cdef int64_t version
    cdef double intercept
    cdef const uint8_t *names
    cdef const uint8_t *numbers
    cdef Template template = last
    cursor.at, cursor.left = <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)
    if not skip(&cursor, HEADER) or not take(&cursor, &checksum, 4):
        return None
    if not skip(&cursor, template.prefix):
        for template in by_prefix.values():
            if skip(&cursor, template.prefix):
                break
        else:
            return None
    if checksum != checksum_of(<bytes>data):
        return None
    last = template
    if not (skip(&cursor, VERSION) and take(&cursor, &version, 8) and version >= 0 and skip(&cursor, NAMES)
            and take(&cursor, &block, 4) and block >= 4 and block <= cursor.left):
        return None
    names = cursor.at
    memcpy(&count, names, 4)
    if count > (block - 4) // 4 or bytes_of(names + 4, count) != block - 4 - 4 * <uint64_t>count:
        return None
    cursor.at += block
    cursor.left -= block
    if not (skip(&cursor, WEIGHTS) and take(&cursor, &weights, 4) and weights == count
            and cursor.left == 8 * <uint64_t>count + len(INTERCEPT) + 8):
        return None
    numbers = cursor.at
    cursor.at += 8 * <size_t>count
    cursor.left -= 8 * <size_t>count
    if not (all_finite_at(numbers, count) and skip(&cursor, INTERCEPT) and take(&cursor, &intercept, 8)
            and isfinite(intercept)):
        return None
    cdef ArenaStore store = ArenaStore.__new__(ArenaStore)
    store._extra, store.intercept = template.extra, intercept
    store.fill(names, count, numbers)
    cdef ScoreCore model = template.make()
    model.store, model._version = store, version
    model.take()
    return model
