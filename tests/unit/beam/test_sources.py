"""Sources: what a line becomes, in which order, and that one bad line costs one rejected record."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines import sources
from beam_pipelines.sources import CsvRows, JsonLines, ReadEvents
from pa_river.stream import Event, Rejected
from pa_river.stream.parsing import MAX_LINE


def read(paths, reader=None, order="arrival"):
    """[(position, Event or Rejected)] that the source's DoFn yields, by position; of one key in the order yielded."""
    found = []
    for element in ReadEvents(paths, reader or JsonLines(), order).process(None):
        batch = element.value if hasattr(element, "tag") else element[1]
        assert [position for position, _ in batch] == sorted(position for position, _ in batch)
        found += batch
    return sorted(found, key=lambda entry: entry[0])


def line(key, id, time, **rest):
    return json.dumps({"key": key, "id": id, "time": time, **rest})


def write(path, *lines):
    data = "".join(text + "\n" for text in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_several_inputs_are_read_in_the_order_given_plain_or_gzip_whatever_the_name(tmp_path):
    first = write(tmp_path / "b.jsonl.gz", line("k", "1", 5, x={"a": 1}))
    second = write(tmp_path / "a.jsonl", line("k", "2", 3, x={"a": 1}))
    first = first.rename(tmp_path / "b.jsonl")
    events = [event for _, event in read([first, second])]
    assert [event.id for event in events] == ["1", "2"]
    assert all(event.seq is None and event.source is None for event in events)


def test_sequence_sorts_by_time_then_labels_first_then_place_in_the_input_and_counts_per_key(tmp_path):
    path = write(
        tmp_path / "in",
        line("a", "1", 2, x={"f": 1}),
        line("b", "2", 1, x={"f": 1}),
        line("a", "3", 2, y=True),
        line("a", "4", 1, x={"f": 1}),
        line("a", "1", 1, y=True),
        line("a", "5", 2, x={"f": 1}, y=True),
    )
    found = read([path], order="sequence")
    assert [position for position, _ in found] == list(range(6))
    assert [(e.key, e.id, e.seq) for _, e in found] == [
        ("a", "1", 0), ("b", "2", 0), ("a", "4", 1), ("a", "3", 2), ("a", "1", 3), ("a", "5", 4),
    ]  # fmt: skip
    (source,) = {event.source for _, event in found}
    assert source == read([path], order="sequence")[0][1].source  # a name made of the content


def test_another_content_is_another_source(tmp_path):
    paths = [write(tmp_path / name, line("k", name, 1, x={"f": 1})) for name in ("a", "b")]
    assert len({read([path], order="sequence")[0][1].source for path in paths}) == 2


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), max_size=25))
def test_a_rejected_line_keeps_its_place_and_moves_no_other(tmp_path_factory, rows):
    """Good lines sort as if the bad ones were not there; each bad one stands behind the last good line before it."""
    path = tmp_path_factory.mktemp("in") / "in.jsonl"
    lines = []
    for number, (time, is_label, is_good) in enumerate(rows):
        good = line("k", str(number), time, **({"y": True} if is_label else {"x": {"f": number}}))
        lines.append(good if is_good else f"not JSON {number}")
    write(path, *lines)
    found = [event for _, event in read([path], order="sequence")]
    good = [(time, not is_label, str(n)) for n, (time, is_label, is_good) in enumerate(rows) if is_good]
    expected = [id for _, _, id in sorted(good, key=lambda entry: entry[:2])]
    assert [event.id for event in found if isinstance(event, Event)] == expected
    bad = [event.payload for event in found if isinstance(event, Rejected)]
    assert sorted(bad) == sorted(text for text in lines if text.startswith("not"))


