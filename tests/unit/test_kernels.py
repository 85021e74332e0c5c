"""Kernels against exact fractions, scipy and the definition of a Mercer kernel."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pa_river import dumps, loads
from pa_river.kernels import RBF, Linear, Polynomial

KERNELS = [Linear(), Polynomial(3), Polynomial(2, coef0=0.5, gamma=0.1), RBF(), RBF(0.01)]
records = st.dictionaries(st.sampled_from("abcde"), st.floats(-100, 100), max_size=5)


def exact(kernel, x, z):
    """The kernel by fractions; only the last step is rounded."""
    names = sorted({*x, *z})
    pairs = [(Fraction(x.get(name, 0.0)), Fraction(z.get(name, 0.0))) for name in names]
    if isinstance(kernel, RBF):
        return math.exp(-Fraction(kernel.gamma) * sum((a - b) ** 2 for a, b in pairs))
    dot = sum((a * b for a, b in pairs), Fraction(0))
    if isinstance(kernel, Linear):
        return float(dot)
    return float((Fraction(kernel.gamma) * dot + Fraction(kernel.coef0)) ** kernel.degree)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(x=records, z=records)
def test_a_kernel_equals_its_definition_in_fractions(kernel, x, z):
    largest = exact(kernel, {k: abs(v) for k, v in x.items()}, {k: abs(v) for k, v in z.items()})
    slack = 1e-14 * largest if not isinstance(kernel, RBF) else 1e-300
    assert kernel(x, z) == pytest.approx(exact(kernel, x, z), rel=1e-10, abs=slack)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(x=records, z=records)
def test_neither_the_order_of_the_names_nor_of_the_arguments_changes_a_bit(kernel, x, z):
    turned = dict(reversed(x.items()))
    assert kernel(x, z) == kernel(turned, z) == kernel(z, x) == kernel(z, turned)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(x=records, z=records)
def test_a_feature_of_value_zero_and_an_absent_one_are_the_same(kernel, x, z):
    assert kernel({**x, "zero": 0.0}, z) == kernel(x, {**z, "zero": 0}) == kernel(x, z)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_gram_matrix_has_no_negative_eigenvalue_and_equals_the_calls(kernel):
    X = np.random.default_rng(0).normal(size=(20, 4))
    gram = kernel.matrix(X, X)
    calls = [[kernel(dict(enumerate(x)), dict(enumerate(z))) for z in X] for x in X]
    np.testing.assert_allclose(gram, calls, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(gram).min() >= -1e-12 * np.abs(gram).max()


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(3), Polynomial(2, coef0=1.0)], ids=repr)
@pytest.mark.parametrize("value", [1e200, -1e308, 10 ** 300])
def test_a_kernel_beyond_float_range_is_refused_without_a_warning(kernel, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="finite"):
            kernel({"a": value, "b": 1.0}, {"a": value, "b": -value})
        assert not np.isfinite(kernel.matrix(np.array([[float(value)]]), np.array([[float(value)]]))).any()


@pytest.mark.parametrize("x, z, gamma, expected", [
    ({"a": 1e308}, {"a": -1.7e308}, 1.0, 0.0),
    ({"a": 1e200}, {"a": 1e200}, 1.0, 1.0),
    ({"a": 1e-200}, {"a": -1e-200}, 1.0, 1.0),
    ({"a": 10 ** 300}, {"b": 10 ** 300}, 1.0, 0.0),
    ({"a": 1e155}, {}, 1e-310, math.exp(-1.0)),  # 1e310 is no float, gamma times it is
    ({"a": 1e8 + 1.0}, {"a": 1e8}, 1.0, math.exp(-1.0)),  # the expanded square has no digit left here
])
def test_rbf_is_right_at_extreme_scales(x, z, gamma, expected):
    assert RBF(gamma)(x, z) == pytest.approx(expected, rel=1e-9)


def test_rbf_of_arrays_keeps_its_digits_far_from_the_origin():
    assert RBF().matrix(np.array([[1e8 + 1.0]]), np.array([[1e8]])) == pytest.approx(math.exp(-1.0), rel=1e-12)


@pytest.mark.parametrize("build, words", [
    (lambda: Polynomial(0), r"Polynomial\(degree="), (lambda: Polynomial(2.5), r"Polynomial\(degree="),
    (lambda: Polynomial(2, coef0=-1.0), r"Polynomial\(coef0="),
    (lambda: Polynomial(2, gamma=0.0), r"Polynomial\(gamma="),
    (lambda: RBF(0.0), r"RBF\(gamma="), (lambda: RBF(math.inf), r"RBF\(gamma="),
])
def test_a_wrong_parameter_is_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_kernel_is_stored_cloned_and_shown_with_its_parameters(kernel):
    assert repr(loads(dumps(kernel))) == repr(kernel.clone()) == repr(kernel)
    assert type(kernel).__name__ in repr(kernel)
