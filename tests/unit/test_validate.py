"""Parameters and example weights: what they may be, and that a refusal is a ValueError in words."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pa_river
from pa_river import _validate
from pa_river.features import short
from tests import cases

NO_FINITE_NUMBER = (-1.0, math.nan, math.inf, 10**400, 10**5000, "1", None, True, [1.0])


@pytest.mark.parametrize("value", NO_FINITE_NUMBER, ids=short)
@pytest.mark.parametrize("build", [
    pa_river.PA1, pa_river.PA2, pa_river.RBF, pa_river.AROWClassifier, lambda value: pa_river.PARegressor(eps=value),
    lambda value: pa_river.Polynomial(2, coef0=value), lambda value: pa_river.MIRAClassifier(margin=value),
])
def test_a_parameter_that_is_no_finite_number_is_refused_in_words(build, value):
    with pytest.raises(ValueError, match=r"\(\w+=\.\.\.\) must be a finite number"):
        build(value)


@pytest.mark.parametrize("case", [case for case in cases.ALL if "rule" in case.build()._mutable_attributes], ids=str)
@pytest.mark.parametrize("wrong", ["PA", 0.5, {"C": 1.0}, pa_river.PA1], ids=short)
def test_what_is_no_rule_is_refused_also_later(case, wrong):
    model = case.build()
    before = model.rule
    for change in (lambda: setattr(model, "rule", wrong), lambda: model.clone({"rule": None}).mutate({"rule": wrong})):
        with pytest.raises(ValueError, match=r"\(rule=\.\.\.\) must be PA"):
            change()
    assert model.rule is before
    model.mutate({"rule": pa_river.PA2(3.0)})
    assert model.rule.C == 3.0


@pytest.mark.parametrize("value", NO_FINITE_NUMBER, ids=short)
def test_a_weight_that_is_no_finite_number_is_refused_in_words(value):
    with pytest.raises(ValueError, match="weight w must be a finite number >= 0"):
        _validate.example_weight(value)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2.0), np.int8(2)], ids=repr)
def test_numbers_of_every_type_become_floats(value):
    assert type(_validate.example_weight(value)) is float
    assert type(pa_river.PA1(value).C) is float
    assert pa_river.PA1(value).C == _validate.example_weight(value) == 2.0
