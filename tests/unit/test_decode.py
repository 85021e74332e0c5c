"""Viterbi against every path."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pa_river import decode


def lattices(values, most_tokens=4, most_tags=4):
    def build(m, k):
        cells = st.lists(values, min_size=m * k + k * k + k, max_size=m * k + k * k + k)
        return cells.map(lambda flat: decode.Lattice(
            np.array(flat[:m * k], float).reshape(m, k),
            np.array(flat[m * k:m * k + k * k], float).reshape(k, k),
            np.array(flat[m * k + k * k:], float),
        ))
    return st.tuples(st.integers(1, most_tokens), st.integers(1, most_tags)).flatmap(lambda shape: build(*shape))


def paths(lattice):
    m, k = lattice.emit.shape
    return [list(path) for path in itertools.product(range(k), repeat=m)]


def exact_score(lattice, path):
    """The score of a path without rounding."""
    emit, move, start = lattice
    parts = [start[path[0]], *(emit[i, tag] for i, tag in enumerate(path)),
             *(move[one, other] for one, other in zip(path, path[1:]))]
    return sum((Fraction(float(part)) for part in parts), Fraction(0))


whole = st.integers(-2, 2).map(float)  # sums of these are exact, and ties abound
real = st.floats(-1e6, 1e6)


@given(lattices(whole))
def test_the_best_path_is_the_best_of_all_paths_and_ties_go_to_the_tag_seen_first_from_the_end(lattice):
    highest = max(exact_score(lattice, path) for path in paths(lattice))
    tied = [path for path in paths(lattice) if exact_score(lattice, path) == highest]
    assert decode.best_path(lattice) == min(tied, key=lambda path: path[::-1])


@given(lattices(real))
def test_no_path_scores_higher_when_summed_in_the_same_order(lattice):
    found = decode.score(lattice, decode.best_path(lattice))
    assert found == max(decode.score(lattice, path) for path in paths(lattice))


@given(lattices(whole), st.data())
def test_max_loss_decoding_finds_the_largest_loss_of_all_paths(lattice, data):
    gold = data.draw(st.sampled_from(paths(lattice)))

    def loss(path):
        return exact_score(lattice, path) - exact_score(lattice, gold) + decode.wrong(path, gold)

    assert loss(decode.best_path(decode.with_cost(lattice, gold))) == max(map(loss, paths(lattice)))


@given(lattices(real))
def test_a_path_scores_the_sum_of_its_parts(lattice):
    for path in paths(lattice):
        assert decode.score(lattice, path) == pytest.approx(float(exact_score(lattice, path)), rel=1e-12, abs=1e-8)


def test_no_tokens_and_no_tags_give_the_empty_path():
    assert decode.best_path(decode.Lattice(np.zeros((0, 3)), np.zeros((3, 3)), np.zeros(3))) == []
    assert decode.best_path(decode.Lattice(np.zeros((2, 0)), np.zeros((0, 0)), np.zeros(0))) == []
    assert decode.score(decode.Lattice(np.zeros((0, 3)), np.zeros((3, 3)), np.zeros(3)), []) == 0.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_scores_beyond_the_floats_are_refused_without_a_warning(sign):
    lattice = decode.Lattice(np.full((3, 2), sign * 1e308), np.zeros((2, 2)), np.zeros(2))
    with pytest.raises(ValueError, match="finite"):
        decode.best_path(lattice)
    with pytest.raises(ValueError, match="finite"):
        decode.score(lattice, [0, 0, 0])


def test_a_path_below_the_floats_does_not_spoil_the_one_within():
    lattice = decode.Lattice(np.array([[-1e308, 1.0], [-1e308, 1.0]]), np.zeros((2, 2)), np.zeros(2))
    assert decode.best_path(lattice) == [1, 1]


def test_a_long_sentence_with_many_tags_equals_plain_dynamic_programming():
    draw = np.random.default_rng(5)
    emit, move, start = draw.normal(size=(60, 30)), draw.normal(size=(30, 30)), draw.normal(size=30)
    best, back = [float(s + e) for s, e in zip(start, emit[0])], []
    for row in emit[1:]:
        through = [[best[p] + float(move[p, s]) for p in range(30)] for s in range(30)]
        back.append([column.index(max(column)) for column in through])
        best = [max(column) + float(e) for column, e in zip(through, row)]
    path = [best.index(max(best))]
    for row in reversed(back):
        path.append(row[path[-1]])
    assert decode.best_path(decode.Lattice(emit, move, start)) == path[::-1]
