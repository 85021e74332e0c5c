# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: binding=False, auto_pickle=False
"""A stored block of names, as `_pack.pack_names` writes it: a count, the length of each, the bytes of all."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pa_river import _pack

cdef extern from "Python.h":
    const char *PyBytes_AS_STRING(object)


cdef uint32_t names_in(object block) except? 1:
    """How many names a stored block holds; `StateError` if it is none. Every length is checked before it is used."""
    if not isinstance(block, bytes) or len(block) < 4:
        raise _pack.StateError("a block of names is missing")
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(block)
    cdef uint64_t size = len(block)
    cdef uint32_t count
    memcpy(&count, data, 4)
    if count > (size - 4) // 4:
        raise _pack.StateError(f"{count} names in a block of {size} bytes")
    if bytes_of(data + 4, count) != size - 4 - 4 * <uint64_t>count:
        raise _pack.StateError("the lengths of the names do not add up")
    return count


cdef uint64_t bytes_of(const uint8_t *lengths, uint32_t count) noexcept:
    """The sum of the lengths of a block's names."""
    cdef uint64_t total = 0
    cdef uint32_t i, length
    for i in range(count):
        memcpy(&length, lengths + 4 * <size_t>i, 4)
        total += length
    return total


cdef bint as_spelled(const uint8_t *block, uint32_t count, size_t size) noexcept:
    """Whether all names, `size` bytes, are spelled as they are here, with no need of a closer look."""
    cdef const uint8_t *text = block + 4 + 4 * <size_t>count
    cdef uint32_t i, length
    if all_ascii(text, size):
        return True
    for i in range(count):
        memcpy(&length, block + 4 + 4 * <size_t>i, 4)
        if not plain(text, length):
            return False
        text += length
    return True


cdef inline bint all_ascii(const uint8_t *text, size_t length) noexcept:
    cdef size_t i
    cdef uint8_t high = 0
    for i in range(length):
        high |= text[i]
    return high < 0x80


cdef bint plain(const uint8_t *text, uint32_t length) noexcept:
    """Whether a stored name is ASCII or a tagged small int: as it is spelled here."""
    return (length == 10 and text[0] == 0xFF and text[1] == c"i") or all_ascii(text, length)
