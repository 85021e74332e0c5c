"""Tables -> checked rows: what may come, what is dropped, what is refused, and by which name."""

from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import pa_river
from pa_river import batch


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "uint64", "bool", "longdouble", "object"])
def test_a_row_holds_plain_numbers_by_column(dtype):
    X = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]]).astype(dtype)
    rows = batch.rows(X)
    assert [{name: value for name, value in row.items() if value} for row in rows] == [
        {0: 1.0, 2: 1.0}, {}, {0: 1.0, 1: 1.0, 2: 1.0}]
    assert {type(value) for row in rows for value in row.values()} == {float}
    assert {type(name) for row in rows for name in row} == {int}


def test_zeros_of_a_table_of_numbers_are_not_carried_along():
    X = np.array([[0.0, -0.0, 2.0], [3.0, 0.0, 0.0]])
    for table in (X, pd.DataFrame(X), X.astype(int), X[::-1][::-1], np.asfortranarray(X)):
        assert batch.rows(table) == [{2: 2.0}, {0: 3.0}]


def test_large_integers_round_as_floats_do():
    assert batch.rows(np.array([[2**63 - 1, 2**53 + 1]]))[0] == {0: float(2**63 - 1), 1: float(2**53 + 1)}


def test_a_long_table_is_cut_at_the_right_rows():
    X = np.arange(2500 * 3).reshape(2500, 3) % 5
    X[::2] += 1
    assert batch.rows(X) == [{name: value for name, value in enumerate(row) if value} for row in X.tolist()]


@pytest.mark.parametrize("bad, said", [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csc_array, pd.DataFrame, lambda X: X.astype(object),
                                  lambda X: X.astype(np.float32)])
def test_the_first_number_that_is_not_finite_is_named(kind, bad, said):
    X = np.ones((1500, 4))
    X[1400, 3] = X[1401, 0] = bad
    with pytest.raises(ValueError, match=rf"^row 1400: feature 3 must be a finite number, got {said}$"):
        batch.rows(kind(X))


def test_a_frame_of_numbers_names_its_columns_and_one_of_text_makes_indicators():
    frame = pd.DataFrame({"a": [1, 0], ("b", 1): [0.5, 2.0], "c": [True, False]})
    assert batch.rows(frame) == [{"a": 1.0, ("b", 1): 0.5, "c": 1.0}, {("b", 1): 2.0}]
    assert batch.rows(frame).names == ["a", ("b", 1), "c"]
    frame["colour"] = ["red", "blue"]
    assert batch.rows(frame)[0] == {"a": 1.0, ("b", 1): 0.5, "c": 1.0, "colour=red": 1.0}
    assert batch.rows(frame).matrix is None


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(ValueError, match="'a' appears twice"):
        batch.rows(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="'a' appears twice"):
        batch.rows(pd.DataFrame([["x", "y"]], columns=["a", "a"]))


@pytest.mark.parametrize("build", [pa_river.PAClassifier, pa_river.PAMulticlass], ids=lambda build: build.__name__)
def test_a_frame_without_columns_has_as_many_rows_as_its_index(build):
    frame = pd.DataFrame(index=[3, 4])
    model = build()
    model.learn_many(frame, [True, True])
    assert model.version == 2
    assert list(model.predict_many(frame).items()) == [(3, True), (4, True)]


def test_a_column_whose_name_no_feature_may_have_is_refused():
    with pytest.raises(ValueError, match="feature name"):
        batch.rows(pd.DataFrame({0.5: [1.0]}))


def test_what_is_no_plain_number_takes_the_slow_road():
    assert batch.rows(np.array([[decimal.Decimal("0.5"), None, "red"]], dtype=object)) == [{0: 0.5, "2=red": 1.0}]
    with pytest.raises(ValueError, match="row 0: feature 1 must be a finite number"):
        batch.rows(np.array([[1.0, 10**400]], dtype=object))
    with pytest.raises(ValueError, match="row 0: feature 0 must be a finite number"):
        batch.rows(np.array([[1j]]))
