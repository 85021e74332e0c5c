# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""The methods of `PASequence`, compiled: a sentence or a batch is coded, checked whole, then learned by `_chain.Loops`."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

from pa_river._chain cimport Loops
from pa_river._coder cimport Coder

import numpy as np

from pa_river import batch, labels
from pa_river._validate import example_weight

cdef extern from "Python.h":
    PyObject *PyDict_GetItemWithError(object, object) except? NULL
    int PyUnicode_CheckExact(object)
    int PyLong_CheckExact(object)
    long PyLong_AsLong(object) except? -1


cdef class Gold:
    """Tags as slots, one sentence after the other; `known` is the model's own dict until a new tag comes."""

    cdef dict known
    cdef list held
    cdef bint own
    cdef int32_t *slots
    cdef Py_ssize_t count, room
    cdef PyObject *last[64]  # tags that were looked up, by their addresses; the caller holds them
    cdef int32_t last_slots[64]

    def __cinit__(self, dict known):
        self.known, self.held = known, []

    def __dealloc__(self):
        free(self.slots)

    cdef int read(self, object tags) except -1:
        """Add the tags of a sentence and register the new ones; `ValueError` as `labels.tags` words it."""
        cdef PyObject *found
        cdef void *more
        cdef Py_ssize_t count, at
        if not isinstance(tags, (list, tuple)):
            labels.tags(tags)  # raises
        if type(tags) is not list and type(tags) is not tuple:
            tags = list(tags)
            self.held.append(tags)
        count = len(tags)
        if self.count + count > self.room or self.slots == NULL:
            self.room = 2 * (self.count + count) + 16
            more = realloc(self.slots, self.room * sizeof(int32_t))
            if more == NULL:
                raise MemoryError()
            self.slots = <int32_t *>more
        for tag in tags:
            at = (<size_t><PyObject *>tag >> 4) & 63
            if self.last[at] == <PyObject *>tag:
                self.slots[self.count] = self.last_slots[at]
                self.count += 1
                continue
            if not (PyUnicode_CheckExact(tag) or PyLong_CheckExact(tag)):
                tag = labels.label(tag)
                at = -1
            found = PyDict_GetItemWithError(self.known, tag)
            if found != NULL:
                self.slots[self.count] = <int32_t>PyLong_AsLong(<object>found)
            else:
                if not self.own:
                    self.known, self.own = dict(self.known), True
                self.slots[self.count] = <int32_t>len(self.known)
                self.known[tag] = len(self.known)
            if at >= 0:
                self.last[at], self.last_slots[at] = <PyObject *>tag, self.slots[self.count]
            self.count += 1
        return 0


cdef class Places:
    """The row of each name of some sentences in one store; -1 - its number where it has none."""

    cdef object numbering
    cdef Py_ssize_t rows
    cdef int32_t[::1] of
    cdef int32_t[::1] codes  # the same for each feature, as far as it was known at the last look

    cdef int update(self, store, list names, const int32_t[::1] numbers) except -1:
        """Look up what may have changed since the last time."""
        cdef dict rows = store.rows
        cdef PyObject *found
        cdef int32_t i
        cdef Py_ssize_t f
        cdef bint anew = self.numbering is not store.numbering
        if anew:
            self.of, self.codes = np.empty(len(names), np.int32), np.empty(len(numbers), np.int32)
        elif self.rows == len(rows):
            return 0
        for i in range(<int32_t>len(names)):
            if anew or self.of[i] < 0:
                found = PyDict_GetItemWithError(rows, names[i])
                self.of[i] = -1 - i if found == NULL else <int32_t>PyLong_AsLong(<object>found)
        for f in range(numbers.shape[0]):
            self.codes[f] = self.of[numbers[f]]
        self.numbering, self.rows = store.numbering, len(rows)
        return 0


cdef class Table:
    """Coded sentences with their rows in one store."""

    cdef Places places
    cdef const double[::1] values
    cdef const int64_t[::1] ends
    cdef const int64_t[::1] bounds

    def __cinit__(self, sentences, Loops loops):
        if sentences._placed is None:
            sentences._placed = Places()
        self.places = sentences._placed
        self.places.update(loops.store, sentences.names, sentences.codes)
        self.ends, self.bounds, self.values = sentences.ends, sentences.bounds, sentences.values
        loops.names, loops.place = sentences.names, &self.places.of[0]

    cdef int give(self, Loops loops, Py_ssize_t row) except -1:
        """Give `loops` a sentence in hand."""
        cdef const int64_t *ends = &self.ends[self.bounds[row]]
        cdef const double *values = NULL if self.values is None else &self.values[ends[0]]
        return loops.take(&self.places.codes[ends[0]], values, ends, self.bounds[row + 1] - self.bounds[row])


