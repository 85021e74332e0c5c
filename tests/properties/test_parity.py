"""The compiled core and the reference: the same answers, the same refusals, the same bytes, on any stream."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pa_river
from pa_river import _compiled, _pack
from tests import cases, strategies

pytestmark = pytest.mark.skipif(not pa_river.NATIVE, reason="the compiled core is not built: there is one core only")

EVERY = pytest.mark.parametrize("case", cases.COMPILED, ids=str)
FLAT = pytest.mark.parametrize("case", cases.LINEAR_STORE, ids=str)
RULED = pytest.mark.parametrize("case", [case for case in cases.COMPILED if hasattr(case.build(), "rule")], ids=str)

#: What a record may hold at worst: names of all types, numbers of all types and sizes, text, None, and what is refused.
anything = st.one_of(
    strategies.wild, strategies.tame, st.booleans(), st.integers(-9, 9), st.integers(), st.none(), st.text(max_size=2),
    strategies.wild.map(np.float64), strategies.tame.map(np.float32), st.sampled_from([np.int8(3), np.bool_(True)]),
    strategies.bad_values,
)
any_name = st.one_of(
    strategies.odd_names, st.text(max_size=12), st.integers(), st.binary(max_size=3),
    st.sampled_from(["\ud800", "x" * 300, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, (), ((), ""), True, np.int64(4)]),
)
any_weight = st.one_of(st.just(1.0), strategies.weights, st.sampled_from([0, 0.0, 1, 5e-324, 1e300, np.float64(2.0)]))


class Half(pa_river.StepRule):
    """A rule of a user's own, which even asks a model something in between."""

    def __init__(self, model=None):
        self.model = model

    def length(self, loss, norm, weight=1.0):
        if self.model is not None:
            self.model.predict_one({"other": 1.0, "names": 2.0, "here": 3.0})
        return 0.5 * loss / norm if norm > 0.0 else 0.0


def outcome(call, *args):
    """What a call returns, or how it refuses."""
    try:
        return call(*args)
    except ValueError as error:
        return type(error), str(error)


