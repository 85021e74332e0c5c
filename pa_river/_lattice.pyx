# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""The lattice of a sentence and its best path, compiled, over a `ChainStore`'s arrays.

The maths stands in `chain.py` and `decode.py`; here are its loops, in the same order, so that both cores break ties
alike. The store is the same: one core takes up where the other left off.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free

import math

from pa_river._loops import finite

cdef extern from "_chain.h" nogil:
    void chain_emissions(const double *block, size_t stride, const int32_t *codes, const int32_t *place,
                         const double *values, const int64_t *ends, size_t tokens, double *out, size_t width)
    void chain_forward(const double *move, size_t stride, size_t tags, const double *emit, double *best, size_t tokens,
                       size_t width)
    void chain_back(const double *best, const double *into, size_t tags, int32_t *path, size_t tokens, size_t width)
    int chain_finite(const double *values, size_t n)


cdef class Decoder:
    """The store's arrays for the length of a call, and a sentence at a time in hand."""

    def __cinit__(self, store):
        self.store, self.rows = store, store.rows

    def __dealloc__(self):
        free(self.scores)
        free(self.mean_move)
        free(self.best)
        free(self.path)
        free(self.into)

    cdef int bind(self, Py_ssize_t tags, Py_ssize_t rows) except -1:
        """Make room, and take the addresses of the store's arrays."""
        cdef double[:, ::1] view
        self.store.reserve(tags, rows)
        now, past = self.store.now, self.store.past
        self.arrays = (now.emit, now.move, None if past is None else (past.emit, past.move))
        view = now.emit
        self.emit, self.stride, self.room = &view[0, 0], view.shape[1], view.shape[0]
        view = now.move
        self.move = &view[0, 0]
        self.past_emit = self.past_move = NULL
        if past is not None:
            assert past.emit.shape == now.emit.shape, "the sums lie beside the weights"
            view = past.emit
            self.past_emit = &view[0, 0]
            view = past.move
            self.past_move = &view[0, 0]
        self.known, self.into_start = len(self.rows), NULL
        return self.consider(tags)

    cdef int consider(self, Py_ssize_t tags) noexcept:
        """Decode over the first so many tags, for which there is room."""
        self.tags, self.width = tags, (tags + 7) // 8 * 8
        return 0

    cdef int take(self, const int32_t *codes, const double *values, const int64_t *ends, Py_ssize_t tokens) except -1:
        """Take a sentence in hand; `codes` are rows, or -1 - the place of an unseen name."""
        self.codes, self.values, self.ends, self.tokens = codes, values, ends, tokens
        self.scores = <double *>roomy(self.scores, &self.scores_room, tokens * self.width, sizeof(double))
        self.best = <double *>roomy(self.best, &self.best_room, tokens * self.width, sizeof(double))
        self.path = <int32_t *>roomy(self.path, &self.path_room, tokens, sizeof(int32_t))
        return 0

    cdef int emissions(self, const double *block, double *out) except -1:
        """Sum the rows of each token; `ValueError` if a score is not finite."""
        chain_emissions(block, self.stride, self.codes, self.place, self.values, self.ends, self.tokens, out, self.width)
        if not chain_finite(out, self.tokens * self.width):
            finite(math.nan)  # raises
        return 0

    cdef int decode(self, const double *start) except -1:
        """Put the best path by `scores` in `path`; see `decode.best_path`. `start`: what comes before the moves.

        The way forward keeps the best scores only; the way back finds again, for the tags of the path, where they came
        from.
        """
        cdef Py_ssize_t m = self.tokens, k = self.tags, width = self.width, c
        cdef Py_ssize_t stride = self.stride
        cdef const double *move = start + stride
        cdef const double *emit = self.scores
        cdef double *best = self.best
        cdef double found
        cdef int32_t at
        if m == 0 or k == 0:
            return 0
        for c in range(width):
            best[c] = start[c] + emit[c]
        chain_forward(move, stride, k, emit, best, m, width)
        best += (m - 1) * width
        at, found = 0, best[0]
        for c in range(1, k):
            if best[c] > found:
                at, found = <int32_t>c, best[c]
        if found - found != 0.0:
            finite(found)  # raises
        self.path[m - 1] = at
        self.turn(start)
        chain_back(self.best, self.into, k, self.path, m, width)
        return 0

    cdef int turn(self, const double *start) except -1:
        """Lay the moves into each tag in a row; nobody comes from beyond the tags."""
        cdef Py_ssize_t c, p, width = self.width
        cdef const double *move = start + self.stride
        if self.into_start == start and self.into_tags == self.tags:
            return 0
        self.into = <double *>roomy(self.into, &self.into_room, self.tags * width, sizeof(double))
        for c in range(self.tags):
            for p in range(self.tags):
                self.into[c * width + p] = move[p * self.stride + c]
            for p in range(self.tags, width):
                self.into[c * width + p] = -INFINITY
        self.into_start, self.into_tags = start, self.tags
        return 0

    cdef int decode_now(self) except -1:
        """Put the best path by the weights as they are in `path`."""
        self.emissions(self.emit, self.scores)
        return self.decode(self.move)

    cdef int prepare_mean(self) except -1:
        """Work out the moves of the mean, for `decode_mean` until a weight moves."""
        cdef Py_ssize_t i, n = (self.tags + 1) * self.stride
        self.mean_move = <double *>roomy(self.mean_move, &self.mean_room, n, sizeof(double))
        for i in range(n):
            self.mean_move[i] = self.move[i] - self.past_move[i] / <double>self.examples
        self.into_start = NULL
        return 0

    cdef int decode_mean(self) except -1:
        """Put the best path by the mean of the weights after each of the examples in `path`."""
        cdef Py_ssize_t i
        self.emissions(self.emit, self.scores)
        self.emissions(self.past_emit, self.best)
        for i in range(self.tokens * self.width):
            self.scores[i] -= self.best[i] / <double>self.examples
        return self.decode(self.mean_move)

    cdef list answer(self, list tags):
        """The tags of `path`; None for each token where there are none."""
        cdef Py_ssize_t i
        return [tags[self.path[i]] for i in range(self.tokens)] if tags else [None] * self.tokens