cdef list predicted(Loops loops, model, list tags):
    """The answer to the sentence in hand."""
    if loops.past_emit != NULL and loops.examples > 0:
        loops.decode_mean()
    else:
        loops.decode_now()
    return loops.answer(tags)


def learn(model, tokens, tags, w, bint ask):
    """`PASequence.learn_one`, or with `ask` its `step`; see there."""
    cdef double weight = example_weight(w)
    cdef Loops loops = Loops(model._store)
    cdef Coder coder = Coder(loops.rows)
    cdef Gold gold = Gold(model._tags)
    cdef int32_t[::1] place
    answer = None
    coder.read(tokens)
    gold.read(tags)
    loops.ask(model)
    place = coder.unplaced()
    loops.names, loops.place = coder.names, &place[0]
    if ask or weight > 0.0:
        loops.bind(len(model._tags) if ask else len(gold.known), 0)
        loops.take(coder.codes, NULL if coder.ones else coder.values, coder.ends, coder.tokens)
    if ask:
        if loops.past_emit != NULL and loops.examples > 0:
            loops.prepare_mean()
        answer = predicted(loops, model, list(model._tags))
    if weight > 0.0:
        if ask and gold.own:
            loops.bind(len(gold.known), 0)
            loops.take(coder.codes, NULL if coder.ones else coder.values, coder.ends, coder.tokens)
        loops.rival(gold.slots)
        loops.learn(model, gold.slots, weight, gold.known)
        model._version += 1
        model._tags = gold.known
    return answer


def predict(model, tokens):
    """`PASequence.predict_one`; see there."""
    cdef Loops loops = Loops(model._store)
    cdef Coder coder = Coder(loops.rows)
    cdef int32_t[::1] place
    coder.read(tokens)
    place = coder.unplaced()
    loops.place = &place[0]
    loops.ask(model)
    loops.bind(len(model._tags), 0)
    loops.take(coder.codes, NULL if coder.ones else coder.values, coder.ends, coder.tokens)
    if loops.past_emit != NULL and loops.examples > 0:
        loops.prepare_mean()
    return predicted(loops, model, list(model._tags))


def predict_many(model, sentences):
    """`PASequence.predict_many` of `Sentences`."""
    cdef Loops loops = Loops(model._store)
    cdef Table table = Table(sentences, loops)
    cdef Py_ssize_t row
    cdef list tags = list(model._tags), answers = []
    loops.ask(model)
    loops.bind(len(tags), 0)
    if loops.past_emit != NULL and loops.examples > 0:
        loops.prepare_mean()
    for row in range(len(sentences)):
        table.give(loops, row)
        answers.append(predicted(loops, model, tags))
    return answers


def learn_many(model, sentences, y, w):
    """`PASequence.learn_many` of `Sentences`: all is checked before a weight moves, a late refusal is undone."""
    cdef Loops loops = Loops(model._store)
    cdef Table table = Table(sentences, loops)
    cdef Gold gold = Gold(model._tags)
    cdef Py_ssize_t n = len(sentences), row = 0, at = 0
    w = batch.one_each(w, n)
    cdef list tags = batch.listed(y), weights = None if w is None else batch.listed(w)
    cdef double[::1] weight = np.ones(n)
    cdef int64_t[::1] known = np.zeros(n, np.int64)
    if not n == len(tags) == (n if weights is None else len(weights)):
        raise ValueError(f"X has {n} rows, y has {len(tags)}, w has {n if weights is None else len(weights)}")
    try:
        for row in range(n):
            if weights is not None:
                weight[row] = example_weight(weights[row])
            if weight[row] == 0.0:
                labels.tags(tags[row])
                continue
            gold.read(tags[row])
            known[row] = len(gold.known)
            if table.bounds[row + 1] - table.bounds[row] != len(tags[row]):
                raise ValueError(f"{table.bounds[row + 1] - table.bounds[row]} tokens with {len(tags[row])} tags")
    except ValueError as error:
        raise ValueError(f"row {row}: {error}") from error
    loops.ask(model)
    loops.bind(len(gold.known), 0)
    loops.begin_batch()
    undo = loops.store.mark(())
    try:
        for row in range(n):
            if weight[row] == 0.0:
                continue
            loops.consider(known[row])
            table.give(loops, row)
            loops.rival(gold.slots + at)
            loops.learn(model, gold.slots + at, weight[row], gold.known)
            loops.examples += 1
            at += loops.tokens
    except BaseException as error:
        loops.put_back()
        undo()
        if isinstance(error, ValueError):
            raise ValueError(f"row {row}: {error}") from error
        raise
    model._version = loops.examples
    model._tags = gold.known
