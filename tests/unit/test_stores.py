"""The flat store of the reference: what its short roads may take, and that they lead where the long ones do."""

from __future__ import annotations

import fractions
import math
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pa_river import PAClassifier
from pa_river.features import features
from pa_river.stores import LinearStore
from pa_river.terms import Term
from tests import strategies

values = st.one_of(
    strategies.wild, st.booleans(), st.integers(-9, 9), st.none(), st.text(max_size=2), strategies.bad_values,
    strategies.wild.map(np.float64), strategies.tame.map(np.float32),
    st.sampled_from([np.bool_(True), fractions.Fraction(1, 3), np.array([1.0]), pd.NA, pd.Timedelta(days=1)]),
)
weights = st.dictionaries(strategies.names, strategies.wild)


def store_of(weights, intercept=0.0):
    store = LinearStore(True)
    store.weights.update(weights)
    store.intercept = intercept
    return store


@given(weights=weights, intercept=strategies.wild, x=st.dictionaries(strategies.odd_names, values, max_size=4))
@example(weights={"a": 1.0, "b": 1.0}, intercept=1.0, x={"a": math.nan, "b": pd.Timedelta(days=1)})  # the sum is NaT
def test_a_glance_answers_only_for_what_the_long_road_takes_and_as_it_does(weights, intercept, x):
    store = store_of(weights, intercept)
    found = store.glance(x)
    if found is not None:
        phi = features(x)
        assert list(phi.items()) == list(x.items())
        assert (type(found), found.hex()) == (float, store.score(phi).hex())


@given(weights=weights, x=st.dictionaries(strategies.names, strategies.tame, max_size=4))
def test_a_glance_answers_for_every_ordinary_record_of_known_names(weights, x):
    store = store_of({**dict.fromkeys(x, 0.5), **{name: weight for name, weight in weights.items() if name not in x}})
    assert store.glance(x) == store.score(x)


def learned(store):
    store.add((Term(1.0, {1: 1.0}),), 1.0, 1.0)
    return store


def loaded(store):
    store.set_state(learned(LinearStore(True)).get_state())
    return store


def blended(store):
    store.blend([(1.0, learned(LinearStore(True)), (0,))])
    return store


@pytest.mark.parametrize("make", [learned, loaded, blended])
def test_a_name_that_is_none_is_refused_though_it_equals_a_known_one(make):
    model = PAClassifier()
    model._store = make(LinearStore(True))
    with pytest.raises(ValueError, match="feature name"):
        model.predict_one({1.0: 2.0})
    with pytest.raises(ValueError, match="feature name"):
        model.learn_one({1.0: 2.0}, True)


@pytest.mark.parametrize("how", ["error", "default"])
def test_a_weight_that_overflows_on_a_float32_warns_of_nothing(how):
    program = """if True:
    import numpy as np
    from pa_river.stores import LinearStore
    store = LinearStore(True)
    store.weights.update(a=1e200, b=3e38)
    print([store.glance(x) for x in ({"a": np.float32(1.5)}, {"b": np.float32(9.0)}, {"b": np.float32("inf")})])
    """
    found = subprocess.run([sys.executable, "-W", how, "-c", program], capture_output=True, text=True,
                           env={"PYTHONPATH": os.pathsep.join(sys.path)})
    assert (found.stdout.strip(), found.stderr) == ("[None, None, None]", "")


largest = sys.float_info.max


def test_an_intercept_that_would_not_be_finite_moves_nothing_and_a_feature_is_blamed_first():
    for phi, blamed in (({"a": 1e-200}, "intercept"), ({"a": 1.0}, "feature 'a'")):
        store = store_of({"a": largest}, largest)
        with pytest.raises(ValueError, match=blamed):
            store.add((Term(1.0, phi),), largest, 1.0)
        assert (store.weights, store.intercept) == ({"a": largest}, largest)
