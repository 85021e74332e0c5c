"""PASequence against brute force, a general solver and exact fractions."""

from __future__ import annotations

import collections
import itertools
import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

import pa_river
from pa_river import PA, PA1, PA2, PASequence
from tests import strategies

tags = st.sampled_from(["A", "B", "C"])
tokens = strategies.records(st.floats(-4, 4).map(lambda v: round(v, 2)), st.sampled_from(["a", "b", "c"]), most=3)
indicators = strategies.records(st.just(1.0), st.sampled_from(["a", "b", "c"]), most=3)


def sentences(token=tokens, most=4):
    pairs = st.lists(st.tuples(token, tags), max_size=most)
    return pairs.map(lambda pairs: ([x for x, _ in pairs], [y for _, y in pairs]))


streams = st.lists(sentences(), max_size=6)


def joint(x, y):
    """Phi(x, y), exactly: emissions, moves and the start, counted as a multiset."""
    phi = collections.defaultdict(Fraction)
    for i, (token, tag) in enumerate(zip(x, y)):
        for name, value in token.items():
            phi["emit", tag, name] += Fraction(value)
        phi[("move", y[i - 1], tag) if i else ("start", tag)] += 1
    return phi


def direction(x, y, r):
    phi, rival = joint(x, y), joint(x, r)
    return {key: phi[key] - rival[key] for key in {**phi, **rival} if phi[key] != rival[key]}


def product(weights, phi):
    return sum((Fraction(weights.get(key, 0.0)) * value for key, value in phi.items()), Fraction(0))


def wrong(y, r):
    return sum(one != other for one, other in zip(y, r))


def trained(stream, *args, **params):
    model = PASequence(*args, **params)
    for x, y in stream:
        model.learn_one(x, y)
    return model


def all_tags(model, m):
    return [list(path) for path in itertools.product(model.tags, repeat=m)]


def registered(model, x, y):
    """A copy of the model that knows the tags of y already."""
    twin = pa_river.loads(pa_river.dumps(model))
    twin._tags = dict(twin._tags)
    for tag in y:
        twin._tags.setdefault(tag, len(twin._tags))
    return twin


