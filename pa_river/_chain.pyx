# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""`PASequence`, compiled: the lattice, Viterbi, the difference of two paths and the step, over a `ChainStore`'s arrays.

The maths stands in `chain.py`, `decode.py` and `sequence.py`; here are its loops, in the same order, so that both cores
break ties alike. The store is the same: one core takes up where the other left off.
"""

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import math

from pa_river import steps
from pa_river._loops import finite

cdef extern from "_chain.h" nogil:
    void chain_emissions(const double *block, size_t stride, const int32_t *codes, const int32_t *place,
                         const double *values, const int64_t *ends, size_t tokens, double *out, size_t width)
    void chain_forward(const double *move, size_t stride, size_t tags, const double *emit, double *best, size_t tokens,
                       size_t width)
    void chain_back(const double *best, const double *into, size_t tags, int32_t *path, size_t tokens, size_t width)
    int chain_finite(const double *values, size_t n)
    void chain_prefetch(const void *)

cdef double LEAST_SQUARE = 1e-280, LARGEST_SQUARE = 1e280, LEAST_NORM = 1e-140, LARGEST_NORM = 1e140


cdef void *roomy(void *held, Py_ssize_t *room, Py_ssize_t wanted, size_t size) except NULL:
    """Return `held` with room for that many items."""
    cdef void *more
    if wanted <= room[0] and held != NULL:
        return held
    more = realloc(held, (wanted + wanted // 2 + 16) * size)
    if more == NULL:
        raise MemoryError()
    room[0] = wanted + wanted // 2 + 16
    return more


# The cells of a difference while it is gathered, and the table that finds them.
ctypedef struct Parts:
    Cell *cells
    int32_t *table
    Py_ssize_t count, mask
    int shift


cdef inline Py_ssize_t seat_of(const Parts *parts, int32_t row, uint64_t move) noexcept nogil:
    """Where the table has, or will have, the first cell of an emission's or a move's row."""
    cdef Py_ssize_t at = ((<uint64_t><unsigned int>row << 1 | move) * <uint64_t>0x9E3779B97F4A7C15) >> parts.shift
    cdef const Cell *cell
    while parts.table[at]:
        cell = &parts.cells[parts.table[at] - 1]
        if cell.row == row and <uint64_t>(cell.place & 1) == move:
            return at
        at = (at + 1) & parts.mask
    return at


cdef inline void add_part(Parts *parts, Py_ssize_t seat, int32_t row, int32_t place, double value) noexcept nogil:
    """Add to a cell. Its first rounding is its last but where a third part comes to it: that is marked."""
    cdef int32_t *link = &parts.table[seat]
    cdef Cell *cell
    cdef double total, own
    while link[0]:
        cell = &parts.cells[link[0] - 1]
        if cell.place == place:
            cell.inexact |= cell.lost
            total = cell.value + value
            own = total - cell.value
            cell.lost = (cell.value - (total - own)) + (value - own) != 0.0  # NaN where the total is infinite
            cell.value = total
            return
        link = &cell.next
    cell = &parts.cells[parts.count]
    cell.value, cell.row, cell.place, cell.next, cell.lost, cell.inexact = value, row, place, 0, False, False
    cell.seat = <int32_t>seat
    parts.count += 1
    link[0] = <int32_t>parts.count


cdef class Loops:
    """The loops over one store, for the length of a call; a sentence at a time is in hand."""

    def __cinit__(self, store):
        self.store, self.rows = store, store.rows

    def __dealloc__(self):
        free(self.scores)
        free(self.mean_move)
        free(self.best)
        free(self.path)
        free(self.cells)
        free(self.log)
        free(self.table)
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

    cdef int differ(self, const int32_t *gold, const int32_t *rival) except -1:
        """Fill `cells` with the difference of two paths; see `chain.difference`."""
        cdef Py_ssize_t i, f, seat, most = 2 * self.tokens, begin = self.ends[0], size = 16
        cdef int32_t row, own, other, own_before = 0, other_before = 0
        cdef const double *past = self.past_emit
        cdef const int32_t *codes = self.codes
        cdef const double *values = self.values
        cdef Parts parts
        cdef double value = 1.0
        for i in range(self.tokens):
            if gold[i] != rival[i]:
                most += 2 * (self.ends[i + 1] - self.ends[i])
        parts.shift, parts.count = 60, 0
        while size < 2 * most:
            size *= 2
            parts.shift -= 1
        parts.mask = size - 1
        if size > self.table_room:
            self.table = <int32_t *>roomy(self.table, &self.table_room, size, sizeof(int32_t))
            memset(self.table, 0, self.table_room * sizeof(int32_t))
        self.cells = <Cell *>roomy(self.cells, &self.cells_room, most, sizeof(Cell))
        parts.cells, parts.table = self.cells, self.table
        for i in range(self.tokens):
            own, other = gold[i], rival[i]
            if own != other:
                for f in range(self.ends[i] - begin, self.ends[i + 1] - begin):
                    if values != NULL:
                        value = values[f]
                    row = codes[f]
                    if row < 0:
                        row = self.place[-1 - row]
                    elif past != NULL:
                        chain_prefetch(past + row * self.stride + own)
                        chain_prefetch(past + row * self.stride + other)
                    seat = seat_of(&parts, row, 0)
                    add_part(&parts, seat, row, 2 * own, value)
                    add_part(&parts, seat, row, 2 * other, -value)
            if own != other or own_before != other_before:
                add_part(&parts, seat_of(&parts, own_before, 1), own_before, 2 * own + 1, 1.0)
                add_part(&parts, seat_of(&parts, other_before, 1), other_before, 2 * other + 1, -1.0)
            own_before, other_before = own + 1, other + 1  # the row of moves from a slot; 0 is the start
        self.count = parts.count
        for i in range(self.count):
            self.table[self.cells[i].seat] = 0
        for i in range(self.count):
            value = self.cells[i].value
            if self.cells[i].inexact or value - value != 0.0:
                self.cells[i].value = self.exact(&self.cells[i], gold, rival)
        return 0

    cdef inline int32_t row_of(self, Py_ssize_t f) noexcept:
        """The row of a feature in hand; below 0 where it has none."""
        return self.codes[f] if self.codes[f] >= 0 else self.place[-1 - self.codes[f]]

    cdef double exact(self, Cell *cell, const int32_t *gold, const int32_t *rival) except? -1.0:
        """The sum of a cell's parts, rounded once."""
        cdef Py_ssize_t i, f, begin = self.ends[0]
        cdef list parts = []
        for i in range(self.tokens):
            if gold[i] != rival[i] and (gold[i] == cell.place >> 1 or rival[i] == cell.place >> 1):
                for f in range(self.ends[i] - begin, self.ends[i + 1] - begin):
                    if self.row_of(f) == cell.row:
                        parts.append(self.values[f] if gold[i] == cell.place >> 1 else -self.values[f])
        try:
            return math.fsum(parts)
        except OverflowError:
            raise ValueError("the sum of a feature over the tokens would not be finite; nothing was learned") from None

    cdef double score(self, double *square) except? -1.0:
        """What the difference scores; and its plain sum of squares."""
        cdef Py_ssize_t i, stride = self.stride
        cdef const Cell *cells = self.cells
        cdef const double *emit = self.emit
        cdef const double *move = self.move
        cdef double total = 0.0, value
        square[0] = 0.0
        for i in range(self.count):
            value = cells[i].value
            square[0] += value * value
            if cells[i].place & 1:
                total += move[cells[i].row * stride + (cells[i].place >> 1)] * value
            elif cells[i].row >= 0:
                total += emit[cells[i].row * stride + (cells[i].place >> 1)] * value
        if total - total != 0.0:
            finite(total)  # raises
        return total

    cdef double norm(self, double square) noexcept:
        """The length of the difference; see `_loops.norm`."""
        cdef Py_ssize_t i
        cdef double largest = 0.0, part
        if LEAST_SQUARE <= square <= LARGEST_SQUARE:
            return sqrt(square)
        for i in range(self.count):
            largest = max(largest, fabs(self.cells[i].value))
        if largest == 0.0:
            return 0.0
        square = 0.0
        for i in range(self.count):
            part = self.cells[i].value / largest
            square += part * part
        return largest * sqrt(square)

    cdef int step(self, double length, double norm) except -1:
        """Add length * (the difference / norm); `ValueError`, and nothing moves, if a weight would not be finite.

        Weights move in place while the old ones are kept; rows for new names come last, when nothing can fail any more.
        """
        cdef Py_ssize_t i, at, stride = self.stride, slots = self.slots, unseen = 0, begin = self.held
        cdef double far = length * <double>self.examples, tau = length / norm, far_tau = far / norm, spread = 0.0, move
        cdef bint ordinary = LEAST_NORM <= norm <= LARGEST_NORM, average = self.past_emit != NULL and self.examples > 0
        cdef const Cell *cells = self.cells
        cdef double *now
        cdef Change *change
        if average and far - far != 0.0:
            raise ValueError("the loss or the step would not be finite; nothing was learned")
        self.log = <Change *>roomy(self.log, &self.log_room, begin + self.count, sizeof(Change))
        change = self.log + begin
        for i in range(self.count):
            if cells[i].value == 0.0:
                continue
            slots = max(slots, max((cells[i].place >> 1) + 1, cells[i].row if cells[i].place & 1 else 0))
            at = cells[i].row * stride + (cells[i].place >> 1)
            move = tau * cells[i].value if ordinary else length * (cells[i].value / norm)
            if cells[i].row < 0:
                unseen += 1
                spread += move - move
                continue
            now = (self.move if cells[i].place & 1 else self.emit) + at
            change.at, change.now = -1 - at if cells[i].place & 1 else at, now[0]
            now[0] += move
            spread += now[0] - now[0]
            if self.past_emit != NULL:
                now = (self.past_move if cells[i].place & 1 else self.past_emit) + at
                change.past = now[0]
                if average:
                    now[0] += far_tau * cells[i].value if ordinary else far * (cells[i].value / norm)
                    spread += now[0] - now[0]
            change += 1
        self.logged, self.into_start = change - self.log, NULL
        if spread != 0.0:
            self.take_back(begin)
            raise ValueError("a weight would not be finite; nothing was learned")
        if unseen:
            self.give_rows(length, norm, average)
        if slots > self.slots:
            self.slots = self.store.slots = slots
        if self.in_batch:
            self.hold()
        return 0

    cdef int take_back(self, Py_ssize_t begin) noexcept:
        """Undo the changes from `begin` on, the last one first."""
        cdef Py_ssize_t i, at
        for i in range(self.logged - 1, begin - 1, -1):
            at = self.log[i].at
            if at < 0:
                self.move[-1 - at] = self.log[i].now
            else:
                self.emit[at] = self.log[i].now
            if self.past_emit != NULL:
                if at < 0:
                    self.past_move[-1 - at] = self.log[i].past
                else:
                    self.past_emit[at] = self.log[i].past
        return 0

    cdef int give_rows(self, double length, double norm, bint average) except -1:
        """Give the names that have none a row, in the order of the moves, and move there."""
        cdef Py_ssize_t i, at, fresh = 0
        cdef double far = length * <double>self.examples, tau = length / norm, far_tau = far / norm
        cdef bint ordinary = LEAST_NORM <= norm <= LARGEST_NORM
        cdef Cell *cell
        for i in range(self.count):
            cell = &self.cells[i]
            if cell.place & 1 == 0 and cell.row < 0 and cell.value != 0.0 and self.place[-1 - cell.row] < 0:
                at = -1 - cell.row
                self.rows[self.names[at]] = self.known + fresh
                self.place[at] = <int32_t>(self.known + fresh)
                fresh += 1
        if self.known + fresh > self.room:
            self.bind(self.tags, self.known + fresh)
        self.known = len(self.rows)
        for i in range(self.count):
            cell = &self.cells[i]
            if cell.place & 1 == 0 and cell.row < 0 and cell.value != 0.0:
                at = self.place[-1 - cell.row] * self.stride + (cell.place >> 1)
                self.emit[at] = tau * cell.value if ordinary else length * (cell.value / norm)
                if average:
                    self.past_emit[at] = far_tau * cell.value if ordinary else far * (cell.value / norm)
        return 0

    cdef int learn(self, object model, const int32_t *gold, double weight, dict known) except -1:
        """Learn the sentence in hand, of which `path` holds the rival; see `PASequence._violation` and `_update`."""
        cdef Py_ssize_t i, wrong = 0
        cdef double loss, margin, norm, length, square
        for i in range(self.tokens):
            wrong += gold[i] != self.path[i]
        if wrong == 0:
            return 0
        if self.costly:
            slots = [gold[i] for i in range(self.tokens)], [self.path[i] for i in range(self.tokens)]
            arrays = self.arrays
            margin = model._margin(*slots, list(known))
            self.unchanged(arrays)
        else:
            margin = <double>wrong if self.max_loss else sqrt(<double>wrong)
        self.differ(gold, self.path)
        loss = margin - self.score(&square)
        if loss <= 0.0:
            return 0
        if loss - loss != 0.0:
            raise ValueError("the loss or the step would not be finite; nothing was learned")
        norm = self.norm(square)
        if self.law == 0:
            length = loss / norm if norm > 0.0 else 0.0
        elif self.law == 1:
            length = min(self.C * weight * norm, loss / norm) if norm > 0.0 else 0.0
        elif self.law == 2:
            length = loss / (norm + 0.5 / self.C / weight / norm) if norm > 0.0 else 0.0
        else:
            arrays = self.arrays
            length = self.rule.length(loss, norm, weight)
            self.unchanged(arrays)
        if length > 0.0:
            self.step(length, norm)
        return 0

    cdef int unchanged(self, tuple arrays) except -1:
        """`RuntimeError` if a cost or rule of the user's own has taught the model that was asking it."""
        now = self.store.now
        if len(self.rows) != self.known or self.store.rows is not self.rows or now.emit is not arrays[0]:
            raise RuntimeError("a cost or a rule must not change the model that asks it")
        return 0

    cdef int ask(self, object model) except -1:
        """Read how the model learns."""
        rule = steps.DEFAULT if model.rule is None else model.rule
        kind = type(rule)
        self.rule, self.law = rule, -1
        if kind is steps.PA:
            self.law = 0
        elif kind is steps.PA1 or kind is steps.PA2:
            self.law, self.C = 1 if kind is steps.PA1 else 2, rule.C
        self.max_loss, self.costly = model.update == "max_loss", callable(model.cost)
        self.examples, self.slots = model._version, self.store.slots
        return 0

    cdef int rival(self, const int32_t *gold) except -1:
        """Put the path that gold must beat in `path`."""
        cdef Py_ssize_t i, c
        self.emissions(self.emit, self.scores)
        if self.max_loss:  # see `decode.with_cost`
            for i in range(self.tokens):
                for c in range(self.tags):
                    self.scores[i * self.width + c] += 1.0 if c != gold[i] else 0.0
        return self.decode(self.move)

    cdef int begin_batch(self) except -1:
        """From now on hold what changes. The number of tags must not grow until the batch is over."""
        self.in_batch = True
        return 0

    cdef int hold(self) except -1:
        """Hold the changes of a step, and once they outgrow the weights, a copy of these instead of further changes."""
        if self.copies is not None:
            return 0
        self.held = self.logged
        if self.held * <Py_ssize_t>sizeof(Change) > self.known * self.stride * <Py_ssize_t>sizeof(double) + 65536:
            past = self.store.past
            self.copies = (self.store.now.emit[:self.known].copy(), None if past is None else past.emit[:self.known].copy())
        return 0

    cdef int put_back(self) except -1:
        """Take back what a batch changed in the rows that were there; the rest is for `ChainStore.mark`."""
        if self.copies is not None:
            now, past = self.copies
            self.store.now.emit[:len(now)] = now
            if past is not None:
                self.store.past.emit[:len(past)] = past
        self.logged = self.held
        return self.take_back(0)
