"""A line is decoded by the faster decoder where there is one, and means what Python's json says it means."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pa_river.stream import Event, Rejected, parse, parsing

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)
ODD = [
    "-0", "-0.0", "9223372036854775808", "-9223372036854775809", "1" * 400, "1e400", "-1e400", "1E-400", "4.9e-324",
    "1.7976931348623159e308", "9007199254740993", "123456789012345678901234567890.5", "NaN", "-Infinity", '"\\ud800"',
    '"\\ud83d\\ude00"', '"a\\u0000b"', '{"a": 1, "a": 2}', "[1,]", "01", "+1", ".5", "1.", '{"a":1}x',
    ' {"a" : [1 ]} \n', "\ufeff{}", "nul", '"\t"', "", "[", '"\ud800"', "[\u00a01]",
    "[" * 400 + "]" * 400, "[" * 100_000,
]


def outcome(decode, text):
    try:
        value = decode(text)
    except RecursionError:
        return "nested too deep"
    except ValueError:
        return "refused"
    return value, repr(value)  # -0.0 and True print differently from 0.0 and 1


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_texts_mean_the_same_to_both_decoders(text):
    assert outcome(parsing._decoded, text) == outcome(parsing._decode, text)


@given(value=values, ascii=st.booleans())
def test_every_value_means_the_same_to_both_decoders(value, ascii):
    text = json.dumps(value, ensure_ascii=ascii)
    assert outcome(parsing._decoded, text) == outcome(parsing._decode, text) == (value, repr(value))


@pytest.mark.parametrize("fast", [parsing._msgspec, None], ids=["as installed", "json alone"])
def test_lines_become_events_or_say_why_not(fast, monkeypatch):
    monkeypatch.setattr(parsing, "_msgspec", fast)
    line = b'{"key": 7, "id": "a", "time": 1, "x": {"b": 0.5, "c": "\xc3\xa4"}, "y": true}'
    assert parse(line) == Event("7", "a", 1.0, {"b": 0.5, "c": "ä"}, True)
    assert parse('{"key": "k", "time": NaN}') == Rejected(
        None, None, '{"key": "k", "time": NaN}', "parse", "not JSON: NaN is not a JSON number")
    assert "'a' must be a finite number" in parse('{"key": "k", "id": "1", "time": 1, "x": {"a": 1e400}}').reason
    assert "surrogate" in parse('{"key": "k\\ud800", "id": "1", "time": 1, "x": {"a": 1}}').reason
    assert parse("[" * 100_000).reason == "not JSON: nested too deep"