@given(streams, sentences())
def test_the_prediction_is_the_best_of_all_sequences(stream, example):
    model, (x, _) = trained(stream), example
    assume(model.tags)
    weights = model.weights
    best = max(product(weights, joint(x, path)) for path in all_tags(model, len(x)))
    assert float(best - product(weights, joint(x, model.predict_one(x)))) <= 1e-9 * (1 + abs(best))
    assert model.decision_one(x) == pytest.approx(float(best), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("update", ["prediction", "max_loss"])
@given(stream=streams, example=sentences())
def test_loss_norm_and_direction_are_those_of_the_rival_found_by_brute_force(update, stream, example):
    model, (x, y) = registered(trained(stream, update=update), *example), example
    weights = model.weights
    found = model._violation(x, y, model._scores(x))

    def loss(r):
        gap = product(weights, joint(x, r)) - product(weights, joint(x, y))
        return float(gap) + (wrong(y, r) if update == "max_loss" else math.sqrt(wrong(y, r)))

    if update == "max_loss":
        most = max(map(loss, all_tags(model, len(x))), default=0.0)
        assert (found.loss if found else 0.0) == pytest.approx(max(most, 0.0), rel=1e-9, abs=1e-9)
    else:
        rival = model.predict_one(x)
        assert (found is None) == (rival == y)
        if found:
            assert found.loss == pytest.approx(loss(rival), rel=1e-9, abs=1e-9)
            exact = direction(x, y, rival)
            assert found.norm == pytest.approx(math.sqrt(sum(value**2 for value in exact.values())), rel=1e-12)
            named = {_public(key, model.tags): value for key, value in found.terms[0].phi.items() if value}
            assert named == {key: float(value) for key, value in exact.items()}


def _public(key, known):
    """A joint feature of slots as `weights` spells it."""
    kind, first, second = key
    if kind == "emit":
        return kind, known[first], second
    return ("start", known[second]) if first < 0 else (kind, known[first], known[second])


@pytest.mark.parametrize("update", ["prediction", "max_loss"])
@given(stream=streams, example=sentences())
def test_a_basic_step_restores_the_margin_within_rounding(update, stream, example):
    model, (x, y) = registered(trained(stream, PA(), update=update), *example), example
    found = model._violation(x, y, model._scores(x))
    assume(found is not None and found.norm > 0.0)
    rival = model.predict_one(x)
    if update == "max_loss":
        rival = _rival(found, model, x, y)
    delta, before = direction(x, y, rival), model.weights
    model.learn_one(x, y)
    after, margin = model.weights, wrong(y, rival) if update == "max_loss" else math.sqrt(wrong(y, rival))
    size = max(sum(abs(Fraction(w.get(key, 0.0)) * v) for key, v in delta.items()) for w in (before, after))
    bound = (len(delta) + 8) * math.ulp(1.0) * (margin + float(size))
    assert abs(float(product(after, delta)) - margin) <= bound


def _rival(found, model, x, y):
    """The sequence whose direction is the one found; among sequences of one direction any will do."""
    for r in all_tags(model, len(x)):
        slots = [model._tags[tag] for tag in r]
        delta = pa_river.chain.difference(x, [model._tags[tag] for tag in y], slots)
        if r != y and {k: v for k, v in delta.items() if v} == {k: v for k, v in found.terms[0].phi.items() if v}:
            margin = float(wrong(y, r)) - model._store.score(delta)
            if margin == pytest.approx(found.loss, abs=1e-12):
                return r
    raise AssertionError("no sequence has this direction")


@pytest.mark.parametrize("rule", [PA1(0.05), PA1(10.0), PA2(0.3)], ids=repr)
def test_a_step_lands_where_a_general_solver_lands(rule):
    stream = [([{"a": 1.0}, {"b": 2.0}], ["A", "B"]), ([{"b": 1.0}, {"a": -1.0}, {"c": 1.0}], ["B", "C", "A"])]
    model, x, y = trained(stream, rule), [{"a": 0.5, "b": 1.0}, {"c": 1.5}, {"a": 1.0}], ["C", "A", "B"]
    rival, before = model.predict_one(x), model.weights
    delta = direction(x, y, rival)
    keys = list({**before, **delta})
    w, d = np.array([before.get(key, 0.0) for key in keys]), np.array([float(delta.get(key, 0)) for key in keys])
    margin = math.sqrt(wrong(y, rival))

    def goal(z):
        slack = rule.C * (z[-1] if isinstance(rule, PA1) else z[-1] ** 2)
        return 0.5 * np.sum((z[:-1] - w) ** 2) + slack

    constraints = [
        {"type": "ineq", "fun": lambda z: z[:-1] @ d - margin + z[-1]}, {"type": "ineq", "fun": lambda z: z[-1]},
    ]
    expected = minimize(goal, [*w, 2.0], constraints=constraints, tol=1e-12, options={"maxiter": 500}).x[:-1]

    model.learn_one(x, y)
    assert rival != y
    assert [model.weights.get(key, 0.0) for key in keys] == pytest.approx(expected, abs=1e-5)


def test_the_direction_counts_both_paths_as_multisets():
    """The, dog, the: A B A against B A B. Each of ("emit", A, the) and ("emit", B, the) differs by 2, not by 1 + 1."""
    delta = pa_river.chain.difference([{"the": 1.0}, {"dog": 1.0}, {"the": 1.0}], [0, 1, 0], [1, 0, 1])
    assert sum(value**2 for value in delta.values()) == 4 + 4 + 1 + 1 + 1 + 1  # the moves AB, BA cancel: starts remain


def test_scores_are_summed_in_the_order_of_the_features():
    """Ties between tags are decided by the last bit, so both cores must round alike."""
    rng = np.random.default_rng(0)
    model = trained([([{f"f{i}": 1.0 for i in range(40)}] * 2, ["A", "B"])])
    model._store.now.emit[:40, :2] = rng.normal(size=(40, 2))
    for names in (3, 5, 9, 40):
        x = {f"f{i}": float(rng.normal()) for i in rng.permutation(40)[:names]}
        total = np.zeros(2)
        for name, value in x.items():
            total = total + model._store.now.emit[model._store.rows[name], :2] * value
        assert model._store.lattice([x], 2).emit.tolist() == [total.tolist()]


def test_large_values_that_cancel_leave_the_small_ones():
    x = [{"a": 1e16}, {"a": 1.0}, {"a": 1e16}]
    delta = pa_river.chain.difference(x, [0, 0, 1], [1, 1, 0])
    assert delta["emit", 0, "a"] == 1.0 and delta["emit", 1, "a"] == -1.0


def test_a_direction_of_length_zero_moves_nothing():
    """Tokens without features; A B A A and A A B A make the same moves, so no weights tell them apart."""
    model = trained([([{}, {}, {}, {}], ["A", "B", "A", "A"])] * 3, PA())
    gold, rival = [0, 1, 0, 0], [0, 0, 1, 0]
    assert not any(pa_river.chain.difference([{}] * 4, gold, rival).values())
    assert all(map(math.isfinite, model.weights.values()))


def test_untrained_gives_none_for_each_token():
    model = PASequence()
    assert model.predict_one(["a", "b"]) == [None, None]
    assert model.step(["a", "b"], ["A", "B"]) == [None, None]
    assert PASequence().predict_one([]) == [] and PASequence().decision_one(["a"]) == 0.0
    assert PASequence().weights == {}


def test_empty_sequences_count_and_one_token_is_a_start_and_an_emission():
    model = PASequence(PA())
    model.learn_one([], [])
    assert (model.version, model.weights, model.tags) == (1, {}, [])
    model.learn_one(["x"], ["A"])
    assert (model.version, model.weights, model.tags) == (2, {}, ["A"])  # one known tag: nothing to learn
    model.learn_one(["x"], ["B"])  # A is predicted; 4 joint features differ, the margin is 1
    assert model.weights == {
        ("start", "A"): -0.25, ("start", "B"): 0.25, ("emit", "A", "x"): -0.25, ("emit", "B", "x"): 0.25,
    }
    assert model.predict_one(["x"]) == ["B"]
    assert model.predict_one([]) == []


@pytest.mark.parametrize("update", ["prediction", "max_loss"])
def test_with_one_known_tag_the_model_stays_passive(update):
    model = trained([(["x", "y"], ["A", "A"]), (["y"], ["A"])], PA(), update=update)
    assert model.weights == {} and model.version == 2 and model.predict_one(["z"]) == ["A"]


def test_a_new_tag_is_registered_before_rivals_are_chosen():
    model = PASequence(PA())
    model.learn_one(["x", "y"], ["A", "B"])  # both new: A A is the first of equals, and loses
    assert model.weights["emit", "A", "y"] == -0.25 and model.weights["move", "A", "B"] == 0.25
    assert model.predict_one(["x", "y"]) == ["A", "B"]


def test_the_first_spelling_of_a_tag_is_kept():
    model = trained([(["x"], [True]), (["y"], [1]), (["y"], [1.0])])
    assert model.tags == [True] and model.predict_one(["x"]) == [True]


def test_a_callable_cost_gives_the_margin_its_root_and_is_asked_with_tags():
    asked = []

    def cost(y, r):
        asked.append((y, r))
        return 9.0

    model = PASequence(PA(), cost=cost)
    model.learn_one(["x", "y"], ["A", "B"])  # margin 3, squared norm 4: tau 3/4
    assert asked == [(["A", "B"], ["A", "A"])]
    assert model.weights["emit", "B", "y"] == 0.75


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, "1", None, True])
@pytest.mark.parametrize("learn", [PASequence.learn_one, PASequence.step, lambda m, x, y: m.learn_many([x, x], [y, y])])
def test_a_cost_that_is_no_finite_number_from_zero_changes_no_byte(value, learn):
    model = PASequence(cost=lambda y, r: 1.0)
    model.learn_one(["x", "y"], ["A", "B"])
    before = pa_river.dumps(model)
    model.cost = lambda y, r: value
    with pytest.raises(ValueError, match="cost"):
        learn(model, ["z", "y"], ["B", "new"])
    assert pa_river.dumps(model) == before


