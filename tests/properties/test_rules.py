"""The rules of behaviour, once, over every model of the registry."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pa_river
from tests import cases, strategies

EVERY = pytest.mark.parametrize("case", cases.ALL, ids=str)


def applies(case: cases.Case, rule: str) -> None:
    if rule in case.exceptions:
        pytest.skip(f"{case}: {case.exceptions[rule]}")


@EVERY
@given(data=st.data())
def test_a_step_answers_as_predict_one_and_learns_as_learn_one(case, data):
    applies(case, "step")
    stream = data.draw(case.stream)
    stepped, plain = case.build(), case.build()
    for x, y in stream:
        expected = case.answer(plain, x)
        case.learn(plain, x, y)
        assert case.step(stepped, x, y) == expected
    assert pa_river.dumps(stepped) == pa_river.dumps(plain)


@EVERY
@given(data=st.data())
def test_predicting_and_scoring_never_change_the_model(case, data):
    model = case.trained(data.draw(case.stream))
    before = pa_river.dumps(model)
    x = data.draw(case.x)
    case.answer(model, x)
    for name in ("decision_one", "predict_proba_one", "rank_one", "score_one"):
        if hasattr(type(model), name):
            try:
                getattr(model, name)(x)
            except NotImplementedError:  # River's default for a model without probabilities
                continue
    assert pa_river.dumps(model) == before


@EVERY
@given(data=st.data())
def test_a_refused_feature_is_named_and_changes_no_byte(case, data):
    model = case.trained(data.draw(case.stream))
    (x, y), value = data.draw(case.example), data.draw(strategies.bad_values)
    x, before = case.poison(x, value), pa_river.dumps(model)
    for call in (lambda: case.learn(model, x, y), lambda: case.step(model, x, y), lambda: case.answer(model, x)):
        with pytest.raises(ValueError, match="poisoned"):
            call()
    assert pa_river.dumps(model) == before


@EVERY
@given(data=st.data())
def test_a_refused_label_changes_no_byte(case, data):
    if not case.bad_y:
        pytest.skip(f"{case}: every hashable is a label, and it takes no other y")
    model = case.trained(data.draw(case.stream))
    x, y, before = data.draw(case.x), data.draw(st.sampled_from(case.bad_y)), pa_river.dumps(model)
    for call in (case.learn, case.step):
        with pytest.raises(ValueError):
            call(model, x, y)
    assert pa_river.dumps(model) == before


@EVERY
@given(data=st.data())
def test_a_refused_weight_changes_no_byte(case, data):
    model = case.trained(data.draw(case.stream))
    (x, y), w, before = data.draw(case.example), data.draw(strategies.bad_weights), pa_river.dumps(model)
    for call in (case.learn, case.step):
        with pytest.raises(ValueError, match="weight"):
            call(model, x, y, w)
    assert pa_river.dumps(model) == before


@EVERY
@given(data=st.data())
def test_weight_zero_changes_no_byte(case, data):
    model = case.trained(data.draw(case.stream))
    (x, y), before = data.draw(case.example), pa_river.dumps(model)
    case.learn(model, x, y, 0)
    case.step(model, x, y, 0.0)
    assert pa_river.dumps(model) == before


@EVERY
@given(data=st.data())
def test_version_counts_the_examples_learned_passive_ones_included(case, data):
    stream = data.draw(case.stream)
    model = case.trained([*stream, *stream])
    assert model.version == 2 * len(stream)


@EVERY
@given(data=st.data())
def test_a_feature_of_value_zero_is_an_absent_feature(case, data):
    applies(case, "zeros")
    stream = data.draw(case.stream)
    padded = case.trained([(_pad(x), y) for x, y in stream])
    assert pa_river.dumps(padded) == pa_river.dumps(case.trained(stream))


def _pad(x):
    return [_pad(token) for token in x] if isinstance(x, list) else {"zero": 0.0, **x, "none": None, "false": False}


@EVERY
@given(data=st.data())
def test_a_stored_model_continues_bit_equal(case, data):
    applies(case, "bit-equal")
    model, rest = case.trained(data.draw(case.stream)), data.draw(case.stream)
    loaded = pa_river.loads(pa_river.dumps(model), **case.not_stored)
    assert type(loaded) is type(model) and repr(loaded) == repr(model)
    assert loaded.version == model.version
    for x, y in rest:
        assert case.step(loaded, x, y) == case.step(model, x, y)
    assert pa_river.dumps(loaded) == pa_river.dumps(model)


@EVERY
@given(data=st.data())
def test_a_deep_copy_is_independent(case, data):
    model = case.trained(data.draw(case.stream))
    before = pa_river.dumps(model)
    twin = copy.deepcopy(model)
    assert pa_river.dumps(twin) == before
    for x, y in data.draw(case.stream):
        case.learn(twin, x, y)
    assert pa_river.dumps(model) == before


@EVERY
@given(data=st.data())
def test_a_clone_starts_untrained_with_the_same_parameters(case, data):
    if not hasattr(case.build(), "clone"):
        pytest.skip(f"{case}: no River base, so no clone")
    model = case.trained(data.draw(case.stream))
    assert pa_river.dumps(model.clone()) == pa_river.dumps(case.build())


@EVERY
@given(data=st.data())
def test_a_clone_with_its_attributes_goes_on_as_the_model_does_and_leaves_it_alone(case, data):
    applies(case, "bit-equal")
    if not hasattr(case.build(), "clone"):
        pytest.skip(f"{case}: no River base, so no clone")
    model, rest = case.trained(data.draw(case.stream)), data.draw(case.stream)
    before, twin = pa_river.dumps(model), model.clone(include_attributes=True)
    assert pa_river.dumps(twin) == before
    for x, y in rest:
        case.learn(twin, x, y)
    assert pa_river.dumps(model) == before
    for x, y in rest:
        case.learn(model, x, y)
    assert pa_river.dumps(twin) == pa_river.dumps(model)


@EVERY
@given(data=st.data())
def test_numpy_and_integer_values_are_numbers(case, data):
    applies(case, "number types")
    stream = data.draw(st.lists(st.tuples(strategies.records(st.integers(-5, 5).filter(bool)), case.y), max_size=8))
    plain = case.trained([({k: float(v) for k, v in x.items()}, y) for x, y in stream])
    for kind in (np.float64, np.float32, np.int64, int):
        other = case.trained([({k: kind(v) for k, v in x.items()}, y) for x, y in stream])
        assert pa_river.dumps(other) == pa_river.dumps(plain)


@EVERY
@given(data=st.data())
def test_features_of_any_scale_learn_or_are_refused_whole(case, data):
    applies(case, "scales")
    model = case.build()
    for x, y in data.draw(st.lists(st.tuples(strategies.records(strategies.wild), case.y), max_size=8)):
        before = pa_river.dumps(model)
        try:
            case.learn(model, x, y)
        except ValueError as error:  # a score or weight beyond the floats, and nothing else
            assert "finite" in str(error)
            assert pa_river.dumps(model) == before
    numbers = [v for v in _numbers(model) if not math.isfinite(v)]
    assert not numbers


def _numbers(model):
    def flat(value):
        if isinstance(value, dict):
            for item in value.values():
                yield from flat(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from flat(item)
        elif isinstance(value, float):
            yield value
    return flat([getattr(model, name) for name in ("weights", "intercept", "center", "radius")
                 if hasattr(model, name)])


@pytest.mark.parametrize("case", cases.STEPS, ids=str)
@given(data=st.data())
def test_a_step_raises_the_score_of_its_direction_by_length_times_norm(case, data):
    model = case.trained(data.draw(case.stream))
    x, y = data.draw(case.example)
    phi, y = model._input(x), model._normalise_y(y)
    violation = model._violation(phi, y, model._scores(phi))
    assume(violation is not None and violation.norm > 0.0)
    before = _along(model, violation)
    model.learn_one(x, y)
    rule = model.rule or pa_river.PA1()
    rise = rule.length(violation.loss, violation.norm) * violation.norm
    assert _along(model, violation) - before == pytest.approx(rise, rel=1e-6, abs=1e-6)


def _along(model, violation):
    total = 0.0
    for term in violation.terms:
        if hasattr(model._store, "slots"):
            total += term.sign * model._store.scores(term.phi, max(term.slot + 1, model._store.slots))[term.slot]
        else:
            total += term.sign * model._store.score(term.phi)
    return total


@pytest.mark.parametrize("case", cases.LINEAR, ids=str)
@given(data=st.data())
def test_text_and_other_names_are_features(case, data):
    stream = data.draw(st.lists(st.tuples(strategies.records(keys=strategies.odd_names), case.y), max_size=8))
    model = case.trained([({**x, "colour": "red"}, y) for x, y in stream])
    spelled = case.trained([({**x, "colour=red": 1.0}, y) for x, y in stream])
    assert pa_river.dumps(model) == pa_river.dumps(spelled)


@pytest.mark.parametrize("case", cases.LINEAR, ids=str)
def test_two_entries_of_one_feature_are_refused(case):
    model = case.build()
    before = pa_river.dumps(model)
    with pytest.raises(ValueError, match="colour=red.*twice"):
        model.predict_one({"colour": "red", "colour=red": 1.0})
    assert pa_river.dumps(model) == before


@pytest.mark.parametrize("name", [1.5, None, frozenset(), ("a", 1.5)], ids=repr)
@pytest.mark.parametrize("case", cases.LINEAR, ids=str)
def test_a_name_of_another_type_is_refused(case, name):
    with pytest.raises(ValueError, match="name"):
        case.build().predict_one({name: 1.0})
