"""What learners of two prototypes that move apart share: which label answers, who the rival is, what a new label brings."""

from libc.stdint cimport int32_t

from pa_river._native cimport Core
from pa_river._rowarena cimport RowArena

#: Takes the step of a learner: the scores of `count` slots, the right label's slot and its rival's, the weight.
ctypedef int (*Push)(Core core, object x, const double *scores, Py_ssize_t count, const int32_t *slots,
                     double weight) except -1

cdef double[2] SIGNS

cdef object answer_label(Core core, RowArena store, object x, object y, object w, bint ask, Push push)
cdef object label_of(Core core, RowArena store, object x)
