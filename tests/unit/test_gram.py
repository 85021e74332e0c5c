"""Gram blocks of dense batches: equal to the loop to rounding, whatever came before, and float32 by choice."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import pa_river
from pa_river import (
    PA, PA1, PA2, RBF, Budget, Linear, MIRAClassifier, MulticlassPerceptron, PAClassifier, PAMulticlass, PARegressor,
    Polynomial,
)

FREE = Budget(math.inf)
KERNELS = [Linear(), Polynomial(3), Polynomial(4, coef0=0.5, gamma=0.5), RBF(0.3)]
MODELS = {
    "PA": lambda **more: PAMulticlass(PA(), **more),
    "PA-I": lambda **more: PAMulticlass(PA1(0.2), **more),
    "PA-II, declared": lambda **more: PAMulticlass(PA2(0.2), labels=("v", "w"), **more),
    "MIRA": lambda **more: MIRAClassifier(C=0.2, **more),
    "Perceptron, uniform": lambda **more: MulticlassPerceptron(**more),
    "Perceptron, max": lambda **more: MulticlassPerceptron(update="max", **more),
    "binary": lambda **more: PAClassifier(PA1(0.2), **more),
    "regression": lambda **more: PARegressor(PA1(0.2), **more),
}


def examples(model, count=640, seed=4):
    """Rows with zeros and unit length, labels of which one comes late, weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 12)) * (rng.random((count, 12)) < 0.7)
    X /= 0.1 + np.linalg.norm(X, axis=1, keepdims=True)
    places = np.where(np.arange(count) < count // 2, rng.integers(0, 3, count), rng.integers(0, 4, count))
    y = {"binary": (places > 1).tolist(), "regression": (3.0 * X[:, 0] + places).tolist()}.get(
        model, [["u", "v", "w", ("late", 1)][place] for place in places])
    return X, y, np.where(rng.random(count) < 0.1, 0.0, rng.uniform(0.5, 2.0, count))


def coefficients(model):
    return [(x, parts if isinstance(parts, dict) else {"": parts}) for x, parts in model.support]


def assert_equal(one, other, rel=1e-9):
    assert one.version == other.version
    mine, theirs = coefficients(one), coefficients(other)
    assert [x for x, _ in mine] == [x for x, _ in theirs]
    largest = max(abs(part) for _, parts in theirs for part in parts.values())
    for (_, a), (_, b) in zip(mine, theirs):
        assert a == pytest.approx(b, rel=rel, abs=rel * largest)


@pytest.mark.parametrize("learn_intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("name", MODELS)
def test_dense_batches_equal_the_loop_and_answer_before_they_learn(name, kernel, learn_intercept):
    many, loop = (MODELS[name](kernel=kernel, learn_intercept=learn_intercept, budget=FREE) for _ in range(2))
    X, y, w = examples(name)
    answers = [one for begin, end in ((0, 100), (100, 640))
               for one in many.step_many(X[begin:end], y[begin:end], w[begin:end])]
    expected = [loop.step(dict(enumerate(row)), label, weight) for row, label, weight in zip(X.tolist(), y, w)]
    assert len(many.support) > 100
    assert_equal(many, loop)
    assert answers == (pytest.approx(expected, rel=1e-9, abs=1e-9) if name == "regression" else expected)


def test_single_examples_between_batches_and_names_that_no_column_has():
    many, loop = (PAMulticlass(PA1(0.2), kernel=Polynomial(3), budget=FREE) for _ in range(2))
    X, y, _ = examples("PA")
    singles = {100: {3: 0.5, 11: 0.2}, 300: {0: 0.5, "a word": 0.5}, 400: {1: 1.0}}
    begin = 0
    for end in (*singles, len(y)):
        width = 12 if end != 400 else 7  # a narrower table, too
        many.learn_many(X[begin:end, :width], y[begin:end])
        for row, label in zip(X[begin:end, :width].tolist(), y[begin:end]):
            loop.learn_one(dict(enumerate(row)), label)
        if end in singles:
            many.learn_one(singles[end], "w")
            loop.learn_one(singles[end], "w")
        begin = end
    assert_equal(many, loop)


def test_a_frame_learns_by_the_names_of_its_columns():
    names = [f"pixel {column}" for column in range(11)] + [("last", 1)]
    many, loop = (PAMulticlass(PA1(0.2), kernel=Polynomial(3), budget=FREE) for _ in range(2))
    X, y, _ = examples("PA")
    frame = pd.DataFrame(dict(zip(names, X.T)))
    for begin in range(0, len(y), 160):
        many.learn_many(frame[begin:begin + 160], y[begin:begin + 160])
    for row, label in zip(X.tolist(), y):
        loop.learn_one(dict(zip(names, row)), label)
    assert_equal(many, loop)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_dense_batch_that_fails_late_is_undone_and_the_model_goes_on_as_if_it_never_came(dtype):
    tried, other = (PAMulticlass(PA1(0.2), kernel=Polynomial(3, dtype=dtype), budget=FREE) for _ in range(2))
    X, y, _ = examples("PA")
    for model in (tried, other):
        model.learn_many(X[:200], y[:200])
    before = pa_river.dumps(tried)
    bad = X[200:500].copy()
    bad[290] *= 1e200
    with pytest.raises(ValueError, match="row 290: .*finite"):
        tried.learn_many(bad, [*y[200:499], "a new label"])
    assert pa_river.dumps(tried) == before
    for model in (tried, pa_river.loads(before), other):
        model.learn_many(X[200:], y[200:])
        assert pa_river.dumps(model) == pa_river.dumps(tried)


def test_float32_is_near_float64_and_is_kept_by_the_bytes():
    single, double = (PAMulticlass(PA1(0.2), kernel=Polynomial(3, dtype=dtype), budget=FREE)
                      for dtype in ("float32", "float64"))
    X, y, _ = examples("PA")
    for model in (single, double):
        model.learn_many(X[:300], y[:300])
        model.learn_many(X[300:], y[300:])
    assert_equal(single, double, rel=1e-4)
    assert pa_river.dumps(single) != pa_river.dumps(double)
    assert pa_river.loads(pa_river.dumps(single)).kernel.dtype == "float32"
    assert single._store._dense.matrix.dtype == np.float32  # half the memory
    with pytest.raises(ValueError, match=r"Polynomial\(dtype="):
        Polynomial(3, dtype="float16")
    with pytest.raises(ValueError, match=r"Linear\(dtype="):
        Linear(np.float32)


@pytest.mark.parametrize("degree", range(1, 12))
def test_a_power_by_squaring_is_the_power(degree):
    x, z = np.linspace(-1.5, 1.5, 31)[:, None], np.array([[1.1]])
    assert Polynomial(degree, coef0=0.3).matrix(x, z)[:, 0] == pytest.approx(
        [(1.1 * value + 0.3) ** degree for value in x[:, 0].tolist()], rel=1e-13, abs=1e-14)
