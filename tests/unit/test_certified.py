"""The certificate against sums written out, and its refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import datasets, evaluate, metrics, preprocessing

import pa_river
from pa_river import (
    PA, PA1, PA2, RBF, Budget, Certified, PAClassifier, PACostSensitive, PAMulticlass, PAMultilabel, PARegressor,
    PAUniclass,
)
from tests import strategies

records = strategies.records(st.floats(-5.0, 5.0))
rules = st.sampled_from([PA(), PA1(0.3), PA2(0.4)])
U = {"a": 0.5, "b": -1.5, None: 0.25}


def written_out(rule, examples):
    """(left, right, sums) of PAClassifier on a stream, from the paper's formulas."""
    model, left, right = PAClassifier(rule), 0.0, sum(value**2 for value in U.values())
    for x, y, w in examples:
        sign = 1.0 if y else -1.0
        loss = max(0.0, 1.0 - sign * model.decision_one(x))
        square = 1.0 + sum(value**2 for value in x.values())
        tau = {PA: loss / square, PA1: min(getattr(rule, "C", 0.0) * w, loss / square)}.get(type(rule))
        if tau is None:
            tau = loss / (square + 0.5 / (rule.C * w))
        other = max(0.0, 1.0 - sign * (U[None] + sum(U.get(name, 0.0) * value for name, value in x.items())))
        left, right = left + tau * (2.0 * loss - tau * square), right + 2.0 * tau * other
        model.learn_one(x, y, w)
    return left, right, model


@given(rule=rules, examples=st.lists(st.tuples(records, st.booleans(), strategies.weights), max_size=10))
def test_both_sides_are_the_papers_sums_and_the_model_learns_as_without(rule, examples):
    left, right, plain = written_out(rule, examples)
    model = Certified(PAClassifier(rule), U)
    for x, y, w in examples:
        model.learn_one(x, y, w)
    assert model.left == pytest.approx(left, rel=1e-9, abs=1e-9)
    assert model.right == pytest.approx(right, rel=1e-9, abs=1e-9)
    assert model.left <= model.right * (1.0 + 1e-9)
    assert pa_river.dumps(model.model) == pa_river.dumps(plain)


FREE = Budget(math.inf)
MODELS = [
    lambda rule: Certified(PAClassifier(rule), U),
    lambda rule: Certified(PARegressor(rule, eps=0.2), U),
    lambda rule: Certified(PAUniclass(rule, eps=1.0), {"a": 0.5}),
    lambda rule: Certified(PAUniclass(rule, max_radius=3.0), {"a": 0.5, None: 1.5}),
    lambda rule: Certified(PAClassifier(rule, kernel=RBF(0.2), budget=FREE), [({"a": 1.0}, 0.7), ({}, -0.2)]),
    lambda rule: Certified(PAUniclass(rule, max_radius=1.0, kernel=RBF(0.2), budget=FREE), [({"a": 1.0}, 1.0)]),
    lambda rule: Certified(PAMulticlass(rule, labels=(True, False, "rare")), {True: {"a": 1.0}, False: {None: 0.3}}),
    lambda rule: Certified(PAMultilabel(rule, labels=("odd", "rare")), {"odd": {"a": 1.0}, "rare": {None: -0.4}}),
    lambda rule: Certified(PACostSensitive({True: {False: 2.0}, False: {True: 0.5}}, rule, update="max_loss"),
                           {True: {"a": 1.0}, False: {None: 0.3}}),
]


@pytest.mark.parametrize("build", MODELS)
@given(rule=rules, examples=st.lists(st.tuples(records, st.booleans()), max_size=12))
def test_the_left_side_stays_below_the_right_one_and_the_theorem_holds(build, rule, examples):
    model = build(rule)
    for x, y in examples:
        y = 3.0 * y if isinstance(model.model, PARegressor) else y
        y = {"odd": y, "rare": "a" in x} if isinstance(model.model, PAMultilabel) else y
        model.learn_one(x, y) if model._supervised else model.learn_one(x)
        assert model.left <= model.right + 1e-9 * (1.0 + model.right)
        bound = model.bound()
        assert bound is not None or isinstance(rule, PA)
        if bound is not None:
            assert bound.value <= bound.limit + 1e-9 * (1.0 + bound.limit)
    loaded = pa_river.loads(pa_river.dumps(model))
    assert (loaded.left, loaded.right, loaded.bound()) == (model.left, model.right, model.bound())


def test_a_bound_ends_with_a_weight_other_than_one_and_has_none_without_a_comparator():
    model = Certified(PAClassifier(PA1(0.5)), U)
    model.learn_one({"a": 1.0}, False)
    assert model.bound().of == "large_losses" and model.bound().value == 1
    model.learn_one({"a": 1.0}, True, 2.0)
    assert model.bound() is None and model.right is not None
    assert Certified(PAClassifier()).right is None and Certified(PAClassifier()).bound() is None


class Half(pa_river.StepRule):
    def length(self, loss, norm, weight=1.0):
        return 0.5 * loss / norm


