"""PAMulticlass against the paper's numbers, exact fractions, brute force over pairs and a general solver."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pa_river
from pa_river import PA, PA1, PA2, PAClassifier, PAMulticlass
from tests import oracles, strategies

LABELS = ("A", "B", "C", "D")
STREAM = st.lists(st.tuples(strategies.records(), st.sampled_from(LABELS)), max_size=12)


def plain(rule, labels=("A", "B")):
    return PAMulticlass(rule, learn_intercept=False, labels=labels)


def test_a_basic_step_puts_the_right_label_one_ahead():
    model = plain(PA())
    model.learn_one({"a": 3, "b": 4}, "A")  # loss 1, squared norm 2 * 25: tau = 1 / 50
    assert model.weights["A"] == pytest.approx({"a": 0.06, "b": 0.08}, rel=1e-15)
    assert model.weights["B"] == {name: -weight for name, weight in model.weights["A"].items()}
    scores = model.decision_one({"a": 3, "b": 4})
    assert scores["A"] - scores["B"] == pytest.approx(1.0, abs=4 * math.ulp(1.0))


@pytest.mark.parametrize("rule, tau", [
    (PA(), Fraction(1, 50)), (PA1(0.01), Fraction(1, 100)), (PA1(1.0), Fraction(1, 50)), (PA2(0.5), Fraction(1, 51)),
], ids=repr)
def test_tau_of_each_rule(rule, tau):
    model = plain(rule)
    model.learn_one({"a": 3, "b": 4}, "A")
    expected = {"a": float(3 * tau), "b": float(4 * tau)}
    assert model.weights["A"] == pytest.approx(expected, rel=1e-14)
    assert model.weights["B"] == pytest.approx({name: -weight for name, weight in expected.items()}, rel=1e-14)


def test_the_intercept_is_a_feature_of_each_label_inside_the_norm():
    model = PAMulticlass(PA(), labels=("A", "B"))
    model.learn_one({"a": 3, "b": 4}, "A")  # squared norm 2 * 26
    assert model.intercept == pytest.approx({"A": 1 / 52, "B": -1 / 52}, rel=1e-14)
    assert model.weights["A"] == pytest.approx({"a": 3 / 52, "b": 4 / 52}, rel=1e-14)


def exact(rule, stream, learn_intercept):
    """The paper's pseudo-code in fractions, slot 1 there from the start: label -> (bias, weights) after the stream."""
    slots, weights, bias = {}, {}, {0: Fraction(0), 1: Fraction(0)}
    for x, y in stream:
        own = slots.setdefault(y, len(slots))
        bias.setdefault(own, Fraction(0))
        score = {r: bias[r] + sum(weights.get((r, n), 0) * Fraction(v) for n, v in x.items()) for r in sorted(bias)}
        rival = max((r for r in score if r != own), key=lambda r: score[r])
        loss = 1 - score[own] + score[rival]
        square = 2 * (sum(Fraction(v) ** 2 for v in x.values()) + learn_intercept)
        if loss > 0 and square > 0:
            tau = loss / square
            if isinstance(rule, PA1):
                tau = min(Fraction(rule.C), tau)
            if isinstance(rule, PA2):
                tau = loss / (square + 1 / (2 * Fraction(rule.C)))
            for r, sign in ((own, 1), (rival, -1)):
                bias[r] += sign * tau * learn_intercept
                for n, v in x.items():
                    weights[r, n] = weights.get((r, n), 0) + sign * tau * Fraction(v)
    return {y: (bias[r], {n: w for (s, n), w in weights.items() if s == r and w}) for y, r in slots.items()}


small = strategies.records(st.integers(-4, 4).map(lambda v: v / 2), most=4)


@pytest.mark.parametrize("learn_intercept", [True, False])
@pytest.mark.parametrize("rule", [PA1(0.1), PA2(0.5)], ids=repr)
@given(stream=st.lists(st.tuples(small, st.sampled_from(LABELS)), max_size=6), seed=st.integers(0, 9))
def test_a_stream_follows_the_papers_pseudo_code_in_fractions(rule, learn_intercept, stream, seed):
    # an odd first step makes exact ties of later scores, which rounding may turn, unlikely
    stream = [({"a": 0.7 + seed, "b": 0.3}, "A"), *stream]
    model = PAMulticlass(rule, learn_intercept=learn_intercept)
    for x, y in stream:
        scores = sorted(model.decision_one(x).values())
        assume(all(b - a > 1e-9 for a, b in zip(scores, scores[1:])) or len(model.decision_one(x)) < 2)
        model.learn_one(x, y)
    for y, (bias, weights) in exact(rule, stream, learn_intercept).items():
        assert model.intercept[y] == pytest.approx(float(bias), abs=1e-9)
        ours = model.weights[y]
        assert [ours.get(n, 0.0) for n in weights] == pytest.approx([float(w) for w in weights.values()], abs=1e-9)


@given(stream=STREAM, x=strategies.records(), y=st.sampled_from(LABELS), learn_intercept=st.booleans())
def test_a_basic_step_restores_the_margin_of_the_pair_it_moved(stream, x, y, learn_intercept):
    model = PAMulticlass(PA(), learn_intercept=learn_intercept, labels=LABELS)
    for past in stream:
        model.learn_one(*past)
    before = model.decision_one(x)
    rival = max((r for r in LABELS if r != y), key=before.__getitem__)
    assume(1.0 - (before[y] - before[rival]) > 0.0 and (learn_intercept or any(x.values())))
    sizes = [oracles.magnitude(model.weights[r], model.intercept[r], x) for r in (y, rival)]
    model.learn_one(x, y)
    sizes += [oracles.magnitude(model.weights[r], model.intercept[r], x) for r in (y, rival)]
    own, other = (oracles.exact_score(model.weights[r], model.intercept[r], x) for r in (y, rival))
    assert abs(own - other - 1) <= Fraction(2 * (len(x) + learn_intercept + 4) * math.ulp(1.0) * (1.0 + max(sizes)))


