"""Whatever comes and leaves, in whatever order: the machine is the retrained one, and remembers nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pa_river
from pa_river import ODMClassifier, kernels
from tests.unit.odm import oracle

ENGINES = ["auto", "path", "pivot", "frozen", "primal"]
EACH = pytest.mark.parametrize("engine", ENGINES)

#: Few values, so that copies, opposite labels and exact ties are the rule.
values = st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]) | st.floats(0.0, 1.0)
records = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
examples = st.tuples(records, st.booleans())
costs = st.sampled_from([1e-3, 0.1, 1.0, 10.0, 100.0, 1000.0])
strips = st.sampled_from([0.0, 0.1, 0.5, 0.9])


@st.composite
def changes(draw, most=5):
    """A list of (what comes, which of those that are there leave, as shares of the list)."""
    return draw(st.lists(st.tuples(
        st.lists(examples, max_size=most), st.lists(st.floats(0.0, 0.999), max_size=3)), max_size=10))


def expected(held, lam, right, theta, gamma=1.0):
    names = sorted({name for x, _ in held for name in x})
    X = np.array([[x.get(name, 0.0) for name in names] for x, _ in held]).reshape(len(held), len(names))
    y = np.array([1.0 if label else -1.0 for _, label in held])
    H = oracle.rbf_gram(X, y, gamma)
    return oracle.retrained(H, np.full(len(held), lam), np.full(len(held), right), theta), H


def agrees(model, held, lam, right, theta):
    if not held:
        return len(model) == 0
    alpha, H = expected(held, lam, right, theta)
    tolerance = 1e-8 if max(lam, right) <= 100 else 1e-7
    assert np.abs(model.alpha - alpha).max() <= tolerance * max(np.abs(alpha).max(), 1e-12)
    assert abs(oracle.gap(H, np.full(len(held), lam), np.full(len(held), right), theta, model.alpha)) <= 1e-9 * (
        1.0 + max(lam, right) * len(held))
    return True


@EACH
@settings(max_examples=25, deadline=None)
@given(stream=changes(), lam=costs, right=st.none() | costs, theta=strips)
def test_every_sequence_of_changes_ends_in_the_retrained_solution(engine, stream, lam, right, theta):
    model = ODMClassifier(lam, theta, lam_right=right, engine=engine)
    held, serial = [], 0
    for coming, leaving in stream:
        gone = sorted({int(share * len(held)) for share in leaving if held}, reverse=True)
        add = [(x, y, serial + i) for i, (x, y) in enumerate(coming)]
        serial += len(add)
        model.update(add=add, remove=[held[i][2] for i in gone])
        held = [entry for i, entry in enumerate(held) if i not in gone] + add
        assert model.ids == [id for _, _, id in held]
        assert agrees(model, [(x, y) for x, y, _ in held], lam, lam if right is None else right, theta)


@EACH
@settings(max_examples=20, deadline=None)
@given(first=st.lists(examples, min_size=1, max_size=12), more=st.lists(examples, max_size=6), lam=costs, theta=strips)
def test_learning_and_unlearning_is_the_identity(engine, first, more, lam, theta):
    model = ODMClassifier(lam, theta, engine=engine)
    for x, y in first:
        model.learn_one(x, y)
    before = model.alpha
    for i, (x, y) in enumerate(more):
        model.learn_one(x, y, id=i)
    for i in reversed(range(len(more))):
        model.unlearn_one(id=i)
    assert np.abs(model.alpha - before).max() <= (1e-8 if lam <= 100 else 1e-7) * max(np.abs(before).max(), 1e-12)


@EACH
@settings(max_examples=20, deadline=None)
@given(stream=st.lists(examples, max_size=20), size=st.integers(1, 6), theta=strips)
def test_a_window_holds_the_last_examples_and_their_solution(engine, stream, size, theta):
    model = ODMClassifier(10.0, theta, max_size=size, engine=engine)
    for x, y in stream:
        model.learn_one(x, y)
    assert agrees(model, stream[-size:], 10.0, 10.0, theta)


@settings(max_examples=40, deadline=None)
@given(stream=st.lists(examples, max_size=15), probe=records, lam=costs, theta=strips)
def test_the_engines_agree(stream, probe, lam, theta):
    scores = []
    for engine in ENGINES:
        model = ODMClassifier(lam, theta, engine=engine)
        for x, y in stream:
            model.learn_one(x, y)
        scores.append(model.decision_one(probe))
    assert scores == pytest.approx([scores[0]] * len(scores), abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(stream=st.lists(examples, max_size=12), rest=st.lists(examples, max_size=6), lam=costs)
def test_a_stored_model_continues_equal_within_1e_8(stream, rest, lam):
    model = ODMClassifier(lam, 0.1, max_size=8)
    for i, (x, y) in enumerate(stream):
        model.learn_one(x, y, id=f"id-{i}")
    loaded = pa_river.loads(pa_river.dumps(model))
    assert loaded.ids == model.ids
    for x, y in rest:
        assert loaded.decision_one(x) == pytest.approx(model.decision_one(x), rel=1e-8, abs=1e-8)
        model.learn_one(x, y)
        loaded.learn_one(x, y)
    scale = max(np.abs(model.alpha).max(initial=0.0), 1e-12)
    assert np.abs(loaded.alpha - model.alpha).max(initial=0.0) <= 1e-8 * scale


@settings(max_examples=40, deadline=None)
@given(stream=st.lists(examples, min_size=1, max_size=12), lam=st.sampled_from([0.1, 10.0, 100.0]), theta=strips)
def test_leave_one_out_is_retraining_without_each(stream, lam, theta):
    model = ODMClassifier(lam, theta, kernels.RBF(0.5))
    for x, y in stream:
        model.learn_one(x, y)
    found = model.leave_one_out()
    _, H = expected(stream, lam, lam, theta, 0.5)
    for i in range(len(stream)):
        rest = [j for j in range(len(stream)) if j != i]
        cost = np.full(len(rest), lam)
        alpha = oracle.retrained(H[np.ix_(rest, rest)], cost, cost, theta)
        assert found[i] == pytest.approx(H[i, rest] @ alpha, abs=1e-7)
