"""The tagger's two cores: the same answers, the same refusals, the same bytes, on any sentences."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pa_river
from pa_river import PA, PA1, PA2, PASequence, Sentences, _compiled
from tests import strategies
from tests.properties.test_parity import Half, any_name, any_weight, anything, close, outcome

pytestmark = pytest.mark.skipif(not pa_river.NATIVE, reason="the compiled core is not built: there is one core only")

BUILDS = [
    lambda: PASequence(), lambda: PASequence(PA(), average=True), lambda: PASequence(PA2(0.5), update="max_loss"),
    lambda: PASequence(PA1(0.3), average=True, update="max_loss"), lambda: PASequence(Half(), average=True),
    lambda: PASequence(PA1(5.0), cost=lambda y, r: float(y[-1] != r[-1]) + 0.5),
]
EVERY = pytest.mark.parametrize("build", BUILDS, ids=[
    "plain", "averaged", "max_loss", "averaged max_loss", "own rule", "own cost"])
TAGS = st.sampled_from(["A", "B", "C", 4, 5.5, ("D", 1), True, "long tag"])


def pairs(tokens, tags=TAGS, most=5):
    return st.lists(st.tuples(tokens, tags), max_size=most).map(lambda p: ([x for x, _ in p], [y for _, y in p]))


words = st.lists(st.sampled_from("abcdefgh"), max_size=4, unique=True)
plain = st.one_of(words, words.map(tuple), st.sampled_from("abc"), strategies.records(
    st.integers(-3, 3).map(float), st.sampled_from(["a", "b", 3, ("t", 1)]), most=3))
any_token = st.one_of(plain, st.dictionaries(any_name, anything, max_size=4), st.sampled_from(
    [["x", "x"], ["x", 3], 7, None, ["y"] * 70, [f"n{i}" for i in range(70)], {"z": 10**400}, {None: 1.0}]))


def twins(build):
    return build(), _compiled.on_reference(build())


def agree(compiled, reference):
    assert (compiled.version, compiled.tags) == (reference.version, reference.tags)
    assert list(map(type, compiled.tags)) == list(map(type, reference.tags))
    assert list(compiled._store.rows) == list(reference._store.rows) and compiled._store.slots == reference._store.slots
    assert close(compiled.weights, reference.weights, 1e-9)


@EVERY
@given(stream=st.lists(pairs(plain), max_size=8))
def test_tame_streams_lead_to_the_same_weights_and_answers(build, stream):
    compiled, reference = twins(build)
    for x, y in stream:
        assert compiled.predict_one(x) == reference.predict_one(x)
        assert compiled.step(x, y) == reference.step(x, y)
        agree(compiled, reference)
    assert compiled.predict_many([x for x, _ in stream]) == reference.predict_many([x for x, _ in stream])


@EVERY
@given(stream=st.lists(st.tuples(pairs(any_token, st.one_of(TAGS, st.sampled_from([None, math.nan, ["A"]]))),
                                 st.one_of(any_weight, strategies.bad_weights)), max_size=6))
def test_each_step_from_the_same_state_is_the_same_or_refused_alike(build, stream):
    reference = _compiled.on_reference(build())
    for (x, y), w in stream:
        compiled = build()
        compiled._set_state(pa_river.state.unpack(pa_river.state.pack(reference._get_state())))
        before = pa_river.state.pack(compiled._get_state())
        answers = outcome(compiled.step, x, y, w), outcome(reference.step, x, y, w)
        refused = [isinstance(answer, tuple) for answer in answers]
        assert refused[0] == refused[1], answers
        if refused[0]:
            assert pa_river.state.pack(compiled._get_state()) == before
            assert answers[0][1].split(":")[0] == answers[1][1].split(":")[0]  # the token, or the whole reason
        else:
            assert answers[0] == answers[1]
        agree(compiled, reference)


@EVERY
@given(stream=st.lists(pairs(plain), max_size=8), later=st.lists(pairs(plain), max_size=4))
def test_batches_of_sentences_read_once_equal_the_loop_on_either_core(build, stream, later):
    compiled, reference = twins(build)
    X, y, w = Sentences([x for x, _ in stream]), [y for _, y in stream], [1.0 + i % 3 for i in range(len(stream))]
    for _ in range(2):
        compiled.learn_many(X, y, w)
        reference.learn_many(X, y, w)
        agree(compiled, reference)
        for example in later:  # rows that come between two epochs
            compiled.learn_one(*example)
            reference.learn_one(*example)
    assert compiled.predict_many(X) == reference.predict_many(X)
    loop = build()
    for _ in range(2):
        for (x, tags), weight in zip(stream, w):
            loop.learn_one(x, tags, weight)
        for example in later:
            loop.learn_one(*example)
    assert pa_river.state.pack(loop._get_state()) == pa_river.state.pack(compiled._get_state())


@given(stream=st.lists(pairs(plain), max_size=8), average=st.booleans())
def test_bytes_load_crosswise_and_continue_alike(stream, average):
    compiled, reference = twins(lambda: PASequence(average=average))
    for x, y in stream[:4]:
        compiled.learn_one(x, y)
        reference.learn_one(x, y)
    across = _compiled.on_reference(pa_river.loads(pa_river.dumps(compiled)))
    assert pa_river.dumps(across) == pa_river.dumps(compiled)
    back = pa_river.loads(pa_river.dumps(across))
    for x, y in stream[4:]:
        across.learn_one(x, y)
        back.learn_one(x, y)
    agree(back, across)


@given(stream=st.lists(pairs(plain), min_size=1, max_size=6), rest=st.lists(pairs(plain), max_size=4))
def test_copies_do_not_share_and_continue_alike(stream, rest):
    model, X = PASequence(average=True), Sentences([x for x, _ in stream])
    model.learn_many(X, [y for _, y in stream])
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), pa_river.loads(pa_river.dumps(model))]
    for twin in twins:
        for x, y in rest:
            twin.learn_one(x, y)
        twin.learn_many(X, [y for _, y in stream])
    for x, y in rest:
        model.learn_one(x, y)
    model.learn_many(pickle.loads(pickle.dumps(X)), [y for _, y in stream])
    assert len({pa_river.dumps(each) for each in [model, *twins]}) == 1


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("count", [3, 400])
def test_a_long_batch_that_fails_at_its_end_is_undone_to_the_byte(count, average):
    """400 sentences change more than the weights take, so that a copy of these stands for what comes after."""
    failing = [False]

    def cost(y, r):
        if failing[0] and y[0] == "last":
            raise KeyError("no such pair")
        return 1.0

    model = PASequence(PA1(0.1), cost=cost, average=average)
    model.learn_many([["a", "b", "c"], ["b", "d"]] * 3, [["A", "B", "A"], ["B", "A"]] * 3)
    before = pa_river.state.pack(model._get_state())
    X = [[[f"w{i * j % 17}", "a"] for j in range(12)] for i in range(count)]
    y = [[["A", "B", "C"][(i + j) % 3] for j in range(12)] for i in range(count)]
    failing[0] = True
    with pytest.raises(KeyError):
        model.learn_many([*X, ["a", "b"]], [*y, ["last", "A"]])
    assert pa_river.state.pack(model._get_state()) == before
    failing[0] = False
    twin = PASequence(PA1(0.1), cost=cost, average=average)
    twin.learn_many([["a", "b", "c"], ["b", "d"]] * 3, [["A", "B", "A"], ["B", "A"]] * 3)
    for each in (model, twin):
        each.learn_many(X, y)
    assert pa_river.state.pack(model._get_state()) == pa_river.state.pack(twin._get_state())


def test_sums_of_many_parts_are_rounded_once_on_both_cores():
    x, y = [{"a": 1e16}, {"a": 1.0}, {"a": -1e16}, {"b": 0.1}, {"b": 0.2}, {"b": 0.3}], ["A", "A", "A", "B", "B", "B"]
    compiled, reference = twins(lambda: PASequence(PA()))
    for model in (compiled, reference):
        model.learn_one([{}], ["B"])
        model.learn_one(x, y)  # everything is taken for B: ("emit", "A", "a") differs by 1, exactly
    assert compiled.weights == reference.weights and compiled.weights["emit", "A", "a"] > 0.0


def test_a_cost_that_teaches_the_model_is_told_so():
    model = PASequence(cost=lambda y, r: model.learn_one(["new", "names"], ["B", "A"]) or 1.0)
    with pytest.raises((RuntimeError, RecursionError), match="cost|recursion"):
        model.learn_one(["x", "y"], ["A", "B"])


@given(stream=st.lists(pairs(plain), min_size=1, max_size=6), extra=st.lists(st.sampled_from("uvwxyz"), unique=True))
def test_sums_of_names_that_have_no_weight_find_their_rows(stream, extra):
    """Older states list the names of the sums on their own, fewer and in another order; a hostile one, others."""
    models = twins(lambda: PASequence(PA(), average=True))
    models[0].learn_many([x for x, _ in stream], [y for _, y in stream])
    values = models[0]._get_state()
    names = pa_river.state.unpack_names(values["sums"]["names"])[::-1]
    sums = {**values["sums"], "names": pa_river.state.pack_names([*names, *extra])}
    sums["emit"] = np.vstack([values["sums"]["emit"][::-1], np.ones((len(extra), values["sums"]["emit"].shape[1]))])
    for model in models:
        model._set_state({**values, "sums": sums})
        for x, y in stream:
            model.learn_one([[*"uvwxyz", *(f"new {i}" for i in range(40))], *x], ["A", *y])
    agree(*models)


def test_one_model_after_the_other_may_learn_from_the_same_sentences():
    X, y = Sentences([["a", "b"], ["b", ["c", "d"]]]), [["A", "B"], ["B", "A"]]
    models = [PASequence(), PASequence()]
    for _ in range(3):
        for model in models:
            model.learn_many(X, y)
    assert pa_river.dumps(models[0]) == pa_river.dumps(models[1])
    assert models[0].predict_many(X) == y
