# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled loops of the optimal margin distribution machine: same steps as `frozen.py`, `primal.py` and `loops.py`."""

import numpy as np

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define PA_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
    #else
    #define PA_CLONES
    #endif
    /* squared distances of `count` rows of X, `stride` apart, from x */
    static PA_CLONES void pa_distances(const double *X, long count, long stride, long d, const double *x, double *out)
    {
        for (long i = 0; i < count; i++) {
            const double *row = X + i * stride;
            double total = 0.0;
            for (long j = 0; j < d; j++) {
                double difference = row[j] - x[j];
                total += difference * difference;
            }
            out[i] = total;
        }
    }
    """
    void pa_distances(const double *X, long count, long stride, long d, const double *x, double *out) nogil

from libc.math cimport exp, fabs, fmax, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dsymv, dsyr, dtrsv

# Status of a change, as the Python side reads it.
DONE, LOST, UNSETTLED = 0, 1, 2
cdef enum:
    _DONE = 0
    _LOST = 1
    _UNSETTLED = 2
    _FREE = 2
    _GONE = 3
    _SWEEPS = 30
    _PENDING = 32
    _BLOCK = 192  # columns of the triangle that one gemm of the fold brings up to date

cdef int ONE = 1
cdef double PLUS = 1.0
cdef double MINUS = -1.0
cdef double ZERO = 0.0


cdef inline double _dot(int n, const double *a, const double *b) noexcept nogil:
    return ddot(&n, <double *>a, &ONE, <double *>b, &ONE)


cdef inline void _axpy(int n, double a, const double *x, double *y) noexcept nogil:
    daxpy(&n, &a, <double *>x, &ONE, y, &ONE)


def rbf_row(double[:, ::1] X not None, Py_ssize_t count, double[::1] x not None, double gamma, double rest):
    """exp(-gamma (|X_i - x|^2 + rest)) for the first `count` rows."""
    cdef Py_ssize_t i, d = X.shape[1]
    result = np.empty(count)
    if count == 0:
        return result
    cdef double[::1] out = result
    if d == 0:
        out[:] = exp(-gamma * rest)
        return result
    pa_distances(&X[0, 0], count, d, d, &x[0], &out[0])
    for i in range(count):
        out[i] = exp(-gamma * (out[i] + rest))
    return result


def tame(double[::1] values not None, signed char[::1] side not None, Py_ssize_t held, double largest):
    """Whether the kernel values with instances that are there are finite and within `largest`."""
    cdef Py_ssize_t i
    cdef int good = 1
    for i in range(held):
        good &= fabs(values[i]) <= largest or side[i] >= _FREE
    return bool(good)


def enter(double[:, ::1] H not None, double[::1] y not None, Py_ssize_t slot, Py_ssize_t held, double[::1] values,
          double own):
    """Write kernel values, signed by the labels, into row and column `slot` of H."""
    cdef Py_ssize_t i
    cdef double *row = &H[slot, 0]
    for i in range(held):
        row[i] = values[i] * y[i] * own
    for i in range(held):
        H[i, slot] = row[i]


def grow_inverse(double[:, ::1] B not None, int n, double[::1] u not None, double s):
    """Border the inverse B of order n, both triangles."""
    cdef int i
    cdef double scaled
    for i in range(n):
        scaled = u[i] / s
        _axpy(n, scaled, &u[0], &B[i, 0])
        B[i, n] = B[n, i] = -scaled
    B[n, n] = 1.0 / s


def shrink_inverse(double[:, ::1] B not None, int n, int p):
    """Take row p out of the inverse B of order n, the last row in its place; return the row, its own entry last."""
    cdef int i, last = n - 1
    cdef double pivot
    result = np.empty(n)
    cdef double[::1] b = result
    memcpy(&b[0], &B[p, 0], n * sizeof(double))
    if p != last:
        pivot = b[p]
        b[p] = b[last]
        b[last] = pivot
        memcpy(&B[p, 0], &B[last, 0], n * sizeof(double))
        for i in range(n):
            B[i, p] = B[i, last]
        B[p, p] = B[last, last]
    pivot = -1.0 / b[last]
    for i in range(last):
        _axpy(last, pivot * b[i], &b[0], &B[i, 0])
    return result


def coordinate_descent(
    double[:, :] H not None, slots, double[::1] alpha not None, double[::1] gamma not None,
    double[::1] below not None, double[::1] above not None, double theta, double tol, int epochs,
    unsigned long long seed,
):
    """Signed dual coordinate descent with shrinking over `slots`, in place; the number of sweeps."""
    cdef int m = len(slots), width = <int>gamma.shape[0], active = m, epoch, s, i, j
    cdef double worst, bound = 1e300, old, new, q, z, diagonal
    cdef unsigned long long state = seed * 2862933555777941757ULL + 3037000493ULL
    order = np.array(slots, dtype=np.int64)
    cdef int64_t[::1] index = order
    for epoch in range(epochs):
        worst = 0.0
        for s in range(active - 1, 0, -1):
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            j = <int>(state % <unsigned long long>(s + 1))
            index[s], index[j] = index[j], index[s]
        s = 0
        while s < active:
            i = <int>index[s]
            old, diagonal = alpha[i], H[i, i]
            z = 1.0 - gamma[i] + diagonal * old
            q = diagonal + 1.0 / (above[i] if z < 0.0 else below[i])
            if z > theta:
                new = (z - theta) / q
            elif z < -theta:
                new = (z + theta) / q
            else:
                new = 0.0
                if old == 0.0 and theta - fabs(z) > bound:
                    active -= 1
                    index[s] = index[active]
                    index[active] = i
                    continue
            worst = fmax(worst, fabs(new - old) * q)
            if new != old:
                alpha[i] = new
                _axpy(width, new - old, &H[i, 0], &gamma[0])
            s += 1
        if worst <= tol:
            if active == m:
                return epoch + 1
            active, bound = m, 1e300
        else:
            bound = worst
    return epochs


def smo(double[:, :] H not None, slots, double[::1] y not None, double[::1] alpha not None, double C, double tol,
        long long most):
    """Sequential minimal optimisation of the dual of a support vector machine with bias; the number of steps."""
    index = np.array(slots, dtype=np.int64)
    cdef int64_t[::1] who = index
    cdef int m = who.shape[0], p, i, j, k, width = <int>alpha.shape[0]
    cdef long long step
    cdef double best, gap, curve, gain, worst, length, pull
    width = min(width, <int>H.shape[1])
    cdef double[::1] gradient = np.full(width, -1.0)
    for p in range(m):
        i = <int>who[p]
        if alpha[i] != 0.0:
            _axpy(width, alpha[i], &H[i, 0], &gradient[0])
    for step in range(most):
        i, best = -1, -1e300
        for p in range(m):
            j = <int>who[p]
            if (alpha[j] < C) if y[j] > 0 else (alpha[j] > 0.0):
                pull = -y[j] * gradient[j]
                if pull > best:
                    best, i = pull, j
        if i < 0:
            return step
        gain, worst = -1.0, 0.0
        j = -1
        for p in range(m):
            k = <int>who[p]
            if (alpha[k] > 0.0) if y[k] > 0 else (alpha[k] < C):
                gap = best + y[k] * gradient[k]
                if gap > 0.0:
                    worst = fmax(worst, gap)
                    curve = fmax(H[i, i] + H[k, k] - 2.0 * y[i] * y[k] * H[i, k], 1e-12)
                    if gap * gap / curve > gain:
                        gain, j, length = gap * gap / curve, k, gap / curve
        if j < 0 or worst <= tol:
            return step
        length = min(length, C - alpha[i] if y[i] > 0 else alpha[i])
        length = min(length, alpha[j] if y[j] > 0 else C - alpha[j])
        alpha[i] = min(max(alpha[i] + y[i] * length, 0.0), C)
        alpha[j] = min(max(alpha[j] - y[j] * length, 0.0), C)
        _axpy(width, y[i] * length, &H[i, 0], &gradient[0])
        _axpy(width, -y[j] * length, &H[j, 0], &gradient[0])
    return most


cdef class FrozenCore:
    """The state of `FrozenEngine` and its change as one call. B holds the lower triangle, column after column."""

    cdef double[:, ::1] H, costs, Z, small, F
    cdef double[::1, :] B
    cdef double[::1] alpha, h, z, u, sigma, e, limit, offset, seen, missed, c
    cdef signed char[::1] side, sides, active, comes
    cdef int64_t[::1] base, place, queued, of, marks, todo
    cdef double[:, ::1] corner
    cdef double low, high, theta, drift
    cdef int r
    cdef public int n, k, count
    cdef public long long pivots, sweeps, folds, looks, asked

    def __init__(self, double theta):
        self.theta, self.low, self.high = theta, 1.0 - theta, 1.0 + theta
        self.sigma, self.e = np.zeros(_PENDING), np.zeros(_PENDING)
        self.n = self.k = self.r = 0
        self.drift = 0.0

    def bind(self, H, alpha, side, costs):
        """Work on these arrays of the problem."""
        self.H, self.alpha, self.side, self.costs = H, alpha, side, costs
        self.todo = np.zeros(len(alpha), np.int64)

    def take(self, B, base, sides, active, place, queued, Z, small, of, comes, int n, int k):
        """Work on these arrays of the engine."""
        self.B, self.base, self.sides, self.active = B, base, sides, active
        self.place, self.queued = place, queued
        self.Z, self.small, self.of, self.comes = Z, small, of, comes
        self.n, self.k = n, k
        cdef int capacity = len(base)
        self.h, self.z, self.u = np.zeros(capacity), np.zeros(capacity), np.zeros(capacity)

    def screen(self, F, corner, marks, limit, offset, seen, missed):
        """Screen margins inside the strip by these features; no features, no screening."""
        self.F, self.corner, self.marks = F, corner, marks
        self.limit, self.offset, self.seen, self.missed = limit, offset, seen, missed
        self.r = <int>len(marks)
        self.c = np.zeros(max(1, self.r))

    # ---- pivots

    cdef inline double _diagonal(self, Py_ssize_t slot, int side) noexcept:
        return 1.0 / self.costs[0 if side > 0 else 1, slot]

    cdef inline double margin(self, Py_ssize_t slot) noexcept:
        return _dot(self.count, &self.H[slot, 0], &self.alpha[0])

    cdef void _move(self, double length, const double *along) noexcept:
        """alpha += length * (along over the base, self.e over the pending)."""
        cdef int i
        for i in range(self.n):
            if self.active[i]:
                self.alpha[self.base[i]] += length * along[i]
        for i in range(self.k):
            if self.comes[i]:
                self.alpha[self.of[i]] += length * self.e[i]

    cdef void _append(self, const double *z, double pivot, int64_t of, int comes) noexcept:
        cdef int i, j, k = self.k
        cdef double scaled
        memcpy(&self.Z[k, 0], z, self.n * sizeof(double))
        for i in range(k):
            scaled = self.e[i] / pivot
            for j in range(k):
                self.small[i, j] += scaled * self.e[j]
            self.small[i, k] = self.small[k, i] = -scaled
        self.small[k, k] = 1.0 / pivot
        self.of[k], self.comes[k] = of, comes
        self.k = k + 1
        self.pivots += 1

    cdef void _withdraw(self, int q) noexcept:
        cdef int i, j, k = self.k, last = self.k - 1
        cdef double pivot = self.small[q, q], scaled
        for i in range(k):
            self.sigma[i] = self.small[i, q]
        for i in range(k):
            scaled = self.sigma[i] / pivot
            for j in range(k):
                self.small[i, j] -= scaled * self.sigma[j]
        if q != last:
            memcpy(&self.Z[q, 0], &self.Z[last, 0], self.n * sizeof(double))
            for j in range(last):
                self.small[q, j] = self.small[last, j]
            for i in range(last):
                self.small[i, q] = self.small[i, last]
            self.small[q, q] = self.small[last, last]
            self.of[q], self.comes[q] = self.of[last], self.comes[last]
            if self.comes[q]:
                self.queued[self.of[q]] = q
        self.k = last
        self.pivots += 1

    cdef void _small_times(self, const double *v) noexcept:
        """self.e = Sigma^{-1} v."""
        cdef int i
        for i in range(self.k):
            self.e[i] = _dot(self.k, &self.small[i, 0], v)

    cdef void _spread(self, double *out) noexcept:
        """out -= Z' self.e over the base."""
        cdef int i
        for i in range(self.k):
            _axpy(self.n, -self.e[i], &self.Z[i, 0], out)

    cdef void _base_times(self, const double *h, double *out) noexcept:
        """out = B0 h from the lower triangle."""
        cdef char low = b"L"
        cdef int n = self.n, ld = <int>self.B.shape[0]
        if n:
            dsymv(&low, &n, &PLUS, &self.B[0, 0], &ld, <double *>h, &ONE, &ZERO, out, &ONE)

    cdef int insert(self, Py_ssize_t slot, int side, double gamma) except -1:
        cdef int i, n, k
        cdef int64_t p = self.place[slot]
        cdef double diagonal = self._diagonal(slot, side), s, value
        cdef double *row = &self.H[slot, 0]
        if self.k == _PENDING:
            self.fold()
            p = self.place[slot]
        if p >= 0:
            if diagonal == self._diagonal(slot, self.sides[p]):
                return self._take_back(slot, p, side, gamma)
            self.place[slot] = -1
        n, k = self.n, self.k
        for i in range(n):
            self.h[i] = row[self.base[i]]
        self._base_times(&self.h[0], &self.z[0])
        s = row[slot] + diagonal - _dot(n, &self.h[0], &self.z[0])
        for i in range(k):
            self.sigma[i] = (row[self.of[i]] if self.comes[i] else 0.0) - _dot(n, &self.Z[i, 0], &self.h[0])
        self._small_times(&self.sigma[0])
        s -= _dot(k, &self.sigma[0], &self.e[0])
        if not s > 0.5 * diagonal:
            return _LOST
        value = ((self.low if side > 0 else self.high) - gamma) / s
        memcpy(&self.u[0], &self.z[0], n * sizeof(double))
        self._spread(&self.u[0])
        self._move(-value, &self.u[0])
        self._append(&self.z[0], s, slot, 1)
        self.queued[slot] = k
        self.alpha[slot], self.side[slot] = value, side
        self.drift += fabs(value) * sqrt(fmax(s - diagonal, 0.0))
        return _DONE

    cdef int delete(self, Py_ssize_t slot, int side) except -1:
        cdef int i, n, k
        cdef int64_t p
        cdef double value = self.alpha[slot], pivot, diagonal = self._diagonal(slot, self.side[slot])
        cdef int q
        if self.k == _PENDING:
            self.fold()
        n, k, q = self.n, self.k, <int>self.queued[slot]
        if q >= 0:
            for i in range(k):
                self.e[i] = self.small[i, q]
            pivot = self.e[q]
            if not pivot > 0.0:
                return _LOST
            for i in range(n):
                self.u[i] = 0.0
            self._spread(&self.u[0])
            self._move(-value / pivot, &self.u[0])
            self._withdraw(q)
            self.queued[slot] = -1
        else:
            p = self.place[slot]
            for i in range(p):
                self.z[i] = self.B[p, i]
            memcpy(&self.z[p], &self.B[p, p], (n - p) * sizeof(double))
            for i in range(k):
                self.sigma[i] = -self.Z[i, p]
            self._small_times(&self.sigma[0])
            memcpy(&self.u[0], &self.z[0], n * sizeof(double))
            self._spread(&self.u[0])
            pivot = self.u[p]
            if not pivot > 0.0:
                return _LOST
            self._move(-value / pivot, &self.u[0])
            self._append(&self.z[0], -pivot, p, 0)
            self.active[p] = 0
        self.alpha[slot], self.side[slot] = 0.0, side
        self.drift += fabs(value) * sqrt(fmax(1.0 / pivot - diagonal, 0.0))
        if side == 0 and self.r:
            self.limit[slot] = -1.0  # to be looked at
            self.seen[slot] = -1.0
        return _DONE

    cdef int _take_back(self, Py_ssize_t slot, int64_t p, int side, double gamma) except -1:
        cdef int i, q = -1
        cdef double pivot, value
        for i in range(self.k):
            if not self.comes[i] and self.of[i] == p:
                q = i
        for i in range(self.k):
            self.e[i] = self.small[i, q]
        pivot = -self.e[q]
        if not pivot > 0.0:
            return _LOST
        value = ((self.low if side > 0 else self.high) - gamma) / pivot
        for i in range(self.n):
            self.u[i] = 0.0
        self._spread(&self.u[0])
        self._move(value, &self.u[0])
        self._withdraw(q)
        self.active[p] = 1
        self.alpha[slot], self.side[slot] = value, side
        self.drift += fabs(value) * sqrt(fmax(pivot - self._diagonal(slot, side), 0.0))
        return _DONE

    # ---- a whole change

    def change(self, added, removed, int count):
        """Bring the solution to the optimum; DONE, LOST or UNSETTLED."""
        cdef Py_ssize_t slot
        cdef double gamma
        self.count = count
        for slot in removed:
            if self.side[slot] == 0:
                self.side[slot] = _GONE
            elif self.delete(slot, _GONE):
                return LOST
        for slot in added:
            if self.r:
                self._describe(slot)
            gamma = self.margin(slot)
            if gamma < self.low:
                if self.insert(slot, 1, gamma):
                    return LOST
            elif gamma > self.high:
                if self.insert(slot, -1, gamma):
                    return LOST
        return self._settle()

    cdef int _settle(self) except -1:
        cdef int sweep, i, found, moved
        cdef Py_ssize_t slot
        cdef double slack, gamma, total, top
        for sweep in range(_SWEEPS):
            moved = 0
            found = 0
            total = top = 0.0
            for i in range(self.count):
                if self.side[i] == 1 or self.side[i] == -1:
                    total += fabs(self.alpha[i])
                    if self.alpha[i] * self.side[i] < 0.0:
                        self.todo[found] = i
                        found += 1
                top = fmax(top, self.H[i, i])
            for i in range(found):
                slot = self.todo[i]
                if self.alpha[slot] * self.side[slot] < 0.0:
                    if self.theta == 0.0 and self.costs[0, slot] == self.costs[1, slot]:
                        self.side[slot] = -self.side[slot]
                    else:
                        if self.delete(slot, 0):
                            return _LOST
                        moved = 1
            slack = 1e-13 + 4e-16 * total * top
            found = self._suspects(slack)
            for i in range(found):
                slot = self.todo[i]
                gamma = self.margin(slot)
                if gamma < self.low - slack:
                    if self.insert(slot, 1, gamma):
                        return _LOST
                elif gamma > self.high + slack:
                    if self.insert(slot, -1, gamma):
                        return _LOST
                else:
                    continue
                moved = 1
            if not moved:
                return _DONE
            self.sweeps += 1
        return _UNSETTLED

    cdef int _suspects(self, double slack) except -1:
        """Collect in self.todo the slots of C whose margins are not surely in the strip; return how many."""
        cdef int i, found = 0, kept = 0, r = self.r, j, outside = 0, known
        cdef double gamma, room, estimate, error
        for i in range(self.count):
            if self.side[i] == 0 and (r == 0 or self.limit[i] <= self.drift):
                self.todo[found] = i
                found += 1
            elif self.side[i] == 1 or self.side[i] == -1:
                outside += 1
        if found == 0:
            return 0
        # where few are asked for, to look at them costs less than c(w)
        known = r > 0 and <long long>found * self.count > <long long>outside * r
        self.asked += found
        if known:
            self.c[:] = 0.0
            for i in range(self.count):
                if self.side[i] == 1 or self.side[i] == -1:
                    _axpy(r, self.alpha[i], &self.F[i, 0], &self.c[0])
        for j in range(found):
            i = <int>self.todo[j]
            if known and self.seen[i] >= 0.0:
                estimate = self.offset[i] + _dot(r, &self.F[i, 0], &self.c[0])
                error = self.missed[i] * (self.drift - self.seen[i]) + 1e-12
                room = min(estimate - self.low, self.high - estimate) - error
                if room > 0.0:
                    self.limit[i] = self.drift + room / self._length(i)
                    continue
            gamma = self.margin(i)
            self.looks += 1
            if known:
                self.offset[i] = gamma - _dot(r, &self.F[i, 0], &self.c[0])
                self.seen[i] = self.drift
            if r:
                room = min(gamma - self.low, self.high - gamma) - 1e-12
                self.limit[i] = self.drift + room / self._length(i)
            if gamma < self.low - slack or gamma > self.high + slack:
                if r:
                    self.limit[i] = -1.0  # once more after the inserts before it
                self.todo[kept] = i
                kept += 1
        return kept

    cdef inline double _length(self, Py_ssize_t slot) noexcept:
        return sqrt(fmax(self.H[slot, slot], 1e-300))

    cdef void _describe(self, Py_ssize_t slot) noexcept:
        """Features of a newcomer: corner f = its kernel values with the landmarks."""
        cdef int i, r = self.r
        cdef char up = b"U", trans = b"T", plain = b"N"
        cdef int ld = <int>self.corner.shape[1]
        cdef double *f = &self.F[slot, 0]
        for i in range(r):
            f[i] = self.H[slot, self.marks[i]]
        # the lower triangle by rows is the upper one by columns, transposed
        dtrsv(&up, &trans, &plain, &r, &self.corner[0, 0], &ld, f, &ONE)
        self.missed[slot] = sqrt(fmax(self.H[slot, slot] - _dot(r, f, f), 0.0)) + 1e-7 * self._length(slot)
        self.limit[slot] = self.seen[slot] = -1.0

    def solve(self, double[::1] right not None, double[::1] own not None, double[::1] out not None):
        """Q_S^{-1} of a right side over the base and the pending: out over the base; the pending part is returned."""
        cdef int i
        self._base_times(&right[0], &out[0])
        for i in range(self.k):
            self.sigma[i] = (own[i] if self.comes[i] else 0.0) - _dot(self.n, &self.Z[i, 0], &right[0])
        self._small_times(&self.sigma[0])
        self._spread(&out[0])
        return np.array(self.e[: self.k])

    cpdef int fold(self) except -1:
        """B0 += Z Sigma^{-1} Z' on the lower triangle, by block columns; newcomers into the places of the deleted."""
        cdef int n = self.n, k = self.k, i, j, size, hole, width, rows, ld = <int>self.B.shape[0], lz, la
        cdef int coming = 0, holes = 0, filled = 0
        cdef char no = b"N", tr = b"T"
        cdef int target[_PENDING]
        cdef int who[_PENDING]
        cdef int gaps[_PENDING]
        cdef double[:, ::1] A
        if k == 0:
            return 0
        self.folds += 1
        if n:
            A = np.empty((k, n))
            lz, la = <int>self.Z.shape[1], n
            # by rows A = small Z; by columns A' = Z' small
            dgemm(&no, &no, &n, &k, &k, &PLUS, &self.Z[0, 0], &lz, &self.small[0, 0], <int *>&_pending, &ZERO,
                  &A[0, 0], &la)
            for j in range(0, n, _BLOCK):
                width, rows = min(_BLOCK, n - j), n - j
                dgemm(&no, &tr, &rows, &width, &k, &PLUS, &self.Z[0, j], &lz, &A[0, j], &la, &PLUS,
                      &self.B[j, j], &ld)
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
                self.base[hole], self.sides[hole], self.active[hole] = self.base[size], self.sides[size], 1
                self.place[self.base[hole]] = hole
            self.active[size] = 0
        self.n, self.k = size, 0
        return 0


