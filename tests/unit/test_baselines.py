"""The Perceptron by hand and in fractions; MIRA against its quadratic programme solved by general means."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import pa_river
from pa_river import PA1, MIRAClassifier, MulticlassPerceptron, PAMulticlass
from pa_river.baselines import solve
from tests import strategies

LABELS = ("a", "b", "c", "d")
STREAM = st.lists(st.tuples(strategies.records(), st.sampled_from(LABELS)), max_size=12)
losses_of = st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=6)


def fed(model, *examples):
    for x, y in examples:
        model.learn_one(x, y)
    return model


def test_every_rival_at_fault_takes_an_equal_share():
    model = fed(MulticlassPerceptron(learn_intercept=False),
                ({"x": 1.0}, "a"), ({"x": 1.0}, "b"), ({"x": 3.0}, "c"))
    assert model.weights == {"a": {"x": -1.5}, "b": {"x": -1.5}, "c": {"x": 3.0}}
    fed(model, ({"x": -1.0}, "c"))  # a and b score 1.5, c -3
    assert model.weights == {"a": {"x": -1.0}, "b": {"x": -1.0}, "c": {"x": 2.0}}


def test_only_the_best_rival_pays_under_max():
    model = fed(MulticlassPerceptron(learn_intercept=False, update="max"),
                ({"x": 1.0}, "a"), ({"x": 1.0}, "b"), ({"x": 3.0}, "c"))  # a and b tie at 0: a was first
    assert model.weights == {"a": {"x": -3.0}, "b": {}, "c": {"x": 3.0}}


@pytest.mark.parametrize("update", ["uniform", "max"])
def test_an_equal_score_is_a_mistake_and_a_higher_one_none(update):
    model = MulticlassPerceptron(update=update)
    fed(model, ({}, "a"))
    assert model.intercept == {"a": 1.0}
    before = model.intercept
    fed(model, ({"x": 5.0}, "a"))
    assert (model.intercept, model.weights, model.version) == (before, {"a": {}}, 2)


@pytest.mark.parametrize("w", [1e-9, 0.5, 100.0])
def test_a_weight_other_than_zero_does_not_scale_the_perceptron(w):
    model = MulticlassPerceptron(learn_intercept=False)
    model.learn_one({"x": 2.0}, "a", w)
    assert model.weights == {"a": {"x": 2.0}}


@pytest.mark.parametrize("update", ["uniform", "max"])
@given(stream=st.lists(st.tuples(strategies.records(st.integers(-3, 3).map(float)), st.sampled_from(LABELS)),
                       max_size=12))
def test_the_perceptron_follows_its_definition_in_fractions(update, stream):
    if update == "uniform":  # with at most three labels every share is a half or a whole: exact in floats too
        stream = [(x, y) for x, y in stream if y != "d"]
    slots, w = {}, {}
    for x, y in stream:
        own = slots.setdefault(y, len(slots))
        phi = {**x, None: 1}
        score = {r: sum(w.get((r, n), Fraction(0)) * Fraction(v) for n, v in phi.items())
                 for r in range(max(2, len(slots)))}
        wrong = [r for r in score if r != own and score[r] >= score[own]]
        if update == "max":
            wrong = sorted(wrong, key=lambda r: (-score[r], r))[:1]
        for r in [own, *wrong] if wrong else []:
            for n, v in phi.items():
                w[r, n] = w.get((r, n), 0) + Fraction(v) * (1 if r == own else Fraction(-1, len(wrong)))
    model = fed(MulticlassPerceptron(update=update), *stream)
    for y, r in slots.items():
        assert model.intercept[y] == w.get((r, None), 0)
        assert model.weights[y] == {n: v for (s, n), v in w.items() if s == r and n is not None and v}


def test_rivals_of_an_unknown_kind_are_refused():
    with pytest.raises(ValueError, match="uniform"):
        MulticlassPerceptron(update="all")
    for bad in ({"C": 0.0}, {"C": math.inf}, {"margin": 0.0}, {"margin": -1.0}, {"C": "1"}):
        with pytest.raises(ValueError, match="MIRAClassifier"):
            MIRAClassifier(**bad)


def objective(alpha, losses, norm):
    """MIRA's dual, to be maximised over alpha >= 0 with sum <= C."""
    return alpha @ losses - 0.5 * norm**2 * (alpha.sum() ** 2 + alpha @ alpha)


