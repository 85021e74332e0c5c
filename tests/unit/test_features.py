"""Records become features by hand-checked rules."""

from __future__ import annotations

import collections
import decimal
import fractions
import math
import types

import numpy as np
import pytest

from pa_river.features import features, short


def test_a_clean_record_is_not_copied():
    x = {"a": 1.0, "b": 2, "c": True}
    assert features(x) is x


@pytest.mark.parametrize("x, expected", [
    ({"a": None}, {}),
    ({"a": "red"}, {"a=red": 1.0}),
    ({1: "red"}, {"1=red": 1.0}),
    ({"a": np.float32(0.5)}, {"a": 0.5}),
    ({"a": np.bool_(True)}, {"a": 1.0}),
    ({"a": np.str_("red")}, {"a=red": 1.0}),
    ({np.int64(3): 1.0}, {3: 1.0}),
    ({"a": fractions.Fraction(1, 4)}, {"a": 0.25}),
    ({"a": decimal.Decimal("0.5")}, {"a": 0.5}),
    ({("a", b"b", 1): 1}, {("a", b"b", 1): 1.0}),
    (collections.OrderedDict(a=1.0), {"a": 1.0}),
    (types.MappingProxyType({"a": 1.0}), {"a": 1.0}),
    ({}, {}),
], ids=repr)
def test_values_and_names_become_canonical(x, expected):
    assert features(x) == expected


@pytest.mark.parametrize("value", [
    math.nan, -math.inf, 10**400, [1.0], {"b": 1.0}, (1.0,), b"1", 1j, np.array([1.0]), np.datetime64("2020-01-01"),
    decimal.Decimal("NaN"), decimal.Decimal("sNaN"), np.float64("nan"), 10**5000,
    pytest.param(object(), id="object"),
], ids=short)
def test_a_value_that_is_no_finite_number_is_refused_by_name(value):
    with pytest.raises(ValueError, match="'height'"):
        features({"a": 1.0, "height": value})


def test_huge_values_that_cancel_are_still_found():
    with pytest.raises(ValueError, match="'a'"):
        features({"a": math.inf, "b": -math.inf})
    with pytest.raises(ValueError, match="'a'"):
        features({"a": 10**400, "b": -(10**400)})
    assert features({"a": 1e308, "b": 1e308}) == {"a": 1e308, "b": 1e308}


@pytest.mark.parametrize("x", [None, [1.0], "ab", 3, [("a", 1.0)]], ids=repr)
def test_a_record_that_is_no_mapping_is_refused(x):
    with pytest.raises(ValueError, match="mapping"):
        features(x)
