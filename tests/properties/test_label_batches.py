"""Batches of PAMulticlass on the compiled core: the loop of `learn_one`, row by row or by blocks, all or nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pa_river
from pa_river import _compiled
from tests import strategies
from tests.properties.test_compiled_batches import TABLES, as_records, batches
from tests.properties.test_parity import outcome

pytestmark = pytest.mark.skipif(not pa_river.NATIVE, reason="the compiled core is not built: there is one core only")

RULES = pytest.mark.parametrize("rule", [pa_river.PA, lambda: pa_river.PA1(0.1), lambda: pa_river.PA2(0.5)],
                                ids=["PA", "PA-I", "PA-II"])


@pytest.fixture(params=["row by row", "blocks"], scope="module")
def way(request):
    """Both ways through a batch: tables of any size may go by blocks, here of a few rows."""
    from pa_river import _pairs

    with pytest.MonkeyPatch.context() as patch:
        if request.param == "blocks":
            patch.setattr(_pairs, "BLOCKS_FROM", 0)
            patch.setattr(_pairs, "BLOCK", 5)
        yield request.param


def agree(batch, loop, scale=1.0):
    assert batch.version == loop.version
    assert list(batch.weights) == list(loop.weights)
    near = {"rel": 1e-9, "abs": 1e-9 * scale}
    for label, theirs in loop.weights.items():
        ours = batch.weights[label]
        for name in {**ours, **theirs}:  # one that is 0 in one order of sums is not stored
            assert ours.get(name, 0.0) == pytest.approx(theirs.get(name, 0.0), **near)
        assert batch.intercept[label] == pytest.approx(loop.intercept[label], **near)


@RULES
@pytest.mark.parametrize("kind", ["array", "frame", "csr", "float32", "object"])
@settings(max_examples=15)
@given(data=st.data())
def test_a_batch_equals_the_loop(way, rule, kind, data):
    many = pa_river.PAMulticlass(rule(), learn_intercept=data.draw(st.booleans()),
                                 labels=data.draw(st.sampled_from([(), ("c", 3)])))
    loop = _compiled.on_reference(many.clone())
    for _ in range(2):
        X = TABLES[kind](data.draw(batches()))
        n = X.shape[0]
        y = data.draw(st.lists(strategies.labels, min_size=n, max_size=n))
        w = data.draw(st.none() | st.lists(strategies.weights | st.just(0.0), min_size=n, max_size=n))
        many.learn_many(X, y, w)
        for x, label, weight in zip(as_records(X), y, w or [1.0] * n):
            loop.learn_one(x, label, weight)
        agree(many, loop)
        for x, answer in zip(as_records(X), many.predict_many(X)):
            scores = loop.decision_one(x)
            assert answer == loop.predict_one(x) or scores[answer] == pytest.approx(max(scores.values()), abs=1e-9)


def test_wide_tables_of_many_labels_equal_the_loop(way):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 30, 300)
    X = rng.normal(size=(300, 70)) + rng.normal(size=(30, 70))[y] * 0.4
    many, loop = pa_river.PAMulticlass(), _compiled.on_reference(pa_river.PAMulticlass())
    for begin in range(0, 300, 100):
        many.learn_many(X[begin:begin + 100], y[begin:begin + 100])
    for row, label in zip(X.tolist(), y.tolist()):
        loop.learn_one(dict(enumerate(row)), label)
    agree(many, loop)
    assert many.predict_many(X).tolist() == [loop.predict_one(dict(enumerate(row))) for row in X.tolist()]


@settings(max_examples=25)
@given(data=st.data())
def test_a_batch_with_a_bad_row_is_refused_whole_and_the_row_is_named(way, data):
    model = pa_river.PAMulticlass()
    model.learn_many(np.eye(4), ["a", "b", "c", "a"])
    X = data.draw(batches().filter(len))
    row, column = data.draw(st.integers(0, X.shape[0] - 1)), data.draw(st.integers(0, X.shape[1] - 1))
    X[row, column] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    before = pa_river.dumps(model)
    with pytest.raises(ValueError, match=f"row {row}: feature {column} must be a finite number"):
        model.learn_many(X, data.draw(st.lists(strategies.labels, min_size=len(X), max_size=len(X))))
    with pytest.raises(ValueError, match=f"row {row}: "):
        model.predict_many(X)
    assert pa_river.dumps(model) == before


def test_a_bad_label_or_weight_is_refused_by_its_row(way):
    model = pa_river.PAMulticlass()
    for y, w in ((["a", None, "b"], None), (["a", float("nan"), "b"], None), (["a", "b", "c"], [1.0, -1.0, 1.0])):
        with pytest.raises(ValueError, match="row 1"):
            model.learn_many(np.eye(3), y, w)
    assert model.version == 0 and not model.weights


@settings(max_examples=40)
@given(data=st.data())
def test_a_row_at_any_scale_equals_the_loop_or_is_refused(way, data):
    X = data.draw(batches(strategies.wild))
    model = pa_river.PAMulticlass(pa_river.PA())
    for row in X:  # row by row from the same state: rounding at the edge of the floats must not pile up
        label = data.draw(st.sampled_from("abc"))
        loop, before = _compiled.on_reference(pa_river.loads(pa_river.dumps(model))), pa_river.dumps(model)
        weights = [weight for column in model.weights.values() for weight in column.values()]
        scale = max([1.0, *map(abs, weights), *map(abs, model.intercept.values())])
        ours = outcome(model.learn_many, row[None], [label])
        theirs = outcome(loop.learn_one, dict(enumerate(row.tolist())), label)
        assert (ours is None) == (theirs is None), (ours, theirs)
        if ours is not None:
            assert pa_river.dumps(model) == before
        agree(model, loop, scale)
