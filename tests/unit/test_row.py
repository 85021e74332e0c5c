"""A row of a table is the record that it stands for, and a model keeps its numbers, not the table's."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pa_river
from pa_river import RBF, Budget, Linear, PAClassifier, PAMulticlass, Polynomial, batch
from pa_river._row import Row


@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e300]), max_size=6), st.booleans())
def test_a_row_is_the_record_of_its_features(values, named):
    names = [f"c{j}" for j in range(len(values))] if named else range(len(values))
    row, record = Row(np.array(values), names), {name: value for name, value in zip(names, values) if value}
    assert row == record and dict(row) == record and len(row) == len(record)
    assert list(row.items()) == list(record.items()) and list(row.values()) == list(record.values())
    assert [row.get(name, 0.0) for name in names] == [value + 0.0 for value in values]
    assert repr(row) == repr(record) and "no column" not in row
    assert pickle.loads(pickle.dumps(row)) == copy.deepcopy(row) == row.kept() == record


@pytest.mark.parametrize("X", [np.array([[1.0, 0.0], [0.0, 2.0]]), pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 2.0]})],
                         ids=["array", "frame"])
def test_lazy_rows_are_the_rows(X):
    assert batch.rows(X, lazy=True) == batch.rows(X)
    assert all(isinstance(row, Row) for row in batch.rows(X, lazy=True))


def test_a_table_of_lazy_rows_is_checked_whole():
    X = np.ones((1100, 2))
    X[1050, 1] = math.inf
    with pytest.raises(ValueError, match="row 1050: feature 1 must be a finite number, got inf"):
        batch.rows(X, lazy=True)


@pytest.mark.parametrize("size", [math.inf, 50])
@pytest.mark.parametrize("kernel", [Linear(), Polynomial(3, dtype="float32"), RBF(0.2)], ids=repr)
def test_a_table_may_change_after_it_was_learned(kernel, size):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300).astype(bool)
    changed, kept = (PAClassifier(kernel=kernel, budget=Budget(size)) for _ in range(2))
    table = X.copy()
    changed.learn_many(table, y)
    table[:] = 7.0
    kept.learn_many(X, y)
    assert pa_river.dumps(changed) == pa_river.dumps(kept) and len(kept.support) > 40
    assert all(type(x) is dict for x, _ in kept.support)


def test_models_of_rows_and_of_records_continue_alike():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 6)) * (rng.random((400, 6)) < 0.6), rng.integers(0, 3, 400).tolist()
    model = PAMulticlass(kernel=Polynomial(2, coef0=1.0), budget=Budget(math.inf))
    model.learn_many(X[:200], y[:200])
    twins = [pa_river.loads(pa_river.dumps(model)), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model]
    for twin in twins:
        twin.learn_one({0: 1.5, 9: 1.0}, 2)
        twin.learn_many(X[200:], y[200:])
    one, *others = [[list(parts.values()) for _, parts in twin.support] for twin in twins]
    for other in others:
        assert other == [pytest.approx(parts, rel=1e-9, abs=1e-9) for parts in one]
    assert [x for x, _ in twins[0].support] == [x for x, _ in model.support]
