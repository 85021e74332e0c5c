"""Averaged against the plain mean of exact weights, kept example by example."""

from __future__ import annotations

import collections
import copy
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import base, compose, evaluate, linear_model, metrics, preprocessing

import pa_river
from pa_river import (
    PA, PA1, PA2, Averaged, AveragedClassifier, AveragedMultiLabelClassifier, AveragedRegressor, MIRAClassifier,
    MulticlassPerceptron, PAClassifier, PACostSensitive, PAMulticlass, PAMultilabel, PARegressor, _compiled, labels,
    prototypes,
)
from tests import strategies

numbers = st.floats(-5, 5).map(lambda v: round(v, 3))
X = strategies.records(numbers, most=4)
names = st.sampled_from(["spam", "ham", 3])
COSTS = {y: {r: float(abs(i - j)) for j, r in enumerate(["spam", "ham", 3])} for i, y in enumerate(["spam", "ham", 3])}
MODELS = [
    (lambda: PAClassifier(PA()), strategies.binary_labels),
    (lambda: PAClassifier(PA1(0.1), learn_intercept=False), strategies.binary_labels),
    (lambda: PARegressor(PA2(0.5)), st.floats(-10, 10)),
    (lambda: PAMulticlass(PA1(0.3)), names),
    (lambda: PACostSensitive(COSTS, update="max_loss"), names),
    (lambda: MulticlassPerceptron(), names),
    (lambda: MIRAClassifier(C=0.5), names),
    (lambda: PAMultilabel(PA1(0.2)), st.dictionaries(st.sampled_from(["a", "b", "c"]), st.booleans(), max_size=3)),
]
EVERY = pytest.mark.parametrize(("build", "y"), MODELS, ids=[type(build()).__name__ for build, _ in MODELS])


def flat(weights, prefix=()):
    """Weights of any layout as {path: weight}."""
    if not isinstance(weights, dict):
        return {prefix: weights}
    return {path: value for key, part in weights.items() for path, value in flat(part, (*prefix, key)).items()}


def learned(model):
    """{(which, label if any, feature name): weight}; a prototype that waits for its label has None."""
    found = {(which, *key): value for which in ("weights", "intercept")
             for key, value in flat(getattr(model, which)).items()}
    if isinstance(model, prototypes.LabelLearner):
        for slot in range(len(model._known), model._store.slots):
            found.update({("weights", None, name): value for name, value in model._store.weights(slot).items()})
            found["intercept", None] = model._store.intercept(slot)
    return found


@EVERY
@given(data=st.data())
def test_weights_and_scores_are_the_mean_over_the_examples(build, y, data):
    stream = data.draw(st.lists(st.tuples(X, y), min_size=1, max_size=8))
    plain = _compiled.on_reference(build())  # as the model inside: the cores agree to rounding only
    averaged, total = Averaged(build()), collections.defaultdict(Fraction)
    for x, label in stream:
        averaged.learn_one(x, label)
        plain.learn_one(x, label)
        for key, value in learned(plain).items():
            total[key] += Fraction(value)
    second = getattr(plain, "_known", [])[1:2]
    for key in [key for key in total if key[1:2] == (None,) and second]:
        total[key[0], *second, *key[2:]] += total.pop(key)  # the second label took the prototype that waited
    found = {(name, *key): value for name in ("weights", "intercept")
             for key, value in flat(getattr(averaged, name)).items()}
    assert found == pytest.approx({key: float(total[key] / len(stream)) for key in found}, rel=1e-9, abs=1e-9)
    assert all(abs(value) < 1e-9 for key, value in total.items() if key not in found and None not in key)
    x = data.draw(X)
    for label, score in flat(averaged.decision_one(x)).items():
        mean = total["intercept", *label] / len(stream) + sum(
            (total["weights", *label, key] * Fraction(value) for key, value in x.items()), Fraction(0)) / len(stream)
        assert score == pytest.approx(float(mean), rel=1e-9, abs=1e-9)
    assert pa_river.dumps(averaged.model) == pa_river.dumps(plain)  # learning is the model's own


@EVERY
@given(data=st.data())
def test_a_step_answers_as_predict_one_and_learns_as_learn_one(build, y, data):
    stepped, plain = Averaged(build()), Averaged(build())
    for x, label in data.draw(st.lists(st.tuples(X, y), max_size=6)):
        assert stepped.step(x, label) == plain.predict_one(x)
        plain.learn_one(x, label)
    assert pa_river.dumps(stepped) == pa_river.dumps(plain)


