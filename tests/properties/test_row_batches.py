"""Batches on compiled stores of rows: the bits of the loop of `learn_one`, all or nothing, whatever the table is."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pa_river
from pa_river import _compiled
from tests import cases, strategies
from tests.properties.test_compiled_batches import TABLES, as_records, batches

pytestmark = pytest.mark.skipif(not pa_river.NATIVE, reason="the compiled core is not built: there is one core only")

ROWS = [*cases.PROTOTYPES, *cases.SECOND]
EVERY = pytest.mark.parametrize("case", ROWS, ids=str)
SOME = pytest.mark.parametrize("case", [
    case for case in ROWS
    if case.name in (
        "PAMulticlass PA-I", "PAMultilabel PA", "MIRAClassifier C=0.05", "AROWClassifier", "SCWMulticlass I")
], ids=str)


def listed(answers):
    return answers.T.to_dict() if isinstance(answers, pd.DataFrame) else dict(enumerate(answers))


def records(X, table):
    """The rows as the loop gets them: a table of numbers holds no zeros."""
    rows = as_records(table)
    return [{name: value for name, value in row.items() if value} for row in rows]


@EVERY
@settings(max_examples=20)
@given(data=st.data())
def test_a_sparse_batch_is_the_loop_bit_for_bit(case, data):
    many, loop, stepped = case.build(), case.build(), case.build()
    for _ in range(2):
        X = TABLES[data.draw(st.sampled_from(["csr", "csr array with explicit zeros and doubles", "csc"]))](
            data.draw(batches()))
        n = X.shape[0]
        y = data.draw(st.lists(case.y, min_size=n, max_size=n))
        w = data.draw(st.none() | st.lists(strategies.weights | st.just(0.0), min_size=n, max_size=n))
        many.learn_many(X, y, w)
        answers = stepped.step_many(X, y, w)
        expected = [loop.step(x, label, weight) for x, label, weight in zip(records(X, X), y, w or [1.0] * n)]
        assert list(answers) == expected
        assert pa_river.dumps(many) == pa_river.dumps(stepped) == pa_river.dumps(loop)
        assert list(many.predict_many(X)) == [loop.predict_one(x) for x in records(X, X)]


@pytest.mark.parametrize("kind", TABLES)
@SOME
@settings(max_examples=10)
@given(data=st.data())
def test_a_table_of_any_kind_is_a_batch(case, kind, data):
    table = TABLES[kind](data.draw(batches()))
    n = len(as_records(table))
    y = data.draw(st.lists(case.y, min_size=n, max_size=n))
    stepped, loop = case.build(), _compiled.on_reference(case.build())
    answers = stepped.step_many(table, y)
    expected = [loop.step(x, label) for x, label in zip(records(table, table), y)]
    if not isinstance(answers, pd.DataFrame):
        assert list(answers) == expected
    assert stepped.version == loop.version
    assert list(stepped.weights) == list(loop.weights)
    assert listed(stepped.predict_many(table)).keys() == listed(loop.predict_many(table)).keys()
    assert type(stepped.predict_many(table)) is type(loop.predict_many(table))


@pytest.mark.parametrize("form", ["array", "csr", "frame"])
@SOME
def test_names_of_all_types_meet_in_batches_and_records(case, form):
    model, loop = case.build(), _compiled.on_reference(case.build())
    good, other = case.two_y
    columns = {"array": [0, 1, 2], "csr": [0, 1, 2], "frame": ["a", 7, "\ud800"]}[form]
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.5]])
    table = pd.DataFrame(X, columns=columns) if form == "frame" else TABLES[form](X)
    for turn in range(3):
        for each in (model, loop):
            each.learn_many(table, [good, other])
            each.learn_one({columns[2]: 1.0, ("new", turn): 2.0}, good)
    assert model.version == loop.version == 9
    assert pa_river.loads(pa_river.dumps(model)).weights == model.weights
    assert [list(column) for column in _columns(model)] == [list(column) for column in _columns(loop)]


def _columns(model):
    weights = model.weights
    return list(weights.values()) if weights and isinstance(next(iter(weights.values())), dict) else [weights]


@SOME
def test_a_late_refusal_takes_back_more_moves_than_notes_are_kept_of(case):
    rng = np.random.default_rng(0)
    good, other = case.two_y
    model = case.build()
    start = sp.csr_matrix(rng.normal(size=(20, 150)) * (rng.random((20, 150)) < 0.7))
    model.learn_many(start, [good, other] * 10)
    before = pa_river.dumps(model)
    X = rng.normal(size=(3000, 180))
    twin = pa_river.loads(before)
    twin.learn_many(sp.csr_matrix(X[:-1]), ([good, other] * 1500)[:-1])
    weights = _columns(twin)[0]
    X[-1] = [math.copysign(1.7e308, weights.get(column, 1.0)) for column in range(180)]  # a score beyond the floats
    with pytest.raises(ValueError, match="row 2999"):
        model.learn_many(sp.csr_matrix(X), [good, other] * 1500)
    assert pa_river.dumps(model) == before
    model.learn_many(start, [good, other] * 10)
    loop = pa_river.loads(before)
    for x, label in zip(records(start, start), [good, other] * 10):
        loop.learn_one(x, label)
    assert pa_river.dumps(model) == pa_river.dumps(loop)


class Failing(pa_river.StepRule):
    """A rule of a user's own that gives up, and asks the model something before."""

    def __init__(self, calls, model=None):
        self.calls = calls
        self.model = model

    def length(self, loss, norm, weight=1.0):
        self.calls -= 1
        if self.model is not None:
            self.model.predict_one({0: 1.0, "other": 2.0})
        if self.calls < 0:
            raise RuntimeError("enough")
        return loss / norm


