"""Batches on the compiled core: the loop of `learn_one`, all or nothing, whatever the table is made of."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pa_river
from pa_river import _compiled
from tests import cases, strategies
from tests.properties.test_parity import outcome

EVERY = pytest.mark.parametrize("case", cases.LINEAR_STORE, ids=str)
ONE_OF_EACH = pytest.mark.parametrize("case", [cases.BINARY[1], cases.REGRESSION[1]], ids=str)

#: What a table may be: array -> X, and the names its columns get.
TABLES = {
    "array": lambda a: a,
    "array of other order": np.asfortranarray,
    "read-only slice": lambda a: _frozen(np.hstack([a, a]))[:, :a.shape[1]],
    "float32": lambda a: a.astype(np.float32),
    "int": lambda a: np.clip(a, -9, 9).astype(np.int64),
    "bool": lambda a: a > 0.0,
    "object": lambda a: a.astype(object),
    "csr": sp.csr_matrix,
    "csr array with explicit zeros and doubles": lambda a: _doubled(a),
    "csc": sp.csc_matrix,
    "frame": lambda a: pd.DataFrame(a, columns=[f"c{j}" for j in range(a.shape[1])], index=range(7, 7 + len(a))),
    "frame of mixed types": lambda a: pd.DataFrame({"a": a[:, 0], "b": a[:, 0] > 0.0, ("c", 1): a[:, 0].astype(int)}),
}


def _frozen(a):
    a.flags.writeable = False
    return a


def _doubled(a):
    rows, cols = np.indices(a.shape)
    twice = sp.coo_array((np.tile(a.ravel() / 2.0, 2), (np.tile(rows.ravel(), 2), np.tile(cols.ravel(), 2))), a.shape)
    matrix = twice.tocsr(copy=True)
    return matrix


def as_records(X):
    if isinstance(X, pd.DataFrame):
        return [dict(zip(X.columns, row)) for row in X.itertuples(index=False, name=None)]
    dense = X.toarray() if sp.issparse(X) else X
    return [dict(enumerate(row)) for row in dense.tolist()]


@st.composite
def batches(draw, values=strategies.tame):
    n, d = draw(st.integers(0, 12)), draw(st.integers(1, 6))
    rows = [[draw(values) if draw(st.integers(0, 3)) else 0.0 for _ in range(d)] for _ in range(n)]
    return np.array(rows, float).reshape(n, d)


def agree(batch, loop, scale=1.0):
    """Equal within 1e-9 of `scale`; a step of 1e-17 that only one order of sums takes may bring a name, too."""
    ours, theirs = batch.weights, loop.weights
    assert batch.version == loop.version
    for name in {**ours, **theirs}:
        assert ours.get(name, 0.0) == pytest.approx(theirs.get(name, 0.0), rel=1e-9, abs=1e-9 * scale)
    assert batch.intercept == pytest.approx(loop.intercept, rel=1e-9, abs=1e-9 * scale)


@EVERY
@settings(max_examples=25)
@given(data=st.data())
def test_a_batch_equals_the_loop(case, data):
    equals_the_loop(case, data.draw(st.sampled_from(["array", "csr"])), data)


@pytest.mark.parametrize("kind", TABLES)
@ONE_OF_EACH
@settings(max_examples=15)
@given(data=st.data())
def test_a_table_of_any_kind_is_a_batch(case, kind, data):
    equals_the_loop(case, kind, data)


def equals_the_loop(case, kind, data):
    many = case.trained(data.draw(case.stream))
    loop = pa_river.loads(pa_river.dumps(many))
    for _ in range(2):
        X = TABLES[kind](data.draw(batches()))
        n = X.shape[0]
        y = data.draw(st.lists(case.y, min_size=n, max_size=n))
        w = data.draw(st.none() | st.lists(strategies.weights | st.just(0.0), min_size=n, max_size=n))
        y_given = data.draw(st.sampled_from([list, tuple, np.array, pd.Series]))(y)
        many.learn_many(X, y_given, w if w is None else data.draw(st.sampled_from([list, np.array]))(w))
        for x, label, weight in zip(as_records(X), y, w or [1.0] * n):
            loop.learn_one(x, label, weight)
        agree(many, loop)
        answers = many.predict_many(X)
        assert isinstance(answers, pd.Series if isinstance(X, pd.DataFrame) else np.ndarray)
        if isinstance(X, pd.DataFrame):
            assert list(answers.index) == list(X.index)
        scores = [many.decision_one(x) for x in as_records(X)]
        if isinstance(many, pa_river.PARegressor):
            assert list(answers) == pytest.approx(scores, rel=1e-9, abs=1e-9)
        else:
            assert all(answer == (score > 0.0) or abs(score) < 1e-9 for answer, score in zip(answers, scores))


@pytest.mark.parametrize("form", ["array", "csr", "frame"])
@ONE_OF_EACH
@settings(max_examples=25)
@given(data=st.data())
def test_a_batch_with_a_bad_row_is_refused_whole_and_the_row_is_named(case, form, data):
    model = case.trained([(dict(enumerate(x.values())), y) for x, y in data.draw(case.stream)])
    X = data.draw(batches().filter(len))
    row, column = data.draw(st.integers(0, X.shape[0] - 1)), data.draw(st.integers(0, X.shape[1] - 1))
    X[row, column] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    y = data.draw(st.lists(case.y, min_size=len(X), max_size=len(X)))
    X, before = TABLES[form](X), pa_river.dumps(model)
    with pytest.raises(ValueError, match=f"row {row}: feature '?c?{column}'? must be a finite number"):
        model.learn_many(X, y)
    with pytest.raises(ValueError, match=f"row {row}: "):
        model.predict_many(X)
    assert pa_river.dumps(model) == before
    assert model.step({0: 1.0, 1: 2.0}, y[0]) == pa_river.loads(before).predict_one({0: 1.0, 1: 2.0})


@pytest.mark.parametrize("form", ["array", "csr"])
@EVERY
@settings(max_examples=25)
@given(data=st.data())
def test_a_batch_at_any_scale_equals_the_loop_or_is_refused_whole(case, form, data):
    X = data.draw(batches(strategies.wild))
    y = data.draw(st.lists(case.y if isinstance(case.build(), pa_river.PAClassifier) else strategies.wild,
                           min_size=len(X), max_size=len(X)))
    model = case.build()
    for row in range(len(X)):  # row by row from the same state: rounding at the edge of the floats must not pile up
        loop = _compiled.on_reference(pa_river.loads(pa_river.dumps(model)))
        before = pa_river.dumps(model)
        scale = max([1.0, abs(model.intercept), *map(abs, model.weights.values())])  # what cancels is as large as that
        ours = outcome(model.learn_many, TABLES[form](X[row:row + 1]), y[row:row + 1])
        theirs = outcome(loop.learn_one, dict(enumerate(X[row].tolist())), y[row])
        assert (ours is None) == (theirs is None), (ours, theirs)
        if ours is not None:
            assert pa_river.dumps(model) == before
        agree(model, loop, scale)


@pytest.mark.parametrize("form", ["array", "csr"])
@EVERY
@settings(max_examples=25)
@given(data=st.data())
def test_a_row_that_would_overflow_takes_back_the_rows_before_it(case, form, data):
    model = case.trained([({0: v, 5: 1.0}, y) for v, y in data.draw(st.lists(st.tuples(strategies.tame, case.y)))])
    X = np.vstack([data.draw(batches().filter(len))[:, :1] + np.ones((1, 3)), [[1e308, -1e308, 1e308]] * 3])
    y = [data.draw(case.y) for _ in X]
    before, loop = pa_river.dumps(model), _compiled.on_reference(pa_river.loads(pa_river.dumps(model)))
    ours, theirs = outcome(model.learn_many, TABLES[form](X), y), outcome(loop.learn_many, X, y)
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert pa_river.dumps(model) == before


@EVERY
@pytest.mark.parametrize("bad", ["y", "w", "few y", "few w", "three dimensions"])
def test_a_batch_with_bad_labels_or_weights_is_refused(case, bad):
    model, X = case.build(), np.ones((3, 2))
    if bad == "y":
        for wrong in case.bad_y:
            with pytest.raises(ValueError, match="row 1"):
                model.learn_many(X, [1.0, wrong, 1.0])
    elif bad == "w":
        for wrong in (-1.0, np.nan, np.inf, None, True):
            with pytest.raises(ValueError, match="row 2.*weight"):
                model.learn_many(X, [1.0, 1.0, 1.0], [1.0, 1.0, wrong])
    else:
        few = {"few y": (X, [1.0], None), "few w": (X, [1.0] * 3, [1.0]), "three dimensions": (X[None], [1.0], None)}
        with pytest.raises(ValueError, match="has|dimensions"):
            model.learn_many(*few[bad])
    assert model.version == 0 and not model.weights


@pytest.mark.parametrize("form", ["array", "csr"])
@EVERY
@settings(max_examples=25)
@given(data=st.data())
def test_a_batch_stores_the_names_that_the_loop_stores_in_its_order(case, form, data):
    X = data.draw(batches(st.sampled_from([0.0, -0.0, 1.0, -2.0, 5e-324, 1e-200, -1e-300])))
    y = data.draw(st.lists(case.y, min_size=len(X), max_size=len(X)))
    w = data.draw(st.lists(st.sampled_from([1.0, 5e-324, 0.0]), min_size=len(X), max_size=len(X)))
    batch, loop = case.build(), _compiled.on_reference(case.build())
    batch.learn_many(TABLES[form](X), y, w)
    for row, label, weight in zip(X, y, w):
        loop.learn_one({j: value for j, value in enumerate(row.tolist()) if value or form == "array"}, label, weight)
    assert list(batch.weights) == list(loop.weights)
    agree(batch, loop)


@ONE_OF_EACH
def test_a_table_far_wider_than_what_stands_in_it_is_no_burden(case):
    wide, plain = case.build(), case.build()
    columns = np.sort(np.random.default_rng(1).choice(2**30, size=(50, 9)) + np.arange(9) * 2**27, axis=1)
    X = sp.csr_matrix((np.linspace(-1.0, 1.0, 450), columns.ravel(), np.arange(0, 451, 9)), (50, 2**31 - 2))
    y = [1.0, -1.0] * 25 if isinstance(wide, pa_river.PARegressor) else [True, False] * 25
    wide.learn_many(X, y)
    for begin, end, label in zip(X.indptr, X.indptr[1:], y):
        plain.learn_one(dict(zip(X.indices[begin:end].tolist(), X.data[begin:end].tolist())), label)
    assert wide.weights == plain.weights and wide.intercept == plain.intercept


@ONE_OF_EACH
@settings(max_examples=25)
@given(data=st.data())
def test_single_examples_between_sparse_batches_see_what_those_learned(case, data):
    mixed, loop = case.build(), _compiled.on_reference(case.build())
    for _ in range(4):
        X = data.draw(batches())
        y = data.draw(st.lists(case.y, min_size=len(X), max_size=len(X)))
        mixed.learn_many(sp.csr_matrix(X), y)
        for row, label in zip(X.tolist(), y):
            loop.learn_one({j: value for j, value in enumerate(row) if value}, label)
        kind = data.draw(st.sampled_from(["step", "dumps", "predict_many", "copy", "refused"]))
        if kind == "step":
            x, label = {0: 1.0, 3: -2.0, "name": 1.0}, data.draw(case.y)
            assert mixed.step(x, label) == pytest.approx(loop.step(x, label), rel=1e-9, abs=1e-9)
        elif kind == "dumps":
            mixed = pa_river.loads(pa_river.dumps(mixed))
        elif kind == "copy":
            mixed = mixed.clone(include_attributes=True)
        elif kind == "predict_many":
            mixed.predict_many(sp.csr_matrix(np.ones((1, 9))))
        else:
            before = mixed.intercept, mixed.predict_many(sp.csr_matrix(np.eye(7))).tolist()
            with pytest.raises(ValueError, match="row 1"):
                mixed.learn_many(sp.csr_matrix(np.array([[1.0] * 7, [np.nan] * 7])), [case.two_y[0]] * 2)
            assert (mixed.intercept, mixed.predict_many(sp.csr_matrix(np.eye(7))).tolist()) == before
        agree(mixed, loop)
        assert list(mixed.weights) == list(loop.weights)
