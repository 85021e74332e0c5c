"""How a row of a batch is judged, how long it is and how far its step goes: the formulas of `steps.py` and `_loops.py`;
and the numbers that part ordinary sizes from those that the floats only just hold."""

from libc.float cimport DBL_MAX
from libc.math cimport fabs, sqrt

cdef extern from *:
    """
    #define PA_LEAST_SQUARE 1e-280
    #define PA_LARGEST_SQUARE 1e280
    #define PA_LEAST_NORM 1e-140
    #define PA_LARGEST_NORM 1e140
    #define PA_NEAR_OVERFLOW 1e300
    #define PA_NARROW 32
    """
    # Inside these a sum of squares has neither overflowed nor lost a part to underflow; see `_loops.py`.
    const double LEAST_SQUARE "PA_LEAST_SQUARE"
    const double LARGEST_SQUARE "PA_LARGEST_SQUARE"
    const double LEAST_NORM "PA_LEAST_NORM"
    const double LARGEST_NORM "PA_LARGEST_NORM"
    # A bound on every weight grows by the largest move of each step; only beyond this are weights looked at one by one.
    const double NEAR_OVERFLOW "PA_NEAR_OVERFLOW"
    # Rows up to this width are summed in order. An example on the very edge of its margin is then passive in the batch
    # exactly where it is in the loop; in wide rows the edge is one rounding wide, and a step there moves nothing to
    # speak of.
    const Py_ssize_t NARROW "PA_NARROW"

cdef enum:
    GOOD = -1  # why a row was refused: a value, the score, a weight, the intercept
    VALUE = 0
    SCORE = 1
    WEIGHT = 2
    INTERCEPT = 3

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


cdef inline double norm_of(double square, const double *x, Py_ssize_t n, double extra) noexcept nogil:
    """The length of a row of which the sum of squares is given, intercept included; see `_loops.norm`."""
    cdef double largest = 1.0 if extra else 0.0, part
    cdef Py_ssize_t j
    square += extra
    if LEAST_SQUARE <= square <= LARGEST_SQUARE:
        return sqrt(square)
    for j in range(n):
        largest = max(largest, fabs(x[j]))
    if largest == 0.0:
        return 0.0
    square = 0.0
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


cdef inline int judged(const Law *law, double y, double score, double square, const double *x, Py_ssize_t n, double weight,
                       double *norm, double *length) noexcept nogil:
    """How far a row moves w along x, which is `norm` long, 0 where it is passive; or why it is refused."""
    cdef double loss, sign, far
    length[0] = 0.0
    if not square <= LARGEST_SQUARE and not all_finite(x, n):
        return VALUE
    if weight == 0.0:
        return GOOD
    if not finite(score):
        return SCORE
    loss = loss_of(law, y, score, &sign)
    if loss > 0.0:
        norm[0] = norm_of(square, x, n, law.extra)
        far = length_of(law, loss, norm[0], weight)
        if far > 0.0:
            length[0] = sign * far
    return GOOD
