"""Every printed figure of the two teaching texts, reproduced by our learners on the texts' own streams."""

from __future__ import annotations

import numpy as np
import pytest

from pa_river import PA, PA1, PA2, PAClassifier


def stream(n=400, d=5, seed=1, noise=0.6, flip=0.0):
    """The text's stream: the true weights look at the first two coordinates only; draws in the text's order."""
    rng = np.random.default_rng(seed)
    truth = np.array([1.0, -0.6, 0.0, 0.0, 0.0])
    truth /= np.linalg.norm(truth)
    for _ in range(n):
        x = rng.normal(0.0, 1.0, d)
        y = float(truth @ x) + rng.normal(0.0, noise) > 0
        if flip > 0.0 and rng.uniform() < flip:
            y = not y
        yield dict(enumerate(x.tolist())), y


class Played:
    """One pass: mistakes counted on the score before the update, and how many updates there were."""

    def __init__(self, rule, examples):
        self.model = PAClassifier(rule, learn_intercept=False)
        self.curve, self.updates = [], 0
        mistakes = 0
        for x, y in examples:
            before = self.model.weights
            mistakes += (1 if y else -1) * self.model.decision_one(x) <= 0
            self.model.learn_one(x, y)
            self.updates += self.model.weights != before
            self.curve.append(mistakes)
        self.mistakes = mistakes


def batch_hinge_mistakes(examples, penalty=1e-3, rounds=400, rate=0.5):
    """Mistakes of the best fixed weights in hindsight, as the text finds them: 400 rounds of subgradients."""
    X = np.array([list(x.values()) for x, _ in examples])
    Y = np.array([1.0 if y else -1.0 for _, y in examples])
    w = np.zeros(X.shape[1])
    for _ in range(rounds):
        short = Y * (X @ w) < 1.0
        w = w - rate * (penalty * w - (Y[short, None] * X[short]).sum(axis=0) / len(X))
    return int(np.sum((X @ w) * Y < 0))


@pytest.mark.parametrize("kind, mistakes, hindsight, updates", [
    ({"noise": 0.2}, 37, 23, 100), ({"noise": 1.2}, 153, 106, 249), ({"noise": 0.6, "flip": 0.2}, 158, 115, 252),
], ids=["separable", "noisy", "flipped"])
def test_three_streams_give_the_printed_mistakes_and_updates(kind, mistakes, hindsight, updates):
    examples = list(stream(**kind))
    played = Played(PA1(1e6), examples)
    assert (played.mistakes, played.updates) == (mistakes, updates)
    assert batch_hinge_mistakes(examples) == hindsight
    assert Played(PA(), examples).mistakes == mistakes


@pytest.mark.parametrize("rule, mean, best, worst", [
    (PA1(1e6), 166.7, 153, 185), (PA1(0.1), 142.1, 128, 149), (PA1(1.0), 165.2, 158, 176),
    (PA2(0.1), 154.7, 145, 162), (PA2(1.0), 164.2, 153, 184), (PA2(10.0), 166.7, 153, 185),
], ids=repr)
def test_ten_seeds_give_the_printed_table(rule, mean, best, worst):
    mistakes = [Played(rule.clone(), stream(seed=seed, noise=0.6, flip=0.2)).mistakes for seed in range(1, 11)]
    assert (round(np.mean(mistakes), 1), min(mistakes), max(mistakes)) == (mean, best, worst)


def test_the_noisy_curve_and_its_regret_are_the_printed_ones():
    examples = list(stream(noise=1.2))
    curve = Played(PA(), examples).curve
    assert [curve[t - 1] for t in (50, 100, 200, 300, 400)] == [21, 42, 70, 115, 153]
    assert curve[-1] - batch_hinge_mistakes(examples) == 47
    assert round(curve[-1] / 400, 3) == 0.383 and round(106 / 400, 3) == 0.265


def test_eight_examples_of_one_direction_take_one_step():
    model = PAClassifier(PA(), learn_intercept=False)
    margins, seen = [], []
    for _ in range(8):
        margins.append(model.decision_one({"a": 1.0, "b": 0.0}))
        model.learn_one({"a": 1.0, "b": 0.0}, True)
        seen.append(model.weights)
    assert margins == [0.0] + [1.0] * 7
    assert seen == [{"a": 1.0}] * 8


def test_counting_after_the_update_would_hide_every_mistake():
    model, hidden = PAClassifier(PA(), learn_intercept=False), 0
    for x, y in stream(noise=1.2):
        model.learn_one(x, y)
        hidden += (1 if y else -1) * model.decision_one(x) <= 0
    assert hidden == 0


def test_a_margin_of_three_tenths_moves_pa_by_what_is_missing_and_no_perceptron():
    model = PAClassifier(PA(), learn_intercept=False)
    model.learn_one({"a": 1.0}, True)
    x = {"a": 0.3}  # right side of the boundary, margin 0.3: a perceptron, which looks at mistakes only, stays
    assert model.predict_one(x) is True and model.decision_one(x) == pytest.approx(0.3)
    model.learn_one(x, True)
    assert model.decision_one(x) == pytest.approx(1.0)


def test_the_worked_example_and_its_capped_variant():
    """Seed 003: (2, 1)+ then (1, 1)+; loss 0.4 at score 0.6; PA-I with C = 0.1 leaves margin 0.5."""
    model = PAClassifier(PA(), learn_intercept=False)
    model.learn_one({"a": 2, "b": 1}, True)
    assert model.weights == pytest.approx({"a": 0.4, "b": 0.2}, abs=1e-12)
    assert model.predict_one({"a": 1, "b": 1}) is True
    assert 1.0 - model.decision_one({"a": 1, "b": 1}) == pytest.approx(0.4, abs=1e-12)
    model.learn_one({"a": 1, "b": 1}, True)
    assert model.weights == pytest.approx({"a": 0.6, "b": 0.4}, abs=1e-12)
    capped = PAClassifier(PA1(0.1), learn_intercept=False)
    capped.learn_one({"a": 2, "b": 1}, True)
    assert capped.decision_one({"a": 2, "b": 1}) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("rule, weights", [
    # by hand from (0.6, 0.4): x = (1, 2), y = -1, score 1.4, loss 2.4, |x|^2 = 5
    (PA(), {"a": 0.6 - 0.48, "b": 0.4 - 0.96}),
    (PA1(0.1), {"a": 0.6 - 0.1, "b": 0.4 - 0.2}),
    (PA2(0.1), {"a": 0.6 - 0.24, "b": 0.4 - 0.48}),
], ids=repr)
def test_a_reversed_label_is_believed_as_far_as_the_rule_allows(rule, weights):
    model = PAClassifier(PA(), learn_intercept=False)
    model.learn_one({"a": 2, "b": 1}, True)
    model.learn_one({"a": 1, "b": 1}, True)
    model.mutate({"rule": rule})
    model.learn_one({"a": 1, "b": 2}, False)
    assert model.weights == pytest.approx(weights, abs=1e-12)


def test_rescaling_a_feature_changes_what_is_learned():
    """(2, 1)+ in other units, (20, 1): the long feature takes nearly the whole step: 20 / 401 and 1 / 401."""
    model = PAClassifier(PA(), learn_intercept=False)
    model.learn_one({"a": 20, "b": 1}, True)
    assert model.weights == pytest.approx({"a": 20 / 401, "b": 1 / 401}, abs=1e-15)
    # an example seen in b only: score 1/401 instead of 0.2, though nothing about b changed
    assert model.decision_one({"b": 1}) == pytest.approx(1 / 401)
