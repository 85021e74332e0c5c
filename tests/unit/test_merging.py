"""Merging: the weighted average of scores, one support vector a record, and a budget that holds."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pa_river
from tests import cases

MERGED = [*cases.BINARY, *cases.REGRESSION, *cases.PROTOTYPES, *cases.JOINT, *cases.KERNEL]
MIRROR = pa_river.MulticlassPerceptron | pa_river.MIRAClassifier
RBF = pa_river.RBF(0.5)
POLICIES = ("projection", "nearest", "smallest", "oldest")


def points(seed: int, count: int = 60) -> list[tuple[dict[str, float], bool]]:
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        a, b = rng.gauss(0, 1), rng.gauss(0, 1)
        found.append(({"a": a, "b": b}, a * b > 0))
    return found


def learned(model, stream):
    for x, y in stream:
        model.learn_one(x, y)
    return model


def scores(model, x):
    found = model.decision_one(x)
    return found if isinstance(found, dict) else {None: found}


@pytest.mark.parametrize("case", MERGED, ids=str)
@given(data=st.data())
def test_scores_are_the_weighted_average(case, data):
    streams = [data.draw(case.stream) for _ in range(2)]
    x = data.draw(case.x)
    weights = data.draw(st.tuples(st.sampled_from([0.25, 1.0, 3.0]), st.sampled_from([0.5, 2.0])))
    models = [case.trained(stream) for stream in streams]
    try:
        before, found = [scores(model, x) for model in models], None
        found = scores(pa_river.merge(models, weights), x)
    except ValueError as error:
        assert "finite" in str(error)
        return
    for one in before:  # one label alone has a rival without a name, that mirrors it: the first that it lacks
        if isinstance(models[0], pa_river.PAMulticlass | MIRROR) and len(one) == 1 and len(found) > 1:
            lacked = next(label for label in found if label not in one)
            one[lacked] = -sum(one.values())
    for label, score in found.items():
        parts = [weight * one.get(label, 0.0) for weight, one in zip(weights, before)]
        size = sum(weight * sum(map(abs, one.values())) for weight, one in zip(weights, before)) / sum(weights)
        assert score == pytest.approx(sum(parts) / sum(weights), rel=1e-9, abs=1e-9 * (1.0 + size) + 1e-300)


@pytest.mark.parametrize("case", [*MERGED, *cases.SECOND, *cases.BUDGET, *cases.UNICLASS], ids=str)
@given(data=st.data())
def test_a_merge_is_a_model_that_learns_and_is_stored(case, data):
    stream = data.draw(case.stream)
    models = [case.trained(stream[:5]), case.trained(stream[5:])]
    before = [pa_river.dumps(model) for model in models]
    try:
        merged = pa_river.merge(models)
    except ValueError as error:
        assert "finite" in str(error)
        return
    assert [pa_river.dumps(model) for model in models] == before
    assert merged.version == len(stream)
    twin = pa_river.loads(pa_river.dumps(merged), **case.not_stored)
    for x, y in stream[:3]:
        case.learn(merged, x, y)
        case.learn(twin, x, y)
    assert pa_river.dumps(twin) == pa_river.dumps(merged)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("build", [
    lambda budget: pa_river.PAClassifier(kernel=RBF, budget=budget),
    lambda budget: pa_river.PAMulticlass(kernel=RBF, budget=budget),
], ids=["binary", "multiclass"])
def test_the_cap_of_a_budget_holds_after_merging_and_the_loss_bounds_what_the_scores_lost(policy, build):
    budget = pa_river.Budget(7, policy)
    models = [learned(build(budget), points(seed)) for seed in range(3)]
    merged = pa_river.merge(models, [1.0, 2.0, 1.0])
    assert len(merged.support) <= 7
    assert len(pa_river.loads(pa_river.dumps(merged)).support) <= 7
    own = 0.25 * (models[0].budget_loss + 2.0 * models[1].budget_loss + models[2].budget_loss)
    dropped = merged.budget_loss - own
    assert dropped > 0.0
    norm = math.sqrt(2.0)  # of x in the space of k + 1, k(x, x) = 1
    for x, _ in points(9):
        one, parts = scores(merged, x), [scores(model, x) for model in models]
        for label, score in one.items():
            average = 0.25 * (parts[0][label] + 2.0 * parts[1][label] + parts[2][label])
            assert abs(score - average) <= dropped * norm * (1.0 + 1e-6) + 1e-6
    learned(merged, points(4))
    assert len(merged.support) <= 7


def test_a_record_that_several_models_hold_is_one_support_vector():
    models = [learned(pa_river.PAClassifier(kernel=RBF, budget=pa_river.Budget(50)), points(1)) for _ in range(2)]
    merged = pa_river.merge(models)
    assert len(merged.support) == len(models[0].support)
    assert merged.support == [(x, pytest.approx(coefficient)) for x, coefficient in models[0].support]


def test_a_label_that_never_moved_scores_0_in_a_kernel_model_too():
    model = pa_river.PAMultilabel(kernel=RBF, budget=pa_river.Budget(math.inf))
    model.learn_one({"a": 1.0}, {"moved": True, "at rest": True, "too": True})  # the lowest relevant one: the first
    assert pa_river.merge([model]).decision_one({"a": 1.0}) == model.decision_one({"a": 1.0})
    declared = pa_river.PAMulticlass(labels=("a", "b", "c"), kernel=RBF, budget=pa_river.Budget(math.inf))
    declared.learn_one({"a": 1.0}, "a")
    assert pa_river.merge([declared]).decision_one({"a": 1.0})["c"] == 0.0


def test_of_models_that_hold_the_same_in_total_the_oldest_go_first():
    left = learned(pa_river.PAClassifier(kernel=RBF, budget=pa_river.Budget(2, "oldest")),
                   [({"a": 0.0}, True), ({"a": 5.0}, False)])
    right = learned(pa_river.PAClassifier(kernel=RBF, budget=pa_river.Budget(2, "oldest")),
                    [({"b": 7.0}, True), ({"b": 9.0}, False)])
    assert [x for x, _ in pa_river.merge([left, right]).support] == [{"a": 5.0}, {"b": 9.0}]


def test_labels_in_another_order_and_the_nameless_prototype():
    one, two = pa_river.PAMulticlass(pa_river.PA()), pa_river.PAMulticlass(pa_river.PA())
    learned(one, [({"x": 1.0}, "a"), ({"y": 1.0}, "b")])
    learned(two, [({"x": 1.0}, "b"), ({"z": 1.0}, "a"), ({"y": 1.0}, "c")])
    merged = pa_river.merge([one, two], [1.0, 1.0])
    assert list(merged.decision_one({})) == ["a", "b", "c"]
    for x in ({"x": 1.0}, {"y": 1.0}, {"z": 1.0}):
        expected = {label: (one.decision_one(x).get(label, 0.0) + two.decision_one(x)[label]) / 2.0 for label in "abc"}
        assert merged.decision_one(x) == pytest.approx(expected)
    alone = learned(pa_river.PAMulticlass(pa_river.PA()), [({"x": 1.0}, "a")])  # its rival has no name yet
    both = learned(pa_river.merge([alone, alone]), [({"y": 1.0}, "b")])
    expected = learned(alone, [({"y": 1.0}, "b")])
    assert both.decision_one({"x": 2.0, "y": 1.0}) == pytest.approx(expected.decision_one({"x": 2.0, "y": 1.0}))


def test_second_order_models_weigh_each_parameter_by_its_precision():
    left = learned(pa_river.AROWClassifier(learn_intercept=False), [({"a": 1.0}, True)])  # w 1/2, variance 1/2
    right = pa_river.AROWClassifier(learn_intercept=False)  # w 0, variance 1
    merged = pa_river.merge([left, right], [1.0, 1.0])
    # precision (2 + 1) / 2; mean (2 / 2 * 1/2) / (3 / 2)
    assert merged.variances == pytest.approx({"a": 2.0 / 3.0})
    assert merged.weights == pytest.approx({"a": 1.0 / 3.0})


def test_a_center_and_its_lift_are_averaged():
    models = [pa_river.PAUniclass(pa_river.PA(), max_radius=4.0) for _ in range(2)]
    for model, x in zip(models, ({"a": 3.0}, {"b": -6.0})):
        model.learn_one(x)
    merged = pa_river.merge(models)
    assert merged.center == pytest.approx({"a": models[0].center["a"] / 2, "b": models[1].center["b"] / 2})
    lifts = [math.sqrt(16.0 - model.radius**2) for model in models]
    assert merged.radius == pytest.approx(math.sqrt(16.0 - (sum(lifts) / 2.0) ** 2))
    center = merged.center
    assert merged.score_one({"a": 9.0}) == pytest.approx(math.hypot(9.0 - center["a"], center["b"]) / merged.radius)


def test_the_length_of_a_kernel_center_is_known_after_merging():
    budget = pa_river.Budget(4)
    models = [pa_river.PAUniclass(eps=0.2, kernel=RBF, budget=budget) for _ in range(2)]
    for seed, model in enumerate(models):
        for x, _ in points(seed, 20):
            model.learn_one(x)
    merged = pa_river.merge(models)
    support = merged.support
    square = sum(a * b * RBF(x, z) for x, a in support for z, b in support)
    x = {"a": 0.3, "b": 0.1}
    distance = math.sqrt(1.0 - 2.0 * sum(a * RBF(z, x) for z, a in support) + square)
    assert len(support) <= 4
    assert merged.score_one(x) * merged.radius == pytest.approx(distance)


def test_without_weights_examples_count_and_models_without_any_count_the_same():
    left = learned(pa_river.PAClassifier(), points(1, 30))
    right = learned(pa_river.PAClassifier(), points(2, 10))
    assert pa_river.merge([left, right]).weights == pytest.approx(pa_river.merge([left, right], [3.0, 1.0]).weights)
    assert pa_river.merge([pa_river.PAClassifier(), pa_river.PAClassifier()]).version == 0
    assert pa_river.merge([left, right], [1e308, 1e308]).weights == pa_river.merge([left, right], [1.0, 1.0]).weights


def cost(y, r):
    return 1.0


@pytest.mark.parametrize(("models", "weights", "words"), [
    ([], None, "at least one"),
    ([pa_river.PAClassifier(), pa_river.PARegressor()], None, "PAClassifier and PARegressor"),
    ([pa_river.PAClassifier(), pa_river.PAClassifier(pa_river.PA())], None, "same parameters"),
    ([pa_river.PACostSensitive(cost), pa_river.PACostSensitive(lambda y, r: 2.0)], None, "same parameters"),
    ([pa_river.PASequence()], None, "cannot average a PASequence"),
    ([pa_river.ODMClassifier()], None, "cannot average a ODMClassifier"),
    ([object()], None, "cannot average a object"),
    ([pa_river.PAClassifier()], [1.0, 2.0], "1 models and 2 weights"),
    ([pa_river.PAClassifier()], [0.0], "must not all be 0"),
    ([pa_river.PAClassifier()], [math.nan], "finite number"),
    ([pa_river.PAClassifier()], [-1.0], "finite number"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_merged_is_said(models, weights, words):
    with pytest.raises(ValueError, match=words):
        pa_river.merge(models, weights)
