"""PAClassifier against the paper's numbers, exact fractions and solvers from elsewhere."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from river import linear_model
from scipy.optimize import minimize
from sklearn.linear_model import SGDClassifier

import pa_river
from pa_river import PA, PA1, PA2, PAClassifier, _compiled
from tests import oracles, strategies


def plain(rule):
    return PAClassifier(rule, learn_intercept=False)


def test_basic_steps_land_on_the_worked_example():
    model = plain(PA())
    model.learn_one({"a": 2, "b": 1}, True)
    assert model.weights == pytest.approx({"a": 0.4, "b": 0.2}, abs=1e-12)
    assert model.decision_one({"a": 1, "b": 1}) == pytest.approx(0.6, abs=1e-12)
    model.learn_one({"a": 1, "b": 1}, True)
    assert model.weights == pytest.approx({"a": 0.6, "b": 0.4}, abs=1e-12)
    assert model.decision_one({"a": 1, "b": 1}) == pytest.approx(1.0, abs=1e-12)


def test_a_capped_step_stops_short_of_the_margin():
    model = plain(PA1(C=0.1))
    model.learn_one({"a": 2, "b": 1}, True)
    assert model.weights == pytest.approx({"a": 0.2, "b": 0.1}, abs=1e-12)
    assert model.decision_one({"a": 2, "b": 1}) == pytest.approx(0.5, abs=1e-12)


def test_the_intercept_is_a_feature_of_value_one_inside_the_norm():
    model = PAClassifier(PA())
    model.learn_one({"a": 2, "b": 1}, True)
    assert model.weights == pytest.approx({"a": 1 / 3, "b": 1 / 6}, abs=1e-12)
    assert model.intercept == pytest.approx(1 / 6, abs=1e-12)
    assert model.decision_one({"a": 2, "b": 1}) == pytest.approx(1.0, abs=1e-12)


@given(stream=st.lists(st.tuples(strategies.records(), strategies.binary_labels), max_size=10),
       x=strategies.records(), y=strategies.binary_labels, learn_intercept=st.booleans())
def test_a_basic_step_restores_the_margin_within_its_rounding(stream, x, y, learn_intercept):
    model = PAClassifier(PA(), learn_intercept=learn_intercept)
    for past in stream:
        model.learn_one(*past)
    sign = 1 if y else -1
    assume(sign * model.decision_one(x) < 1.0 and (learn_intercept or any(x.values())))
    before = oracles.magnitude(model.weights, model.intercept, x)
    model.learn_one(x, y)
    after = oracles.magnitude(model.weights, model.intercept, x)
    margin = sign * oracles.exact_score(model.weights, model.intercept, x)
    bound = (len(x) + learn_intercept + 4) * math.ulp(1.0) * (1.0 + max(before, after))
    assert abs(margin - 1) <= Fraction(bound)


@pytest.mark.parametrize("rule, make", [("PA", PA), ("PA-I", lambda: PA1(0.05)), ("PA-I", PA1), ("PA-II", PA2)])
@pytest.mark.parametrize("y", [True, False])
def test_a_step_lands_where_a_general_solver_lands(rule, make, y):
    model = plain(make())
    model.learn_one({0: 0.3, 1: -0.2}, True)
    w, x, sign = np.array([model.weights[0], model.weights[1]]), np.array([1.0, 2.0]), 1.0 if y else -1.0
    expected = oracles.solved(w, sign * x, 1.0 - sign * (w @ x), rule, getattr(model.rule, "C", 1.0))
    model.learn_one(dict(enumerate(x)), y)
    assert [model.weights[0], model.weights[1]] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("same", [True, np.True_, 1, 1.0, np.int64(1), np.float32(1.0)], ids=repr)
def test_positive_spellings_are_one_label(same):
    assert _learned(same) == _learned(True)


@pytest.mark.parametrize("same", [False, np.False_, 0, -1, 0.0, -1.0, np.int8(-1), np.float64(-1.0)], ids=repr)
def test_negative_spellings_mirror_the_positive_label(same):
    model = plain(PA1())
    model.learn_one({"a": 1}, same)
    assert _learned(same) == _learned(False)
    assert model.weights == {"a": -1.0}


def _learned(y):
    model = plain(PA1())
    model.learn_one({"a": 1}, y)
    return pa_river.dumps(model)


def test_a_label_that_is_not_binary_names_the_class_that_takes_it():
    with pytest.raises(ValueError, match="PAMulticlass"):
        PAClassifier().learn_one({"a": 1}, "spam")


def test_importance_scales_the_cap_and_never_passes_the_margin():
    model = plain(PA1(C=0.1))
    model.learn_one({"a": 2, "b": 1}, True, 10)
    assert model.weights == pytest.approx({"a": 0.4, "b": 0.2}, abs=1e-12)
    assert model.decision_one({"a": 2, "b": 1}) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("tiny", [0.0, 1e-30, 1e-200])
def test_a_tiny_first_row_changes_nothing_that_can_be_seen(tiny):
    rows = [(tiny, 0, 0), (1, 0, 1), (0, 0, 0), (0, 1, 0), (0, 0, 0), (1, 0, 0), (0, 0, 0), (1, 0, 1), (0, 0, 0),
            (1, 1, 1)]
    model = plain(PA1())
    for a, b, y in rows:
        model.learn_one({"a": a, "b": b}, y)
    assert model.weights == pytest.approx({"a": 1.5, "b": -0.5}, abs=1e-12)


def test_infinity_is_refused_and_the_largest_features_are_learned():
    model = plain(PA())
    with pytest.raises(ValueError, match="'a'"):
        model.learn_one({"a": math.inf}, True)
    model.learn_one({"a": 1e200}, True)
    assert model.weights == pytest.approx({"a": 1e-200}, rel=1e-12)
    assert model.decision_one({"a": 1e200}) == pytest.approx(1.0, rel=1e-12)
    model.learn_one({"b": 1.0}, True)
    assert model.weights["b"] == 1.0


@pytest.mark.parametrize("size", [1e-200, 1e-150, 1e-30, 1.0, 1e30, 1e150, 1e200])
def test_scale_does_not_matter_to_the_basic_step(size):
    model = plain(PA())
    model.learn_one({"a": 3 * size, "b": 4 * size}, True)
    assert model.weights["a"] * size == pytest.approx(3 / 25, rel=1e-14)
    assert model.decision_one({"a": 3 * size, "b": 4 * size}) == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("rule", [PA(), PA1(0.1), PA2(0.1)], ids=repr)
def test_an_empty_record_without_intercept_moves_nothing(rule):
    model = plain(rule)
    model.learn_one({}, True)
    model.learn_one({"a": 0.0}, False)
    assert (model.weights, model.intercept, model.version) == ({}, 0.0, 2)


def test_a_passive_round_stores_no_weight():
    model = plain(PA())
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"a": 2.0, "new": 1e-9}, True)
    assert model.weights == {"a": 1.0}


@pytest.mark.parametrize("rule, schedule", [(PA1(0.3), "pa1"), (PA2(0.3), "pa2")], ids=str)
def test_without_intercept_scikit_learn_agrees(rule, schedule):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(200, 5)), rng.random(200) < 0.5
    theirs = SGDClassifier(loss="hinge", penalty=None, learning_rate=schedule, eta0=0.3, fit_intercept=False,
                           shuffle=False)
    theirs.partial_fit(X, y, classes=[False, True])
    ours = plain(rule)
    ours.learn_many(X, y)
    assert [ours.weights[j] for j in range(5)] == pytest.approx(theirs.coef_[0], rel=1e-9)


def test_without_intercept_rivers_classifier_agrees():
    rng = np.random.default_rng(8)
    theirs, ours = linear_model.PAClassifier(C=0.2, mode=1, learn_intercept=False), plain(PA1(0.2))
    for _ in range(300):
        x, y = dict(enumerate(rng.normal(size=4).tolist())), bool(rng.random() < 0.4)
        theirs.learn_one(x, y)
        ours.learn_one(x, y)
    assert ours.weights == pytest.approx(dict(theirs.weights), rel=1e-12)


@given(score=st.floats(-1e300, 1e300))
def test_probabilities_are_finite_sum_to_one_and_order_as_the_score(score):
    model = _compiled.on_reference(plain(PA()))
    model._store.weights["a"] = score
    proba = model.predict_proba_one({"a": 1.0})
    assert sum(proba.values()) == pytest.approx(1.0, abs=1e-15)
    assert all(0.0 <= p <= 1.0 for p in proba.values())
    assert (proba[True] > proba[False]) == (score > 0 and proba[True] != proba[False])
    assert model.predict_one({"a": 1.0}) is (score > 0)


def test_the_learned_attributes_are_read_only_copies():
    model = PAClassifier()
    model.learn_one({"a": 1.0}, True)
    model.weights["a"] = 99.0
    assert model.weights["a"] != 99.0
    with pytest.raises(AttributeError):
        model.intercept = 1.0


@pytest.mark.parametrize("arguments, message", [
    (lambda: PAClassifier("PA"), "rule"), (lambda: PAClassifier(learn_intercept=1), "learn_intercept"),
    (lambda: PA1(0), "C"), (lambda: PA2(-1), "C"), (lambda: PA1(math.inf), "C"), (lambda: PA1(True), "C"),
    (lambda: PA1("1"), "C"), (lambda: PAClassifier(PA1()).rule.mutate({"C": -1.0}), "C"),
])
def test_a_bad_parameter_is_refused_by_name_when_set(arguments, message):
    with pytest.raises(ValueError, match=message):
        arguments()


def test_a_mutated_rule_takes_effect():
    model = plain(PA1(C=1.0))
    model.mutate({"rule": {"C": 0.1}})
    model.learn_one({"a": 1.0}, True)
    assert model.weights == {"a": 0.1}


def test_the_default_rule_stays_none_and_means_pa1():
    model = plain(None)
    model.learn_one({"a": 0.1}, True)
    assert model.rule is None and model.weights == pytest.approx({"a": 0.1})


def test_the_misprinted_pa2_problem_solves_to_pa1_and_the_papers_to_pa2():
    """Lecture notes print PA-II with loss <= xi^2 beside the price C xi^2; the paper has loss <= xi."""
    w, x, C = np.array([0.3, -0.2]), np.array([1.0, 2.0]), 0.05
    loss = 1.0 + w @ x  # y = -1

    def solved(allowed):
        constraint = {"type": "ineq", "fun": lambda z: allowed(z[2]) - (1.0 + z[:2] @ x)}
        goal = minimize(lambda z: 0.5 * np.sum((z[:2] - w) ** 2) + C * z[2] ** 2, [*w, 2.0], constraints=[constraint],
                        tol=1e-14, options={"maxiter": 500})
        return goal.x[:2]

    norm = float(np.linalg.norm(x))
    for allowed, rule in ((lambda xi: xi**2, PA1(C)), (lambda xi: xi, PA2(C))):
        assert solved(allowed) == pytest.approx(w - rule.length(loss, norm) * x / norm, abs=1e-6)
