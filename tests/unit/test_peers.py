"""What the README says of its peers, run: a claim that no longer holds fails here."""

from __future__ import annotations

import math

import pytest
from river import datasets, evaluate, linear_model, metrics, preprocessing
from sklearn.linear_model import SGDClassifier

from pa_river import PA, PA1, PAClassifier, PARegressor

X = {"a": 2.0, "b": 1.0}


def margin(model) -> float:
    return sum(model.weights[name] * value for name, value in X.items()) + model.intercept


def test_rivers_bias_outside_the_norm_overshoots_the_margin():
    theirs, ours = linear_model.PAClassifier(mode=0), PAClassifier(PA())
    theirs.learn_one(X, True)
    ours.learn_one(X, True)
    assert (margin(theirs), margin(ours)) == (pytest.approx(1.2), pytest.approx(1.0))


def test_rivers_regressor_learns_another_target():
    theirs = linear_model.PARegressor(mode=0, eps=0.1, learn_intercept=False)
    ours = PARegressor(PA(), eps=0.1, learn_intercept=False)
    for model in (theirs, ours):
        model.learn_one({"a": 1.0, "b": 2.0}, 5.0)
    assert dict(theirs.weights) == pytest.approx({"a": 1.78, "b": 3.56})
    assert ours.weights == pytest.approx({"a": 0.98, "b": 1.96})


def test_trump_approval_shows_the_cost_of_the_wrong_loss():
    def mae(regressor):
        model = preprocessing.StandardScaler() | regressor
        return evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE()).get()

    assert mae(PARegressor(PA1(1.0))) == pytest.approx(0.854, abs=5e-4)
    assert mae(linear_model.PARegressor(C=1.0, mode=1)) == pytest.approx(4.98, abs=5e-3)


def test_scikit_learns_weight_passes_the_margin():
    theirs = SGDClassifier(loss="hinge", penalty=None, learning_rate="pa1", eta0=0.1, fit_intercept=False)
    theirs.partial_fit([[2.0, 1.0]], [1], classes=[0, 1], sample_weight=[10.0])
    assert theirs.decision_function([[2.0, 1.0]])[0] == pytest.approx(5.0)
    ours = PAClassifier(PA1(0.1), learn_intercept=False)
    ours.learn_one(X, True, 10.0)
    assert margin(ours) == pytest.approx(1.0)


def test_river_keeps_a_nan_for_ever():
    theirs = linear_model.PAClassifier()
    theirs.learn_one({"a": math.nan}, True)
    theirs.learn_one({"a": 1.0}, True)
    assert math.isnan(theirs.weights["a"])
