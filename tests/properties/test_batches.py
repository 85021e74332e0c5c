"""A batch is all or nothing, and otherwise the loop of learn_one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from river import base

import pa_river
from pa_river import prototypes
from tests import cases, strategies

BATCH = pytest.mark.parametrize("case", cases.BATCH, ids=str)
KINDS = {"array": np.asarray, "CSR": scipy.sparse.csr_matrix, "CSC": scipy.sparse.csc_array, "frame": pd.DataFrame}


def tables(y):
    row = st.lists(strategies.tame, min_size=4, max_size=4)
    return st.lists(st.tuples(row, y, strategies.weights), min_size=1, max_size=8)


@BATCH
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_batch_equals_the_loop(case, kind, data):
    table = data.draw(tables(case.y))
    rows, y, w = [r for r, _, _ in table], [y for _, y, _ in table], [w for _, _, w in table]
    weights = data.draw(st.sampled_from([w, np.array(w), None]))
    batch, loop = case.build(), case.build()
    batch.learn_many(KINDS[kind](rows), y, weights)
    expected = [loop.step(dict(enumerate(row)), label, 1.0 if weights is None else weight)
                for row, label, weight in table]
    assert batch.version == loop.version
    assert _close(batch, loop)
    if hasattr(batch, "step_many"):  # the mean of an averaged model is taken for a whole batch only
        stepped = case.build()
        answers = stepped.step_many(KINDS[kind](rows), y, weights)
        assert pa_river.dumps(stepped) == pa_river.dumps(batch)
        if case in cases.REGRESSION:
            assert list(answers) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        elif not isinstance(answers, pd.DataFrame):  # a frame has a column for each label that came at any time
            assert list(answers) == expected
    many = batch.predict_many(KINDS[kind](rows))
    one_by_one = [batch.predict_one(dict(enumerate(row))) for row in rows]
    if case in cases.REGRESSION:
        assert list(many) == pytest.approx(one_by_one, rel=1e-9, abs=1e-9)
    else:
        # pandas gives no records at all of a frame without columns: no label is known then
        frame = isinstance(many, pd.DataFrame)
        assert len(many) == len(rows)
        assert (many.T.to_dict() if frame else dict(enumerate(many))) == dict(enumerate(one_by_one))


def _close(one, other):
    def numbers(model):
        if getattr(model, "kernel", None) is not None:
            return {(place, label): part for place, (_, parts) in enumerate(model.support)
                    for label, part in (parts.items() if isinstance(parts, dict) else [(None, parts)])}
        return {(name, inner): number for name, value in model.weights.items()
                for inner, number in (value.items() if isinstance(value, dict) else [("", value)])}
    same_names = set(numbers(one)) == set(numbers(other))
    return same_names and numbers(one) == pytest.approx(numbers(other), rel=1e-9, abs=1e-12)


@BATCH
@pytest.mark.parametrize("kind", ["array", "CSR", "frame"])
def test_a_bad_row_is_named_with_its_column_and_nothing_is_learned(case, kind):
    model = case.build()
    good, _ = case.two_y
    model.learn_many(np.eye(3), [good] * 3)
    before = pa_river.dumps(model)
    X = np.arange(12.0).reshape(4, 3) + 1.0
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match="row 2: feature 1 "):
        model.learn_many(KINDS[kind](X), [good] * 4)
    with pytest.raises(ValueError, match="row 2: feature 1 "):
        model.predict_many(KINDS[kind](X))
    X[2, 1] = 0.0
    with pytest.raises(ValueError, match="row 1: "):
        model.learn_many(KINDS[kind](X), [good, case.bad_y[0], good, good])
    with pytest.raises(ValueError, match="row 3: .*weight"):
        model.learn_many(KINDS[kind](X), [good] * 4, [1.0, 1.0, 1.0, -1.0])
    with pytest.raises(ValueError, match="rows"):
        model.learn_many(KINDS[kind](X), [good] * 3)
    assert pa_river.dumps(model) == before


@BATCH
def test_a_row_that_overflows_late_undoes_the_rows_before_it(case):
    if "overflow" in case.exceptions:
        pytest.skip(f"{case}: {case.exceptions['overflow']}")
    model = case.build()
    good, other = case.two_y
    model.learn_many(np.tile(np.eye(10, 9), (40, 1)), ([good] * 9 + [other]) * 40)
    before = pa_river.dumps(model)
    # the first row brings names that were not there; the second a score beyond the floats
    X = np.array([[*[1e-3] * 10, 5.0], [*[1.7e308] * 9, 0.0, 0.0]])
    with pytest.raises(ValueError, match="row 1: .*finite"):
        model.learn_many(X, [good, good])
    assert pa_river.dumps(model) == before


@BATCH
def test_frames_give_back_their_index_and_arrays_arrays(case):
    model = case.build()
    good, _ = case.two_y
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [0.5, 0.0]}, index=["u", "v"])
    model.learn_many(frame, pd.Series([good, good], index=frame.index))
    predicted = model.predict_many(frame)
    assert type(predicted) is (pd.DataFrame if isinstance(model, base.MultiLabelClassifier) else pd.Series)
    assert list(predicted.index) == ["u", "v"]
    assert isinstance(model.predict_many(frame.to_numpy()), np.ndarray)
    if case in [*cases.BINARY, *cases.LABEL]:
        proba = model.predict_proba_many(frame)
        assert list(proba.index) == ["u", "v"]
        assert set(proba.columns) == ({False, True} if case in cases.BINARY else set(model.predict_proba_one({})))
        assert proba.sum(axis=1).to_numpy() == pytest.approx([1.0, 1.0])


@BATCH
def test_an_empty_batch_is_no_batch(case):
    model = case.build()
    model.learn_many(np.empty((0, 3)), [])
    assert model.version == 0 and len(model.predict_many(np.empty((0, 3)))) == 0


@BATCH
@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_are_answered_in_the_type_of_some(case, kind):
    kinds = {"array": np.empty((0, 3)), "CSR": scipy.sparse.csr_matrix((0, 3)), "CSC": scipy.sparse.csc_array((0, 3)),
             "frame": pd.DataFrame(np.empty((0, 3)))}
    model = case.build()
    good, other = case.two_y
    model.learn_many(np.eye(3), [good, other, good])
    none, some = model.predict_many(kinds[kind]), model.predict_many(KINDS[kind](np.eye(3)))
    assert len(none) == 0 and type(none) is type(some)
    if not isinstance(getattr(model, "model", model), prototypes.LabelLearner):
        assert none.dtype == some.dtype
    elif not isinstance(none, pd.DataFrame):
        assert none.dtype == object


@BATCH
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("w", [2.0, 3, np.float32(0.5), np.array(2.0), 0])
def test_one_weight_stands_for_all_rows(case, kind, w):
    good, other = case.two_y
    X, y = KINDS[kind](np.vstack([np.eye(3), np.ones((1, 3))])), [good, other, good, other]
    one, many = case.build(), case.build()
    one.learn_many(X, y, w)
    many.learn_many(X, y, [float(w)] * 4)
    assert pa_river.dumps(one) == pa_river.dumps(many)
    for bad in (-1.0, np.nan, True, 1j, np.array(np.inf)):
        with pytest.raises(ValueError, match="weight"):
            one.learn_many(X, y, bad)
    with pytest.raises(ValueError, match="a row was expected"):
        one.learn_many(X, good if not hasattr(good, "__iter__") else 3.0, w)
    assert pa_river.dumps(one) == pa_river.dumps(many)


def test_a_table_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="two dimensions"):
        pa_river.PAClassifier().predict_many(np.ones(3))


@pytest.mark.parametrize("case", cases.UNICLASS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_batch_of_a_detector_equals_the_loop(case, kind, data):
    table = data.draw(tables(st.none()))
    rows, weights = [r for r, _, _ in table], data.draw(st.sampled_from([[w for _, _, w in table], None]))
    batch, stepped, loop = case.build(), case.build(), case.build()
    batch.learn_many(KINDS[kind](rows), w=weights)
    scores = stepped.step_many(KINDS[kind](rows), w=weights)
    expected = [loop.step({j: v for j, v in enumerate(row) if v}, w=1.0 if weights is None else weights[number])
                for number, row in enumerate(rows)]
    assert pa_river.dumps(batch) == pa_river.dumps(stepped) == pa_river.dumps(loop)
    assert list(scores) == expected
    assert list(batch.score_many(KINDS[kind](rows))) == [
        loop.score_one({j: v for j, v in enumerate(row) if v}) for row in rows]


@pytest.mark.parametrize("case", cases.UNICLASS, ids=str)
def test_a_bad_row_of_a_detectors_batch_is_named_and_nothing_is_learned(case):
    model = case.build()
    model.learn_many(np.eye(3))
    before = pa_river.dumps(model)
    with pytest.raises(ValueError, match="row 1: feature 2 "):
        model.learn_many(np.array([[1.0, 2.0, 3.0], [1.0, 0.0, np.inf]]))
    with pytest.raises(ValueError, match="row 0: .*weight"):
        model.learn_many(np.eye(3), w=[-1.0, 1.0, 1.0])
    if model.kernel is None:  # an RBF knows no distance beyond floats
        with pytest.raises(ValueError, match="row 1: .*finite"):  # after the first row was learned
            model.learn_many(np.array([[9.0, 9.0, 9.0], [1.7e308, 1.7e308, -1.7e308]]))
    assert pa_river.dumps(model) == before
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["u", "v"])
    assert list(model.score_many(frame).index) == list(model.step_many(frame).index) == ["u", "v"]