@given(stream=STREAM, x=strategies.records(), y=st.sampled_from(LABELS))
def test_the_loss_is_the_largest_over_all_pairs(stream, x, y):
    model = PAMulticlass(labels=LABELS)
    for past in stream:
        model.learn_one(*past)
    scores = model.decision_one(x)
    losses = {r: 1.0 - (scores[y] - scores[r]) for r in LABELS if r != y}
    before = model.weights
    model.learn_one(x, y)
    moved = [r for r in LABELS if model.weights[r] != before[r]]
    if max(losses.values()) <= 0.0:
        assert moved == []
    else:
        rival = next(r for r in losses if losses[r] == max(losses.values()))
        assert set(moved) <= {y, rival}


@pytest.mark.parametrize("rule, make", [("PA", PA), ("PA-I", lambda: PA1(0.02)), ("PA-I", PA1), ("PA-II", PA2)])
@pytest.mark.parametrize("y", LABELS[:3])
def test_a_step_lands_where_a_general_solver_lands(rule, make, y):
    model = plain(make(), labels=LABELS[:3])
    for past in (({"a": 1.0, "b": 2.0}, "B"), ({"a": -1.0, "b": 0.5}, "A"), ({"a": 0.3}, "C")):
        model.learn_one(*past)
    names, x = ("a", "b"), np.array([1.5, -0.5])
    W = np.array([[model.weights[r].get(n, 0.0) for n in names] for r in LABELS[:3]])
    own, scores = LABELS.index(y), W @ x
    rival = max((r for r in range(3) if r != own), key=lambda r: scores[r])
    direction = np.zeros((3, 2))
    direction[own], direction[rival] = x, -x
    loss = 1.0 - scores[own] + scores[rival]
    expected = oracles.solved(W.ravel(), direction.ravel(), loss, rule, getattr(model.rule, "C", 1.0))
    model.learn_one(dict(zip(names, x)), y)
    ours = np.array([[model.weights[r].get(n, 0.0) for n in names] for r in LABELS[:3]])
    assert ours.ravel() == pytest.approx(expected if loss > 0 else W.ravel(), abs=1e-6)


@given(stream=st.lists(st.tuples(strategies.records(), st.booleans()), max_size=12))
def test_two_labels_score_as_half_a_binary_model_on_either_side(stream):
    # with two prototypes w_B = -w_A, and w_A - w_B moves as a binary weight vector with |d|^2 = |x|^2 / 2 does
    two = PAMulticlass(PA(), learn_intercept=False, labels=(True, False))
    one = PAClassifier(PA(), learn_intercept=False)
    for x, y in stream:
        two.learn_one(x, y)
        one.learn_one(x, y)
        scores = two.decision_one(x)
        assert scores[True] == pytest.approx(-scores[False], rel=1e-9, abs=1e-9)
        assert scores[True] - scores[False] == pytest.approx(one.decision_one(x), rel=1e-6, abs=1e-6)


def test_text_labels_with_text_features_just_work():
    model = PAMulticlass()
    mails = [({"subject": "win money now"}, "spam"), ({"subject": "meeting at ten"}, "work"),
             ({"subject": "happy birthday"}, "family")]
    for x, y in mails * 3:
        model.learn_one(x, y)
    assert [model.predict_one(x) for x, _ in mails] == ["spam", "work", "family"]
    with pytest.raises(ValueError, match="PAMulticlass"):
        PAClassifier().learn_one(*mails[0])


@pytest.mark.parametrize("size", [1e-200, 1e-150, 1e-30, 1.0, 1e30, 1e150, 1e200])
def test_scale_does_not_matter_to_the_basic_step(size):
    model = plain(PA())
    model.learn_one({"a": 3 * size, "b": 4 * size}, "A")
    assert model.weights["A"]["a"] * size == pytest.approx(3 / 50, rel=1e-14)
    scores = model.decision_one({"a": 3 * size, "b": 4 * size})
    assert scores["A"] - scores["B"] == pytest.approx(1.0, rel=1e-14)


@pytest.mark.parametrize("rule", [PA(), PA1(0.1), PA2(0.1)], ids=repr)
def test_an_empty_record_without_intercept_moves_nothing_and_registers_its_label(rule):
    model = PAMulticlass(rule, learn_intercept=False)
    model.learn_one({}, "A")
    model.learn_one({"a": 0.0}, "B")
    assert (model.weights, model.version) == ({"A": {}, "B": {}}, 2)


def test_importance_scales_the_cap():
    model = plain(PA1(0.01))
    model.learn_one({"a": 3, "b": 4}, "A", 1.5)
    assert model.weights["A"] == pytest.approx({"a": 0.045, "b": 0.06}, rel=1e-14)


def test_mixed_predictions_of_a_batch_keep_their_types():
    model = PAMulticlass(PA(), learn_intercept=False)
    model.learn_many(np.eye(2), [1.0, "text"])
    assert list(model.predict_many(np.eye(2))) == [1.0, "text"]
    assert pa_river.PAMulticlass().predict_many(np.eye(2)).tolist() == [None, None]
