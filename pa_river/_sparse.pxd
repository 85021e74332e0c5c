"""Sparse batches on a flat store."""

from pa_river._arena cimport ArenaStore
from pa_river._laws cimport Law
from pa_river._tables cimport Table

cdef int learn_sparse(ArenaStore store, const Law *law, Table plain, object goals, object weights, Py_ssize_t *at) except -2
cdef int score_sparse(ArenaStore store, Table plain, double[::1] result) except -1
