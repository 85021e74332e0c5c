# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""What `PASequence` learns, compiled: the difference of two paths and the step, over a `ChainStore`'s arrays.

The maths stands in `chain.py` and `sequence.py`; here are its loops, in the same order.
"""

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from pa_river._lattice cimport Decoder, roomy
from pa_river._laws cimport LARGEST_NORM, LARGEST_SQUARE, LEAST_NORM, LEAST_SQUARE

import math

from pa_river import steps
from pa_river._loops import finite

cdef extern from "_chain.h" nogil:
    void chain_prefetch(const void *)

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


cdef class Loops(Decoder):
    """The loops that learn."""

    def __dealloc__(self):
        free(self.cells)
        free(self.log)
        free(self.table)

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