@EVERY
@given(data=st.data())
def test_a_stored_one_continues_bit_equal(build, y, data):
    model = Averaged(build())
    for x, label in data.draw(st.lists(st.tuples(X, y), max_size=6)):
        model.learn_one(x, label)
    loaded = pa_river.loads(pa_river.dumps(model))
    assert type(loaded) is type(model) and pa_river.dumps(copy.deepcopy(model)) == pa_river.dumps(model)
    for x, label in data.draw(st.lists(st.tuples(X, y), max_size=6)):
        assert loaded.step(x, label) == model.step(x, label)
    assert pa_river.dumps(loaded) == pa_river.dumps(model)


@EVERY
@given(data=st.data())
def test_what_is_refused_changes_no_byte(build, y, data):
    model = Averaged(build())
    label = data.draw(y)
    for x, other in data.draw(st.lists(st.tuples(X, y), max_size=4)):
        model.learn_one(x, other)
    before = pa_river.dumps(model)
    for call in (lambda: model.learn_one({"a": float("nan")}, label), lambda: model.step({"a": 1.0}, label, -1.0),
                 lambda: model.predict_one({"a": [1]}), lambda: model.learn_one({"a": 1.0}, float("nan")),
                 lambda: model.learn_many(np.array([[1.0], [np.inf]]), [label, label])):
        with pytest.raises(ValueError):
            call()
    model.learn_one({"a": 1.0}, label, 0)
    assert pa_river.dumps(model) == before


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_a_step_whose_sum_leaves_the_floats_moves_neither(scale):
    model = Averaged(PARegressor(PA(), learn_intercept=False, eps=0.0))
    model.learn_one({"b": 1.0}, 1.0)
    for target in (1e300, -1e300) * 3:
        before = pa_river.dumps(model)
        try:
            model.learn_one({"a": 1.0 / scale, "b": 1e-5}, target)
        except ValueError as error:
            assert "finite" in str(error)
            assert pa_river.dumps(model) == before


def test_a_batch_equals_the_loop_and_a_bad_row_undoes_it():
    draw = np.random.default_rng(3)
    rows, flags = draw.normal(size=(30, 4)), draw.random(30) < 0.5
    batch, loop = Averaged(PAClassifier()), Averaged(PAClassifier())
    batch.learn_many(rows, flags)
    for row, flag in zip(rows.tolist(), flags.tolist()):
        loop.learn_one(dict(enumerate(row)), flag)
    assert flat(batch.weights) == pytest.approx(flat(loop.weights), rel=1e-9)
    assert batch.predict_many(rows).tolist() == [loop.predict_one(dict(enumerate(row))) for row in rows.tolist()]
    assert batch.predict_proba_many(rows)[True].tolist() == pytest.approx(
        [loop.predict_proba_one(dict(enumerate(row)))[True] for row in rows.tolist()])


def test_the_mean_begins_where_the_model_was_wrapped():
    model = PAClassifier(PA(), learn_intercept=False)
    model.learn_one({"a": 1.0}, True)
    averaged = Averaged(model)
    assert averaged.weights == {"a": 1.0} and averaged.predict_one({"a": 1.0}) is True
    averaged.learn_one({"a": 1.0}, False)  # w = -1
    averaged.learn_one({"a": 2.0}, True)  # loss 3, |x|^2 = 4: w = 0.5
    assert averaged.weights == {"a": -0.25} and averaged.version == 3


def test_it_is_what_the_model_is():
    assert type(Averaged(PAClassifier())) is AveragedClassifier and type(Averaged(PARegressor())) is AveragedRegressor
    assert type(Averaged(PAMultilabel())) is AveragedMultiLabelClassifier
    assert isinstance(Averaged(PAMulticlass()), base.Classifier)
    assert Averaged(PAMulticlass())._multiclass and not Averaged(PAClassifier())._multiclass
    assert labels.of(Averaged(PAClassifier())) is labels.binary and labels.of(Averaged(PARegressor())) is labels.target


@pytest.mark.parametrize("model", [
    None, 1, linear_model.PAClassifier(), pa_river.PASequence(), PAClassifier, pa_river.PAUniclass(),
    pa_river.AROWClassifier(), PAClassifier(kernel=pa_river.RBF(), budget=pa_river.Budget(5)),
], ids=lambda model: type(model).__name__)
def test_what_is_no_linear_learner_is_refused(model):
    with pytest.raises(ValueError, match=r"Averaged\(model=...\)"):
        Averaged(model)


def test_it_works_in_a_pipeline_of_river_and_helps_where_labels_are_noisy():
    draw = np.random.default_rng(11)
    stream = []
    for _ in range(1500):
        x = draw.normal(size=5)
        stream.append((dict(zip("abcde", x.tolist())), bool((x[0] - x[1] > 0) ^ (draw.random() < 0.2))))

    def accuracy(model):
        pipeline = compose.Pipeline(preprocessing.StandardScaler(), model)
        return evaluate.progressive_val_score(stream, pipeline, metrics.Accuracy()).get()

    assert accuracy(Averaged(PAClassifier(PA()))) > accuracy(PAClassifier(PA())) + 0.05
