"""The checks of a stored block of names, as stores and states use them."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef uint32_t names_in(object block) except? 1
cdef uint64_t bytes_of(const uint8_t *lengths, uint32_t count) noexcept
cdef bint as_spelled(const uint8_t *block, uint32_t count, size_t size) noexcept
cdef bint plain(const uint8_t *text, uint32_t length) noexcept
