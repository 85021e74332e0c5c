"""Kernel models: the expansion against explicit features, the block against the plain loop, refusals and state."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import pa_river
from pa_river import PA, PA1, RBF, Budget, Linear, PAClassifier, PAMulticlass, PARegressor, Polynomial
from pa_river._block import Block
from pa_river.support import SupportStore
from tests import strategies

FREE = Budget(math.inf)
KERNELS = [Linear(), Polynomial(3, coef0=0.5, gamma=0.3), RBF(0.2)]
tame = strategies.records(st.floats(-10.0, 10.0))


def random_records(count, names=5, share=0.7, seed=0):
    rng = np.random.default_rng(seed)
    return [{f"f{j}": float(v) for j, v in enumerate(rng.normal(size=names)) if rng.random() < share}
            for _ in range(count)]


@pytest.mark.parametrize("learn_intercept", [True, False])
@pytest.mark.parametrize("pair", [(PAClassifier, strategies.binary_labels), (PARegressor, st.floats(-10, 10))])
@given(data=st.data())
def test_a_linear_kernel_is_the_linear_learner(learn_intercept, pair, data):
    cls, y = pair
    stream = data.draw(st.lists(st.tuples(tame, y), max_size=10))
    plain = cls(PA1(0.3), learn_intercept=learn_intercept)
    kernel = cls(PA1(0.3), learn_intercept=learn_intercept, kernel=Linear(), budget=FREE)
    for x, label in stream:
        assert kernel.decision_one(x) == pytest.approx(plain.decision_one(x), rel=1e-9, abs=1e-9)
        plain.learn_one(x, label)
        kernel.learn_one(x, label)
    assert kernel.intercept == pytest.approx(plain.intercept, abs=1e-9)
    weights = {}
    for x, coefficient in kernel.support:
        for name, value in x.items():
            weights[name] = weights.get(name, 0.0) + coefficient * value
    assert weights == pytest.approx({name: plain.weights.get(name, 0.0) for name in weights}, abs=1e-9)


@given(stream=st.lists(st.tuples(tame, st.sampled_from(["u", "v", "w"])), max_size=10))
def test_a_linear_kernel_is_the_linear_multiclass_learner_with_one_entry_an_example(stream):
    plain, kernel = PAMulticlass(PA1(0.3)), PAMulticlass(PA1(0.3), kernel=Polynomial(1), budget=FREE)
    for x, label in stream:
        plain.learn_one(x, label)
        kernel.learn_one(x, label)
    assert len(kernel.support) <= len(stream)
    for x, _ in stream:
        assert kernel.decision_one(x) == pytest.approx(plain.decision_one(x), abs=1e-8)
    for _, coefficients in kernel.support:
        assert math.fsum(coefficients.values()) == pytest.approx(0.0, abs=1e-12) or len(coefficients) == 1
    assert kernel.intercept == pytest.approx(plain.intercept, abs=1e-8)


# values whose fourth powers, the kernel's own norms, stay floats: below 1e-81 the kernel is 0 where products are not
@given(stream=st.lists(st.tuples(strategies.records(), strategies.binary_labels), max_size=10))
def test_a_quadratic_kernel_is_the_linear_learner_on_all_products(stream):
    def products(x):
        return {(a, b): u * v for a, u in x.items() for b, v in x.items()}

    plain = PAClassifier(PA(), learn_intercept=False)
    kernel = PAClassifier(PA(), learn_intercept=False, kernel=Polynomial(2), budget=FREE)
    for x, label in stream:
        assert kernel.decision_one(x) == pytest.approx(plain.decision_one(products(x)), rel=1e-6, abs=1e-6)
        plain.learn_one(products(x), label)
        kernel.learn_one(x, label)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@given(data=st.data())
def test_the_block_equals_the_kernel_pair_by_pair(kernel, data):
    records = data.draw(st.lists(tame.map(lambda x: {k: v for k, v in x.items() if v}), min_size=1, max_size=8))
    x = data.draw(tame)
    block = Block(records)
    for row in data.draw(st.lists(st.integers(0, 7), max_size=3)):
        if row < len(records) - 1:
            block.remove(row)
            records = records[:row] + records[row + 1:]
            block.append(records[0])
            records = [*records, records[0]]
    expected = [kernel(record, x) for record in records]
    assert kernel.of(block.against(x)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert (kernel.of(block.against(x)) == kernel.of(Block(records).against(x))).all(), "its history leaves no trace"


def test_distances_in_a_block_keep_their_digits_far_from_the_origin():
    block = Block([{"a": 1e8, "b": 1.0}, {"a": 1e8}, {"b": 2.0}])
    assert block.against({"a": 1e8 + 1.0, "b": 3.0, "c": 2.0}).squares() == pytest.approx(
        [1.0 + 4.0 + 4.0, 1.0 + 9.0 + 4.0, (1e8 + 1.0) ** 2 + 1.0 + 4.0], rel=1e-12)


def test_a_block_forgets_the_columns_of_records_that_left():
    block = Block([{f"n{row}": 1.0} for row in range(200)])
    for _ in range(190):
        block.remove(0)
    assert len(block._columns) < 100
    assert block.against({"n195": 2.0}).dots().tolist() == [0.0] * 5 + [2.0] + [0.0] * 4


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_many_support_vectors_score_as_the_sum_over_them(kernel):
    model = PAClassifier(PA1(0.2), kernel=kernel, budget=FREE)
    records = random_records(120)
    for number, x in enumerate(records):
        model.learn_one(x, number % 3 == 0)
    assert len(model.support) > 40
    for x in records[:10]:
        terms = [coefficient * (kernel(vector, x) + 1.0) for vector, coefficient in model.support]
        assert model.decision_one(x) == pytest.approx(math.fsum(terms), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["array", "CSR"])
def test_a_large_batch_equals_the_loop(kernel, kind):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(700, 6)) * (rng.random((700, 6)) < 0.6)
    y = [["u", "v", "w"][place] for place in rng.integers(0, 3, 700)]
    many, loop = (PAMulticlass(PA1(0.2), kernel=kernel, budget=FREE) for _ in range(2))
    for begin, end in ((0, 300), (300, 700)):  # the second batch starts from many support vectors
        many.learn_many(kind(X[begin:end]), y[begin:end])
    for row, label in zip(X.tolist(), y):
        loop.learn_one(dict(enumerate(row)), label)
    assert [x for x, _ in many.support] == [x for x, _ in loop.support]
    for (_, mine), (_, theirs) in zip(many.support, loop.support):
        assert mine == pytest.approx(theirs, rel=1e-9, abs=1e-12)
    assert list(many.predict_many(kind(X))) == [loop.predict_one(dict(enumerate(row))) for row in X.tolist()]


def test_a_batch_that_fails_late_leaves_a_large_model_as_it_was():
    model = PAClassifier(PA1(0.2), kernel=Polynomial(3), budget=FREE)
    rng = np.random.default_rng(4)
    model.learn_many(rng.normal(size=(300, 4)), rng.random(300) < 0.5)
    before = pa_river.dumps(model)
    X = rng.normal(size=(300, 4))
    X[280] *= 1e200
    with pytest.raises(ValueError, match="row 280: .*finite"):
        model.learn_many(X, [True] * 300)
    assert pa_river.dumps(model) == before


@pytest.mark.parametrize("policy", ["projection", "nearest", "smallest", "oldest"])
def test_a_large_model_continues_bit_equal_in_another_process(policy, tmp_path):
    code = (
        "import sys, pathlib, pa_river\n"
        "from tests.unit.test_support import random_records\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "model = pa_river.loads(path.read_bytes())\n"
        "for n, x in enumerate(random_records(60, seed=1)):\n"
        "    model.learn_one(x, n % 3 == 0)\n"
        "path.write_bytes(pa_river.dumps(model))\n"
    )
    model = PAClassifier(PA1(0.5), kernel=RBF(0.3), budget=Budget(40, policy))
    for number, x in enumerate(random_records(120)):
        model.learn_one(x, number % 2 == 0)
    assert len(model.support) == 40
    path = tmp_path / "model"
    path.write_bytes(pa_river.dumps(model))
    done = subprocess.run([sys.executable, "-c", code, str(path)], env={"PYTHONHASHSEED": "77", "PYTHONPATH": "."},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for number, x in enumerate(random_records(60, seed=1)):
        model.learn_one(x, number % 3 == 0)
    assert path.read_bytes() == pa_river.dumps(model)


def test_a_kernel_model_has_support_and_no_weights_and_the_other_way_round():
    kernel = PAClassifier(PA1(0.5), kernel=RBF(), budget=FREE)
    with pytest.raises(AttributeError, match="support"):
        kernel.weights
    with pytest.raises(AttributeError, match="weights"):
        PAClassifier().support
    x = {"a": 1.0, "zero": 0.0}
    kernel.learn_one(x, True)
    x["a"] = 7.0  # the model keeps its own copy
    assert [vector for vector, _ in kernel.support] == [{"a": 1.0}]
    assert kernel.support[0][1] == kernel.intercept == pytest.approx(0.5)


def test_a_kernel_without_a_budget_warns_once_a_process():
    code = (
        "import warnings, math\n"
        "import pa_river as p\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    p.PAClassifier(kernel=p.RBF(), budget=p.Budget(math.inf)); p.PAClassifier()\n"
        "    assert not seen\n"
        "    p.PAClassifier(kernel=p.RBF()); p.PAMulticlass(kernel=p.RBF()); p.PAUniclass(kernel=p.RBF())\n"
        "assert [w.category for w in seen] == [UserWarning] and 'budget' in str(seen[0].message)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("build, words", [
    (lambda: PAClassifier(kernel="rbf", budget=FREE), r"PAClassifier\(kernel="),
    (lambda: PAClassifier(kernel=RBF(), budget=10), r"PAClassifier\(budget="),
    (lambda: PAMulticlass(budget=Budget(10)), r"PAMulticlass\(budget="),
    (lambda: Budget(0), r"Budget\(size="), (lambda: Budget(2.5), r"Budget\(size="),
    (lambda: Budget(True), r"Budget\(size="),
    (lambda: Budget(-math.inf), r"Budget\(size="), (lambda: Budget(3, "random"), r"Budget\(policy="),
])
def test_a_wrong_kernel_or_budget_is_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_an_example_beyond_float_range_is_refused_whole():
    model = PAClassifier(kernel=Polynomial(3), budget=FREE)
    model.learn_one({"a": 2.0}, True)
    before = pa_river.dumps(model)
    for call in (model.learn_one, model.step):
        with pytest.raises(ValueError, match="finite"):
            call({"a": 1e200}, False)
    assert pa_river.dumps(model) == before


@pytest.mark.parametrize("change", [
    lambda state: state.update(lost=-1.0), lambda state: state.update(lost=math.nan),
    lambda state: state.update(coefficients=np.zeros((3, 1))),
    lambda state: state.update(coefficients=np.zeros((2, 0))),
    lambda state: state.update(places=np.array([0, 9], np.int64)), lambda state: state.update(places=np.zeros(2)),
    lambda state: state.update(lengths=np.array([2, 2], np.int64)), lambda state: state.update(policy=(np.zeros(9), 0)),
    lambda state: state.update(lengths=np.array([2, 0], np.int64), places=np.array([0, 0], np.int64)),
])
def test_a_state_that_does_not_add_up_is_refused(change):
    store = SupportStore(RBF(), True, Budget(2))
    model = PAClassifier(kernel=RBF(), budget=Budget(2))
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"b": 1.0}, False)
    values = model._store.get_state()
    change(values)
    with pytest.raises(pa_river.StateError):
        store.set_state(values)