HOSTILE = {
    "not JSON": b"oops",
    "not UTF-8": b'{"key": "\xff"}',
    "NaN": b'{"key": "k", "id": "1", "time": 1, "x": {"a": NaN}}',
    "an int beyond float range": b'{"key": "k", "id": "1", "time": 1, "x": {"a": 1' + b"0" * 400 + b"}}",
    "no key": b'{"id": "1", "time": 1, "x": {"a": 1}}',
    "no time": b'{"key": "k", "id": "1", "x": {"a": 1}}',
    "a list": b"[1, 2]",
    "10 MB": b'{"key": "k", "id": "1", "time": 1, "x": {"a": "' + b"b" * 10_000_000 + b'"}}',
    "a million features": b'{"key":"k","id":"1","time":1,"x":{'
    + b",".join(b'"f%d":1' % i for i in range(1_000_000)) + b"}}",
    "nested 10,000 deep": b'{"key": "k", "id": "1", "time": 1, "x": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("order", ["arrival", "sequence"])
def test_a_hostile_line_is_one_bounded_rejected_record_and_the_next_line_is_read(tmp_path, name, order):
    path = tmp_path / "in.jsonl"
    path.write_bytes(HOSTILE[name] + b"\n" + line("k", "2", 2, x={"a": 1}).encode())
    (_, bad), (_, good) = read([path], order=order)
    assert isinstance(bad, Rejected) and bad.reason and len(bad.payload.encode()) <= 64_000
    assert good.id == "2"


def test_a_line_of_the_longest_length_is_read_and_one_byte_more_is_not(tmp_path):
    def padded(length):
        text = line("k", "1", 1, x={"a": ""})
        return line("k", "1", 1, x={"a": "b" * (length - len(text))})

    path = write(tmp_path / "in", padded(MAX_LINE), padded(MAX_LINE + 1), line("k", "2", 1, x={"a": 1}))
    assert [type(event) for _, event in read([path])] == [Event, Rejected, Event]


def test_empty_lines_are_no_events_and_an_empty_input_is_none(tmp_path):
    path = write(tmp_path / "in", "", "  ", line("k", "1", 1, x={"a": 1}), "")
    for order in ("arrival", "sequence"):
        assert len(read([path], order=order)) == 1
        assert read([write(tmp_path / "empty")], order=order) == []


def test_csv_rows_become_events_and_a_wrong_row_one_rejected_record(tmp_path):
    rows = ('u,1,1,,"1,5",x', "u,1,2,true,,", "u,2,3", 'u,"3,4', "u,4,nan,,1,x", "u,5,5,,nan,x")
    path = write(tmp_path / "in.csv", "k,n,t,y,a,b", *rows)
    found = [event for _, event in read([path], CsvRows("key=k,id=n,time=t,y=y,x=a+b"))]
    assert found[0] == Event("u", "1", 1.0, {"a": "1,5", "b": "x"})
    assert found[1] == Event("u", "1", 2.0, None, True)
    assert [type(event) for event in found[2:]] == [Rejected] * 4
    assert [event.payload for event in found[2:]] == list(rows[2:])
    assert "3 cells under a header of 6" in found[2].reason and "'a' must be a finite number" in found[5].reason


@pytest.mark.parametrize("order", ["arrival", "sequence"])
def test_each_csv_input_is_read_by_its_own_header(tmp_path, order):
    first = write(tmp_path / "1.csv", "k,n,t,a", "u,1,1,5")
    second = write(tmp_path / "2.csv", "\ufeffa,t,n,k", "6,2,2,u")
    found = [event for _, event in read([first, second], CsvRows("key=k,id=n,time=t,x=a"), order)]
    assert [(e.id, e.x) for e in found] == [("1", {"a": 5}), ("2", {"a": 6})]


def test_a_gzip_file_that_is_cut_stops_the_run_and_names_the_file(tmp_path):
    path = tmp_path / "in.gz"
    path.write_bytes(gzip.compress(line("k", "1", 1, x={"a": 1}).encode() * 100)[:-20])
    with pytest.raises(OSError, match="in.gz"):
        read([path])


def test_check_input_refuses_a_header_that_lacks_a_mapped_column(tmp_path):
    with pytest.raises(ValueError, match="no column 'b' for x"):
        sources.check_input(write(tmp_path / "in.csv", "k,t,a"), CsvRows("key=k,time=t,x=a+b"))
