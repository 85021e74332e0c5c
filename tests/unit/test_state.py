"""Bytes of models: what they hold, what is refused, and that nothing hostile gets in."""

from __future__ import annotations

import numbers
import os
import pickle
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import compose, datasets, linear_model, multiclass, preprocessing, tree

import pa_river
from pa_river import PA2, PAClassifier, PARegressor, StateError, dumps, loads
from pa_river import _compiled, state


def trained():
    model = PAClassifier(PA2(0.5))
    model.learn_one({"a": 2.0, b"b": 1.0, 3: -1.0, ("t", 1): 0.5, "ü": 0.25, "\ud800": 1.0}, True)
    return model


def sealed(body: bytes) -> bytes:
    """A body with a right header: what a forger who knows the format would send."""
    return struct.pack("<4sHHI", b"PARV", 1, 0, zlib.crc32(body)) + body


plain_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()),
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text(), inner)),
    max_leaves=20,
)


@given(value=plain_values)
def test_plain_values_come_back_as_they_were(value):
    back = state.unpack(state.pack(value))
    assert back == value and repr(back) == repr(value)


@given(names=st.lists(st.one_of(st.text(), st.binary(), st.integers(), st.tuples(st.text(), st.integers()))))
def test_names_come_back_as_they_were(names):
    assert state.unpack_names(state.pack_names(names)) == names


def test_arrays_come_back_as_they_were():
    for array in (np.arange(6.0).reshape(2, 3), np.empty((0, 3)), np.arange(3)):
        back = state.unpack(state.pack(array))
        assert back.dtype == array.dtype and back.shape == array.shape and (back == array).all()


def test_every_kind_of_name_is_stored():
    model = trained()
    assert loads(dumps(model)).weights == model.weights


