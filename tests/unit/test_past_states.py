"""Bytes that version 0.1.0 wrote once, and never again: what production holds must stay readable."""

from __future__ import annotations

from pathlib import Path

import pytest

import pa_river

STATES = Path(__file__).parents[1] / "states"


def load(name):
    return pa_river.loads((STATES / f"v1_{name}.bin").read_bytes())


def test_a_uniclass_learner_still_loads():
    model = load("pauniclass")
    assert model.center == pytest.approx({"a": 1.6}) and model.max_radius == 3.0 and model.version == 1
    assert model.radius == pytest.approx((9.0 - 1.8**2) ** 0.5)


def test_a_budgeted_kernel_model_still_loads():
    model = load("kernel")
    assert model.budget.policy == "nearest" and model.budget_loss == 0.25
    assert model.support == [({"a": 1.0}, 1.0), ({"c": 1.0}, 1.0)]
    model.learn_one({"d": 2.0}, True)
    assert len(model.support) == 2


def test_a_second_order_learner_still_loads():
    model = load("arowmulticlass")
    assert model.weights == {"spam": {"a": 0.25}} and model.variances == {"spam": {"a": 0.75}}


def test_a_certificate_still_loads():
    model = load("certified")
    assert (model.left, model.right, model.weights) == (0.25, 1.0, {"a": 0.5})
    assert model.bound() == pa_river.certified.Bound("square_loss", 1.0, 4.0)
