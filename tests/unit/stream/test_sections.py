"""The cell's bytes: read back as written, and refused as a whole when anything in them is changed."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pa_river import PAClassifier, StateError
from pa_river.stream import CellSpec, Event
from pa_river.stream.buffers import Buffer, size_of
from pa_river.stream.order import InOrder, Marks, highest
from pa_river.stream.sections import join_cells, pack_ids, split_cells, unpack_ids
from pa_river.stream.seen import SeenRing, digest_x, digest_y


def a_cell(order="arrival"):
    spec = CellSpec(PAClassifier(), label_ttl=50.0, keep_every=1, order=order)
    held = spec.open("k", None)
    for at in range(6):
        held.on_event(Event("k", str(at), float(at), {"a": 1.0, "ü": at}, at % 2 == 0, source="s", seq=at))
        held.on_event(Event("k", f"open {at}", float(at), {"a": 1.0}, source="t", seq=at + (at > 3)))
        held.on_event(Event("k", f"early {at}", float(at), y=True, source="u", seq=at))
    held.wake_at()
    return spec, held.dumps()


def touched(spec, data):
    """Everything that reads a section."""
    held = spec.open("k", data)
    for at in range(6):
        held.on_event(Event("k", f"open {at}", 7.0, y=True, source="v", seq=at))
        held.on_event(Event("k", f"early {at}", 7.0, {"a": 1.0}, source="w", seq=at))
    held.on_event(Event("k", "back", 8.0, op="rollback", source="x", seq=0))
    held.on_due(1e6)
    held.on_end()


@pytest.mark.parametrize("order", ["arrival", "sequence"])
def test_every_flipped_or_missing_byte_of_a_cell_is_a_state_error(order):
    spec, data = a_cell(order)
    touched(spec, data)
    rng = random.Random(7)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << rng.randrange(8)
        with pytest.raises(StateError):
            touched(spec, bytes(flipped))
    for length in range(0, len(data), 3):
        with pytest.raises(StateError):
            touched(spec, data[:length])
    with pytest.raises(StateError):
        touched(spec, data + b"\x00")


def test_the_state_of_one_order_is_refused_by_the_other():
    for order, other in (("arrival", "sequence"), ("sequence", "arrival")):
        _, data = a_cell(order)
        with pytest.raises(StateError, match="order='sequence'"):
            touched(CellSpec(PAClassifier(), order=other), data)


def test_what_is_no_cell_is_a_state_error():
    spec, _ = a_cell()
    for data in (b"", b"PARH", b"x" * 100, 3, "text"):
        with pytest.raises(StateError):
            spec.open("k", data)


@given(st.lists(st.tuples(st.text(), st.floats(allow_nan=False), st.binary())), st.floats(allow_nan=False))
def test_a_directory_of_cells_is_read_back_as_written(cells, armed):
    cells = [(key.encode(errors="ignore").decode(), due, blob) for key, due, blob in cells]
    pieces = [(key, due, [blob[:2], blob[2:]]) for key, due, blob in cells]
    assert split_cells(join_cells(pieces, armed)) == (cells, armed)


@given(st.lists(st.text(), min_size=1))
def test_ids_are_read_back_as_written_whatever_is_in_them(ids):
    assert unpack_ids(pack_ids(ids)) == ids


ids = st.sampled_from(["1", "2", "3", "", "two\nlines", "ü"])


@given(st.lists(st.tuples(ids, st.integers(0, 5).map(float), st.sampled_from(["add", "add", "remove", "bytes"]))))
def test_a_buffer_is_a_list_of_what_waits_whatever_part_of_it_is_bytes(steps):
    buffer, plain = Buffer(timed=True), {}
    for number, (id, time, step) in enumerate(steps):
        if step == "bytes":
            buffer = Buffer(buffer.encode(), timed=True)
        elif step == "remove" and id in plain:
            buffer.remove(id)
            del plain[id]
        elif step == "add" and id not in plain:
            buffer.add(id, time, number, ({"x": time}, number))
            plain[id] = (time, number)
        assert buffer.ids() == list(plain)
        assert len(buffer) == len(plain)
        assert all((id in buffer) == (id in plain) for id in ["1", "2", "3", "", "two\nlines", "ü", "never"])
        assert buffer.bytes == sum(size for _, size in plain.values())
        assert all(buffer.time(id) == time for id, (time, _) in plain.items())
        assert all(buffer.content(id) == ({"x": time}, number) for id, (time, number) in plain.items())
        first = min(plain.items(), key=lambda entry: entry[1][0], default=None)
        assert buffer.earliest() == (first and (first[1][0], first[0]))
    assert Buffer(buffer.encode()).encode() == buffer.encode()
    assert bool(buffer.encode()) == bool(plain)


ttls = st.sampled_from([None, 3.0])


@given(st.lists(st.tuples(ids, st.integers(0, 9), st.booleans())), st.sampled_from([1, 2, 4]), ttls)
def test_a_ring_of_seen_ids_is_a_list_cut_by_number_and_age_whatever_part_of_it_is_bytes(steps, size, ttl):
    ring, plain, clock = SeenRing(size, ttl), [], 0.0
    for id, number, is_bundle in steps:
        if is_bundle:
            ring = SeenRing(size, ttl, ring.encode())
        clock += number % 3
        ring.add(id, number % 4, number, -number, clock)
        plain = [kept for kept in plain if kept[0] != id] + [(id, (number % 4, number, -number, clock))]
        plain = plain[-size:]
        while ttl is not None and clock - plain[0][1][3] > ttl:
            del plain[0]
        assert ring.ids() == [id for id, _ in plain]
        assert len(ring) == len(plain)
        for id, seen in plain:
            assert ring.get(id, clock) == (seen if ttl is None or clock - seen[3] <= ttl else None)
    assert SeenRing(size, ttl, ring.encode()).encode() == ring.encode()


@given(st.lists(st.integers(0, 3000), max_size=40), st.booleans())
def test_marks_tell_new_from_seen_as_a_set_does(numbers, wide):
    if wide:
        numbers = [number * 2**33 for number in numbers]
    marks, seen = Marks(), set()
    for number in numbers:
        assert marks.admit("s", number) == ("duplicates" if number in seen else "new")
        seen.add(number)
        marks = Marks(marks.encode())
    if seen:
        assert highest(marks.encode()) == {"s": max(seen)}


def test_a_key_hears_from_so_many_sources_and_no_more():
    for marks in (Marks(), InOrder()):
        for number in range(1024):
            marks.admit(str(number), 0)
        with pytest.raises(ValueError, match="1024 sources"):
            marks.admit("one more", 0)


def test_waiting_entries_whose_bytes_hold_no_hashes_are_found_too():
    import struct

    import numpy as np
    from pa_river.state import pack

    contents = [pack(({"a": at}, at)) for at in range(3)]
    head = pack((pack_ids(["x", "y", "z"]), np.arange(3.0), np.full(3, 9), np.array(list(map(len, contents)))))
    buffer = Buffer(struct.pack("<I", len(head)) + head + b"".join(contents), timed=True)
    assert (buffer.ids(), buffer.content("y"), "w" in buffer) == (["x", "y", "z"], ({"a": 1}, 1), False)
    assert Buffer(buffer.encode()).ids() == ["x", "y", "z"]


def test_a_bundle_that_asks_for_many_ids_gets_the_same_answers():
    buffer = Buffer(timed=True)
    for at in range(900):
        buffer.add(str(at), float(at), 1, (at,))
    buffer = Buffer(buffer.encode(), timed=True)
    for at in range(0, 900, 2):
        assert buffer.content(str(at)) == (at,)
        buffer.remove(str(at))
        assert str(at) not in buffer and str(at + 1) in buffer
    assert buffer.ids() == [str(at) for at in range(1, 900, 2)]
    assert (buffer.earliest(), buffer.oldest(), buffer.bytes) == ((1.0, "1"), "1", 450)
    assert Buffer(buffer.encode()).ids() == buffer.ids()


def test_seen_ids_leave_by_number_and_by_age():
    ring = SeenRing(2, 10.0)
    for at, id in enumerate("abc"):
        ring.add(id, 0, 0, 0, float(at))
    assert SeenRing(2, 10.0, ring.encode()).ids() == ["b", "c"]
    assert ring.get("b", 11.0) is not None
    assert ring.get("b", 11.5) is None
    ring.add("d", 0, 0, 0, 12.5)
    assert ring.ids() == ["d"]


def test_digests_know_equal_features_and_labels_and_tell_others_apart():
    assert digest_x({"a": 1, "b": 2.0}) == digest_x({"b": 2, "a": True})
    assert digest_x({"a": "red", "b": 1}) == digest_x({"b": 1.0, "a": "red"})
    assert len({digest_x(x) for x in ({"a": 1}, {"b": 1}, {"a": "1"}, {"a": 2}, {}, [{"a": 1}], {"a": None})}) == 7
    assert digest_x({"a": 1.0, "b": 2.0}) != digest_x({"a": 2.0, "b": 1.0})
    assert digest_y(True) == digest_y(1.0) == digest_y(1)
    assert digest_y(("a", 1)) == digest_y(("a", 1.0))
    assert digest_y("1") != digest_y(1)


@given(st.dictionaries(st.text(max_size=5), st.one_of(
    st.floats(), st.integers(-2**40, 2**40), st.text(), st.none(), st.booleans(), st.lists(st.integers(0, 9)))))
def test_the_estimate_of_a_size_is_no_less_than_what_is_stored(x):
    from pa_river.state import pack

    assert size_of(x) >= len(pack(x)) - 24 - 6 * len(x) - 3 * sum(map(len, map(str, x.values())))


def test_what_was_answered_does_not_pile_up_in_the_order_of_deadlines():
    buffer = Buffer(timed=True)
    buffer.add("open", 5.0, 1, ())
    for at in range(1000):
        buffer.add(str(at), 10.0 + at, 1, ())
        buffer.remove(str(at))
    assert len(buffer._heap) < 70
    assert buffer.earliest() == (5.0, "open")
    buffer.add("earlier", 1.0, 1, ())
    assert buffer.earliest() == (1.0, "earlier")


def test_features_that_the_state_cannot_hold_are_refused_before_they_wait():
    spec = CellSpec(PAClassifier())
    held = spec.open("k", None)
    (refused,) = held.on_event(Event("k", "1", 0.0, x={"a": Decimal("1.5")}))
    assert (refused.stage, "Decimal" in refused.reason) == ("validate", True)
    held.on_event(Event("k", "2", 0.0, x={7: 1.0, b"b": 2, ("c", 1): 3.0, "d": None}))
    (outcome,) = spec.open("k", held.dumps()).on_event(Event("k", "2", 1.0, y=True))
    assert outcome.y is True
