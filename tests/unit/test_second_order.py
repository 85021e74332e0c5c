"""AROW and SCW against a numeric minimisation of their objectives and the formulas as the papers print them."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from pa_river import AROWClassifier, AROWMulticlass, SCWClassifier, SCWMulticlass

NAMES = "abc"
numbers = st.floats(-3.0, 3.0).filter(lambda value: abs(value) > 0.05)
streams = st.lists(st.tuples(st.lists(numbers, min_size=3, max_size=3), st.booleans()), min_size=1, max_size=8)


def record(x):
    return dict(zip(NAMES, map(float, x)))


def diagonal(model):
    """(w, diagonal of S) of a binary model without intercept."""
    return (np.array([model.weights.get(name, 0.0) for name in NAMES]),
            np.array([model.variances.get(name, 1.0) for name in NAMES]))


def minimiser(w, variances, price):
    """argmin of KL(N(v, T) | N(w, S)) + price(v, T) over all v and all covariances T = L L', by a general solver."""
    d = len(w)
    lower = np.tril_indices(d)

    def split(z):
        factor = np.zeros((d, d))
        factor[lower] = z[d:]
        factor[np.diag_indices(d)] = np.exp(factor.diagonal())
        return z[:d], factor @ factor.T

    def value(v, T):
        gap = v - w
        kl = -np.linalg.slogdet(T)[1] + np.sum(T.diagonal() / variances) + np.sum(gap * gap / variances)
        return 0.5 * kl + price(v, T)

    start = np.zeros((d, d))
    start[np.diag_indices(d)] = 0.5 * np.log(variances)
    best = minimize(lambda z: value(*split(z)), [*w, *start[lower]], options={"gtol": 1e-9})
    return *split(best.x), value


def trained(model, stream):
    for x, y in stream:
        model.learn_one(record(x), y)
    return model


STREAM = [([1.0, 2.0, -0.5], True), ([0.3, -1.0, 1.0], False), ([-0.7, 0.4, 2.0], True)]
X, Y = np.array([1.5, -0.6, 0.8]), 1.0


