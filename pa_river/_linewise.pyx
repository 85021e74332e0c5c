# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""Whole batches of a compiled learner over a store of rows: the loop of `learn_one`, all or nothing."""

from pa_river._lines cimport Line, Lines
from pa_river._native cimport Core
from pa_river._rowarena cimport RowArena

import numpy as np

from pa_river.batch import listed, one_each


cdef list plain(object values):
    """Labels or weights as a list of Python's own objects, which the checks of `learn_one` take quickest."""
    if type(values) is np.ndarray and values.ndim == 1:
        return values.tolist()
    return listed(values)


cdef int learn_lines(Core model, RowArena store, object X, object y, object w, list predicted) except -1:
    """Learn the rows of X, giving `predicted` what each would have been answered before; 0: X is not plain, nothing was
    done."""
    cdef Lines lines = store.lines_of(X)
    cdef Line line
    cdef Py_ssize_t row
    cdef list goals, weights
    cdef bint ask = predicted is not None
    if lines is None:
        return 0
    goals, w = plain(y), one_each(w, lines.count)
    weights = None if w is None else plain(w)
    if not lines.count == len(goals) == (lines.count if weights is None else len(weights)):
        raise ValueError(f"X has {lines.count} rows, y has {len(goals)}, "
                         f"w has {lines.count if weights is None else len(weights)}")
    undo = model._mark(lines)
    line = Line.__new__(Line)
    line.table = lines
    for row in range(lines.count):
        line.row = row
        try:
            answer = model.answer(line, goals[row], 1.0 if weights is None else weights[row], ask)
        except Exception as error:  # also what a user's rule raises: all or nothing
            undo()
            if isinstance(error, ValueError):
                raise ValueError(f"row {row}: {error}") from error
            raise
        if ask:
            predicted.append(answer)
    return 1


cdef list predict_lines(object model, RowArena store, object X):
    """What `model.predict_one` answers to the rows of X; None where X is not plain."""
    cdef Lines lines = store.lines_of(X)
    cdef Line line
    cdef Py_ssize_t row
    cdef list answers = []
    if lines is None:
        return None
    line = Line.__new__(Line)
    line.table = lines
    predict = model.predict_one
    for row in range(lines.count):
        line.row = row
        try:
            answers.append(predict(line))
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from error
    return answers
