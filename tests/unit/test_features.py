"""Records become features by hand-checked rules."""

from __future__ import annotations

import collections
import decimal
import fractions
import math
import os
import subprocess
import sys
import types

import numpy as np
import pytest

from pa_river.features import canonical, features, short


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


@pytest.mark.parametrize("how", ["error", "default"])
def test_huge_floats_beside_a_float32_are_numbers_without_a_warning(how):
    x = {"a": 1e200, "b": np.float32(1.5), "c": np.float64(-1e300)}
    program = "import numpy as np, pa_river.features as f; print(f.features({'a': 1e200, 'b': np.float32(1.5)}))"
    found = subprocess.run([sys.executable, "-W", how, "-c", program], capture_output=True, text=True,
                           env={"PYTHONPATH": os.pathsep.join(sys.path)})
    assert (found.stdout.strip(), found.stderr) == ("{'a': 1e+200, 'b': 1.5}", "")
    assert features(x) == {"a": 1e200, "b": 1.5, "c": -1e300}
    assert set(map(type, features(x).values())) == {float}


@pytest.mark.parametrize("value", [
    np.float64(math.inf), np.float64(math.nan), np.float32(math.inf), np.longdouble(math.nan), np.complex128(1j),
])
def test_numpy_scalars_that_are_no_finite_numbers_are_refused_without_a_warning(value):
    with pytest.raises(ValueError, match="'a' must be a finite number"):
        canonical({"a": value})


@pytest.mark.parametrize(("value", "number"), [
    (np.float64(0.1), 0.1), (np.float32(0.5), 0.5), (np.float16(2.0), 2.0), (np.longdouble(0.25), 0.25),
    (np.int8(-3), -3.0), (np.uint64(2**63), float(2**63)), (np.bool_(True), 1.0), (True, 1.0),
    (decimal.Decimal("0.5"), 0.5), (fractions.Fraction(1, 4), 0.25),
])
def test_numbers_of_every_type_become_plain_floats(value, number):
    (found,) = canonical({"a": value}).values()
    assert found == number and type(found) is float
