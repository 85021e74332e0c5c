"""Generated input: records of features, labels, targets and weights, from tame to hostile."""

from __future__ import annotations

import math

from hypothesis import strategies as st

#: Ordinary numbers: arithmetic on them stays far from the ends of the floats.
tame = st.floats(-1e3, 1e3, allow_subnormal=False).map(lambda v: 0.0 if abs(v) < 1e-6 else v)
#: Numbers of any size that learners must survive, zero included.
wild = st.one_of(
    tame, st.sampled_from([1e200, -1e200, 1e-200, -1e-200, 1e-30, 1e30, 0.0, -0.0, 1.0]),
    st.floats(allow_nan=False, allow_infinity=False),
)
names = st.sampled_from(["a", "b", "c", "d", "e", "long name", "ü", ""])
odd_names = st.one_of(names, st.integers(-3, 3), st.sampled_from([b"a", b"", ("a", 1), ("a", (b"b", 2))]))


def records(values: st.SearchStrategy = tame, keys: st.SearchStrategy = names, most: int = 6) -> st.SearchStrategy:
    """Feature dicts of up to `most` names."""
    return st.dictionaries(keys, values, max_size=most)


#: Values that no record may hold, with how the error must name them.
bad_values = st.sampled_from([math.nan, math.inf, -math.inf, 10**400, -(10**400), [1.0], {"a": 1}, 1j, object()])

weights = st.floats(0.01, 10.0)
bad_weights = st.sampled_from([-1.0, math.nan, math.inf, 10**400, "1", None, [1.0], True])
binary_labels = st.sampled_from([True, False])
#: One label of each type that can be stored; none equals another.
LABELS = ("spam", "c", 3, b"x", ("t", 1), True, 0.5)
labels = st.sampled_from(LABELS)
label_sets = st.dictionaries(labels, binary_labels, max_size=4)
targets = tame