def test_another_process_with_another_hash_seed_continues_bit_equal():
    script = ("import sys, pa_river; m = pa_river.loads(sys.stdin.buffer.read());"
              "m.learn_one({'z': 1.0, 'a': -1.0}, False); sys.stdout.buffer.write(pa_river.dumps(m))")
    answers = [
        subprocess.run([sys.executable, "-c", script], input=dumps(trained()), capture_output=True, check=True,
                       env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    ]
    here = trained()
    here.learn_one({"z": 1.0, "a": -1.0}, False)
    assert answers == [dumps(here)] * 2


@given(data=st.data())
def test_any_damage_is_a_state_error(data):
    good = dumps(trained())
    at = data.draw(st.integers(0, len(good) * 8 - 1))
    flipped = bytearray(good)
    flipped[at // 8] ^= 1 << at % 8
    for bad in (bytes(flipped), good[:data.draw(st.integers(0, len(good) - 1))], good + b"x"):
        with pytest.raises(StateError):
            loads(bad)


@given(data=st.data())
def test_damage_behind_a_right_checksum_is_a_state_error_or_a_finite_model(data):
    body = bytearray(dumps(trained())[12:])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        model = loads(sealed(bytes(body)))
    except StateError:
        return
    for weight in getattr(model, "weights", {}).values():
        assert np.isfinite(weight)


@pytest.mark.parametrize("body", [
    b"l" + struct.pack("<I", 2**32 - 1),
    b"d" + struct.pack("<I", 2**31) + b"N" * 10,
    b"s" + struct.pack("<I", 2**32 - 1) + b"abc",
    b"a" + struct.pack("<III", 2, 2**32 - 1, 2**32 - 1),
    b"a" + struct.pack("<I", 2**31),
    b"l\x01\x00\x00\x00" * 5000 + b"N",
    b"N", b"?", b"", state.pack(("PAClassifier", 3)), state.pack(("PAClassifier", ({"eval": 1}, None))),
    state.pack(("os.system", ({"command": "true"}, None))), state.pack(("river.base.Base", {})),
    state.pack(("PAClassifier", ({}, {"version": -1, "store": {}}))),
    state.pack(("PAClassifier", ({"learn_intercept": "x"}, None))),
    state.pack((["PAClassifier"], None)),
], ids=lambda body: repr(body[:24]))
def test_a_hostile_body_is_a_state_error(body):
    with pytest.raises(StateError):
        loads(sealed(body))


def test_a_pickle_is_no_state():
    with pytest.raises(StateError):
        loads(pickle.dumps(trained()))
    with pytest.raises(StateError):
        loads("text")  # type: ignore[arg-type]


def test_a_newer_format_is_refused_in_words():
    data = bytearray(dumps(trained()))
    data[4] = 99
    with pytest.raises(StateError, match="version 99"):
        loads(bytes(data))


def named(names, weights):
    """The bytes of a classifier with these names, spelled as they are, and weights; the checksum is right."""
    store = {"names": state.pack_names(names), "weights": np.array(weights), "intercept": 0.5}
    params = {"rule": None, "learn_intercept": True, "kernel": None, "budget": None}
    body = state.pack(("PAClassifier", (params, {"version": 1, "store": store})))
    return state._HEADER.pack(state._MAGIC, state._VERSION, 0, zlib.crc32(body)) + body


@pytest.mark.parametrize("length", [1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 33])
def test_models_of_every_size_and_length_of_name_come_back(length):
    for count in range(0, 140, 7):  # bodies of every length modulo what is summed up at a time
        names = [f"{j:0{length}d}" for j in range(min(count, 10**length))]
        data = named(names, [float(j) for j in range(len(names))])
        for model in (loads(data), loads(dumps(loads(data)))):
            assert model.weights == {name: float(j) for j, name in enumerate(names)}
            assert dumps(model) == data


@pytest.mark.parametrize("other", ["a", "name 99", "a name that is longer than sixteen bytes", "\u00e4", 7])
def test_a_name_that_is_stored_twice_is_refused(other):
    dumps(PAClassifier())
    names = [*(f"name {j}" for j in range(100)), "a", "\u00e4", "a name that is longer than sixteen bytes", 7]
    assert len(loads(named(names, [1.0] * 104)).weights) == 104
    with pytest.raises(StateError, match="twice"):
        loads(named([*names, other], [1.0] * 105))


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("at", [0, 1, 5, 6])
def test_a_weight_that_is_not_finite_is_found_wherever_it_stands(weight, at):
    dumps(PAClassifier())
    weights = [1.7e308, -1.7e308, 5e-324, 0.0, -0.0, 1.0, 2.0]
    weights[at] = weight
    with pytest.raises(StateError, match="finite"):
        loads(named(list("abcdefg"), weights))


def test_a_weight_that_is_not_finite_is_refused():
    model = _compiled.on_reference(PAClassifier())
    model._store.weights["a"] = float("nan")
    with pytest.raises(StateError, match="finite"):
        loads(dumps(model))


PIPELINES = {
    "scaler": lambda: preprocessing.StandardScaler() | PARegressor(),
    "min-max": lambda: preprocessing.MinMaxScaler() | preprocessing.MaxAbsScaler() | PARegressor(),
    "union": lambda: (compose.Select("ordinal_date") | preprocessing.OneHotEncoder())
    + preprocessing.StandardScaler() | PARegressor(PA2()),
    "River's own": lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_of_listed_classes_continues_bit_equal(name):
    model, rows = PIPELINES[name](), list(datasets.TrumpApproval().take(60))
    for x, y in rows[:30]:
        model.learn_one(x, y)
    loaded = loads(dumps(model))
    for x, y in rows[30:]:
        assert loaded.predict_one(x) == model.predict_one(x)
        loaded.learn_one(x, y)
        model.learn_one(x, y)
    assert dumps(loaded) == dumps(model)


def test_one_versus_rest_of_ours_is_stored():
    model = multiclass.OneVsRestClassifier(PAClassifier())
    for x, y in datasets.ImageSegments().take(30):
        model.learn_one(x, y)
    assert dumps(loads(dumps(model))) == dumps(model)


def test_an_unlisted_class_is_refused_by_name():
    with pytest.raises(StateError, match="HoeffdingTreeClassifier"):
        dumps(preprocessing.StandardScaler() | tree.HoeffdingTreeClassifier())


def test_two_classes_of_one_name_cannot_both_be_stored():
    with pytest.raises(TypeError, match="PAClassifier"):
        state.storable(type("PAClassifier", (), {}))


def test_the_bytes_of_format_one_still_load():
    """Written once by version 0.1.0, and never again: what production holds must stay readable."""
    path = os.path.join(os.path.dirname(__file__), "..", "states", "v1_paclassifier.bin")
    with open(path, "rb") as file:
        model = loads(file.read())
    # basic PA, no intercept, (2, 1)+ then (1, 1)+: the worked example
    assert isinstance(model.rule, pa_river.PA) and model.version == 2 and not model.learn_intercept
    assert model.weights == pytest.approx({"a": 0.6, "b": 0.4}, abs=1e-12)


def by_length(y, r):
    return float(len(str(y)) + len(str(r)))


@pytest.mark.parametrize("build", [
    lambda model: model, lambda model: preprocessing.StandardScaler() | model, pa_river.Certified,
], ids=["alone", "in a pipeline", "in a wrapper"])
def test_a_callable_comes_back_by_name_wherever_its_model_stands(build):
    model = build(pa_river.PACostSensitive(by_length))
    for x, y in [({"a": 1.0}, "long"), ({"a": 2.0}, "b"), ({"a": 2.0}, "b"), ({"a": 1.0}, "long")]:
        model.learn_one(x, y)
    assert state.not_stored(model) == {"cost": by_length}
    loaded = loads(dumps(model), cost=by_length)
    model.learn_one({"a": 3.0}, "new")
    loaded.learn_one({"a": 3.0}, "new")
    assert dumps(loaded) == dumps(model)
    with pytest.raises(StateError, match="give it to loads"):
        loads(dumps(model))
    with pytest.raises(StateError, match="no parameter 'price'"):
        loads(dumps(model), cost=by_length, price=by_length)


def test_two_callables_of_one_name_are_told_apart_or_refused():
    both = multiclass.OneVsRestClassifier(pa_river.PACostSensitive(by_length))
    both.classifiers = {"a": pa_river.PACostSensitive(lambda y, r: 1.0)}
    with pytest.raises(StateError, match="two parts of the model have a callable 'cost'"):
        state.not_stored(both)


def test_a_pipeline_that_splits_numbers_from_text_is_stored():
    numeric = compose.SelectType(numbers.Number) | preprocessing.StandardScaler()
    model = numeric + (compose.SelectType(str) | preprocessing.OneHotEncoder()) | PAClassifier()
    for height, colour, y in [(1.0, "red", True), (3.0, "blue", False), (2.0, "red", True)]:
        model.learn_one({"height": height, "colour": colour}, y)
    loaded = loads(dumps(model))
    for each in (model, loaded):
        each.learn_one({"height": 5.0, "colour": "green"}, False)
    assert dumps(loaded) == dumps(model)
    assert set(loaded["PAClassifier"].weights) == {"height", "colour_red", "colour_blue", "colour_green"}


@pytest.mark.parametrize("value", ["PAClassifier", 1.0, None, {"a": 1.0}, PAClassifier], ids=repr)
def test_what_is_no_model_is_not_stored(value):
    with pytest.raises(StateError):
        dumps(value)