def test_a_rule_that_changes_on_the_way_or_is_the_users_own_has_no_theorem():
    model = Certified(PAClassifier(PA2(1e-6), learn_intercept=False), {"a": 1.0})
    for _ in range(10):  # ten losses of about 1, that steps this small do not end
        model.learn_one({"a": 1.0}, True)
    model.model.mutate({"rule": {"C": 1.0}})
    assert model.bound()[1:] == pytest.approx((10.0, 500_001.0), rel=1e-3)  # that of C = 1e-6, still
    model.learn_one({"a": 1.0}, True)  # the theorem of C = 1 would say 11 <= 1.5
    assert model.bound() is None and model.left <= model.right
    own = Certified(PAClassifier(Half(), learn_intercept=False), {"a": 1.0})
    own.learn_one({"a": 1.0}, True)
    own.learn_one({"a": 1.0}, True)  # squared losses 1 + 1/4, and |u| R = 1
    assert own.bound() is None and own.left <= own.right


@pytest.mark.parametrize("radius", [1, 1.0, np.float64(1.0)], ids=repr)
def test_a_radius_of_any_type_of_number_makes_a_plain_float(radius):
    model = Certified(PAUniclass(max_radius=2.0), {"a": 3.0, None: radius})
    assert type(model.right) is float and model.right == 10.0


def test_the_rule_of_the_first_example_is_stored():
    model = Certified(PAClassifier(PA1(1e-6), learn_intercept=False), {"a": 1.0})
    model.learn_one({"a": 1.0}, True)
    model.model.mutate({"rule": {"C": 1.0}})
    loaded = pa_river.loads(pa_river.dumps(model))
    assert loaded.bound() == model.bound()
    loaded.learn_one({"a": 1.0}, True)
    assert loaded.bound() is None


def test_the_bound_of_a_label_model_written_out():
    model = Certified(PAMulticlass(PA(), learn_intercept=False, labels=("A", "B")), {"A": {"a": 0.2}, "B": {"b": 0.1}})
    model.learn_one({"a": 3.0, "b": -4.0}, "A")  # l = 1, squared norm 2 * 25; u's margin 0.6 + 0.4 leaves it no loss
    assert model.bound() == ("square_loss", 1.0, pytest.approx(50.0 * 0.05))
    model.learn_one({"b": 5.0}, "A")  # u's margin -0.5: no theorem is left
    assert model.bound() is None


@pytest.mark.parametrize("model, data, metric", [
    (PAClassifier(), datasets.Phishing, metrics.ROCAUC()),
    (PAMulticlass(), datasets.ImageSegments, metrics.MacroF1()),
    (PARegressor(), datasets.TrumpApproval, metrics.MAE()),
], ids=["binary", "multiclass", "regression"])
def test_rivers_progressive_validation_takes_it_for_what_the_model_is(model, data, metric):
    twin = metric.clone()
    found = evaluate.progressive_val_score(data().take(300), Certified(model.clone()), metric)
    assert found.get() == evaluate.progressive_val_score(data().take(300), model, twin).get() > 0.0


def test_a_certified_detector_is_one_for_river():
    model = Certified(PAUniclass())
    score = evaluate.progressive_val_score(_anomalies(), model, metrics.ROCAUC())
    assert 0.9 < score.get() <= 1.0 and model.version == 40


def _anomalies():
    for number in range(40):
        outside = number % 10 == 9
        yield {"a": 9.0 if outside else 0.1 * (number % 3)}, outside


def test_a_model_that_learned_elsewhere_is_refused():
    inner = PAClassifier()
    model = Certified(inner, U)
    inner.learn_one({"a": 1.0}, True)
    with pytest.raises(ValueError, match="certificate only"):
        model.learn_one({"a": 1.0}, True)


def test_the_models_attributes_show_through_and_pipelines_take_it():
    model = Certified(PAClassifier(PA(), learn_intercept=False), {"a": 1.0})
    model.learn_one({"a": 2.0}, True)
    assert model.weights == {"a": 0.5} and model.decision_one({"a": 2.0}) == 1.0 and model.version == 1
    with pytest.raises(AttributeError):
        model.no_such_name
    pipeline = preprocessing.StandardScaler() | Certified(PAClassifier())
    pipeline.learn_one({"a": 1.0}, True)
    assert pipeline.predict_one({"a": 1.0}) in (True, False)


@pytest.mark.parametrize("build, words", [
    (lambda: Certified(pa_river.AROWClassifier()), "Passive-Aggressive"),
    (lambda: Certified(PAClassifier(kernel=RBF(), budget=Budget(3))), "support vectors"),
    (lambda: Certified(PAClassifier(), 3.0), "mapping"),
    (lambda: Certified(PAClassifier(), {"a": math.nan}), "'a'"),
    (lambda: Certified(PAClassifier(learn_intercept=False), {None: 1.0}), "intercept"),
    (lambda: Certified(PAMulticlass(), {"u": {"a": 1.0}}), "labels"),
    (lambda: Certified(PAUniclass(max_radius=1.0), {"a": 1.0, None: 2.0}), "radius"),
    (lambda: Certified(PAUniclass(max_radius=1.0), {"a": 1.0, None: math.nan}), "radius"),
    (lambda: Certified(PAClassifier(), {"a": 1e200}), "float range"),
    (lambda: Certified(PAClassifier(), {"a": 1e154, "b": 1e154}), "float range"),
    (lambda: Certified(PAUniclass(), {"a": 1e200}), "float range"),
    (lambda: Certified(PAClassifier(kernel=RBF(), budget=Budget(math.inf)), {"a": 1.0}), "coefficient"),
])
def test_what_cannot_be_certified_is_refused_in_words(build, words):
    with pytest.raises(ValueError, match=words):
        build()
