"""Compiled batches, row by row in hand."""

from pa_river._native cimport Core
from pa_river._rowarena cimport RowArena

cdef int learn_lines(Core model, RowArena store, object X, object y, object w, list predicted) except -1
cdef list predict_lines(object model, RowArena store, object X)
