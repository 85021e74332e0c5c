"""Over sentences, what `test_rules.py` draws over records: scales, directions, batches; and the bounds of the paper."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pa_river
from pa_river import PA, PA1, PA2, PASequence, chain
from tests import cases, strategies

EVERY = pytest.mark.parametrize("case", cases.SEQUENCES, ids=str)
TAGS = ["A", "B", "C"]
RULES = [PA(), PA1(0.3), PA2(0.7)]
UPDATES = ["prediction", "max_loss"]


def sentences(values=strategies.tame, most=4):
    token = strategies.records(values, st.sampled_from(["a", "b", "c"]), most=3)
    pairs = st.lists(st.tuples(token, st.sampled_from(TAGS)), min_size=1, max_size=most)
    return pairs.map(lambda pairs: ([x for x, _ in pairs], [y for _, y in pairs]))


#: A comparator: one weight a joint feature, given before the stream.
KEYS = [*(("emit", tag, name) for tag in range(3) for name in "abc"),
        *(("move", one, other) for one in range(-1, 3) for other in range(3))]
comparators = st.lists(st.floats(-3, 3), min_size=len(KEYS), max_size=len(KEYS)).map(lambda u: dict(zip(KEYS, u)))


def product(u, phi):
    return math.fsum(u[key] * value for key, value in phi.items())


def distance(model, u):
    """|w - u|^2, the weights of the model by slots."""
    slot = {tag: i for i, tag in enumerate(model.tags)}
    w = {}
    for (kind, *at), value in model.weights.items():
        if kind == "emit":
            w["emit", slot[at[0]], at[1]] = value
        else:
            w["move", slot[at[0]] if kind == "move" else -1, slot[at[-1]]] = value
    return math.fsum((w.get(key, 0.0) - u[key]) ** 2 for key in KEYS)


def declared(*args, **params):
    """A model that knows A, B and C in this order: slots and tags are then one thing for the comparator."""
    model = PASequence(*args, **params)
    for tag in TAGS:
        model.learn_one([{}], [tag])
    return model


@EVERY
@given(data=st.data())
def test_a_step_raises_the_score_of_its_direction_by_length_times_norm(case, data):
    model = case.trained(data.draw(case.stream))
    x, y = data.draw(case.example)
    violation = model._violation(x, y, model._scores(x))
    assume(violation is not None and violation.norm > 0.0)
    (term,) = violation.terms
    before = model._store.score(term.phi)
    model.learn_one(x, y)
    rise = model.rule.length(violation.loss, violation.norm) * violation.norm
    assert model._store.score(term.phi) - before == pytest.approx(rise, rel=1e-6, abs=1e-6)


@EVERY
@given(data=st.data())
def test_numpy_and_integer_values_are_numbers(case, data):
    record = strategies.records(st.integers(-5, 5).filter(bool))
    stream = data.draw(st.lists(st.tuples(st.lists(record, min_size=3, max_size=3), case.y), max_size=6))

    def trained(kind):
        return case.trained([([{k: kind(v) for k, v in token.items()} for token in x], y) for x, y in stream])

    for kind in (np.float64, np.float32, np.int64, int):
        assert pa_river.dumps(trained(kind)) == pa_river.dumps(trained(float))


@EVERY
@given(data=st.data())
def test_sentences_of_any_scale_learn_or_are_refused_whole(case, data):
    model = case.build()
    for x, y in data.draw(st.lists(sentences(strategies.wild), max_size=8)):
        before = pa_river.dumps(model)
        try:
            model.learn_one(x, y)
            model.step(x, y)
            model.predict_one(x)
        except ValueError as error:  # a score or weight beyond the floats, and nothing else
            assert "finite" in str(error)
            if model.version == pa_river.loads(before).version:
                assert pa_river.dumps(model) == before
    assert all(map(math.isfinite, model.weights.values()))


@EVERY
@given(data=st.data())
def test_a_batch_of_sentences_equals_the_loop_and_a_bad_one_learns_nothing(case, data):
    stream = data.draw(case.stream)
    X, y = [x for x, _ in stream], [y for _, y in stream]
    batch = case.build()
    batch.learn_many(X, y)
    assert pa_river.dumps(batch) == pa_river.dumps(case.trained(stream))
    before, bad = pa_river.dumps(batch), data.draw(st.sampled_from(case.bad_y))
    with pytest.raises(ValueError, match=f"row {len(X)}"):
        batch.learn_many([*X, data.draw(case.x)], [*y, bad])
    assert pa_river.dumps(batch) == before


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("rule", RULES, ids=repr)
@given(stream=st.lists(sentences(st.floats(-5, 5)), max_size=8), u=comparators)
def test_the_master_inequality_holds_on_every_stream(rule, update, stream, u):
    """Lemma 1: sum tau_t (2 l_t - tau_t |d_t|^2 - 2 l*_t) <= |u|^2, l* the comparator's loss on the same constraint."""
    model, left, size = declared(rule, update=update), 0.0, 1.0
    start = distance(model, u)
    for x, y in stream:
        violation = model._violation(x, y, model._scores(x))
        if violation is not None and violation.norm > 0.0:
            (term,) = violation.terms
            margin = violation.loss + model._store.score(term.phi)
            tau = rule.length(violation.loss, violation.norm) / violation.norm
            theirs = max(0.0, margin - product(u, term.phi))
            left += tau * (2.0 * violation.loss - tau * violation.norm**2 - 2.0 * theirs)
            size += tau * (2.0 * violation.loss + tau * violation.norm**2 + 2.0 * theirs)
        model.learn_one(x, y)
    # the sentences that declare the tags come before the stream: |w_1 - u|^2 stands where the paper has |u|^2
    assert left <= start - distance(model, u) + 1e-9 * size
    assert left <= start + 1e-9 * size


@given(stream=st.lists(sentences(st.floats(-2, 2)), max_size=8), u=comparators)
def test_the_cumulative_cost_of_max_loss_pa1_is_bounded(stream, u):
    """K7 with the squared count of wrong tags as cost, whose root is the margin; C at least the largest root."""
    C = 4.0
    model = declared(PA1(C), update="max_loss")
    start, costs, losses, radius = distance(model, u), 0.0, 0.0, 1.0
    for x, y in stream:
        gold = [TAGS.index(tag) for tag in y]
        costs += sum(map(str.__ne__, model.predict_one(x), y)) ** 2
        worst = 0.0
        for rival in itertools.product(range(3), repeat=len(x)):
            d = chain.difference(x, gold, rival)
            worst = max(worst, sum(map(int.__ne__, gold, rival)) - product(u, d))
            radius = max(radius, math.sqrt(math.fsum(value**2 for value in d.values())))
        losses += worst
        model.learn_one(x, y)
    assert costs <= radius**2 * (start + 2.0 * C * losses) * (1 + 1e-9) + 1e-9
