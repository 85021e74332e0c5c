"""What a batch is given, in a form that compiled loops take."""

from pa_river._laws cimport Law


cdef class Table:
    cdef object array, csr, names, frame
    cdef Py_ssize_t rows, width

    cdef dict record(self, Py_ssize_t row)
    cdef refuse(self, Py_ssize_t row, int reason)

cdef Table table(object X)
cdef object signs(object y)
cdef object targets(object y)
cdef object importance(object w)
cdef bint lawful(object rule, Law *law)
cdef object sized(object values)
cdef int same_length(Table plain, object y, object w) except -1
