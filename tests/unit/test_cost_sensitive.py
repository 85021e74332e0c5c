"""PACostSensitive: both updates against brute force and a general solver; costs checked before anything moves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pa_river
from pa_river import PA, PA1, PA2, PACostSensitive, PAMulticlass
from pa_river.cost_sensitive import zero_one
from tests import oracles, strategies

LABELS = ("a", "b", "c")
COST = {"a": {"b": 4.0, "c": 9.0}, "b": {"a": 1.0, "c": 0.25}, "c": {"a": 0.0, "b": 16.0}}
STREAM = st.lists(st.tuples(strategies.records(), st.sampled_from(LABELS)), max_size=12)
UPDATES = pytest.mark.parametrize("update", ["prediction", "max_loss"])


def learned(stream, cost=COST, rule=None, **more):
    model = PACostSensitive(cost, rule, **more)
    for x, y in stream:
        model.learn_one(x, y)
    return model


def test_a_mapping_declares_its_labels_in_its_order():
    model = PACostSensitive({"z": {"a": 1}, "a": {"z": 2}})
    assert model.decision_one({"x": 1.0}) == {"z": 0.0, "a": 0.0} and model.predict_one({}) == "z"


def test_the_margin_is_the_root_of_the_cost():
    model = PACostSensitive(COST, PA(), learn_intercept=False)
    model.learn_one({"x": 1.0}, "b")  # a is predicted, which costs 1: tau 1 / 2
    assert model.decision_one({"x": 1.0}) == pytest.approx({"a": -0.5, "b": 0.5, "c": 0.0})
    model.learn_one({"x": 1.0}, "b")  # right: passive, though its margin over c is short
    assert model.decision_one({"x": 1.0}) == pytest.approx({"a": -0.5, "b": 0.5, "c": 0.0})
    model.learn_one({"x": 1.0}, "a")  # b is predicted: loss 1 + 2, tau 3 / 2
    assert model.decision_one({"x": 1.0}) == pytest.approx({"a": 1.0, "b": -1.0, "c": 0.0})


def test_max_loss_looks_beyond_the_prediction():
    model = PACostSensitive(COST, PA(), learn_intercept=False, update="max_loss")
    model.learn_one({"x": 1.0}, "a")  # a is right already, but c would cost 9: loss 3, tau 3 / 2
    assert model.decision_one({"x": 1.0}) == pytest.approx({"a": 1.5, "b": 0.0, "c": -1.5})
    model.learn_one({"x": 1.0}, "a")  # b: 0 - 1.5 + 2, tau 1 / 4
    assert model.decision_one({"x": 1.0}) == pytest.approx({"a": 1.75, "b": -0.25, "c": -1.5})


def test_a_free_mistake_moves_only_what_scores_more():
    model = PACostSensitive(COST, PA(), learn_intercept=False)
    model.learn_one({"x": 1.0}, "c")  # a is predicted at no cost, by a tie: nothing to gain
    assert model.weights == {"a": {}, "b": {}, "c": {}} and model.version == 1
    model.learn_one({"x": 1.0}, "a")
    model.learn_one({"x": -1.0}, "b")
    scores = model.decision_one({"x": 1.0})
    model.learn_one({"x": 1.0}, "c")
    after = model.decision_one({"x": 1.0})
    assert after["c"] - after[model.predict_one({"x": 1.0})] == pytest.approx(0.0, abs=1e-12) or scores == after


@UPDATES
@given(stream=STREAM, x=strategies.records(), y=st.sampled_from(LABELS))
def test_the_step_satisfies_the_constraint_that_the_paper_picks(update, stream, x, y):
    model = learned(stream, rule=PA1(0.4), update=update)
    scores = model.decision_one(x)
    if update == "prediction":
        picked = max(LABELS, key=scores.__getitem__)
        loss = scores[picked] - scores[y] + math.sqrt({**COST[y], y: 0.0}[picked])
    else:
        losses = {r: scores[r] - scores[y] + math.sqrt(COST[y][r]) for r in LABELS if r != y}
        loss = max(losses.values())
    found = model._violation(x, y, model._scores(x))
    assert (found is None) == (loss <= 0.0)
    if found is not None:
        assert found.loss == pytest.approx(loss, rel=1e-12)
        before = model.decision_one(x)
        model.learn_one(x, y)
        assert (model.decision_one(x)[y] > before[y]) or loss < 1e-9


@given(stream=STREAM, x=strategies.records(), y=st.sampled_from(LABELS), rule=st.sampled_from([PA(), PA1(2.0), PA2()]))
def test_the_prediction_based_update_is_passive_whenever_the_prediction_is_right(stream, x, y, rule):
    model = learned(stream, rule=rule)
    assume(model.predict_one(x) == y)
    before = (model.weights, model.intercept)
    model.learn_one(x, y)
    assert (model.weights, model.intercept) == before


@pytest.mark.parametrize("rule, make", [("PA", PA), ("PA-I", lambda: PA1(0.05)), ("PA-II", PA2)])
@pytest.mark.parametrize("y", LABELS)
@UPDATES
def test_a_step_lands_where_a_general_solver_lands(update, rule, make, y):
    names, x = ("u", "v"), np.array([1.0, 2.0])
    model = learned([({"u": 1.0, "v": -0.3}, "b"), ({"u": -0.5, "v": 1.0}, "c")], rule=make(), learn_intercept=False,
                    update=update)

    def matrix():
        return np.array([[model.weights[label].get(name, 0.0) for name in names] for label in LABELS])

    W, own = matrix(), LABELS.index(y)
    scores = W @ x
    losses = scores - scores[own] + [math.sqrt({**COST[y], y: 0.0}[r]) for r in LABELS]
    picked = int(np.argmax(scores if update == "prediction" else losses))
    direction = np.zeros((3, 2))
    direction[own] += x
    direction[picked] -= x
    expected = W.ravel() if losses[picked] <= 0 else oracles.solved(
        W.ravel(), direction.ravel(), losses[picked], rule, getattr(model.rule, "C", 1.0))
    model.learn_one(dict(zip(names, x)), y)
    assert matrix().ravel() == pytest.approx(expected, abs=1e-6)


@given(stream=STREAM)
def test_max_loss_with_unit_costs_is_the_multiclass_model(stream):
    ours = learned(stream, {y: {r: 1 for r in LABELS if r != y} for y in LABELS}, PA2(0.7), update="max_loss")
    other = PAMulticlass(PA2(0.7), labels=LABELS)
    for x, y in stream:
        other.learn_one(x, y)
    assert ours.decision_one({"a": 1.0}) == pytest.approx(other.decision_one({"a": 1.0}), rel=1e-9, abs=1e-9)


@UPDATES
@given(stream=STREAM)
def test_a_callable_equals_the_mapping_it_reads(update, stream):
    stream = [({}, label) for label in LABELS] + stream  # a callable declares no label
    table = learned(stream, update=update, learn_intercept=False)
    called = learned(stream, lambda y, r: COST[y][r], update=update, learn_intercept=False)
    assert called.weights == table.weights


@pytest.mark.parametrize("cost", [
    {"a": {"b": 1.0}}, {"a": {"b": 1.0}, "b": {}}, {"a": {"b": 1.0}, "b": {"a": -1.0}},
    {"a": {"b": math.nan}, "b": {"a": 1.0}}, {"a": {"b": math.inf}, "b": {"a": 1.0}},
    {"a": {"b": 10**400}, "b": {"a": 1.0}}, {"a": {"b": "1"}, "b": {"a": 1.0}}, {"a": {"b": None}, "b": {"a": 1.0}},
    {"a": {"a": 1.0, "b": 1.0}, "b": {"a": 1.0}}, {"a": 1.0}, [("a", "b")], None, {None: {"a": 1.0}},
], ids=repr)
def test_a_mapping_that_is_no_table_of_costs_is_refused_when_built(cost):
    with pytest.raises(ValueError, match="cost|label"):
        PACostSensitive(cost)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, None, "1", 10**400, [1]], ids=repr)
@UPDATES
def test_a_cost_that_is_none_changes_no_byte(update, value):
    costs = {"now": 1.0}
    model = PACostSensitive(lambda y, r: costs["now"], PA(), update=update)
    model.learn_one({"x": 1.0}, "a")
    model.learn_one({"x": 1.0}, "b")
    before = pa_river.dumps(model)
    costs["now"] = value
    for y in ("a", "new"):
        with pytest.raises(ValueError, match="cost"):
            model.learn_one({"x": 1.0}, y)
    assert pa_river.dumps(model) == before


def test_a_pair_that_a_callable_misses_is_a_value_error():
    model = PACostSensitive(lambda y, r: COST[y][r])
    model.learn_one({"x": 1.0}, "a")
    with pytest.raises(ValueError, match="missing"):
        model.learn_one({"x": 1.0}, "unknown")
    with pytest.raises(ValueError, match="missing"):
        learned([], COST).learn_one({"x": 1.0}, "unknown")


def test_a_new_label_is_among_the_rivals_of_its_own_first_example():
    model = PACostSensitive(zero_one, PA(), learn_intercept=False)
    for y in ("a", "b"):
        model.learn_one({"x": 1.0}, y)
    assert model.decision_one({"x": -1.0}) == pytest.approx({"a": 0.5, "b": -0.5})
    model.learn_one({"x": 1.0}, "c")  # scores -0.5, 0.5, 0
    assert model.decision_one({"x": 1.0}) == pytest.approx({"a": -0.5, "b": -0.25, "c": 0.75})


def test_costs_can_be_asked_for():
    model = PACostSensitive(COST)
    assert (model.cost_one("a", "c"), model.cost_one("c", "a"), model.cost_one("b", "b")) == (9.0, 0.0, 0.0)
    assert PACostSensitive(lambda y, r: y != r).cost_one(1, 2) == 1.0
    with pytest.raises(ValueError, match="missing"):
        model.cost_one("a", "z")


def test_a_callable_comes_back_through_loads():
    model = learned([({"x": 1.0}, "a"), ({"x": 1.0}, "b")], zero_one)
    data = pa_river.dumps(model)
    with pytest.raises(pa_river.StateError, match="cost=..."):
        pa_river.loads(data)
    twin = pa_river.loads(data, cost=zero_one)
    for each in (model, twin):
        each.learn_one({"x": 2.0, "y": 1.0}, "a")
    assert pa_river.dumps(twin) == pa_river.dumps(model)
    assert pa_river.loads(pa_river.dumps(learned([]))).cost == COST


def test_an_unknown_update_is_refused():
    with pytest.raises(ValueError, match="max_loss"):
        PACostSensitive(COST, update="max-loss")


def test_a_cost_that_its_owner_changes_later_is_not_the_models():
    cost = {"a": {"b": 4.0}, "b": {"a": 1.0}}
    model = PACostSensitive(cost)
    model.learn_one({"x": 1.0}, "a")
    cost["a"]["b"] = -1.0
    cost["c"] = {}
    model.cost["b"]["a"] = float("nan")
    assert model.cost == {"a": {"b": 4.0}, "b": {"a": 1.0}}
    twin = pa_river.loads(pa_river.dumps(model))
    assert twin.cost == model.cost and twin.cost_one("a", "b") == 4.0
    assert model.clone().cost == model.clone(include_attributes=True).cost == model.cost
    assert PACostSensitive(zero_one).cost is zero_one
