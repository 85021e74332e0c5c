"""Budgets: each policy against brute force over the Gram matrix, the cap, and what is reported as lost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pa_river
from pa_river import PA, PA1, RBF, Budget, Linear, PAClassifier, PAMulticlass, PAUniclass, Polynomial
from tests import strategies
from tests.unit.test_support import random_records

POLICIES = ("projection", "nearest", "smallest", "oldest")
EVERY = pytest.mark.parametrize("policy", POLICIES)
records = st.dictionaries(st.sampled_from("abcd"), st.floats(-3.0, 3.0).map(lambda v: round(v, 2)), max_size=4)
streams = st.lists(st.tuples(records, strategies.binary_labels), min_size=4, max_size=14)


def gram(kernel, one, other, extra=1.0):
    return np.array([[kernel(x, z) + extra for z in other] for x in one])


def length(kernel, parts):
    """|sum of coefficient * phi(x)|, intercept included, over (x, coefficient) pairs."""
    coefficients = np.array([c for _, c in parts])
    square = coefficients @ gram(kernel, [x for x, _ in parts], [x for x, _ in parts]) @ coefficients
    return math.sqrt(max(square, 0.0))


def best_removal(kernel, support, x, policy):
    """By brute force: how long a part each removal loses, and so the least; None for oldest."""
    vectors = [vector for vector, _ in support]
    losses = []
    for place, (vector, coefficient) in enumerate(support):
        others = [z for other, z in enumerate(vectors) if other != place]
        if policy == "smallest":
            span = [x]
        elif policy == "nearest":
            distances = [kernel(vector, vector) + kernel(z, z) - 2.0 * kernel(vector, z) for z in others]
            span = [others[int(np.argmin(distances))], x] if others else [x]
        else:
            span = [*others, x]
        column = gram(kernel, span, [vector])[:, 0]
        shares = np.linalg.lstsq(gram(kernel, span, span), column, rcond=1e-10)[0]
        losses.append(abs(coefficient) * math.sqrt(max(kernel(vector, vector) + 1.0 - column @ shares, 0.0)))
    return losses


@EVERY
@given(stream=streams)
def test_the_cap_holds_after_every_example_and_after_loading(policy, stream):
    model = PAClassifier(PA1(0.5), kernel=RBF(0.5), budget=Budget(3, policy))
    for x, y in stream:
        model.learn_one(x, y)
        assert len(model.support) <= 3
    loaded = pa_river.loads(pa_river.dumps(model))
    for x, y in stream:
        loaded.learn_one(x, not y)
        assert len(loaded.support) <= 3


@EVERY
def test_a_loaded_model_of_records_far_apart_has_the_same_bytes(policy):
    model = PAClassifier(learn_intercept=False, kernel=RBF(), budget=Budget(3, policy))
    for place in range(24):  # k is 0 between most of them, and what is 0 has a sign
        model.learn_one({"a": 1e6 * (place // 2) + 0.5 * (place % 2)}, place % 3 == 0)
        assert pa_river.dumps(pa_river.loads(pa_river.dumps(model))) == pa_river.dumps(model)


def test_a_state_over_the_cap_is_refused():
    large = PAClassifier(kernel=RBF(), budget=Budget(5))
    for x in random_records(5):
        large.learn_one(x, True)
        large.learn_one(x, False)
    small = PAClassifier(kernel=RBF(), budget=Budget(2))
    with pytest.raises(pa_river.StateError, match="budget of 2"):
        small._set_state(large._get_state())


@EVERY
@pytest.mark.parametrize("kernel", [RBF(0.3), Polynomial(2, coef0=1.0)], ids=["RBF", "polynomial"])
@given(data=st.data())
def test_after_a_basic_step_the_margin_is_one_whoever_gave_way(policy, kernel, data):
    model = PAClassifier(PA(), kernel=kernel, budget=Budget(3, policy))
    for x, y in data.draw(streams):
        if model.decision_one(x) * (1.0 if y else -1.0) < 1.0:
            model.learn_one(x, y)
            scale = 1.0 + sum(abs(c) * (kernel(v, x) + 1.0) for v, c in model.support)
            assert (1.0 if y else -1.0) * model.decision_one(x) >= 1.0 - 1e-6 * scale


@pytest.mark.parametrize("policy", POLICIES[:3])
@given(stream=streams, last=st.tuples(records, strategies.binary_labels))
def test_who_gives_way_loses_the_least_by_brute_force(policy, stream, last):
    kernel, (x, y) = RBF(0.5), last
    model = PAClassifier(PA1(0.5), kernel=kernel, budget=Budget(4, policy))
    for record, label in stream:
        model.learn_one(record, label)
    before, lost = model.support, model.budget_loss
    assume(len(before) == 4 and model.decision_one(x) * (1.0 if y else -1.0) < 1.0 - 1e-3)
    losses = best_removal(kernel, before, x, policy)
    model.learn_one(x, y)
    assert model.budget_loss - lost == pytest.approx(min(losses), rel=1e-3, abs=1e-4)


def watched(model):
    """The list of (x, coefficient) of all steps the model takes from now on."""
    steps, add = [], model._store.add

    def watch(terms, length, norm, keep=1.0):
        add(terms, length, norm, keep)
        steps.append((dict(terms[0].phi), terms[0].sign * length / norm))

    model._store.add = watch
    return steps


@EVERY
@given(stream=streams)
def test_what_is_lost_bounds_the_distance_to_the_sum_of_all_steps(policy, stream):
    kernel = RBF(0.5)
    model = PAClassifier(PA1(0.5), kernel=kernel, budget=Budget(3, policy))
    steps = watched(model)
    for x, y in stream:
        model.learn_one(x, y)
    gap = [*steps, *[(x, -coefficient) for x, coefficient in model.support]]
    assert length(kernel, gap) <= model.budget_loss * (1.0 + 1e-4) + 1e-4
    for x, _ in stream[:3]:
        full = sum(coefficient * (kernel(z, x) + 1.0) for z, coefficient in steps)
        assert abs(full - model.decision_one(x)) <= (model.budget_loss * (1.0 + 1e-4) + 1e-4) * math.sqrt(2.0)


def test_a_projection_onto_a_span_that_holds_all_loses_nothing():
    # two features and an intercept: three support vectors span everything a linear kernel can say
    free = PAClassifier(PA1(0.3))
    bound = PAClassifier(PA1(0.3), kernel=Linear(), budget=Budget(4))
    rng = np.random.default_rng(3)
    for a, b in rng.normal(size=(300, 2)):
        x, y = {"a": float(a), "b": float(b)}, bool(a + 2.0 * b > 0.3)
        assert bound.decision_one(x) == pytest.approx(free.decision_one(x), abs=1e-3)
        free.learn_one(x, y)
        bound.learn_one(x, y)
    assert bound.budget_loss < 0.05 < 1.0 < length(Linear(), [(x, c) for x, c in bound.support])


def test_oldest_drops_the_first_and_smallest_the_least():
    oldest = PAClassifier(PA1(1.0), learn_intercept=False, kernel=Linear(), budget=Budget(2, "oldest"))
    smallest = PAClassifier(PA1(1.0), learn_intercept=False, kernel=Linear(), budget=Budget(2, "smallest"))
    for model in (oldest, smallest):
        model.learn_one({"a": 1.0}, True)  # coefficient 1, length 1
        model.learn_one({"b": 4.0}, True)  # coefficient 1/16, length 1/4
        model.learn_one({"c": 1.0}, True)
    assert [x for x, _ in oldest.support] == [{"b": 4.0}, {"c": 1.0}]
    assert oldest.budget_loss == 1.0
    assert [x for x, _ in smallest.support] == [{"a": 1.0}, {"c": 1.0}]
    assert smallest.budget_loss == 0.25


def test_a_removal_that_satisfies_the_constraint_leaves_nothing_to_learn():
    model = PAClassifier(PA1(2.0), learn_intercept=False, kernel=Linear(), budget=Budget(2, "oldest"))
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"b": 1.0}, True)
    model.learn_one({"a": -3.0, "b": 1.0}, True)  # without the first its margin is 1
    assert model.support == [({"b": 1.0}, 1.0)] and model.version == 3


def test_a_multiclass_removal_hands_over_the_part_of_every_label():
    model = PAMulticlass(PA(), kernel=RBF(0.1), budget=Budget(6))
    rng = np.random.default_rng(0)
    hits = 0
    for number in range(400):
        a, b = rng.normal(size=2)
        label = "u" if a > 0.3 else "v" if b > 0.0 else "w"
        hits += model.step({"a": float(a), "b": float(b)}, label) == label if number >= 100 else 0
        assert len(model.support) <= 6
    assert hits > 210 and model.budget_loss > 0.0


@EVERY
def test_a_refused_step_gives_the_place_back(policy):
    model = PAClassifier(PA(), learn_intercept=False, kernel=Polynomial(2), budget=Budget(2, policy))
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"b": 1.0}, False)
    before = pa_river.dumps(model)
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({"a": 1e-80}, False)  # k = 1e-320: the coefficient would be 1e320
    assert pa_river.dumps(model) == before


@EVERY
def test_a_kernel_center_within_a_budget_knows_its_own_length(policy):
    model = PAUniclass(PA1(0.7), eps=0.2, kernel=RBF(0.5), budget=Budget(4, policy))
    for x in random_records(80):
        model.learn_one(x)
        assert len(model.support) <= 4
        exact = length_plain(RBF(0.5), model.support)
        assert math.sqrt(model._store._length_square) == pytest.approx(exact, abs=1e-5)


def length_plain(kernel, parts):
    coefficients = np.array([c for _, c in parts])
    return math.sqrt(max(coefficients @ gram(kernel, [x for x, _ in parts], [x for x, _ in parts], 0.0) @ coefficients,
                         0.0))
