# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The inverse that the compiled engines pivot on: a base left as it is, and a bordered block beside it."""

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm, dgemv, dsymv

from pa_river.odm._kept cimport Kept, SYMM_MOST

cdef enum:
    _BLOCK = 192  # columns of the triangle that one gemm of the fold brings up to date
    _GATHERED = 16  # columns whose h the fold gathers at a time

cdef double _WORN = 1e-12 / 2.2e-16
cdef int ONE = 1
cdef double PLUS = 1.0
cdef double MINUS = -1.0
cdef double ZERO = 0.0
cdef int _pending = PENDING


cdef class Border(Kept):
    """Q_S^{-1} as `FrozenEngine` keeps it, B0 by the lower triangle, column after column; pivots as single calls.

    A pivot moves a vector by slot: the multipliers, or the direction of a path. To enter needs the column B0 h of an
    instance, which is kept; a fold takes the kept columns along to the new base in O(n k) each.

    A column must be B0 h of this very B0, errors of B0 included: what differs enters the inverse times the cost, at
    most, and rounding makes a column differ by about eps times the cost with every fold. So it is made anew after as
    many folds as keep the product below `_WORN`: at cost 1 hardly ever, from cost 70 on after each.
    """

    def __init__(self, theta):
        self.sigma, self.e = np.zeros(PENDING), np.zeros(PENDING)
        self.spent = np.zeros(PENDING, np.int64)
        self.n = self.k = 0

    def bind(self, H, alpha, side, costs):
        """Work on these arrays of the problem."""
        self.H, self.alpha, self.side, self.costs = H, alpha, side, costs
        self.steepest = (costs[:, : len(H)].max(axis=0) * H.diagonal()).max(initial=0.0)

    def take(self, B, base, sides, active, place, queued, Z, small, of, comes, int n, int k, int columns):
        """Work on these arrays of the engine, and keep up to `columns` columns; those kept so far are forgotten."""
        self.B, self.base, self.sides, self.active = B, base, sides, active
        self.place, self.queued = place, queued
        self.Z, self.small, self.of, self.comes = Z, small, of, comes
        self.n, self.k = n, k
        cdef int capacity = len(base)
        self.u = np.zeros(capacity)
        self.h, self.out = np.zeros((_GATHERED, capacity)), np.zeros((SYMM_MOST, capacity))
        self.Y = np.zeros((columns, capacity))
        self.whom, self.column = np.full(columns, -1, np.int64), np.full(len(place), -1, np.int64)
        self.age = np.zeros(columns, np.int64)  # folds since a column was made
        self.hand = 0

    cdef double diagonal(self, Py_ssize_t slot, int side) noexcept:
        return 1.0 / self.costs[0 if side > 0 else 1, slot]

    cdef double margin(self, Py_ssize_t slot) noexcept:
        return dot(self.count, &self.H[slot, 0], &self.alpha[0])

    # ---- pivots

    cdef int enter(self, Py_ssize_t slot, int side, double *along, double gap) except -1:
        """Take an instance into S: along[slot] = gap / pivot, the rest of S following; LOST if the pivot is not positive."""
        cdef int i, n, k
        cdef int64_t p
        cdef double diagonal = self.diagonal(slot, side), s
        cdef double *row = &self.H[slot, 0]
        cdef double *h = &self.h[0, 0]
        cdef double *z
        if self.k == PENDING:
            self.fold()
        p = self.place[slot]
        if p >= 0:
            if diagonal == self.diagonal(slot, self.sides[p]):
                return self._take_back(slot, p, side, along, gap)
            self.place[slot] = -1
        if self.column[slot] < 0:
            self._pass(<int64_t *>&slot, 1)
        z = &self.Y[self.column[slot], 0]
        n, k = self.n, self.k
        self._gather(slot, h)
        s = row[slot] + diagonal - dot(n, h, z)
        self._against(h, &self.sigma[0])
        for i in range(k):
            self.sigma[i] += row[self.of[i]] if self.comes[i] else 0.0
        self._small_times(&self.sigma[0])
        s -= dot(k, &self.sigma[0], &self.e[0])
        if not s > 0.5 * diagonal:
            return LOST
        self.pivot, self.value = s, gap / s
        memcpy(&self.u[0], z, n * sizeof(double))
        self._spread(&self.u[0])
        self._move(along, -self.value, &self.u[0])
        self.spent[k] = self.age[self.column[slot]]
        self._append(z, s, slot, 1)
        self.drop(slot)
        self.queued[slot] = k
        along[slot], self.side[slot] = self.value, side
        return DONE

    cdef int leave(self, Py_ssize_t slot, int side, double *along, double target) except -1:
        """Take an instance out of S, along[slot] going to `target`; `side` is 0 for C and GONE for one that leaves."""
        cdef int i, n, k, q
        cdef int64_t p
        cdef double length
        cdef double *z = &self.out[0, 0]
        if self.k == PENDING:
            self.fold()
        n, k, q = self.n, self.k, <int>self.queued[slot]
        length = target - along[slot]
        if q >= 0:
            for i in range(k):
                self.e[i] = self.small[i, q]
            self.pivot = self.e[q]
            if not self.pivot > 0.0:
                return LOST
            memset(&self.u[0], 0, n * sizeof(double))
            self._spread(&self.u[0])
            self._move(along, length / self.pivot, &self.u[0])
            if side == 0:
                memcpy(&self.Y[self._keep(slot, self.spent[q]), 0], &self.Z[q, 0], n * sizeof(double))
            self._withdraw(q)
            self.queued[slot] = -1
        else:
            p = self.place[slot]
            for i in range(p):
                z[i] = self.B[p, i]
            memcpy(&z[p], &self.B[p, p], (n - p) * sizeof(double))
            for i in range(k):
                self.sigma[i] = -self.Z[i, p]
            self._small_times(&self.sigma[0])
            memcpy(&self.u[0], z, n * sizeof(double))
            self._spread(&self.u[0])
            self.pivot = self.u[p]
            if not self.pivot > 0.0:
                return LOST
            self._move(along, length / self.pivot, &self.u[0])
            self._append(z, -self.pivot, p, 0)
            self.active[p] = 0
        self.value = length
        along[slot], self.side[slot] = target, side
        return DONE

    cdef int _take_back(self, Py_ssize_t slot, int64_t p, int side, double *along, double gap) except -1:
        """Undo a pending delete from the base: its multiplier gives the step."""
        cdef int i, q = -1
        for i in range(self.k):
            if not self.comes[i] and self.of[i] == p:
                q = i
        for i in range(self.k):
            self.e[i] = self.small[i, q]
        self.pivot = -self.e[q]
        if not self.pivot > 0.0:
            return LOST
        self.value = gap / self.pivot
        memset(&self.u[0], 0, self.n * sizeof(double))
        self._spread(&self.u[0])
        self._move(along, self.value, &self.u[0])
        self._withdraw(q)
        self.active[p] = 1
        along[slot], self.side[slot] = self.value, side
        return DONE

    cdef void _move(self, double *along, double length, const double *direction) noexcept:
        """along += length * (a direction over the base, self.e over the pending)."""
        cdef int i
        for i in range(self.n):
            if self.active[i]:
                along[self.base[i]] += length * direction[i]
        for i in range(self.k):
            if self.comes[i]:
                along[self.of[i]] += length * self.e[i]

    cdef void _append(self, const double *z, double pivot, int64_t of, int comes) noexcept:
        cdef int i, k = self.k
        memcpy(&self.Z[k, 0], z, self.n * sizeof(double))
        for i in range(k):
            axpy(k, self.e[i] / pivot, &self.e[0], &self.small[i, 0])
            self.small[i, k] = self.small[k, i] = -self.e[i] / pivot
        self.small[k, k] = 1.0 / pivot
        self.of[k], self.comes[k] = of, comes
        self.k = k + 1
        self.pivots += 1

    cdef void _withdraw(self, int q) noexcept:
        """Take a pending change back, the last one in its place."""
        cdef int i, j, k = self.k, last = self.k - 1
        cdef double pivot = self.small[q, q]
        for i in range(k):
            self.sigma[i] = self.small[i, q]
        for i in range(k):
            axpy(k, -self.sigma[i] / pivot, &self.sigma[0], &self.small[i, 0])
        if q != last:
            memcpy(&self.Z[q, 0], &self.Z[last, 0], self.n * sizeof(double))
            for j in range(last):
                self.small[q, j] = self.small[last, j]
            for i in range(last):
                self.small[i, q] = self.small[i, last]
            self.small[q, q] = self.small[last, last]
            self.of[q], self.comes[q], self.spent[q] = self.of[last], self.comes[last], self.spent[last]
            if self.comes[q]:
                self.queued[self.of[q]] = q
        self.k = last
        self.pivots += 1

    cdef void _small_times(self, const double *v) noexcept:
        """self.e = Sigma^{-1} v."""
        cdef int i
        for i in range(self.k):
            self.e[i] = dot(self.k, &self.small[i, 0], v)

    cdef void _against(self, const double *h, double *out) noexcept:
        """out = -Z h over the pending."""
        cdef char turned = b"T"
        cdef int lz = <int>self.Z.shape[1]
        if self.n and self.k:
            dgemv(&turned, &self.n, &self.k, &MINUS, &self.Z[0, 0], &lz, <double *>h, &ONE, &ZERO, out, &ONE)
        else:
            memset(out, 0, self.k * sizeof(double))

    cdef void _spread(self, double *out) noexcept:
        """out -= Z' self.e over the base."""
        cdef char plain = b"N"
        cdef int lz = <int>self.Z.shape[1]
        if self.n and self.k:
            dgemv(&plain, &self.n, &self.k, &MINUS, &self.Z[0, 0], &lz, &self.e[0], &ONE, &PLUS, out, &ONE)

    cdef void _update_columns(self, const double *A, int la) noexcept:
        """Take the columns along to the base with the pending changes, A = Sigma^{-1} Z: all but the order of places."""
        cdef int i, y, g, r, n = self.n, k = self.k, stride = <int>self.Y.shape[1], most = <int>self.Y.shape[0]
        cdef int lz = <int>self.Z.shape[1], lh = <int>self.h.shape[1]
        cdef char no = b"N", tr = b"T"
        cdef Py_ssize_t slot
        cdef double own[_GATHERED * PENDING]
        cdef double *row
        for y in range(most):
            if self.whom[y] >= 0:
                self.age[y] += 1
                if self.age[y] * self.steepest * self.steepest > _WORN:
                    self.drop(self.whom[y])
        for y in range(0, most, _GATHERED):
            g = min(_GATHERED, most - y)
            r = 0
            while r < g and self.whom[y + r] < 0:
                r += 1
            if r == g:
                continue
            for r in range(g):
                slot = self.whom[y + r]
                if slot < 0:
                    memset(&self.h[r, 0], 0, n * sizeof(double))
                    memset(&own[r * PENDING], 0, k * sizeof(double))
                    continue
                row = &self.H[slot, 0]
                self._gather(slot, &self.h[r, 0])
                for i in range(k):
                    own[r * PENDING + i] = row[self.of[i]] if self.comes[i] else 0.0
            # by columns: own (k, g) -= Z' h, then Y (n, g) -= A own, and the pending part e = Sigma^{-1} own into h
            dgemm(&tr, &no, &k, &g, &n, &MINUS, &self.Z[0, 0], &lz, &self.h[0, 0], &lh, &PLUS, own, &_pending)
            dgemm(&no, &no, &n, &g, &k, &MINUS, <double *>A, &la, own, &_pending, &PLUS, &self.Y[y, 0], &stride)
            for r in range(g):
                self._small_times(&own[r * PENDING])
                memcpy(&self.Y[y + r, n], &self.e[0], k * sizeof(double))

    def solve(self, double[::1] right not None, double[::1] own not None, double[::1] out not None):
        """Q_S^{-1} of a right side over the base and the pending: out over the base; the pending part is returned."""
        cdef int i, n = self.n, ld = <int>self.B.shape[0]
        cdef char low = b"L"
        if n:
            dsymv(&low, &n, &PLUS, &self.B[0, 0], &ld, &right[0], &ONE, &ZERO, &out[0], &ONE)
        self._against(&right[0], &self.sigma[0])
        for i in range(self.k):
            self.sigma[i] += own[i] if self.comes[i] else 0.0
        self._small_times(&self.sigma[0])
        self._spread(&out[0])
        return np.array(self.e[: self.k])

    # ---- the fold

    cpdef int fold(self) except -1:
        """B0 += Z Sigma^{-1} Z' on the lower triangle, by block columns; newcomers into the places of the deleted."""
        cdef int n = self.n, k = self.k, i, j, y, size, hole, width, rows, ld = <int>self.B.shape[0], lz, la
        cdef int coming = 0, holes = 0, filled = 0
        cdef char no = b"N", tr = b"T"
        cdef int target[PENDING]
        cdef int who[PENDING]
        cdef int gaps[PENDING]
        cdef double[:, ::1] A
        if k == 0:
            return 0
        self.folds += 1
        if n:
            A = np.empty((k, n))
            lz, la = <int>self.Z.shape[1], n
            # by rows A = small Z; by columns A' = Z' small
            dgemm(&no, &no, &n, &k, &k, &PLUS, &self.Z[0, 0], &lz, &self.small[0, 0], &_pending, &ZERO, &A[0, 0], &la)
            self._update_columns(&A[0, 0], la)
            for j in range(0, n, _BLOCK):
                width, rows = min(_BLOCK, n - j), n - j
                dgemm(&no, &tr, &rows, &width, &k, &PLUS, &self.Z[0, j], &lz, &A[0, j], &la, &PLUS,
                      &self.B[j, j], &ld)
        else:
            for i in range(<int>self.Y.shape[0]):
                if self.whom[i] >= 0:
                    self.drop(self.whom[i])
        for i in range(k):
            if self.comes[i]:
                who[coming] = i
                coming += 1
            else:
                j = holes
                while j > 0 and gaps[j - 1] > self.of[i]:
                    gaps[j] = gaps[j - 1]
                    j -= 1
                gaps[j] = <int>self.of[i]
                holes += 1
        for i in range(holes):
            if self.place[self.base[gaps[i]]] == gaps[i]:
                self.place[self.base[gaps[i]]] = -1
        size = n
        for i in range(coming):
            if i < holes:
                target[i] = gaps[i]
            else:
                target[i] = size
                size += 1
        filled = min(coming, holes)
        for i in range(coming):  # the new rows against the old places
            hole = target[i]
            for j in range(min(hole, n)):
                self.B[hole, j] = -A[who[i], j]
            for j in range(hole + 1, n):
                self.B[j, hole] = -A[who[i], j]
        for i in range(coming):  # and among themselves
            for j in range(i + 1):
                self.B[max(target[i], target[j]), min(target[i], target[j])] = self.small[who[i], who[j]]
        for y in range(<int>self.Y.shape[0]):  # the pending part of a column waits behind the old places
            if self.whom[y] < 0:
                continue
            memcpy(&self.e[0], &self.Y[y, n], k * sizeof(double))
            for i in range(coming):
                self.Y[y, target[i]] = self.e[who[i]]
        for i in range(coming):
            hole = target[i]
            self.base[hole], self.active[hole] = self.of[who[i]], 1
            self.sides[hole] = self.side[self.of[who[i]]]
            self.place[self.base[hole]], self.queued[self.base[hole]] = hole, -1
        for i in range(holes - 1, filled - 1, -1):  # places left over are filled from the end
            hole = gaps[i]
            size -= 1
            if hole != size:
                for j in range(hole):
                    self.B[hole, j] = self.B[size, j]
                for j in range(hole + 1, size):
                    self.B[j, hole] = self.B[size, j]
                self.B[hole, hole] = self.B[size, size]
                for y in range(<int>self.Y.shape[0]):
                    if self.whom[y] >= 0:
                        self.Y[y, hole] = self.Y[y, size]
                self.base[hole], self.sides[hole], self.active[hole] = self.base[size], self.sides[size], 1
                self.place[self.base[hole]] = hole
            self.active[size] = 0
        self.n, self.k = size, 0
        return 0
