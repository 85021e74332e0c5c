"""Coders: what comes back equals what went in, in value and in type; nothing is pickled."""

import pickle

import numpy as np
import pytest
from apache_beam.coders.typecoders import registry
from apache_beam.typehints.native_type_compatibility import convert_to_beam_type
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines import coders
from beam_pipelines.learn import Batch
from pa_river import PAClassifier
from pa_river.stream import OUTPUTS, CellSpec, Event, Prediction, Rejected, Snapshot

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**80), 2**80), finite, st.text(max_size=5))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.tuples(inner), st.dictionaries(st.text(max_size=3), inner)),
    max_leaves=6,
)
events = st.builds(
    Event, st.text(max_size=5), st.none() | st.text(max_size=5), finite, st.none() | st.dictionaries(st.text(), values),
    values, st.none() | finite, st.none() | st.text(), st.none() | st.integers(0, 2**70), st.none() | st.text(),
)  # fmt: skip


def typed(value):
    """`value` with the type of every part beside it: True == 1 == 1.0 to Python, but not to a model's names."""
    if isinstance(value, dict):
        return dict, [(typed(name), typed(item)) for name, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [typed(item) for item in value]
    return type(value), value


@given(events)
def test_an_event_comes_back_equal_in_value_and_in_type(event):
    coder = coders.EventCoder()
    assert typed(coder.decode(coder.encode(event))) == typed(event)


def test_numpys_scalars_come_back_as_pythons():
    event = Event("k", "1", 1.0, {"a": np.float64(0.5), "b": np.int64(2)}, np.bool_(True))
    coder = coders.EventCoder()
    assert typed(coder.decode(coder.encode(event))) == typed(Event("k", "1", 1.0, {"a": 0.5, "b": 2}, True))


def test_features_by_number_or_tuple_come_back_as_they_are():
    event = Event("k", "1", 1.0, {3: 1.0, ("a", 1): 2.0})
    coder = coders.EventCoder()
    assert typed(coder.decode(coder.encode(event))) == typed(event)


@pytest.mark.parametrize(
    "record",
    [Prediction("k", "1", 1.0, ("a", 2), 0.5, 3), Rejected(None, None, "x", "parse", "why"),
     Snapshot("k", 1, 2, 3.0, "end", b"\x00", b"")],
)  # fmt: skip
def test_a_record_comes_back_equal(record):
    coder = registry.get_coder(type(record))
    assert typed(coder.decode(coder.encode(record))) == typed(record)


@pytest.mark.parametrize("hint", [Event, *OUTPUTS, tuple[str, Batch], list[tuple[bytes, bytes]]])
def test_no_part_of_what_passes_between_stages_is_pickled(hint):
    shown = repr(registry.get_coder(convert_to_beam_type(hint)))
    assert "Pickle" not in shown and "Fast" not in shown


def test_a_cell_is_encoded_by_itself_and_handed_back_as_bytes():
    spec = CellSpec(PAClassifier())
    holder = spec.open("k", None)
    holder.on_event(Event("k", "1", 1.0, {"a": 1.0}, True))
    coder = pickle.loads(pickle.dumps(coders.CellCoder()))  # as Beam ships it
    data = coder.encode(coders.Live(holder))
    assert data == holder.dumps() and b"sklearn" not in data
    assert coder.decode(data) == data == coder.encode(data)
    assert spec.open("k", data).model().weights == holder.model().weights


def test_the_sdk_finds_nothing_to_walk_in_a_live_cell():
    assert coders.Live(CellSpec(PAClassifier()).open("k", None)).get_referents_for_cache() == []
