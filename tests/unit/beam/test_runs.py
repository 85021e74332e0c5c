"""Sorted runs: whatever the bundles, the merged lines stand in the order of their places."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines import runs

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.lists(st.integers(0, 40), max_size=30), max_size=8), st.integers(1, 400))
def test_lines_of_any_bundles_are_merged_in_the_order_of_their_places(tmp_path_factory, bundles, most):
    folder = tmp_path_factory.mktemp("runs")
    names, expected = [], []
    runs._MAX_BYTES, kept = most, runs._MAX_BYTES
    try:
        for number, bundle in enumerate(bundles):
            writer = runs.RunWriter(folder, "lines")
            for index, position in enumerate(bundle):
                line = b"%d.%d" % (position, number * 1000 + index)
                writer.add(runs.place(position, number * 1000 + index), line)
                expected.append((position, number * 1000 + index, line))
            names += writer.close()
    finally:
        runs._MAX_BYTES = kept
    count = runs.merge(folder, names, folder / "lines.jsonl")
    assert (folder / "lines.jsonl").read_bytes() == b"".join(line + b"\n" for _, _, line in sorted(expected))
    assert count == len(expected)


def test_more_runs_than_files_may_be_open_are_merged_in_rounds_behind_earlier_lines(tmp_path):
    names = []
    for position in reversed(range(200)):
        writer = runs.RunWriter(tmp_path, "lines")
        writer.add(runs.place(position, 0), b"%d\twith a tab" % position)
        names += writer.close()
    (tmp_path / "before").write_bytes(b"before\n")
    runs.merge(tmp_path, names, tmp_path / "after", tmp_path / "before")
    assert (tmp_path / "after").read_text().splitlines() == ["before", *(f"{i}\twith a tab" for i in range(200))]


def test_no_run_at_all_is_an_empty_file(tmp_path):
    assert runs.merge(tmp_path, [], tmp_path / "empty") == 0
    assert (tmp_path / "empty").read_bytes() == b""


@given(st.lists(st.tuples(finite, st.text(max_size=4), st.text(max_size=4)), max_size=12))
def test_what_is_flushed_at_the_end_stands_behind_the_rest_by_time_key_and_id(flushed):
    flushed = [(time + 0.0, key, id) for time, key, id in flushed]  # one zero
    by_place = sorted(flushed, key=lambda entry: runs.place_at_end(*entry))
    assert by_place == sorted(flushed)
    assert all(runs.place_at_end(*entry) > runs.place(2**62, 2**31) for entry in flushed)


def test_a_time_sorts_by_its_value_over_all_floats():
    numbers = [-float("inf"), -1e300, -1.0, -5e-324, 0.0, 5e-324, 1.0, sys.float_info.max]
    assert [runs._sortable(number) for number in numbers] == sorted(runs._sortable(number) for number in numbers)
    assert runs._sortable(-0.0) == runs._sortable(0.0)