@pytest.mark.parametrize("learn", [PASequence.learn_one, PASequence.step, lambda m, x, y: m.learn_many([x, x], [y, y])])
def test_a_cost_that_raises_changes_no_byte(learn):
    calls = []

    def cost(y, r):
        calls.append(r)
        if len(calls) == 2:
            raise KeyError("no such pair")
        return 1.0

    model = PASequence(cost=cost)
    model.learn_one(["x", "y"], ["A", "B"])
    before = pa_river.dumps(model)
    with pytest.raises(KeyError):
        learn(model, ["z", "y"], ["B", "new"])
    assert pa_river.dumps(model) == before


def test_max_loss_takes_the_count_of_wrong_tags_only():
    with pytest.raises(ValueError, match="max_loss.*hamming"):
        PASequence(cost=lambda y, r: 1.0, update="max_loss")


@pytest.mark.parametrize(("params", "message"), [
    ({"rule": 1.0}, "rule"), ({"cost": "zero-one"}, "cost"), ({"update": "worst"}, "update"),
    ({"average": 1}, "average"),
])
def test_parameters_are_checked_when_built(params, message):
    with pytest.raises(ValueError, match=rf"PASequence\({message}=...\)"):
        PASequence(**params)


@pytest.mark.parametrize(("x", "y", "message"), [
    (["a"], ["A", "B"], "1 tokens with 2 tags"),
    ("ab", ["A", "B"], "tokens"),
    (["a", "b"], "AB", "tags"),
    (["a", 3], ["A", "B"], "token 1"),
    (["a", ["x", 3]], ["A", "B"], "token 1.*texts"),
    (["a", ["x", ["y"]]], ["A", "B"], "token 1.*texts"),
    ([["x", "y", "x"]], ["A"], "token 0.*'x' appears twice"),
    ([{"x": math.nan}], ["A"], "token 0.*'x'"),
    ([{"x": [1.0]}], ["A"], "token 0.*'x'"),
    (["a"], [None], "label"),
    (["a"], [math.nan], "label"),
    (["a"], [["A"]], "label"),
])
def test_what_is_no_example_is_refused_by_name_and_changes_no_byte(x, y, message):
    model = trained([(["a", "b"], ["A", "B"])])
    before = pa_river.dumps(model)
    for call in (model.learn_one, model.step, lambda x, y: model.learn_many([["a"], x], [["A"], y])):
        with pytest.raises(ValueError, match=message):
            call(x, y)
    assert pa_river.dumps(model) == before


