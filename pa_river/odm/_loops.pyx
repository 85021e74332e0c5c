# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled twins of the functions in `loops.py`: kernel rows, the explicit inverse, the baselines' sweeps."""

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

from libc.math cimport exp, fabs, fmax
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from pa_river.odm._border cimport FREE, axpy


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
        good &= fabs(values[i]) <= largest or side[i] >= FREE
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
        axpy(n, scaled, &u[0], &B[i, 0])
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
        axpy(last, pivot * b[i], &b[0], &B[i, 0])
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
                axpy(width, new - old, &H[i, 0], &gamma[0])
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
            axpy(width, alpha[i], &H[i, 0], &gradient[0])
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
        axpy(width, y[i] * length, &H[i, 0], &gradient[0])
        axpy(width, -y[j] * length, &H[j, 0], &gradient[0])
    return most