cdef int _pending = _PENDING


cdef class PrimalCore:
    """The state of `PrimalEngine` and its change as one call. P holds the triangle that `dsyr` keeps."""

    cdef double[:, ::1] H, costs, F, P, corner
    cdef double[::1] alpha, w, z, gamma
    cdef signed char[::1] side
    cdef int64_t[::1] marks
    cdef double low, high, theta, top
    cdef int r, count
    cdef public long long pivots, sweeps

    def __init__(self, double theta):
        self.theta, self.low, self.high = theta, 1.0 - theta, 1.0 + theta

    def bind(self, H, alpha, side, costs, F, P, corner, w, marks, double top):
        """Work on these arrays of the problem and the engine."""
        self.H, self.alpha, self.side, self.costs = H, alpha, side, costs
        self.F, self.P, self.corner, self.w, self.marks = F, P, corner, w, marks
        self.r, self.top = len(marks), top
        self.z, self.gamma = np.zeros(F.shape[1] + 1), np.zeros(len(alpha) + 1)

    cdef inline double margin(self, Py_ssize_t slot) noexcept:
        return _dot(self.r, &self.F[slot, 0], &self.w[0])

    cdef int _pivot(self, Py_ssize_t slot, int side, double sign) noexcept:
        cdef char low = b"L"
        cdef int r = self.r, ld = <int>self.P.shape[1]
        cdef double cost = sign * self.costs[0 if side > 0 else 1, slot], s, scale
        cdef double *f = &self.F[slot, 0]
        dsymv(&low, &r, &PLUS, &self.P[0, 0], &ld, f, &ONE, &ZERO, &self.z[0], &ONE)
        s = 1.0 + cost * _dot(r, f, &self.z[0])
        if not s > 0.0:
            return _LOST
        scale = cost * ((self.low if side > 0 else self.high) - _dot(r, f, &self.w[0])) / s
        _axpy(r, scale, &self.z[0], &self.w[0])
        scale = -cost / s
        dsyr(&low, &r, &scale, &self.z[0], &ONE, &self.P[0, 0], &ld)
        self.pivots += 1
        return _DONE

    cdef int insert(self, Py_ssize_t slot, int side) noexcept:
        if self._pivot(slot, side, 1.0):
            return _LOST
        self.side[slot] = side
        return _DONE

    cdef int delete(self, Py_ssize_t slot, int side) noexcept:
        if self._pivot(slot, self.side[slot], -1.0):
            return _LOST
        self.alpha[slot], self.side[slot] = 0.0, side
        return _DONE

    def express(self, Py_ssize_t slot):
        """Features of a newcomer from its kernel values with the landmarks; what they miss of its norm."""
        cdef int i, r = self.r, ld = <int>self.corner.shape[1]
        cdef char up = b"U", trans = b"T", plain = b"N"
        cdef double *f = &self.F[slot, 0]
        for i in range(r):
            f[i] = self.H[slot, self.marks[i]]
        for i in range(r, <int>self.F.shape[1]):
            f[i] = 0.0
        if r:
            dtrsv(&up, &trans, &plain, &r, &self.corner[0, 0], &ld, f, &ONE)
        return self.H[slot, slot] - _dot(r, f, f)

    def change(self, added, removed, int count):
        """Bring the solution to the optimum; DONE, LOST or UNSETTLED."""
        cdef Py_ssize_t slot
        cdef double gamma
        self.count = count
        for slot in removed:
            if self.side[slot] == 0:
                self.side[slot] = _GONE
            elif self.delete(slot, _GONE):
                return LOST
        for slot in added:
            gamma = self.margin(slot)
            if gamma < self.low:
                if self.insert(slot, 1):
                    return LOST
            elif gamma > self.high:
                if self.insert(slot, -1):
                    return LOST
        return self._settle()

    cdef int _settle(self) noexcept:
        cdef int sweep, i, moved, status, ld = <int>self.F.shape[1], r = self.r, m = self.count, side
        cdef char trans = b"T"
        cdef double slack = 0.0, g
        for i in range(r):
            slack += fabs(self.w[i])
        slack = 1e-13 + 4e-16 * slack * sqrt(self.top)
        for sweep in range(_SWEEPS):
            if r and m:
                dgemv(&trans, &r, &m, &PLUS, &self.F[0, 0], &ld, &self.w[0], &ONE, &ZERO, &self.gamma[0], &ONE)
            else:
                self.gamma[:] = 0.0
            moved = 0
            for i in range(m):
                side, g = self.side[i], self.gamma[i]
                if side >= _FREE:
                    continue
                if side >= 0 and g > (self.low if side > 0 else self.high) + slack or (
                    side <= 0 and g < (self.high if side < 0 else self.low) - slack
                ):
                    status = self._place(i, slack)
                    if status < 0:
                        return _LOST
                    moved |= status
            if not moved:
                for i in range(m):
                    side = self.side[i]
                    if side == 1:
                        self.alpha[i] = (self.low - self.gamma[i]) * self.costs[0, i]
                    elif side == -1:
                        self.alpha[i] = (self.high - self.gamma[i]) * self.costs[1, i]
                    else:
                        self.alpha[i] = 0.0
                return _DONE
            self.sweeps += 1
        return _UNSETTLED

    cdef int _place(self, Py_ssize_t slot, double slack) noexcept:
        """1 if an equation changed, 0 if not, -1 if lost."""
        cdef double g = self.margin(slot)
        cdef int old = self.side[slot], new = 0
        if g < self.low - slack:
            new = 1
        elif g > self.high + slack:
            new = -1
        if new == old or old > 0 and g <= self.low + slack or old < 0 and g >= self.high - slack:
            return 0
        if new and old and self.theta == 0.0 and self.costs[0, slot] == self.costs[1, slot]:
            self.side[slot] = new
            return 0
        if old and self.delete(slot, 0):
            return -1
        if new:
            g = self.margin(slot)
            if g < self.low:
                if self.insert(slot, 1):
                    return -1
            elif g > self.high:
                if self.insert(slot, -1):
                    return -1
        return 1
