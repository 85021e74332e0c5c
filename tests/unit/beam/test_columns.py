"""The column map: rows become events as documented."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines.columns import Columns, value


def test_a_row_becomes_the_event_its_map_says():
    columns = Columns("key=carrier+origin, id=n, time=when, y=late, w=weight, segment=part, x=hour+dest:text")
    row = {"carrier": "UA", "origin": "EWR", "n": "007", "when": "2013-01-01T05:15:00Z", "late": "false", "weight": "2",
           "part": "1", "hour": "5", "dest": "10"}  # fmt: skip
    assert columns.record(row) == {
        "key": "UA-EWR", "id": "007", "time": "2013-01-01T05:15:00Z", "y": False, "w": 2, "segment": "1",
        "x": {"hour": 5, "dest": "10"},
    }  # fmt: skip


def test_empty_cells_are_absent_and_a_row_without_features_is_a_label():
    columns = Columns("key=k,id=n,time=t,y=late,x=a+b")
    assert columns.record({"k": "k", "n": "1", "t": "2", "late": "1", "a": "", "b": ""}) == {
        "key": "k", "id": "1", "time": 2, "y": 1,
    }  # fmt: skip


def test_without_x_every_other_column_is_a_feature():
    columns = Columns("key=k,id=n,time=t")
    columns.check(["k", "n", "t", "a", "b"])
    assert columns.record({"k": "k", "n": "1", "t": "2", "a": "3", "b": "x"})["x"] == {"a": 3, "b": "x"}


@given(st.lists(st.tuples(st.text("a-\\", max_size=4), st.text("a-\\", max_size=4)), unique=True, max_size=8))
def test_two_rows_share_a_joined_key_only_if_their_cells_are_equal(pairs):
    columns = Columns("key=a+b,time=t")
    assert len({columns.record({"a": a, "b": b, "t": "0"})["key"] for a, b in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("key=a", "time=... is missing"),
        ("time=a", "key=... is missing"),
        ("key=a,time=b,kye=c", "'kye' is not a field"),
        ("key=a,time=b,key=c", "'key' is given twice"),
        ("key=,time=b", "names no column"),
        ("key=a+,time=b", "empty column name"),
        ("key=a,time=b,x=c:number", "only kind of a column is :text"),
        ("key", "names no column"),
    ],
)
def test_a_map_that_is_none_is_refused_in_words(text, word):
    with pytest.raises(ValueError, match=word.replace("(", r"\(").replace("...", r"\.\.\.")):
        Columns(text)


def test_a_header_without_a_mapped_column_is_refused_by_name():
    with pytest.raises(ValueError, match="no column 'dest' for x"):
        Columns("key=k,time=t,x=dest").check(["k", "t"])
    with pytest.raises(ValueError, match="'t' appears twice"):
        Columns("key=k,time=t").check(["k", "t", "t"])


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("1", 1), ("-1.50", -1.5), (".5", 0.5), ("1e3", 1000.0), ("TRUE", True), ("false", False), ("1_0", "1_0"),
     ("٣", "٣"), ("0x1", "0x1"), ("one", "one"), ("9" * 30, 1e30), (" 7 ", 7)],
)  # fmt: skip
def test_a_number_is_a_number_true_and_false_are_bools_and_the_rest_is_text(cell, expected):
    found = value(cell)
    assert (type(found), found) == (type(expected), expected)
    assert value(cell, text=True) == cell