def close(a, b, rel=1e-12):
    """Equal within 1e-12 of the larger, or of the sums that led there."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(close(a[k], b[k], rel) for k in a)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=rel, abs_tol=rel)
    return bool(a == b)


def twins(case):
    return case.build(), _compiled.on_reference(case.build())


def agree(compiled, reference):
    assert compiled.version == reference.version
    assert close(compiled.weights, reference.weights)
    assert close(compiled.intercept, reference.intercept)
    if hasattr(reference, "variances"):
        assert close(compiled.variances, reference.variances)


@EVERY
def test_the_two_cores_are_two(case):
    compiled, reference = twins(case)
    assert type(compiled._store) is not type(reference._store)


@EVERY
@given(data=st.data())
def test_tame_streams_lead_to_the_same_weights_and_answers(case, data):
    compiled, reference = twins(case)
    for x, y in data.draw(st.lists(case.example, max_size=30)):
        assert close(compiled.decision_one(x), reference.decision_one(x), 1e-9)
        compiled.learn_one(x, y)
        reference.learn_one(x, y)
    assert close(compiled.weights, reference.weights, 1e-9)
    assert compiled.version == reference.version


@EVERY
@given(data=st.data())
def test_each_step_from_the_same_state_is_the_same(case, data):
    reference = _compiled.on_reference(case.build())
    any_y = st.one_of(case.y, st.sampled_from(case.bad_y))
    examples = st.tuples(st.dictionaries(any_name, anything, max_size=5), any_y,
                         st.one_of(any_weight, strategies.bad_weights))
    for x, y, w in data.draw(st.lists(examples, max_size=12)):
        compiled = pa_river.loads(pa_river.dumps(reference), **case.not_stored)
        assert type(compiled._store) is not type(reference._store)
        scores = outcome(compiled.decision_one, x), outcome(reference.decision_one, x)
        assert close(*scores, 1e-9) or not isinstance(scores[0], float)
        before = pa_river.dumps(compiled)
        answers = outcome(compiled.step, x, y, w), outcome(reference.step, x, y, w)
        refused = [isinstance(answer, tuple) and answer[:1] == (ValueError,) for answer in answers]
        assert refused[0] == refused[1], answers
        if refused[0]:
            assert pa_river.dumps(compiled) == before
        agree(compiled, reference)


@EVERY
@given(data=st.data())
def test_bytes_load_crosswise_and_continue_alike(case, data):
    stream = data.draw(st.lists(st.tuples(strategies.records(keys=strategies.odd_names), case.y), max_size=12))
    compiled, reference = twins(case)
    for x, y in stream[:6]:
        compiled.learn_one(x, y)
        reference.learn_one(x, y)
    bytes_of = pa_river.dumps(compiled)
    across = _compiled.on_reference(pa_river.loads(bytes_of, **case.not_stored))
    assert pa_river.dumps(across) == bytes_of
    back = pa_river.loads(pa_river.dumps(across), **case.not_stored)
    assert pa_river.dumps(back) == bytes_of
    for x, y in stream[6:]:
        across.learn_one(x, y)
        back.learn_one(x, y)
    agree(back, across)


@RULED
@given(data=st.data())
def test_a_rule_of_the_users_own_is_asked(case, data):
    other = case.trained(data.draw(case.stream))
    reference = _compiled.on_reference(case.build())
    reference.rule = Half()
    compiled = case.build()
    compiled.rule = Half(other)
    for x, y in data.draw(case.stream):
        compiled.learn_one(x, y)
        reference.learn_one(x, y)
    assert close(compiled.weights, reference.weights, 1e-9)


@pytest.mark.parametrize("case", [case for case in cases.LINEAR_STORE if hasattr(case.build().rule, "C")], ids=str)
def test_a_mutated_rule_is_obeyed_at_once(case):
    compiled, reference = twins(case)
    for model in (compiled, reference):
        model.mutate({"rule": {"C": 1e-3}})
        model.learn_one({"a": 1.0}, True if isinstance(model, pa_river.PAClassifier) else 5.0)
    agree(compiled, reference)
    assert abs(compiled.weights["a"]) < 2e-2  # 0.5 with C = 1


@EVERY
@given(data=st.data())
def test_pickles_and_copies_carry_the_whole_model(case, data):
    model, rest = case.trained(data.draw(case.stream)), data.draw(case.stream)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.clone(include_attributes=True)):
        assert pa_river.dumps(twin) == pa_river.dumps(model)
    twin = pickle.loads(pickle.dumps(model))
    for x, y in rest:
        assert model.step(x, y) == twin.step(x, y)
    assert pa_river.dumps(twin) == pa_river.dumps(model)


@EVERY
@given(data=st.data())
def test_models_that_take_turns_do_not_mix_their_slots(case, data):
    stream = data.draw(st.lists(st.tuples(st.integers(0, 2), case.x, case.y), max_size=20))
    together, alone = [case.build() for _ in range(3)], [case.build() for _ in range(3)]
    for number, x, y in stream:
        together[number].learn_one(x, y)
    for number, x, y in sorted(stream, key=lambda item: item[0]):
        alone[number].learn_one(x, y)
    assert [pa_river.dumps(model) for model in together] == [pa_river.dumps(model) for model in alone]


@FLAT
def test_a_model_of_many_names_keeps_every_one_of_them(case):
    compiled, reference = twins(case)
    for begin in range(0, 20_000, 500):
        x = {(f"name {i}" if i % 3 else i): 1.0 + i % 7 for i in range(begin, begin + 500)}
        for model in (compiled, reference):
            model.learn_one(x, begin % 1000 == 0) if isinstance(model, pa_river.PAClassifier) \
                else model.learn_one(x, float(begin))
    agree(compiled, reference)
    assert len(compiled.weights) >= 500


@FLAT
def test_a_model_larger_than_the_cache_answers_as_the_reference(case):
    """Beyond some thousand names they are looked up in stages; keys come again, as copies, and are new, by turns."""
    compiled, reference = twins(case)
    rng = np.random.default_rng(7)
    names = [*(f"name {j}" for j in range(7000)), *range(500), *(f"n\u00e4me {j}" for j in range(500)), b"b", "\ud800"]
    for begin in range(0, len(names), 500):
        for model in (compiled, reference):
            model.learn_one(dict.fromkeys(names[begin:begin + 500], 1.0), case.two_y[begin % 1000 == 0])
    for turn in range(60):
        if turn % 3 == 0:
            x = {names[j]: float(rng.normal()) for j in rng.choice(len(names), 100, replace=False).tolist()}
            x.update({f"new {turn} {j}": value for j, value in enumerate((1.0, 0.0, 2, True, np.float64(3.0)))})
        elif turn % 3 == 1:
            x = {(name + "_")[:-1] if isinstance(name, str) else name: value for name, value in x.items()}
        assert close(compiled.decision_one(x) if hasattr(compiled, "decision_one") else compiled.predict_one(x),
                     reference.decision_one(x) if hasattr(reference, "decision_one") else reference.predict_one(x))
        for model in (compiled, reference):
            model.learn_one(x, case.two_y[turn % 2])
    agree(compiled, reference)


@given(name=st.one_of(any_name.filter(lambda name: type(name) in (str, int, bytes, tuple)), strategies.odd_names))
def test_a_name_is_stored_by_the_bytes_that_the_state_has_for_it(name):
    model = pa_river.PAClassifier()
    model.learn_one({name: 1.0}, True)
    (stored,) = model.weights
    assert stored == name and type(stored) is type(name)
    assert _pack.pack_names([name]) == model._store.get_state()["names"]


def test_another_spelling_of_a_stored_name_is_the_same_name():
    # 5 as an int of any length (tag I) and "a" as a tagged text: no writer of ours, but a valid block
    names = [b"\xffI\x01\x00\x00\x00\x05", b"\xffs\x01\x00\x00\x00a", b"plain"]
    lengths = b"".join(len(name).to_bytes(4, "little") for name in names)
    state = {"names": len(names).to_bytes(4, "little") + lengths + b"".join(names),
             "weights": np.arange(3.0), "intercept": 0.0}
    store = _compiled.linear_store(True)
    store.set_state(state)
    assert store.weights == {5: 0.0, "a": 1.0, "plain": 2.0}
    assert store.score({5: 1.0, "a": 10.0, "plain": 100.0}) == 210.0


def test_a_pickle_of_the_compiled_store_opens_without_the_core(monkeypatch):
    model = pa_river.PARegressor()
    model.learn_one({"a": 1.0, 5: 2.0}, 3.0)
    data = pickle.dumps(model._store)
    monkeypatch.setattr(_compiled, "_STORE", _compiled.LinearStore)
    store = pickle.loads(data)
    assert type(store) is _compiled.LinearStore and store.weights == model.weights


def test_a_refused_batch_row_takes_back_what_the_rows_before_it_brought():
    model = pa_river.PARegressor(pa_river.PA())
    model.learn_one({0: 1.0}, 3.0)
    before = pa_river.dumps(model)
    X = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [1e308, 1e308, -1e308]])
    with pytest.raises(ValueError, match="row 2"):
        model.learn_many(X, [5.0, -2e3, 1.7e308])
    assert pa_river.dumps(model) == before
    assert model.decision_one({1: 1.0}) == model.intercept
