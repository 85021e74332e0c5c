"""PAMultilabel against brute force over pairs, a general solver, and examples worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pa_river
from pa_river import PA, PA1, PA2, PAMulticlass, PAMultilabel
from tests import oracles, strategies

LABELS = ("a", "b", "c", "d")
SETS = st.fixed_dictionaries({label: st.booleans() for label in LABELS})
STREAM = st.lists(st.tuples(strategies.records(), SETS), max_size=10)


def learned(stream, rule=None, **more):
    model = PAMultilabel(rule, labels=LABELS, **more)
    for x, y in stream:
        model.learn_one(x, y)
    return model


def test_the_lowest_relevant_label_moves_against_the_highest_irrelevant_one():
    model = PAMultilabel(PA(), learn_intercept=False, labels=LABELS)
    model.learn_one({"x": 1.0}, {"a": True, "b": True})  # a against c: 1 / 2 each
    model.learn_one({"x": 1.0}, {"a": True, "b": True})  # b (0) against d (0): 1 / 2 each
    assert model.decision_one({"x": 1.0}) == pytest.approx({"a": 0.5, "b": 0.5, "c": -0.5, "d": -0.5})
    model.learn_one({"x": 1.0}, {"c": True})  # loss 1 + 0.5 + 0.5, tau 1: c against a
    assert model.decision_one({"x": 1.0}) == pytest.approx({"a": -0.5, "b": 0.5, "c": 0.5, "d": -0.5})
    assert model.rank_one({"x": 1.0}) == ["b", "c", "a", "d"]


@pytest.mark.parametrize("y, score", [({"a": True, "b": True, "c": True, "d": True}, 1.0), ({}, -1.0),
                                      (dict.fromkeys(LABELS, False), -1.0)], ids=["all", "none named", "none"])
def test_where_one_side_is_empty_the_constant_zero_stands_for_it(y, score):
    model = PAMultilabel(PA(), learn_intercept=False, labels=LABELS)
    for _ in LABELS:  # one label a step, squared norm |x|^2
        model.learn_one({"x": 3.0, "z": 4.0}, y)
    assert model.decision_one({"x": 3.0, "z": 4.0}) == pytest.approx(dict.fromkeys(LABELS, score))
    assert model.weights["a"] == pytest.approx({"x": score * 3 / 25, "z": score * 4 / 25})
    before = pa_river.dumps(model)
    model.learn_one({"x": 3.0, "z": 4.0}, y)
    assert model.version == 5 and model.weights == pa_river.loads(before).weights  # passive now
    assert model.predict_one({"x": 3.0, "z": 4.0}) == dict.fromkeys(LABELS, score > 0.0)


def test_an_example_without_any_label_is_passive():
    model = PAMultilabel()
    model.learn_one({"x": 1.0}, {})
    assert (model.weights, model.version) == ({}, 1)


@given(stream=STREAM, x=strategies.records(), y=SETS)
def test_the_loss_is_the_largest_over_all_pairs_with_the_constant_for_an_empty_side(stream, x, y):
    model = learned(stream, PA2(0.7))
    scores = model.decision_one(x)
    relevant = [scores[label] for label in LABELS if y[label]] or [0.0]
    irrelevant = [scores[label] for label in LABELS if not y[label]] or [0.0]
    worst = max(1.0 - (good - bad) for good in relevant for bad in irrelevant)
    found = model._violation(x, y, model._scores(x))
    if worst <= 0.0:
        assert found is None
    else:
        assert found.loss == pytest.approx(worst, rel=1e-12)
        square = len(found.terms) * (sum(v * v for v in x.values()) + 1.0)
        assert found.norm == pytest.approx(math.sqrt(square), rel=1e-12)
        assert len(found.terms) == (2 if any(y.values()) and not all(y.values()) else 1)


@pytest.mark.parametrize("rule, make", [("PA", PA), ("PA-I", lambda: PA1(0.05)), ("PA-II", PA2)])
@pytest.mark.parametrize("y", [{"a": True, "b": False, "c": True}, {"a": True, "b": True, "c": True},
                               {"a": False, "b": False, "c": False}], ids=["both sides", "all", "none"])
def test_a_step_lands_where_a_general_solver_lands(rule, make, y):
    names, labels, x = ("u", "v"), ("a", "b", "c"), np.array([1.0, 2.0])
    model = PAMultilabel(make(), learn_intercept=False, labels=labels)
    model.learn_one({"u": 1.0, "v": -0.3}, {"a": False, "b": True, "c": False})
    model.learn_one({"u": -0.5, "v": 1.0}, {"a": True, "b": False, "c": True})
    W = matrix(model, labels, names)
    scores = W @ x
    low = min((i for i in range(3) if y[labels[i]]), key=lambda i: scores[i], default=None)
    high = max((i for i in range(3) if not y[labels[i]]), key=lambda i: scores[i], default=None)
    direction, loss = np.zeros((3, 2)), 1.0
    if low is not None:
        direction[low], loss = x, loss - scores[low]
    if high is not None:
        direction[high], loss = -x, loss + scores[high]
    model.learn_one(dict(zip(names, x)), y)
    expected = W.ravel() if loss <= 0 else oracles.solved(
        W.ravel(), direction.ravel(), loss, rule, getattr(model.rule, "C", 1.0))
    assert matrix(model, labels, names).ravel() == pytest.approx(expected, abs=1e-6)


def matrix(model, labels, names):
    return np.array([[model.weights[label].get(name, 0.0) for name in names] for label in labels])


@given(stream=st.lists(st.tuples(strategies.records(), st.sampled_from(LABELS)), max_size=10))
def test_one_relevant_label_makes_it_the_multiclass_model(stream):
    many = learned([(x, {y: True}) for x, y in stream], PA1(0.3))
    one = PAMulticlass(PA1(0.3), labels=LABELS)
    for x, y in stream:
        one.learn_one(x, y)
    assert (many.weights, many.intercept) == (one.weights, one.intercept)


@given(stream=STREAM)
def test_a_label_left_out_is_irrelevant(stream):
    short = learned([(x, {label: True for label in LABELS if y[label]}) for x, y in stream])
    assert (short.weights, short.intercept) == (learned(stream).weights, learned(stream).intercept)


def test_new_labels_are_registered_in_the_order_of_y_and_only_when_learned():
    model = PAMultilabel(PA(), learn_intercept=False)
    with pytest.raises(ValueError):
        model.learn_one({"x": math.nan}, {"new": True})
    model.learn_one({"x": 1.0}, {"new": True}, 0.0)
    assert model.decision_one({}) == {}
    model.learn_one({"x": 1.0}, {"q": False, "p": True, "r": True})
    assert model.decision_one({"x": 1.0}) == pytest.approx({"q": -0.5, "p": 0.5, "r": 0.0})


@pytest.mark.parametrize("y", [{"a": 2}, {"a": None}, {None: True}, ["a"], "a", None, {("a",): [True]}], ids=repr)
def test_what_is_no_label_set_is_refused(y):
    with pytest.raises(ValueError):
        PAMultilabel().learn_one({"x": 1.0}, y)


def test_frames_of_flags_are_learned_and_predicted():
    X = pd.DataFrame({"u": [1.0, 0.0, 1.0], "v": [0.0, 1.0, 1.0]}, index=list("pqr"))
    Y = pd.DataFrame({"left": [True, False, True], "right": [False, True, True]}, index=X.index)
    model, loop = PAMultilabel(PA()), PAMultilabel(PA())
    for _ in range(20):
        model.learn_many(X, Y)
        for (_, x), (_, y) in zip(X.iterrows(), Y.iterrows()):
            loop.learn_one(x.to_dict(), y.to_dict())
    assert model.weights == loop.weights
    predicted = model.predict_many(X)
    assert predicted.to_dict("records") == [model.predict_one(x) for x in X.to_dict("records")]
    assert list(predicted.index) == list("pqr") and list(predicted.columns) == ["left", "right"]
    assert list(model.predict_many(X.to_numpy()))[0].keys() == {"left", "right"}


def test_two_columns_of_one_label_are_refused():
    model = PAMultilabel()
    with pytest.raises(ValueError, match="'a' appears twice"):
        model.learn_many(np.eye(2), pd.DataFrame([[True, False], [False, True]], columns=["a", "a"]))
    assert model.version == 0


def test_a_bad_row_undoes_the_labels_of_the_rows_before_it():
    model = PAMultilabel(PA(), learn_intercept=False)
    model.learn_one({0: 1e-300}, {"known": True})
    before = pa_river.dumps(model)
    with pytest.raises(ValueError, match="row 1.*finite"):
        model.learn_many(np.array([[0.0, 0.5], [1e10, 0.0]]), [{"new": True, "newer": False}, {"newest": True}])
    assert pa_river.dumps(model) == before
