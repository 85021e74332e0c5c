"""RowStore against one flat store a slot."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pa_river import rows, state, stores
from pa_river.terms import Term
from tests import strategies

terms = st.lists(st.builds(Term, st.sampled_from([1.0, -1.0, -0.25]), strategies.records(), st.integers(0, 4)),
                 min_size=1, max_size=4).map(tuple)
moves = st.lists(st.tuples(terms, st.floats(0.01, 10.0), st.floats(0.1, 10.0)), max_size=6)


def filled(moves, learn_intercept=True):
    store = rows.RowStore(learn_intercept)
    for move in moves:
        store.add(*move)
    return store


def frozen(store):
    return state.pack(store.get_state())


@given(moves=moves, x=strategies.records(), learn_intercept=st.booleans())
def test_scores_are_those_of_one_flat_store_a_slot(moves, x, learn_intercept):
    store = filled(moves, learn_intercept)
    flat = [stores.LinearStore(learn_intercept) for _ in range(6)]
    for directions, length, norm in moves:
        for sign, phi, slot in directions:
            flat[slot].add((Term(sign, phi),), length, norm)
    assert store.scores(x, 6) == [one.score(x) for one in flat]
    assert store.norm(x) == flat[0].norm(x)
    for slot, one in enumerate(flat):
        assert store.weights(slot) == {name: weight for name, weight in one.weights.items() if weight}
        assert store.intercept(slot) == one.intercept


@given(moves=moves, later=moves)
def test_what_was_marked_is_restored(moves, later):
    store = filled(moves)
    before = frozen(store)
    undo = store.mark(phi for directions, _, _ in later for _, phi, _ in directions)
    for move in later:
        store.add(*move)
    undo()
    assert frozen(store) == before


@given(moves=moves)
def test_a_state_comes_back_bit_equal(moves):
    store, twin = filled(moves), rows.RowStore(True)
    twin.set_state(state.unpack(frozen(store)))
    assert frozen(twin) == frozen(store) and twin.slots == store.slots


@pytest.mark.parametrize("directions", [
    (Term(1.0, {"a": 1.0}, 0), Term(-1.0, {"a": 1.0, "b": 1e308}, 1)),
    (Term(1.0, {"a": 1.0}, 0), Term(1.0, {"b": 1e308}, 1), Term(1.0, {"b": 1e308}, 1)),
], ids=["the second term", "the sum of two"])
def test_a_move_that_leaves_the_floats_moves_no_slot(directions):
    past = [((Term(1.0, {"a": 1.0}, 0), Term(-1.0, {"b": 1e308}, 1)), 1.0, 1.0)] if len(directions) == 2 else []
    store = filled(past)
    before = frozen(store)
    with pytest.raises(ValueError, match="'b'.*finite"):
        store.add(directions, 1.0, 1.0)
    assert frozen(store) == before


def test_an_intercept_that_leaves_the_floats_moves_no_slot():
    store = rows.RowStore(True)
    with pytest.raises(ValueError, match="intercept"):
        store.add((Term(1.0, {"a": 0.5}, 0), Term(-1.0, {"a": 0.5}, 1), Term(-1.0, {}, 1)), 1.7e308, 1.0)
    assert store.slots == 0 and store.weights(0) == {}


def test_a_score_that_is_not_finite_is_refused():
    store = filled([((Term(1.0, {"a": 1e300}, 1),), 1.0, 1.0)])
    with pytest.raises(ValueError, match="finite"):
        store.scores({"a": 1e10}, 2)
    assert store.scores({"a": 1e8}, 3) == [0.0, pytest.approx(1e308), 0.0]


def test_scores_whose_sum_alone_leaves_the_floats_are_good():
    store = filled([((Term(1.0, {"a": 1e308}, 0), Term(1.0, {"a": 1e308}, 1)), 1.0, 1.0)], learn_intercept=False)
    assert store.scores({"a": 1.0}, 2) == [1e308, 1e308]


def test_a_zero_is_not_stored_and_costs_no_name():
    store = rows.RowStore(False)
    store.add((Term(1.0, {"a": 0.0, "b": 1.0}, 3),), 1.0, 1.0)
    store.add((Term(-1.0, {"b": 1.0}, 3),), 1.0, 1.0)
    assert store.weights(3) == {} and store.weights(7) == {} and store.intercept(7) == 0.0
    assert state.unpack_names(store.get_state()["names"]) == ["b"]


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_extreme_directions_keep_their_digits(size):
    store = rows.RowStore(False)
    phi = {"a": 3 * size, "b": 4 * size}
    norm = store.norm(phi)
    store.add((Term(1.0, phi, 0), Term(-1.0, phi, 1)), 1.0 / norm, norm)
    first, second = store.scores(phi, 2)
    assert first == pytest.approx(1.0, rel=1e-14) and second == -first


@pytest.mark.parametrize("change", [
    {"lengths": np.array([1])}, {"lengths": [2, 1]}, {"weights": np.array([1.0])}, {"intercepts": [0.0]},
    {"weights": np.array([1.0, math.inf, 2.0])}, {"names": b""}, {"lengths": np.array([3, 0])},
    {"names": state.pack_names(["a", "a"])},
], ids=repr)
def test_a_state_that_does_not_add_up_is_refused_and_changes_nothing(change):
    store = filled([((Term(1.0, {"a": 1.0}, 1), Term(1.0, {"b": 1.0}, 0)), 1.0, 1.0)])
    good, twin = store.get_state(), rows.RowStore(True)
    twin.set_state(good)
    with pytest.raises(state.StateError):
        rows.RowStore(True).set_state({**good, **change})
    assert frozen(twin) == frozen(store)
