"""Sentences read once: what they hold is what `sentence` makes of each, less the zeros."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pa_river import PASequence, Sentences, _compiled, sentences
from pa_river.tokens import sentence
from tests import strategies

tokens = st.one_of(
    st.sampled_from(["the", "dog", ""]), st.lists(st.sampled_from("abcd"), unique=True, max_size=4),
    strategies.records(st.one_of(st.floats(-4, 4), st.integers(-2, 2), st.booleans()), strategies.odd_names),
    st.just({"colour": "red", "gone": None}), st.just({np.int64(3): np.float32(0.5), b"raw": np.float64(2.0)}),
)
CORES = pytest.mark.parametrize("code", [sentences.code, pytest.param(
    getattr(_compiled.coders, "code", None),
    marks=pytest.mark.skipif(_compiled.coders is None, reason="the compiled core is not built"))],
    ids=["reference", "compiled"])


@CORES
@given(X=st.lists(st.lists(tokens, max_size=4), max_size=4))
def test_an_item_is_the_sentence_without_its_zeros(code, X):
    held = Sentences([])
    held.names, held.codes, held.values, held.ends, held.bounds = code(X)
    expected = [[{name: float(value) for name, value in phi.items() if value} for phi in sentence(x)] for x in X]
    assert list(held) == expected and len(held) == len(X)
    assert held[:2] == expected[:2] and (not X or held[-1] == expected[-1])
    assert len(set(held.names)) == len(held.names)


@CORES
@pytest.mark.parametrize(("X", "message"), [
    ([["a"], "ab"], "row 1: the tokens of a sequence must be a list"),
    ([["a", 3]], "row 0: token 1"), ([[["x", "y", "x"]]], "row 0: token 0: feature 'x' appears twice"),
    ([[["x"] * 80]], "token 0: feature 'x' appears twice"), ([[["x", ["y"]]]], "token 0.*texts"),
    ([["a"], ["b", {"x": math.nan}]], "row 1: token 1: feature 'x'"), ([[{"x": 10**400}]], "token 0: feature 'x'"),
    ([[{(1, 2.5): 1.0}]], "token 0: a feature name"), ([[{"x": 1.0, "x=": 2.0}, {None: 1}]], "token 1: a feature name"),
])
def test_what_is_no_sentence_is_refused_by_row_token_and_feature(code, X, message):
    with pytest.raises(ValueError, match=message):
        code(X)


def test_all_ones_need_no_values():
    assert Sentences([[["a", "b"], {"c": 1}]]).values is None
    assert Sentences([["a", {"c": 2.0, "d": 0.0}]]).values.tolist() == [1.0, 2.0]


def test_rows_beyond_the_end_are_an_index_error():
    with pytest.raises(IndexError):
        Sentences([["a"]])[1]


def test_a_pickle_holds_no_model():
    X, model = Sentences([["a", "b"]] * 3), PASequence()
    model.learn_many(X, [["A", "B"]] * 3)
    twin = pickle.loads(pickle.dumps(X))
    assert list(twin) == list(X) and twin._placed is None
