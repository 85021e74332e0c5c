"""Bytes that were cut, flipped or made by an enemy: a StateError each, or a sound model; never anything large."""

from __future__ import annotations

import struct
import sys
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pa_river
from tests import cases

EVERY = pytest.mark.parametrize("case", [*cases.LINEAR_STORE, *cases.SECOND], ids=str)
HEADER = 12


def resealed(body: bytes, head: bytes) -> bytes:
    """The body under a checksum that fits: what an enemy sends, and what a checksum cannot catch."""
    return head[:8] + struct.pack("<I", zlib.crc32(body)) + body


def opened(data: bytes, size: int) -> None:
    """Load; StateError, or a model whose memory fits what came and which stores and learns like any other."""
    tracemalloc.start()
    try:
        model = pa_river.loads(data)
    except pa_river.StateError:
        return
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200_000 + 100 * size
    assert sys.getsizeof(model._store) < 10_000 + 100 * size
    assert pa_river.loads(pa_river.dumps(model)).weights == model.weights


@EVERY
@given(data=st.data())
def test_a_flipped_bit_is_found(case, data):
    good = pa_river.dumps(case.trained(data.draw(case.stream)))
    at = data.draw(st.integers(0, 8 * len(good) - 1))
    bad = bytearray(good)
    bad[at // 8] ^= 1 << at % 8
    with pytest.raises(pa_river.StateError):
        pa_river.loads(bytes(bad))


@EVERY
@given(data=st.data())
def test_a_cut_is_found_even_under_a_checksum_that_fits(case, data):
    good = pa_river.dumps(case.trained(data.draw(case.stream)))
    cut = data.draw(st.integers(0, len(good) - 1))
    with pytest.raises(pa_river.StateError):
        pa_river.loads(good[:cut])
    if cut > HEADER:
        with pytest.raises(pa_river.StateError):
            pa_river.loads(resealed(good[HEADER:cut], good))


@EVERY
@given(data=st.data())
def test_a_changed_body_under_a_checksum_that_fits_is_refused_or_sound(case, data):
    good = pa_river.dumps(case.trained(data.draw(case.stream)))
    body = bytearray(good[HEADER:])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body) - 4))
        new = data.draw(st.one_of(
            st.integers(0, 255).map(lambda byte: bytes([byte])),
            st.sampled_from([0, 1, 2**16, 2**31 - 1, 2**32 - 1]).map(lambda length: struct.pack("<I", length)),
            st.sampled_from([float("nan"), float("inf"), 1e308]).map(lambda number: struct.pack("<d", number)),
        ))
        body[at:at + len(new)] = new
    opened(resealed(bytes(body), good), len(good))


@pytest.mark.parametrize("length", [2**16, 2**30, 2**32 - 1])
def test_a_length_beyond_the_bytes_is_refused_wherever_it_stands(length):
    model = pa_river.PAClassifier()
    model.learn_one({"a": 1.0, 5: 2.0, ("b", 1): 3.0}, True)
    good = pa_river.dumps(model)
    for at in range(HEADER, len(good) - 3):
        body = bytearray(good[HEADER:])
        body[at - HEADER:at - HEADER + 4] = struct.pack("<I", length)
        opened(resealed(bytes(body), good), len(good))
