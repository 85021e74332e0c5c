"""PAJoint: as the label models where its features are theirs, and free where they are not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pa_river
from pa_river import PA, PA1, PACostSensitive, PAJoint, PAMulticlass
from pa_river.joint import per_label
from tests import cases, strategies

LABELS = ("a", "b", "c")
STREAM = st.lists(st.tuples(strategies.records(), st.sampled_from(LABELS)), max_size=10)
COST = {"a": {"b": 4.0, "c": 9.0}, "b": {"a": 1.0, "c": 0.25}, "c": {"a": 2.0, "b": 16.0}}


def fed(model, stream):
    for x, y in stream:
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize("rule", cases.RULES)
@given(stream=STREAM)
def test_with_one_prototype_a_label_it_is_the_multiclass_model(rule, stream):
    joint = fed(PAJoint(per_label, LABELS, cases.RULES[rule]()), stream)
    plain = fed(PAMulticlass(cases.RULES[rule](), learn_intercept=False, labels=LABELS), stream)
    for label in LABELS:
        ours = {name: weight for (y, name), weight in joint.weights.items() if y == label and weight}
        assert ours == pytest.approx(plain.weights[label], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("update", ["prediction", "max_loss"])
@pytest.mark.parametrize("cost", [COST, lambda y, r: COST[y][r]], ids=["mapping", "callable"])
@given(stream=STREAM)
def test_with_a_cost_it_is_the_cost_sensitive_model(update, cost, stream):
    joint = fed(PAJoint(per_label, LABELS, PA1(0.5), cost=cost, update=update), stream)
    plain = fed(PACostSensitive(COST, PA1(0.5), learn_intercept=False, update=update), stream)
    x = {"a": 1.0, "b": -0.5, "c": 2.0}
    assert joint.decision_one(x) == pytest.approx(plain.decision_one(x), rel=1e-9, abs=1e-9)


def shared(x, y):
    """Features that candidates share: what both have alike cancels in the direction."""
    return {"bias": 1.0, **{f"{name} at {y % 2}": value for name, value in x.items()}}


def test_what_candidates_share_does_not_move():
    model = PAJoint(shared, (0, 1, 2), PA())
    model.learn_one({"u": 1.0}, 1)  # against 0: tau 1 / 2
    assert model.weights == pytest.approx({"u at 1": 0.5, "u at 0": -0.5})
    before = pa_river.dumps(model)
    model.learn_one({"u": -1.0}, 2)  # 0 and 2 share all features: a direction of length zero
    assert model.version == 2 and model.weights == pa_river.loads(before, phi=shared).weights


def spans(tokens):
    return [(i, j) for i in range(len(tokens)) for j in range(i + 1, len(tokens) + 1)]


def span_features(tokens, span):
    first, last = span
    return {("in", token): 1.0 for token in tokens[first:last]} | {"length": float(last - first)}


def test_a_structured_task_needs_no_class_of_its_own():
    model = PAJoint(span_features, spans, PA1(1.0))
    data = [(("the", "old", "man", "runs"), (1, 3)), (("old", "man", "sees"), (0, 2)), (("the", "man"), (1, 2))]
    for _ in range(20):
        fed(model, data)
    assert [model.predict_one(tokens) for tokens, _ in data] == [span for _, span in data]
    assert model.predict_one(("a", "man", "sleeps")) == (1, 2)
    many = PAJoint(span_features, spans, PA1(1.0))
    many.learn_many([tokens for tokens, _ in data] * 20, [span for _, span in data] * 20)
    assert many.weights == model.weights
    assert list(many.predict_many([tokens for tokens, _ in data])) == [span for _, span in data]


def test_the_right_output_need_not_be_found_by_a_search_but_must_be_on_a_list():
    model = PAJoint(per_label, lambda x: ["a", "b"], PA())
    model.learn_one({"u": 1.0}, "c")
    assert model.weights == pytest.approx({("c", "u"): 0.5, ("a", "u"): -0.5})
    assert model.predict_one({"u": 1.0}) == "b"
    with pytest.raises(ValueError, match="candidates"):
        PAJoint(per_label, ("a", "b")).learn_one({"u": 1.0}, "c")


def test_no_candidates_no_prediction_and_one_candidate_no_rival():
    model = PAJoint(per_label, lambda x: x and ["only"], PA())
    assert model.predict_one({}) is None and model.decision_one({}) == {}
    model.learn_one({"u": 1.0}, "only")
    assert (model.weights, model.version, model.predict_one({"u": 1.0})) == ({}, 1, "only")
    model.learn_one({}, "only")
    assert (model.weights, model.version) == ({}, 2)


def test_features_that_are_not_finite_are_named_and_change_nothing():
    model = PAJoint(lambda x, y: {"good": 1.0, "ratio": x if y else 0.0}, (False, True), PA())
    model.learn_one(2.0, True)
    before = pa_river.dumps(model)
    for call in (lambda: model.learn_one(math.nan, True), lambda: model.predict_one(math.inf)):
        with pytest.raises(ValueError, match="ratio"):
            call()
    with pytest.raises(ValueError, match="row 1: .*ratio"):
        model.learn_many([1.0, math.nan], [True, False])
    assert pa_river.dumps(model) == before


def test_a_difference_beyond_the_floats_is_refused():
    model = PAJoint(lambda x, y: {"far": 1.7e308 * y}, (-1, 1), PA())
    with pytest.raises(ValueError, match="far"):
        model.learn_one(None, 1)
    assert (model.weights, model.version) == ({}, 0)


def test_a_batch_that_fails_late_is_undone_whole():
    model = PAJoint(per_label, ("a", "b"), PA())
    model.learn_one({"u": 1e-300}, "a")
    before = pa_river.dumps(model)
    with pytest.raises(ValueError, match="row 1: .*finite"):
        model.learn_many([{"v": 1.0}, {"u": 1e10}], ["a", "b"])
    assert pa_river.dumps(model) == before


def test_its_functions_come_back_through_loads():
    model = PAJoint(span_features, spans, PA(), cost=lambda y, r: 2.0, update="max_loss")
    model.learn_one(("x", "y"), (0, 2))
    with pytest.raises(pa_river.StateError, match="phi=..."):
        pa_river.loads(pa_river.dumps(model))
    twin = pa_river.loads(pa_river.dumps(model), phi=span_features, candidates=spans, cost=model.cost)
    assert twin.weights == model.weights and twin.update == "max_loss" and twin.version == 1


@pytest.mark.parametrize("arguments, named", [
    ((None, ("a",)), "phi"), ((per_label, {"a", "b"}), "candidates"), ((per_label, "ab"), "candidates"),
    ((per_label, ("a",), 1.0), "rule"), ((per_label, ()), "candidates"), ((per_label, ("a", None)), "None"),
    ((per_label, (["a"],)), "hashable"), ((per_label, (1, True)), "equal"),
], ids=["no map", "a set", "a text", "a number for a rule", "none", "an absent one", "a list of one", "two equal ones"])
def test_what_cannot_be_is_refused_when_built(arguments, named):
    with pytest.raises(ValueError, match=named):
        PAJoint(*arguments)
    with pytest.raises(ValueError, match="update"):
        PAJoint(per_label, ("a",), update="best")
    with pytest.raises(ValueError, match="cost"):
        PAJoint(per_label, ("a", "b"), cost={"a": {"b": -1.0}, "b": {"a": 1.0}})


def test_what_its_owner_changes_later_is_not_the_models():
    cost, candidates = {"a": {"b": 4.0}, "b": {"a": 1.0}}, ["a", "b"]
    model = pa_river.PAJoint(per_label, candidates, cost=cost)
    cost["a"]["b"] = -1.0
    candidates.append(None)
    model.learn_one({"x": 1.0}, "a")
    twin = pa_river.loads(pa_river.dumps(model), phi=per_label)
    assert twin.cost == model.clone().cost == {"a": {"b": 4.0}, "b": {"a": 1.0}}
    assert twin.decision_one({"x": 1.0}) == model.decision_one({"x": 1.0})
