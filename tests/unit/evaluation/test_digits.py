"""The digits experiment on made-up digits: what it counts, what it chooses, what it writes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluation import digits, results
from pa_river import PA1, Budget, PAMulticlass, Polynomial


def made_up(count: int = 120, seed: int = 0) -> digits.Digits:
    """Three patterns of 12 pixels under noise and changing light."""
    rng = np.random.default_rng(seed)
    patterns = rng.random((3, 12))
    y = rng.integers(0, 3, count)
    X = np.clip(patterns[y] * rng.uniform(0.5, 1.0, (count, 1)) + 0.1 * rng.normal(size=(count, 12)), 0.0, 1.0)
    return digits.Digits("made up", X, y.tolist(), Polynomial(3), "(x.z)^3", {"PA-I": 3.9, "Perceptron, uniform": 6.4})


def test_a_pass_counts_what_a_loop_of_predictions_before_learning_counts():
    one = made_up()
    run = digits.one_pass(one.X, one.y, one.kernel, ["PA-I"], "test")["PA-I"]
    model = PAMulticlass(PA1(100.0), learn_intercept=False, kernel=one.kernel, budget=Budget(math.inf))
    missed = []
    for row, label in zip(one.X.tolist(), one.y):
        missed.append(model.predict_one(dict(enumerate(row))) != label)
        model.learn_one(dict(enumerate(row)), label)
    assert run.missed.tolist() == missed
    assert run.vectors == len(model.support)
    assert run.error == pytest.approx(100.0 * sum(missed) / len(missed))


def test_the_search_takes_the_scaling_with_the_fewest_errors_and_tries_two_other_orders():
    chosen, tried = digits.search(made_up(), 60)
    in_file_order = {scaling: pa for scaling, order, pa, _ in tried if order == "file"}
    assert set(in_file_order) == set(digits.SCALINGS)
    assert in_file_order[chosen] == min(in_file_order.values())
    assert [(scaling, order) for scaling, order, _, _ in tried if order != "file"] == [
        (chosen, "shuffled, seed 0"), (chosen, "shuffled, seed 1")]


@pytest.mark.parametrize("name", [name for name in digits.SCALINGS if "unit" in name])
def test_unit_length_is_one_and_a_blank_image_stays_finite(name):
    X = np.vstack([made_up(5).X, np.zeros(12)])
    scaled = digits.SCALINGS[name](X)
    assert np.isfinite(scaled).all()
    assert np.linalg.norm(scaled[:5], axis=1) == pytest.approx(np.ones(5))


def test_the_page_has_every_method_the_search_and_the_plot(tmp_path):
    result = digits.digits_of([made_up(), made_up(seed=1)], part=50)
    page = results.write(result, tmp_path).read_text()
    for name in (*digits.METHODS, *digits.SCALINGS):
        assert f"| {name} |" in page
    assert sum(row.reached is not None for row in result.rows) == 10
    assert (tmp_path / "digits.svg").stat().st_size > 1000
