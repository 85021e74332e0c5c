"""Uniclass learning against a general solver, exact fractions and its own kernel variant."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import pa_river
from pa_river import PA, PA1, PA2, RBF, Budget, Linear, PAUniclass
from tests import strategies

NAMES = "abc"
tame = strategies.records(st.floats(-50.0, 50.0))


def exact_distance(model, x):
    """|x - center| by fractions, the center as the model states it."""
    center = model.center
    names = dict.fromkeys([*x, *center])
    return math.sqrt(sum((Fraction(x.get(n, 0.0)) - Fraction(center.get(n, 0.0))) ** 2 for n in names))


@pytest.mark.parametrize("rule, price", [(PA(), None), (PA1(0.8), "linear"), (PA2(0.8), "square")], ids=str)
def test_a_step_lands_where_a_general_solver_lands(rule, price):
    w, y, eps = np.array([1.0, -2.0, 0.5]), np.array([2.0, 1.0, -1.5]), 0.5
    model = PAUniclass(rule, eps=eps)
    model._store.approach(dict(zip(NAMES, w)), 1.0)
    model.learn_one(dict(zip(NAMES, map(float, y))))

    def goal(z):
        cost = {None: 0.0, "linear": 0.8 * z[3], "square": 0.8 * z[3] ** 2}[price]
        return 0.5 * np.sum((z[:3] - w) ** 2) + cost

    within = {"type": "ineq", "fun": lambda z: eps + (z[3] if price else 0.0) - np.linalg.norm(z[:3] - y)}
    slack = {"type": "ineq", "fun": lambda z: z[3]}
    expected = minimize(goal, [*w, 5.0], constraints=[within, slack], tol=1e-12).x[:3]
    assert [model.center[name] for name in NAMES] == pytest.approx(expected, abs=1e-5)


def test_a_learned_radius_is_a_fixed_one_in_one_more_dimension():
    # the first record at distance 4 of a bound 3: gap 5, share 2/5; the coordinate falls from 3 to 9/5
    model = PAUniclass(PA(), max_radius=3.0)
    assert model.radius == 0.0 and model.center == {}
    model.learn_one({"a": 4.0})
    assert model.center == pytest.approx({"a": 1.6})
    assert model.radius == pytest.approx(math.sqrt(9.0 - 1.8**2))
    assert model.score_one({"a": 1.6}) == pytest.approx(0.0, abs=1e-12)
    assert model.score_one({"a": 4.0}) == pytest.approx(2.4 / 2.4)


def test_a_radius_of_zero_scores_without_dividing():
    model = PAUniclass(max_radius=2.0)
    assert model.score_one({}) == 0.0
    assert model.score_one({"a": 1e-300}) == 1e308
    assert PAUniclass(eps=1e-300).score_one({"a": 1e200}) == 1e308


@given(stream=st.lists(tame, max_size=25), x=tame, rule=st.sampled_from([PA(), PA1(3.0), PA2(0.2)]))
def test_distances_are_those_of_fractions(stream, x, rule):
    model = PAUniclass(rule, eps=0.5)
    for record in stream:
        model.learn_one(record)
        assert model._store.distance(record) == pytest.approx(exact_distance(model, record), rel=1e-9, abs=1e-9)
    assert model._store.distance(x) == pytest.approx(exact_distance(model, x), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("width", [1, 3, 60])
def test_a_true_distance_of_one_from_a_center_of_1e8_is_found(width):
    rng = np.random.default_rng(1)
    model = PAUniclass(PA1(0.7), eps=1e-3)
    model._store.approach({f"n{j}": 1e8 for j in range(width)}, 1.0)
    for _ in range(500):  # each touches some coordinates, near and far
        touched = rng.choice(width, size=min(3, width), replace=False)
        model.learn_one({f"n{j}": 1e8 + float(rng.normal()) for j in touched})
        for shift in ({"n0": 1.0}, {"new": 1.0}):
            x = model.center
            x = {name: x.get(name, 0.0) + shift.get(name, 0.0) for name in [*x, *shift]}
            assert model._store.distance(x) == pytest.approx(exact_distance(model, x), abs=1e-6)
            few = {name: x[name] for name in list(x)[1:]}  # the largest coordinates but one
            assert model._store.distance(few) == pytest.approx(exact_distance(model, few), rel=1e-12)


def test_a_large_coordinate_that_moves_away_leaves_small_ones_their_digits():
    model = PAUniclass(PA(), eps=1e-9)
    model.learn_one({"big": 1e12, "small": 3.0})
    model.learn_one({"small": 3.0, "other": 4.0})  # the center all but leaves `big`
    assert model._store.distance({}) == pytest.approx(exact_distance(model, {}), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e300, 1.7e308, 5e-324])
def test_records_of_any_scale_learn(scale):
    model = PAUniclass(PA1(1e308), max_radius=1.0)
    for x in ({"a": scale}, {"b": scale / 2.0}, {"a": scale / 4.0, "b": scale / 4.0}, {"a": 1.0}, {}):
        model.learn_one(x)
        assert all(map(math.isfinite, model.center.values()))
        assert model._store.distance({}) == pytest.approx(math.hypot(*model.center.values()), rel=1e-9, abs=1e-300)
        assert math.isfinite(model.score_one(x)) and 0.0 <= model.radius <= 1.0


def test_a_round_costs_the_record_and_not_the_dimension():
    # 200,000 coordinates, records of two: no method may walk all but once in many rounds
    model = PAUniclass(PA1(0.01), eps=0.1)
    model._store.approach({f"n{j}": 1.0 for j in range(200_000)}, 1.0)
    reads = 0

    class Counting(dict):
        def __iter__(self):
            nonlocal reads
            reads += 1
            return super().__iter__()

        def items(self):
            nonlocal reads
            reads += 1
            return super().items()

        def values(self):
            nonlocal reads
            reads += 1
            return super().values()

    model._store._raw = Counting(model._store._raw)
    for place in range(1000):
        model.learn_one({f"n{place}": 2.0, "n7": 0.5})
    assert reads == 0 and model.version == 1000


@given(stream=st.lists(tame, max_size=12), learned=st.booleans())
def test_a_linear_kernel_is_the_linear_learner(stream, learned):
    size = {"max_radius": 20.0} if learned else {"eps": 2.0}
    plain = PAUniclass(PA1(5.0), **size)
    kernel = PAUniclass(PA1(5.0), kernel=Linear(), budget=Budget(math.inf), **size)
    for x in stream:
        assert kernel._store.distance(x) == pytest.approx(plain._store.distance(x), rel=1e-6, abs=1e-5)
        plain.learn_one(x)
        kernel.learn_one(x)
    assert kernel.radius == pytest.approx(plain.radius, abs=1e-5)


def test_a_kernel_center_is_a_mixture_of_records():
    model = PAUniclass(PA(), max_radius=0.8, kernel=RBF(0.5), budget=Budget(math.inf))
    for x in ({"a": 1.0}, {"a": 1.5}, {"a": -2.0}):
        model.learn_one(x)
    assert all(0.0 < coefficient < 1.0 for _, coefficient in model.support)
    with pytest.raises(AttributeError, match="support"):
        model.center
    with pytest.raises(AttributeError, match="weights"):
        PAUniclass().support
    assert model.score_one({"a": 30.0}) > model.score_one({"a": 1.2})


def test_a_stream_with_outliers_scores_them_outside():
    rng = np.random.default_rng(5)
    model = PAUniclass(PA1(0.1), max_radius=6.0)
    inside, outside = [], []
    for number in range(600):
        odd = number > 100 and number % 25 == 0
        x = {name: float(rng.normal(9.0 if odd else 2.0)) for name in NAMES}
        (outside if odd else inside).append(model.step(x))
    assert min(outside) > 1.0
    assert np.mean(np.array(inside[200:]) <= 1.0) > 0.95


@pytest.mark.parametrize("build, words", [
    (lambda: PAUniclass(eps=1.0, max_radius=2.0), "not both"), (lambda: PAUniclass(eps=-1.0), r"PAUniclass\(eps="),
    (lambda: PAUniclass(max_radius=0.0), r"PAUniclass\(max_radius="), (lambda: PAUniclass("PA"), r"PAUniclass\(rule="),
    (lambda: PAUniclass(budget=Budget(3)), r"PAUniclass\(budget="),
])
def test_a_wrong_parameter_is_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize("change", [
    lambda state: state.update(lift=3.1), lambda state: state.update(lift=-1.0), lambda state: state.update(version=-1),
    lambda state: state["store"].update(scalars=(0.0, 1.0, 0.0, 0.0)),
    lambda state: state["store"].update(scalars=(1.0, math.inf, 0.0, 0.0)),
    lambda state: state["store"].update(raw=np.zeros(7)),
])
def test_a_state_that_is_out_of_range_is_refused(change):
    model = PAUniclass(max_radius=3.0)
    model.learn_one({"a": 4.0})
    values = model._get_state()
    change(values)
    with pytest.raises(ValueError):
        PAUniclass(max_radius=3.0)._set_state(values)
    assert pa_river.loads(pa_river.dumps(model)).radius == model.radius