def test_lists_of_texts_and_mappings_of_ones_are_the_same_tokens():
    x, y = [["w=the", "cap"], "dog", ("w=barks",)], ["DET", "NOUN", "VERB"]
    spelled = [{"w=the": 1.0, "cap": True}, {"dog": 1}, {"w": "barks"}]
    assert pa_river.dumps(trained([(x, y)])) == pa_river.dumps(trained([(spelled, y)]))


@given(st.lists(sentences(strategies.records(strategies.wild, st.sampled_from(["a", "b"]))), max_size=6), st.booleans())
def test_tokens_of_any_scale_learn_or_are_refused_whole(stream, average):
    model = PASequence(PA(), average=average)
    for x, y in stream:
        before = pa_river.dumps(model)
        try:
            model.learn_one(x, y)
        except ValueError as error:
            assert "finite" in str(error)
            assert pa_river.dumps(model) == before
    assert all(map(math.isfinite, model.weights.values()))


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_tokens_of_extreme_scale_are_learned(scale):
    model = PASequence(PA())
    x, y = [{"a": scale}, {"b": scale}], ["A", "B"]
    for _ in range(20):
        model.learn_one(x, y)
    assert model.predict_one(x) == y


@given(streams, st.floats(0.1, 3.0))
def test_averaged_predictions_use_the_mean_of_the_weights_after_each_example(stream, C):
    averaged, plain, total = PASequence(PA1(C), average=True), PASequence(PA1(C)), collections.defaultdict(Fraction)
    for x, y in stream:
        averaged.learn_one(x, y)
        plain.learn_one(x, y)
        for key, value in plain.weights.items():
            total[key] += Fraction(value)
    mean = {key: float(value / len(stream)) for key, value in total.items()}
    found = averaged.weights
    assert {key: found.get(key, 0.0) for key in {**mean, **found}} == pytest.approx(
        {key: mean.get(key, 0.0) for key in {**mean, **found}}, rel=1e-9, abs=1e-9)
    for x, _ in stream:
        score = product(mean, joint(x, averaged.predict_one(x)))
        assert averaged.decision_one(x) == pytest.approx(float(score), rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("params", [{}, {"average": True}, {"update": "max_loss"}], ids=repr)
@given(stream=streams)
def test_a_batch_equals_the_loop(params, stream):
    batch = PASequence(**params)
    batch.learn_many([x for x, _ in stream], [y for _, y in stream])
    loop = trained(stream, **params)
    assert pa_river.dumps(batch) == pa_river.dumps(loop)
    assert batch.predict_many([x for x, _ in stream]) == [loop.predict_one(x) for x, _ in stream]


@given(streams, streams, st.booleans())
def test_a_batch_that_fails_late_is_undone_to_the_byte(before, batch, average):
    calls = [0]

    def cost(y, r):
        if calls is not None and calls[0] == 0:
            raise ValueError("no cost")
        calls[0] -= 1
        return float(wrong(y, r))

    calls[0] = 10**9
    model = trained(before, cost=cost, average=average)
    held = pa_river.dumps(model)
    calls[0] = 2  # the third wrong prediction of the batch fails
    try:
        model.learn_many([x for x, _ in batch], [y for _, y in batch])
    except ValueError as error:
        assert "row" in str(error)
        assert pa_river.dumps(model) == held
        calls[0] = 10**9
        for x, y in batch:
            model.learn_one(x, y)
        assert pa_river.dumps(model) == pa_river.dumps(trained([*before, *batch], cost=cost, average=average))


def test_a_batch_of_steps_answers_as_a_batch_of_predictions_does():
    X, y = [["a", "b"], ["a"], []], [["A", "B"], ["B"], []]
    model, looped = PASequence(PA()), PASequence(PA())
    assert model.step_many(X, y) == [looped.step(tokens, tags) for tokens, tags in zip(X, y)]
    assert model.weights == looped.weights
    assert type(model.step_many(X, y)) is type(model.predict_many(X)) is list


def test_a_batch_names_the_row():
    model = PASequence()
    with pytest.raises(ValueError, match="row 1: token 0.*'x'"):
        model.learn_many([["a"], [{"x": math.inf}]], [["A"], ["B"]])
    with pytest.raises(ValueError, match="X has 2 rows, y has 1, w has 2"):
        model.learn_many([["a"], ["b"]], [["A"]])
    with pytest.raises(ValueError, match="row 0.*weight"):
        model.learn_many([["a"]], [["A"]], [-1.0])


def test_weight_zero_changes_no_byte_and_weights_scale_the_cap():
    model = PASequence(PA1(0.1))
    model.learn_one(["x", "y"], ["A", "B"], 0)
    assert pa_river.dumps(model) == pa_river.dumps(PASequence(PA1(0.1)))
    model.learn_one(["x", "y"], ["A", "B"], 2.0)
    assert model.weights["emit", "B", "y"] == pytest.approx(0.2)


def test_a_callable_cost_is_given_back_to_loads():
    model = trained([(["x", "y"], ["A", "B"])], cost=lambda y, r: 4.0)
    with pytest.raises(pa_river.StateError, match="cost"):
        pa_river.loads(pa_river.dumps(model))
    loaded = pa_river.loads(pa_river.dumps(model), cost=model.cost)
    assert loaded.weights == model.weights


def test_a_tag_that_bytes_cannot_hold_learns_and_is_named_by_dumps():
    model = trained([(["x", "y"], [frozenset("A"), "B"])])
    assert model.predict_one(["x", "y"]) == [frozenset("A"), "B"]
    with pytest.raises(pa_river.StateError, match="frozenset"):
        pa_river.dumps(model)


def test_stored_models_continue_in_another_process_with_another_hash_seed():
    program = """
import pa_river, sys
model = pa_river.loads(bytes.fromhex(sys.argv[1])) if len(sys.argv) > 1 else pa_river.PASequence(average=True)
for x, y in [([["a", "b"], "c"], ["A", ("B", 1)]), (["c", {"b": 0.1}, "a"], [1.5, "A", b"C"])] * 3:
    model.learn_one(x, y)
print(pa_river.dumps(model).hex(), model.weights)
"""

    def run(seed, *args):
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", program, *args]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    first, second = run("1"), run("2")
    assert first == second
    state = first.split()[0]
    assert run("1", state) == run("2", state)


@pytest.mark.parametrize("spoil", [
    lambda v: {**v, "tags": ["A", "A"]}, lambda v: {**v, "tags": ["A"]}, lambda v: {**v, "tags": None},
    lambda v: {**v, "version": -1}, lambda v: {**v, "sums": None}, lambda v: {**v, "store": {}},
    lambda v: {**v, "store": {**v["store"], "emit": v["store"]["emit"] * np.nan}},
    lambda v: {**v, "store": {**v["store"], "move": v["store"]["move"][1:]}},
    lambda v: {**v, "store": {**v["store"], "names": pa_river.state.pack_names(["x", "x"])}},
    lambda v: {**v, "tags": ["A", None]}, lambda v: {**v, "tags": ["A", math.nan]},
    lambda v: {**v, "tags": ["A", ["B"]]},
])
def test_a_state_that_does_not_fit_is_refused(spoil):
    model = trained([(["x", "y"], ["A", "B"])], average=True)
    values = spoil(model._get_state())
    model._get_state = lambda: values
    with pytest.raises(pa_river.StateError):
        pa_river.loads(pa_river.dumps(model))


def test_a_copy_by_river_starts_untrained_with_the_same_parameters():
    model = trained([(["x", "y"], ["A", "B"])], PA2(0.5), update="max_loss", average=True)
    twin = model.clone()
    assert repr(twin) == repr(model) and twin.version == 0 and twin.tags == []
    assert model.clone({"rule": PA()}).rule.length(1.0, 2.0) == 0.5
