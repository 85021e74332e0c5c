"""Lines in and lines out: what is read, what is refused, and that nothing raises."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pa_river.stream import (
    OUTPUTS, Event, Orphan, Outcome, Prediction, Rejected, Snapshot, event_from, parse, payload, too_far_ahead,
)


def line(**fields):
    return json.dumps({"key": "k", "id": "1", "time": 5, "x": {"a": 1}, **fields})


def test_a_whole_event_is_read_field_by_field():
    event = parse(line(time="2013-01-01T05:15:00-05:00", y=True, w=2, segment="s", seq=3, source="t-0").encode())
    assert event == Event("k", "1", 1357035300.0, {"a": 1}, True, 2.0, "s", 3, "t-0")


@pytest.mark.parametrize("time, seconds", [
    (0, 0.0), (1.5, 1.5), ("7", 7.0), ("1970-01-01", 0.0), ("1970-01-01T00:00:01", 1.0),
    ("1970-01-01t00:00:01.5z", 1.5), ("1970-01-01 01:00:00+01:00", 0.0), (np.float64(2.5), 2.5), (np.int64(3), 3.0),
])
def test_times_are_epoch_seconds_or_rfc_3339_in_utc_where_no_offset_is_named(time, seconds):
    assert event_from({"key": "k", "id": "1", "time": time, "y": 1}).time == seconds


@pytest.mark.parametrize("key, text", [
    ("ü", "ü"), (7, "7"), (7.0, "7"), (7.5, "7.5"), (True, "true"), (False, "false"), (np.int64(7), "7"), ("", ""),
])
def test_keys_and_ids_become_their_canonical_text(key, text):
    event = event_from({"key": key, "id": key, "time": 0, "y": 1})
    assert (event.key, event.id) == (text, text)


@pytest.mark.parametrize("fields, stage, words", [
    ({"key": None}, "validate", "key must be text"), ({"key": ["a"]}, "validate", "key must be text"),
    ({"key": "k" * 5000}, "validate", "more than 4096"), ({"id": None}, "validate", "id is required"),
    ({"time": None}, "validate", "time"), ({"time": "yesterday"}, "validate", "YESTERDAY"),
    ({"time": True}, "validate", "time"), ({"time": 10**400}, "validate", "time"), ({"time": "inf"}, "validate", "INF"),
    ({"time": 1e300}, "validate", "at most 9e+12"),
    ({"x": None}, "validate", "x or y"), ({"x": 3}, "validate", "x must be"),
    ({"x": {"a": {"b": [[math.inf]]}}}, "parse", "Infinity is not a JSON number"),
    ({"x": {"a": 10**400}}, "validate", "'a' must be a finite number"), ({"y": 10**400}, "validate", "'y' must be"),
    ({"w": -1}, "validate", "w must be"), ({"w": "much"}, "validate", "w must be"), ({"seq": -1}, "validate", "seq"),
    ({"seq": 1.0}, "validate", "seq"), ({"op": "drop"}, "validate", "op must be one of query, rollback"),
    ({"op": "query", "x": None}, "validate", "a query needs x"), ({"op": "forget"}, "validate", "target"),
    ({"op": "rollback", "target": "last"}, "validate", "target"),
    ({"op": "reset", "id": None}, "validate", "id is required"),
    ({"segment": {}}, "validate", "segment"), ({"x": {"a": math.nan}}, "parse", "NaN is not a JSON number"),
])
def test_a_field_that_is_wrong_is_rejected_in_words_with_the_text_it_came_in(fields, stage, words):
    text = line(**fields)
    rejected = parse(text)
    assert isinstance(rejected, Rejected)
    assert (rejected.stage, words in rejected.reason) == (stage, True), rejected.reason
    assert rejected.payload == text[:64_000]


@pytest.mark.parametrize("text", [
    "", "not json", "[1]", "3", '{"key": "k"', b"\xff\xfe", "[" * 10_000, '{"x":' * 10_000 + "1" + "}" * 10_000,
    line(x={"text": "x" * 10_000_000}), line(x={f"f{i}": 1 for i in range(1_000_000)}), line(key="\ud800"),
    line(x={"a": 1}).replace('"a": 1', '"a": ' + "[" * 500 + "]" * 500),
    line(x={f"f{i}": 1 for i in range(100_001)}), line(x=[1] * 100_001),
], ids=lambda text: f"{text[:12]!r} {len(text)}")
def test_a_hostile_line_is_one_bounded_rejected_record(text):
    rejected = parse(text)
    assert isinstance(rejected, Rejected)
    assert len(rejected.payload.encode(errors="replace")) <= 64_000 + 3
    assert len(rejected.to_json()) < 500_000


@given(st.one_of(st.text(), st.binary(), st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner), st.dictionaries(st.sampled_from(["key", "id", "time", "x", "y", "op"]), inner)),
).map(json.dumps)))
def test_no_line_raises(text):
    assert isinstance(parse(text), (Event, Rejected))


@given(st.dictionaries(st.sampled_from(Event._fields), st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(), st.text(), st.binary(), st.just(object()), st.just(1j),
    st.lists(st.floats()), st.dictionaries(st.text(), st.floats()),
)))
def test_no_decoded_record_raises(record):
    result = event_from(record)
    assert isinstance(result, (Event, Rejected))
    if isinstance(result, Event):
        assert parse(result.to_json()) == result or not isinstance(result.x, (dict, type(None)))


def test_what_the_source_knows_stands_in_where_the_line_is_silent():
    assert parse(line(), source="t-1", seq=9)[7:9] == (9, "t-1")
    assert parse(line(source="own", seq=1), source="t-1", seq=9)[7:9] == (1, "own")


def test_an_event_far_ahead_of_the_wall_clock_is_rejected_and_one_within_the_limit_is_not():
    event = Event("k", "1", 4600.0, y=True)
    assert too_far_ahead(event, 1000.0) is None
    assert too_far_ahead(event, 999.0).stage == "validate"


def test_outputs_are_strict_json_whatever_type_a_label_has():
    outcome = Outcome("k", None, 1.0, None, {("a", 1): True, b"b": False}, [np.int64(1), "ü\ud800"], None, -0.5, 3)
    assert json.loads(outcome.to_json()) == {
        "key": "k", "id": None, "time": 1.0, "segment": None, "prediction": {'["a",1]': True, '"Yg=="': False},
        "y": [1, "ü\ud800"], "loss": None, "delay": -0.5, "version": 3,
    }
    assert json.loads(Snapshot("k", 0, 1, 2.0, "end", b"\x00\xff", b"").to_json())["model"] == "AP8="
    with pytest.raises(ValueError):
        Prediction("k", "1", 1.0, math.inf, None, 0).to_json()


def test_records_are_immutable_and_each_names_its_output():
    assert [output.tag for output in OUTPUTS] == [
        "predictions", "outcomes", "rejected", "orphans", "drift", "snapshots",
    ]
    with pytest.raises(AttributeError):
        Orphan("k", "1", 0.0, "late", None, None).kind = "early"
    with pytest.raises(AttributeError):
        Event("k", "1", 0.0).extra = 1


def test_the_payload_of_what_has_no_text_is_made_and_cut():
    assert payload({"a": object(), ("b",): 1})[:7] == '{"a": "'
    assert len(payload("é" * 100_000).encode()) <= 64_000
    cycle: dict = {}
    cycle["self"] = cycle
    assert payload(cycle).startswith("<ValueError")


def test_a_number_of_a_source_may_be_numpy_s():
    event = event_from({"key": "k", "id": "1", "time": 0, "y": 1, "seq": np.int64(3)})
    assert (event.seq, type(event.seq)) == (3, int)
    assert isinstance(event_from({"key": "k", "id": "1", "time": 0, "y": 1, "seq": np.float64(3)}), Rejected)
    assert isinstance(event_from({"key": "k", "id": "1", "time": 0, "y": 1, "seq": True}), Rejected)
