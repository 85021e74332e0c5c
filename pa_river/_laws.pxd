"""How a row of a batch is judged, how long it is and how far its step goes: the formulas of `steps.py` and `_loops.py`."""

from libc.float cimport DBL_MAX
from libc.math cimport fabs, sqrt

# Half width of the tube, < 0: a margin of 1 instead; C; 1 for an intercept; the rule: 0 for PA, 1, 2.
ctypedef struct Law:
    double eps, C, extra
    int rule


cdef inline double loss_of(const Law *law, double y, double score, double *sign) noexcept nogil:
    cdef double error
    if law.eps < 0.0:
        sign[0] = y
        return 1.0 - y * score
    error = y - score
    sign[0] = 1.0 if error > 0.0 else -1.0
    return fabs(error) - law.eps


cdef inline double norm_of(const double *x, Py_ssize_t n, double extra) noexcept nogil:
    """The length of a row whose sum of squares left the floats; see `_loops.norm`."""
    cdef double largest = 1.0 if extra else 0.0, square = 0.0, part
    cdef Py_ssize_t j
    for j in range(n):
        largest = max(largest, fabs(x[j]))
    if largest == 0.0:
        return 0.0
    for j in range(n):
        part = x[j] / largest
        square += part * part
    return largest * sqrt(square + extra / largest / largest)


cdef inline double length_of(const Law *law, double loss, double norm, double weight) noexcept nogil:
    if norm <= 0.0:
        return 0.0
    if law.rule == 0:
        return loss / norm
    if law.rule == 1:
        return min(law.C * weight * norm, loss / norm)
    return loss / (norm + 0.5 / law.C / weight / norm)


cdef inline bint finite(double value) noexcept nogil:
    return fabs(value) <= DBL_MAX


cdef inline bint all_finite(const double *values, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        if not finite(values[j]):
            return False
    return True