@pytest.mark.parametrize("r", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("weight", [1.0, 2.5])
def test_arow_lands_where_a_general_solver_lands(r, weight):
    model = trained(AROWClassifier(r, learn_intercept=False), STREAM)
    w, variances = diagonal(model)

    def price(v, T):
        return 0.5 * weight / r * (max(0.0, 1.0 - Y * (v @ X)) ** 2 + X @ T @ X)

    assert 1.0 - Y * (w @ X) > 0.1, "an example that moves"
    expected, covariance, _ = minimiser(w, variances, price)
    model.learn_one(record(X), Y > 0.0, weight)
    found, shrunk = diagonal(model)
    assert found == pytest.approx(expected, abs=1e-5)
    assert shrunk == pytest.approx(covariance.diagonal(), abs=1e-5)


@pytest.mark.parametrize("variant", ["I", "II"])
@pytest.mark.parametrize("C", [0.05, 0.5, 3.0])
def test_scw_lands_where_a_general_solver_lands(variant, C):
    model = trained(SCWClassifier(C, 0.85, variant, learn_intercept=False), STREAM)
    w, variances = diagonal(model)
    phi = NormalDist().inv_cdf(0.85)

    def loss(v, T):
        return max(0.0, phi * math.sqrt(X @ T @ X) - Y * (v @ X))

    def price(v, T):
        return C * (loss(v, T) if variant == "I" else loss(v, T) ** 2)

    before = price(w, np.diag(variances))
    assert before > 0.0, "an example that moves"
    model.learn_one(record(X), Y > 0.0)
    found, shrunk = diagonal(model)
    expected, covariance, value = minimiser(w, variances, price)
    full = np.diag(variances) - _beta(model, w, variances, found) * np.outer(variances * X, variances * X)
    assert shrunk == pytest.approx(full.diagonal(), abs=1e-12)
    if variant == "II" or loss(expected, covariance) > 1e-3:  # smooth there, so the solver is exact
        assert found == pytest.approx(expected, abs=2e-4)
        assert shrunk == pytest.approx(covariance.diagonal(), abs=2e-4)
    else:  # on the kink the solver only comes near: the closed form is no worse, and has no loss left
        assert value(found, full) <= value(expected, covariance) + 1e-9
        assert Y * (found @ X) == pytest.approx(phi * math.sqrt(X @ full @ X), rel=1e-9)


def _beta(model, w, variances, found):
    """beta from the paper's formula, with alpha read off the step."""
    alpha = np.linalg.norm(found - w) / np.linalg.norm(variances * X)
    phi, v = NormalDist().inv_cdf(model.eta), float(X @ (variances * X))
    root = 0.5 * (-alpha * v * phi + math.sqrt(alpha**2 * v**2 * phi**2 + 4.0 * v))
    return alpha * phi / (root + v * alpha * phi)


def printed(variant, m, v, C, phi):
    """alpha of propositions 1 and 2 of Wang, Zhao and Hoi, as printed."""
    psi, zeta = 1.0 + phi**2 / 2.0, 1.0 + phi**2
    if variant == "I":
        return min(C, max(0.0, (-m * psi + math.sqrt(m**2 * phi**4 / 4.0 + v * phi**2 * zeta)) / (v * zeta)))
    n = v + 1.0 / (2.0 * C)
    gamma = phi * math.sqrt(phi**2 * m**2 * v**2 + 4.0 * n * v * (n + v * phi**2))
    return max(0.0, (-(2.0 * m * n + phi**2 * m * v) + gamma) / (2.0 * (n**2 + n * v * phi**2)))


@pytest.mark.parametrize("variant", ["I", "II"])
@given(stream=streams, C=st.floats(0.01, 20.0), eta=st.floats(0.55, 0.99))
def test_scw_follows_the_printed_formulas(variant, stream, C, eta):
    model = SCWClassifier(C, eta, variant, learn_intercept=False)
    phi, w, S = NormalDist().inv_cdf(eta), np.zeros(3), np.ones(3)
    for x, label in stream:
        x, y = np.array(x), 1.0 if label else -1.0
        m, v = y * float(w @ x), float(x @ (S * x))
        if phi * math.sqrt(v) - m > 0.0:
            alpha = printed(variant, m, v, C, phi)
            root = 0.5 * (-alpha * v * phi + math.sqrt(alpha**2 * v**2 * phi**2 + 4.0 * v))
            beta = alpha * phi / (root + v * alpha * phi)
            w, S = w + alpha * y * S * x, S - beta * (S * x) ** 2
        model.learn_one(record(x), label)
        found, variances = diagonal(model)
        assert found == pytest.approx(w, rel=1e-6, abs=1e-7)
        assert variances == pytest.approx(S, rel=1e-6, abs=1e-9)


@given(stream=streams, r=st.floats(0.05, 20.0))
def test_arow_follows_the_printed_formulas(stream, r):
    model = AROWClassifier(r, learn_intercept=False)
    w, S = np.zeros(3), np.ones(3)
    for x, label in stream:
        x, y = np.array(x), 1.0 if label else -1.0
        m, beta = y * float(w @ x), 1.0 / (float(x @ (S * x)) + r)
        if m < 1.0:
            w, S = w + (1.0 - m) * beta * y * S * x, S - beta * (S * x) ** 2
        model.learn_one(record(x), label)
        found, variances = diagonal(model)
        assert found == pytest.approx(w, rel=1e-9, abs=1e-11)
        assert variances == pytest.approx(S, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("binary, multi", [
    (lambda: AROWClassifier(0.5, learn_intercept=False), lambda: AROWMulticlass(0.5, learn_intercept=False)),
    (lambda: SCWClassifier(0.5, 0.8, learn_intercept=False), lambda: SCWMulticlass(0.5, 0.8, learn_intercept=False)),
    (lambda: SCWClassifier(0.5, 0.8, "II", learn_intercept=False),
     lambda: SCWMulticlass(0.5, 0.8, "II", learn_intercept=False)),
], ids=["AROW", "SCW-I", "SCW-II"])
@given(stream=st.lists(st.tuples(st.lists(numbers, min_size=3, max_size=3), st.sampled_from("uvw")), max_size=10))
def test_a_multiclass_step_is_the_binary_one_on_the_joint_features_of_the_pair(binary, multi, stream):
    one, many = binary(), multi()
    many.learn_one({}, "u")  # the labels' order; nothing moves
    many.learn_one({}, "v")
    many.learn_one({}, "w")
    for x, label in stream:
        scores = many.decision_one(record(x))
        rival = max((other for other in scores if other != label), key=scores.__getitem__)
        pair = {(label, name): value for name, value in record(x).items()}
        one.learn_one({**pair, **{(rival, name): -value for name, value in record(x).items()}}, True)
        many.learn_one(record(x), label)
        for name in NAMES:
            for known in "uvw":
                weight = one.weights.get((known, name), 0.0)
                assert many.weights[known].get(name, 0.0) == pytest.approx(weight, abs=1e-9)
                left = one.variances.get((known, name), 1.0)
                assert many.variances[known].get(name, 1.0) == pytest.approx(left)


def test_a_multiclass_step_moves_each_of_the_pair_by_its_own_variances():
    model = AROWMulticlass(1.0, learn_intercept=False)
    for x, y in [({"a": 1.0}, "u"), ({"b": 1.0}, "v"), ({"a": 1.0, "b": 1.0}, "w")]:
        model.learn_one(x, y)
    # u: v = 2, w_u.a = 1/3 = -w_v.a, S = 1 - 1/3. v: the margin of v over u on b is 0, w_v.b = 1/3 = -w_u.b, S = 2/3.
    # w on (1, 1): u scores 0, v scores 0, w scores 0; rival u; v = 2 + 2/3 + 2/3, r = 1: 1 / (13/3) = 3/13
    assert model.weights["w"] == pytest.approx({"a": 3 / 13, "b": 3 / 13})
    assert model.weights["u"] == pytest.approx({"a": 1 / 3 - 2 / 13, "b": -1 / 3 - 2 / 13})
    assert model.variances["w"] == pytest.approx({"a": 10 / 13, "b": 10 / 13})
    assert model.variances["u"] == pytest.approx({"a": 2 / 3 - 4 / 39, "b": 2 / 3 - 4 / 39})
    assert model.weights["v"] == pytest.approx({"a": -1 / 3, "b": 1 / 3})


@pytest.mark.parametrize("build", [AROWClassifier, SCWClassifier, lambda **m: SCWClassifier(1.0, 0.9, "II", **m)])
@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e150, 1e-150, 1.7e308, 5e-324])
def test_features_of_any_scale_move_finite_weights_and_leave_variances_above_zero(build, scale):
    model = build(learn_intercept=False)
    for sign in (1.0, -1.0, 1.0):
        model.learn_one({"a": scale, "b": sign * scale / 3.0}, sign > 0.0)
    assert all(map(math.isfinite, model.weights.values()))
    assert all(0.0 < variance <= 1.0 for variance in model.variances.values())


@pytest.mark.parametrize("build, words", [
    (lambda: AROWClassifier(0.0), r"AROWClassifier\(r="), (lambda: AROWMulticlass(math.inf), r"AROWMulticlass\(r="),
    (lambda: SCWClassifier(C=-1.0), r"SCWClassifier\(C="), (lambda: SCWClassifier(eta=0.5), r"SCWClassifier\(eta="),
    (lambda: SCWMulticlass(eta=1.0), r"SCWMulticlass\(eta="), (lambda: SCWMulticlass(variant="III"), "'I', 'II'"),
    (lambda: AROWClassifier(learn_intercept=1), "learn_intercept"),
])
def test_a_wrong_parameter_is_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()
