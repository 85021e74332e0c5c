"""PARegressor against hand-worked numbers, a general solver and River's data."""

from __future__ import annotations

import numpy as np
import pytest
from river import datasets, evaluate, metrics, preprocessing
from sklearn.linear_model import SGDRegressor

import pa_river
from pa_river import PA, PA1, PA2, PARegressor
from tests import oracles

X = {"a": 1, "b": 2}


@pytest.mark.parametrize("rule, weights", [
    (PA(), {"a": 0.98, "b": 1.96}), (PA1(0.5), {"a": 0.5, "b": 1.0}), (PA2(0.5), {"a": 4.9 / 6, "b": 9.8 / 6}),
], ids=str)
def test_one_step_lands_on_the_hand_worked_weights(rule, weights):
    model = PARegressor(rule, learn_intercept=False, eps=0.1)
    model.learn_one(X, 5)
    assert model.weights == pytest.approx(weights, abs=1e-12)


def test_a_target_below_the_prediction_moves_down():
    model = PARegressor(PA(), learn_intercept=False, eps=0.1)
    model.learn_one(X, -5)
    assert model.predict_one(X) == pytest.approx(-4.9, abs=1e-12)


def test_an_exact_prediction_is_passive():
    model = PARegressor(PA(), learn_intercept=False, eps=0.0)
    model.learn_one(X, 5)
    before = model.weights
    model.learn_one(X, model.predict_one(X))
    assert (model.weights, model.version) == (before, 2)


def test_a_target_inside_the_tube_is_passive():
    model = PARegressor(PA(), eps=0.5)
    model.learn_one(X, 0.5)
    assert (model.weights, model.intercept) == ({}, 0.0)


@pytest.mark.parametrize("rule, make", [("PA", PA), ("PA-I", lambda: PA1(0.05)), ("PA-II", PA2)])
@pytest.mark.parametrize("y", [3.0, -3.0])
def test_a_step_lands_where_a_general_solver_lands(rule, make, y):
    model = PARegressor(make(), learn_intercept=False, eps=0.2)
    model.learn_one({0: 0.3, 1: -0.2}, 1.0)
    w, x = np.array([model.weights[0], model.weights[1]]), np.array([1.0, 2.0])
    sign = 1.0 if y > w @ x else -1.0
    expected = oracles.solved(w, sign * x, abs(y - w @ x) - 0.2, rule, getattr(model.rule, "C", 1.0))
    model.learn_one(dict(enumerate(x)), y)
    assert [model.weights[0], model.weights[1]] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rule, schedule", [(PA1(0.3), "pa1"), (PA2(0.3), "pa2")], ids=str)
def test_without_intercept_scikit_learn_agrees(rule, schedule):
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(200, 5)), rng.normal(size=200)
    theirs = SGDRegressor(loss="epsilon_insensitive", penalty=None, learning_rate=schedule, eta0=0.3, epsilon=0.1,
                          fit_intercept=False, shuffle=False)
    theirs.partial_fit(X, y)
    ours = PARegressor(rule, learn_intercept=False, eps=0.1)
    ours.learn_many(X, y)
    assert [ours.weights[j] for j in range(5)] == pytest.approx(theirs.coef_, rel=1e-9)


def test_trump_approval_is_learned_better_than_by_the_wrong_loss():
    model = preprocessing.StandardScaler() | PARegressor(PA1(1.0))
    mae = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert mae.get() < 0.9


def test_an_untrained_model_predicts_zero():
    assert PARegressor().predict_one({"a": 1.0}) == 0.0


@pytest.mark.parametrize("eps", [-0.1, float("nan"), "0", True], ids=repr)
def test_a_bad_eps_is_refused_by_name(eps):
    with pytest.raises(ValueError, match="eps"):
        PARegressor(eps=eps)


def test_a_weight_that_would_overflow_is_refused_and_changes_no_byte():
    model = PARegressor(PA(), learn_intercept=False)
    model.learn_one({"a": 1.0}, 1.0)
    before = pa_river.dumps(model)
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({"a": 1e-300}, 1e300)
    assert pa_river.dumps(model) == before