@given(losses=losses_of, norm=st.floats(0.1, 5.0), C=st.floats(1e-3, 10.0))
def test_the_dual_is_solved_as_a_general_solver_solves_it(losses, norm, C):
    move, losses = solve(losses, norm, C), np.array(losses)
    alpha = np.array(move.shares) * move.length / norm
    assert sum(move.shares) == pytest.approx(1.0, rel=1e-12) and move.length <= C * norm * (1 + 1e-12)
    found = minimize(lambda a: -objective(a, losses, norm), np.full(len(losses), C / len(losses) / 2),
                     jac=lambda a: -(losses - norm**2 * (a.sum() + a)), method="SLSQP",
                     bounds=[(0, None)] * len(losses), options={"ftol": 1e-14, "maxiter": 500},
                     constraints={"type": "ineq", "fun": lambda a: C - a.sum()})
    assert objective(alpha, losses, norm) >= -found.fun - 1e-9 * max(1.0, abs(found.fun))
    if found.success:
        assert alpha == pytest.approx(found.x, abs=2e-4 * max(1.0, C))


@given(losses=st.lists(st.integers(1, 40), min_size=1, max_size=5), norm=st.integers(1, 4), cap=st.integers(1, 40))
def test_the_solution_is_the_best_of_all_active_sets_in_fractions(losses, norm, cap):
    # KKT, exactly: for each set of active rivals, with and without the cap, the only candidate; the feasible one is it
    q, C, found = Fraction(norm) ** 2, Fraction(cap, 8), []
    for size in range(1, len(losses) + 1):
        for active in itertools.combinations(range(len(losses)), size):
            total = sum(losses[r] for r in active)
            for theta in (Fraction(total, size + 1), (total - q * C) / size):
                alpha = [(losses[r] - theta) / q if r in active else Fraction(0) for r in range(len(losses))]
                slack = theta - q * sum(alpha)  # xi: 0, or the price C is spent whole
                if min(alpha) >= 0 and slack >= 0 and sum(alpha) <= C and (slack == 0 or sum(alpha) == C) and all(
                        losses[r] <= theta for r in range(len(losses)) if r not in active):
                    found.append(alpha)
    assert found and all(alpha == found[0] for alpha in found)
    move = solve([float(loss) for loss in losses], float(norm), float(C))
    ours = [share * move.length / norm for share in move.shares]
    assert ours == pytest.approx([float(a) for a in found[0]], rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("C", [0.05, 0.3, 10.0])
@pytest.mark.parametrize("y", LABELS[:3])
def test_the_primal_lands_where_a_general_solver_lands(C, y):
    names, x, margin = ("u", "v"), np.array([1.0, -0.5]), 1.5
    model = fed(MIRAClassifier(learn_intercept=False, C=C, margin=margin),
                ({"u": 0.5, "v": 1.0}, "a"), ({"u": 0.4}, "b"), ({"u": 0.7, "v": -1.0}, "c"))

    def matrix():
        return np.array([[model.weights[r].get(n, 0.0) for n in names] for r in LABELS[:3]])

    W, own = matrix(), LABELS.index(y)

    def ahead(r):
        return lambda z: (z[:6].reshape(3, 2)[own] - z[:6].reshape(3, 2)[r]) @ x - margin + z[6]

    constraints = [{"type": "ineq", "fun": ahead(r)} for r in range(3) if r != own]
    constraints.append({"type": "ineq", "fun": lambda z: z[6]})
    found = minimize(lambda z: 0.5 * np.sum((z[:6] - W.ravel()) ** 2) + C * z[6], [*W.ravel(), 3.0],
                     constraints=constraints, method="SLSQP", options={"ftol": 1e-12, "maxiter": 500},
                     jac=lambda z: np.array([*(z[:6] - W.ravel()), C]))
    model.learn_one(dict(zip(names, x)), y)
    assert found.success and matrix().ravel() == pytest.approx(found.x[:6], abs=1e-6)


@given(stream=STREAM)
def test_with_two_labels_mira_is_pa1(stream):
    stream = [(x, y) for x, y in stream if y in "ab"]
    mira, pa = fed(MIRAClassifier(C=0.3), *stream), fed(PAMulticlass(PA1(0.3)), *stream)
    for y in mira.weights:
        assert mira.intercept[y] == pytest.approx(pa.intercept[y], rel=1e-6, abs=1e-9)
        names = {*mira.weights[y], *pa.weights[y]}  # a loss of one rounding moves the one and not the other
        assert {name: mira.weights[y].get(name, 0.0) for name in names} == pytest.approx(
            {name: pa.weights[y].get(name, 0.0) for name in names}, rel=1e-6, abs=1e-9)


@given(stream=STREAM, x=strategies.records(), y=st.sampled_from(LABELS))
def test_uncapped_mira_restores_every_margin(stream, x, y):
    model = fed(MIRAClassifier(C=1e9), *stream, (x, y))
    scores = model.decision_one(x)
    for r in scores:
        assert r == y or scores[y] - scores[r] >= 1.0 - 1e-6


def test_importance_scales_miras_cap():
    heavy, light = MIRAClassifier(C=0.01), MIRAClassifier(C=0.03)
    heavy.learn_one({"x": 2.0}, "a", 3.0)
    light.learn_one({"x": 2.0}, "a")
    assert heavy.weights == light.weights == {"a": {"x": pytest.approx(0.06)}}


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-160, 1e-30, 1.0, 1e30, 1e160, 1e200])
def test_mira_survives_any_scale(size):
    model = MIRAClassifier(learn_intercept=False, C=1.0)
    fed(model, ({"x": size}, "a"), ({"x": size}, "b"), ({"x": size}, "c"))
    weights = [model.weights[y].get("x", 0.0) for y in "abc"]
    assert all(map(math.isfinite, weights)) and sum(w / max(map(abs, weights)) for w in weights) == pytest.approx(0.0)
    if size < 1e-150:  # C caps: each step moves by C x; a was first among equal rivals, then both
        assert weights == pytest.approx([-0.5 * size, -0.5 * size, size])
    if size >= 1.0:
        assert model.decision_one({"x": size})["c"] == pytest.approx(0.75)


def test_losses_closer_than_rounding_share_what_an_underflowing_cap_allows():
    assert solve([1.0, 1.0, 0.5], 1e-200, 1.0).shares == [0.5, 0.5, 0.0]
    assert solve([1.0, 0.5], 1e-200, 1.0).length == 1e-200
    gap = 3.0 - (3.0 - 1e-12)  # as the floats have it: parts (g + gap) / 2 and (g - gap) / 2 of g = 1e-11
    expected = [0.5 + gap / 2e-11, 0.5 - gap / 2e-11]
    assert solve([3.0, 3.0 - 1e-12], 1.0, 1e-11).shares == pytest.approx(expected, rel=1e-9)


def test_parameters_change_by_mutate_and_are_stored():
    model = MIRAClassifier(C=2.0, margin=0.5)
    model.mutate({"C": 3.0})
    twin = pa_river.loads(pa_river.dumps(model))
    assert (twin.C, twin.margin) == (3.0, 0.5)
    assert pa_river.loads(pa_river.dumps(MulticlassPerceptron(update="max"))).update == "max"
