"""Tables of numbers, and why a row of one may be refused."""

cdef enum:
    GOOD = -1  # why a row was refused: a value, the score, a weight, the intercept
    VALUE = 0
    SCORE = 1
    WEIGHT = 2
    INTERCEPT = 3


cdef class Table:
    cdef object array, csr, names, frame
    cdef Py_ssize_t rows, width

    cdef dict record(self, Py_ssize_t row)
    cdef refuse(self, Py_ssize_t row, int reason)

cdef Table table(object X)
cdef object signs(object y)
cdef object targets(object y)
cdef object importance(object w)
