"""ScaledPA against River's own scaler before our learners, and against the variance of numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import base, preprocessing

import pa_river
from pa_river import _compiled
from tests import strategies

RULES = [pa_river.PA, lambda: pa_river.PA1(0.1), lambda: pa_river.PA2(0.5)]
CORES = pytest.mark.parametrize("core", [lambda model: model, _compiled.on_reference], ids=["built", "reference"])

#: Ordinary numbers a good way apart: where they nearly coincide, the last bit of a variance is all there is of it.
spaced = st.integers(-400, 400).map(lambda v: v / 4.0)


@CORES
@pytest.mark.parametrize("rule", RULES, ids=["PA", "PA-I", "PA-II"])
@pytest.mark.parametrize("learn_intercept", [True, False])
@given(stream=st.lists(st.tuples(strategies.records(spaced), strategies.binary_labels), max_size=25))
def test_a_classifier_is_rivers_scaler_before_ours(core, rule, learn_intercept, stream):
    fused = core(pa_river.ScaledPA(rule(), learn_intercept=learn_intercept))
    scaler, model = preprocessing.StandardScaler(), pa_river.PAClassifier(rule(), learn_intercept=learn_intercept)
    for x, y in stream:
        assert fused.decision_one(x) == pytest.approx(model.decision_one(scaler.transform_one(x)), rel=1e-9, abs=1e-9)
        fused.learn_one(x, y)
        scaler.learn_one(x)
        model.learn_one(scaler.transform_one(x), y)
    ours, theirs = fused.weights, model.weights
    for name in {**ours, **theirs}:
        assert ours.get(name, 0.0) == pytest.approx(theirs.get(name, 0.0), rel=1e-9, abs=1e-9)
    assert fused.intercept == pytest.approx(model.intercept, rel=1e-9, abs=1e-9)


@CORES
def test_it_equals_rivers_pipeline_on_a_long_stream(core):
    rng = np.random.default_rng(3)
    fused = core(pa_river.ScaledPA(pa_river.PA1(0.1)))
    pipeline = preprocessing.StandardScaler() | pa_river.PAClassifier(pa_river.PA1(0.1))
    for row in rng.normal(size=(500, 6)) * [1.0, 1e3, 1e-3, 5.0, 1.0, 1.0] + [0.0, 1e4, 0.0, -7.0, 1.0, 1.0]:
        x, y = {f"f{j}": value for j, value in enumerate(row.tolist())}, bool(row[0] + row[3] > -7.0)
        assert fused.step(x, y) == pipeline.predict_one(x)
        pipeline.learn_one(x, y)
    ours, theirs = fused.weights, pipeline["PAClassifier"].weights
    assert ours.keys() == theirs.keys()
    assert list(ours.values()) == pytest.approx(list(theirs.values()), rel=1e-9)


@CORES
@given(stream=st.lists(st.tuples(strategies.records(spaced), spaced), max_size=20))
def test_a_regressor_is_rivers_scaler_before_ours(core, stream):
    fused = core(pa_river.ScaledPA(pa_river.PA1(0.5), eps=0.2))
    pipeline = preprocessing.StandardScaler() | pa_river.PARegressor(pa_river.PA1(0.5), eps=0.2)
    for x, y in stream:
        before = fused.step(x, y)
        assert before == pytest.approx(pipeline.predict_one(x), rel=1e-8, abs=1e-8)
        pipeline.learn_one(x, y)


@CORES
@given(values=st.lists(spaced, min_size=1, max_size=40))
def test_means_and_variances_are_those_of_numpy(core, values):
    model = core(pa_river.ScaledPA())
    for value in values:
        model.learn_one({"a": value}, True)
    assert model.means["a"] == pytest.approx(np.mean(values), rel=1e-9, abs=1e-9)
    assert model.variances["a"] == pytest.approx(np.var(values), rel=1e-9, abs=1e-9)


@CORES
def test_a_variance_beyond_floats_is_refused_by_name_and_nothing_is_counted(core):
    model = core(pa_river.ScaledPA())
    model.learn_one({"a": 1.0, "b": 2.0}, True)
    before = pa_river.dumps(model)
    with pytest.raises(ValueError, match="the variance of feature 'b' would not be finite"):
        model.learn_one({"a": 3.0, "b": 1e200}, True)
    assert pa_river.dumps(model) == before


@CORES
def test_a_weight_of_zero_counts_no_value(core):
    model = core(pa_river.ScaledPA())
    model.learn_one({"a": 1.0}, True, w=0.0)
    assert model.version == 0 and model.means == {}


@CORES
def test_a_zero_in_a_table_is_a_value(core):
    X, y = np.array([[1.0, 0.0], [0.0, 4.0], [3.0, 0.0]]), [True, False, True]
    many, loop = core(pa_river.ScaledPA()), core(pa_river.ScaledPA())
    many.learn_many(X, y)
    for row, label in zip(X.tolist(), y):
        loop.learn_one(dict(enumerate(row)), label)
    assert pa_river.dumps(many) == pa_river.dumps(loop)
    assert many.predict_many(X).tolist() == [loop.predict_one(dict(enumerate(row))) for row in X.tolist()]


def test_eps_decides_what_it_is():
    assert isinstance(pa_river.ScaledPA(), base.Classifier)
    assert isinstance(pa_river.ScaledPA(eps=0.0), base.Regressor)
    assert pa_river.ScaledPA(eps=0.3).clone().eps == 0.3
    with pytest.raises(ValueError, match="eps"):
        pa_river.ScaledPA(eps=-1.0)
    with pytest.raises(ValueError, match="ScaledPARegressor"):
        pa_river.ScaledPAClassifier(eps=0.1)


def test_no_bound_is_claimed_for_a_moving_scale():
    with pytest.raises(ValueError, match="moving scale"):
        pa_river.Certified(pa_river.ScaledPA())