@pytest.mark.parametrize("build", [pa_river.PAMulticlass, pa_river.PAMultilabel], ids=lambda build: build.__name__)
def test_a_rule_that_fails_in_a_batch_leaves_the_model_as_it_was(build):
    good, other = ("a", "b") if build is pa_river.PAMulticlass else ({"a": True}, {"b": True})
    X = sp.csr_matrix(np.vstack([np.eye(6), -np.eye(6)]))
    model = build()
    model.learn_many(X[:3], [good, other, good])
    before = model.weights, model.intercept, model.version
    model.rule = Failing(2)
    with pytest.raises(RuntimeError, match="enough"):
        model.learn_many(X, [good, other] * 6)
    assert (model.weights, model.intercept, model.version) == before
    model.rule = None
    twin = build(Failing(10**6))
    twin.rule.model = model
    plain = build(pa_river.PA())
    twin.learn_many(X, [good, other] * 6)
    plain.learn_many(X, [good, other] * 6)
    assert twin.weights == plain.weights


@SOME
def test_a_sparse_table_that_points_outside_itself_is_refused_or_cut_but_never_followed(case):
    good, other = case.two_y
    X = sp.csr_matrix(np.eye(3))
    X.indices[1] = 2**31 - 1  # scipy does not look again
    model = case.build()
    try:
        model.learn_many(X, [good, other, good])
    except (ValueError, IndexError):
        assert model.version == 0
    with pytest.raises(ValueError, match="row 1: feature 1 must be a finite number"):
        model.learn_many(sp.csr_matrix(np.diag([1.0, np.nan, 1.0])), [good, other, good])


@SOME
def test_a_table_far_wider_than_what_stands_in_it_is_no_burden(case):
    wide, plain = case.build(), case.build()
    good, other = case.two_y
    columns = np.sort(np.random.default_rng(1).choice(2**30, size=(50, 9)) + np.arange(9) * 2**27, axis=1)
    X = sp.csr_matrix((np.linspace(-1.0, 1.0, 450), columns.ravel(), np.arange(0, 451, 9)), (50, 2**31 - 2))
    for _ in range(2):
        wide.learn_many(X, [good, other] * 25)
        for begin, end, label in zip(X.indptr, X.indptr[1:], [good, other] * 25):
            plain.learn_one(dict(zip(X.indices[begin:end].tolist(), X.data[begin:end].tolist())), label)
    assert pa_river.dumps(wide) == pa_river.dumps(plain)


@SOME
@settings(max_examples=20)
@given(data=st.data())
def test_single_examples_between_batches_see_what_those_learned(case, data):
    mixed, loop = case.build(), case.build()
    for _ in range(4):
        X = data.draw(batches())
        y = data.draw(st.lists(case.y, min_size=len(X), max_size=len(X)))
        mixed.learn_many(sp.csr_matrix(X), y)
        for x, label in zip(records(X, X), y):
            loop.learn_one(x, label)
        kind = data.draw(st.sampled_from(["step", "dumps", "copy", "refused", "other"]))
        if kind == "step":
            label = data.draw(case.y)
            assert mixed.step({0: 1.0, 3: -2.0, "name": 1.0}, label) == loop.step({0: 1.0, 3: -2.0, "name": 1.0}, label)
        elif kind == "dumps":
            mixed = pa_river.loads(pa_river.dumps(mixed))
        elif kind == "copy":
            mixed = mixed.clone(include_attributes=True)
        elif kind == "other":
            case.build().learn_many(sp.csr_matrix(np.ones((2, 9))), list(case.two_y))
        else:
            with pytest.raises(ValueError, match="row 1"):
                mixed.learn_many(sp.csr_matrix(np.eye(7)), [case.two_y[0], case.bad_y[0], *[case.two_y[0]] * 5])
        assert pa_river.dumps(mixed) == pa_river.dumps(loop)
