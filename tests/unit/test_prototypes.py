"""What labels may be, when they are known, and who wins a tie: over every model with one prototype a label."""

from __future__ import annotations

import enum
import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import metrics, preprocessing, evaluate

import pa_river
from pa_river import PA, MIRAClassifier, MulticlassPerceptron, PAClassifier, PACostSensitive, PAMulticlass, PAMultilabel
from tests import cases, strategies

LABEL = pytest.mark.parametrize("case", [case for case in cases.LABEL if "mapping" not in case.name], ids=str)
#: Models in which the first label has a nameless rival.
RIVALLED = pytest.mark.parametrize(
    "build", [lambda **more: PAMulticlass(PA(), **more), MulticlassPerceptron, MIRAClassifier],
    ids=["PAMulticlass", "MulticlassPerceptron", "MIRAClassifier"])


@LABEL
def test_an_untrained_model_predicts_nothing(case):
    if "declared" in case.name:
        pytest.skip("its first declared label is its answer")
    model = case.build()
    assert model.predict_one({"a": 1.0}) is None
    assert model.decision_one({"a": 1.0}) == model.predict_proba_one({"a": 1.0}) == model.weights == {}


def test_declared_labels_score_zero_and_the_first_is_predicted():
    model = PAMulticlass(labels=["b", "a"])
    assert model.decision_one({"x": 1.0}) == {"b": 0.0, "a": 0.0}
    assert model.predict_one({"x": 1.0}) == "b"
    assert model.predict_proba_one({"x": 1.0}) == {"b": 0.5, "a": 0.5}
    assert model.labels == ("b", "a") and model.clone().labels == ("b", "a")
    assert PAMultilabel(labels=("b", "a")).predict_one({"x": 1.0}) == {"b": False, "a": False}
    assert PAMultilabel().predict_one({"x": 1.0}) == {} and PAMultilabel().rank_one({"x": 1.0}) == []


@pytest.mark.parametrize("names", ["AB", {"A"}, ("A", "A"), (1, True), ("A", None), (["A"],), 3], ids=repr)
@pytest.mark.parametrize("cls", [PAMulticlass, PAMultilabel])
def test_what_cannot_be_declared_is_refused_when_built(cls, names):
    with pytest.raises(ValueError, match="label"):
        cls(labels=names)


@given(stream=st.lists(st.tuples(strategies.records(), st.sampled_from(["p", "q", "r"])), max_size=12))
@pytest.mark.parametrize("rule", cases.RULES)
def test_a_stream_equals_one_whose_first_two_labels_were_declared(rule, stream):
    order = list(dict.fromkeys(y for _, y in stream))[:2]
    free = PAMulticlass(cases.RULES[rule]())
    told = PAMulticlass(cases.RULES[rule](), labels=order)
    for x, y in stream:
        free.learn_one(x, y)
        told.learn_one(x, y)
    if len(order) == 2:
        assert free.decision_one({"a": 1.0, "b": 2.0}) == told.decision_one({"a": 1.0, "b": 2.0})
        assert (free.weights, free.intercept) == (told.weights, told.intercept)


@RIVALLED
def test_the_first_label_is_learned_against_a_nameless_one_that_the_second_takes_over(build):
    model = build(learn_intercept=False)
    model.learn_one({"a": 1.0}, "first")
    weight = model.weights["first"]["a"]
    assert weight > 0.0 and list(model.weights) == ["first"]
    assert model.predict_one({"a": -1.0}) == "first"  # the only name it knows
    model.learn_one({}, "second")
    assert model.weights["second"] == {"a": -weight}
    assert model.predict_one({"a": -1.0}) == "second"


def test_one_known_label_leaves_a_cost_sensitive_model_passive():
    model = PACostSensitive(lambda y, r: 1.0)
    model.learn_one({"a": 1.0}, "only")
    model.learn_one({"a": 2.0}, "only")
    assert (model.weights, model.version) == ({"only": {}}, 2)


@LABEL
@pytest.mark.parametrize("first, second", [(1, True), (True, 1.0), (0.0, False), (np.int64(3), 3.0),
                                           (np.str_("a"), "a"), (("a", np.int64(1)), ("a", True))], ids=repr)
def test_equal_labels_are_one_in_the_spelling_seen_first(case, first, second):
    model = case.build()
    before = len(model.weights)
    model.learn_one({"a": 1.0}, first)
    model.learn_one({"a": 1.0}, second)
    assert len(model.weights) == before + 1
    kept = list(model.weights)[-1]
    assert kept == first and type(kept) in (bool, int, float, str, tuple)
    assert repr(kept) == repr(first.item() if isinstance(first, np.generic) else
                              ("a", 1) if isinstance(first, tuple) else first)


@LABEL
def test_a_tie_goes_to_the_label_seen_first(case):
    model = case.build()
    if "declared" in case.name:
        pytest.skip("its declared labels were there first")
    for y in ("late", "early", "later"):
        model.learn_one({}, y, 1e-3)
        model.learn_one({"unseen " + y: 0.0}, y, 1e-3)
    scores = model.decision_one({})
    assert model.predict_one({}) == next(y for y in scores if scores[y] == max(scores.values()))


@LABEL
def test_a_failed_or_weightless_example_registers_no_label(case):
    model = case.build()
    model.learn_one({"a": 1.0}, "known")
    known = list(model.weights)
    model.learn_one({"a": 1.0}, "weightless", 0)
    assert model.step({"a": 1.0}, "weightless", 0.0) == "known" or "declared" in case.name
    for x, y in (({"a": math.nan}, "new"), ({"a": 1.0}, None), ({"a": [1]}, "new")):
        with pytest.raises(ValueError):
            model.learn_one(x, y)
    with pytest.raises(ValueError, match="row 1"):
        model.learn_many([[1.0], [math.inf]], ["new", "newer"])
    assert list(model.weights) == list(model.decision_one({})) == known
    assert model.version == 1


def test_an_overflow_registers_no_label_and_moves_no_slot():
    model = PAMulticlass(PA(), learn_intercept=False)
    model.learn_one({"a": 1e-300}, "A")
    before = pa_river.dumps(model)
    for y in ("B", "C"):
        with pytest.raises(ValueError, match="finite"):
            model.learn_one({"a": 1e10, "b": 1.0}, y)
    with pytest.raises(ValueError, match="row 1"):
        model.learn_many(pd.DataFrame({"a": [0.0, 1e10], "c": [1.0, 0.0]}), ["B", "C"])
    assert pa_river.dumps(model) == before


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize("y", [frozenset({1}), Colour.RED, math.inf, ("a", frozenset())], ids=repr)
@pytest.mark.parametrize("build", [PAMulticlass, lambda: PACostSensitive(cases.unit_cost)], ids=["multi", "cost"])
def test_a_label_that_cannot_be_stored_learns_and_dumps_names_it(build, y):
    model = build()
    model.learn_one({"a": 1.0}, y)
    model.learn_one({"a": -1.0}, "other")
    assert model.predict_one({"a": 1.0}) == y
    with pytest.raises(pa_river.StateError, match="label.*" + repr(y)[:8].replace("(", ".").replace("<", ".")):
        pa_river.dumps(model)


@pytest.mark.parametrize("change, message", [
    (lambda s: s.update(labels=["A", "A"]), "twice"),
    (lambda s: s.update(labels=["A", True, 1]), "twice"),
    (lambda s: s.update(labels=["A", None]), "labels"),
    (lambda s: s.update(labels=["A", math.inf]), "labels"),
    (lambda s: s.update(labels=("A", "B")), "labels"),
    (lambda s: s.update(labels=["A", "B"]), "3 prototypes for 2 labels"),
    (lambda s: s.update(version=-1), "version"),
    (lambda s: s["store"].update(lengths=np.array([3, 3, 3])), "rows"),
    (lambda s: s["store"].update(lengths=np.array([4, -1])), "rows"),
    (lambda s: s["store"].update(lengths=np.array([2**62, 2**62])), "rows"),
    (lambda s: s["store"].update(lengths=np.array([3.0, 2.0])), "rows"),
    (lambda s: s["store"].update(weights=np.array([math.nan] * 5)), "finite"),
    (lambda s: s["store"].update(intercepts=np.array([[0.0]])), "array"),
])
def test_a_forged_state_is_refused(change, message):
    model = PAMulticlass()
    for x, y in (({"a": 1.0}, "A"), ({"b": 1.0}, "B"), ({"a": 3.0, "b": 2.0}, "C")):
        model.learn_one(x, y)
    values = model._get_state()
    change(values)
    with pytest.raises(ValueError, match=message):
        PAMulticlass()._set_state(values)


def test_a_model_continues_bit_equal_in_a_process_with_another_hash_seed(tmp_path):
    model = PAMulticlass(PA())
    stream = [({"a": i % 3 - 1.0, "b": i % 5 / 7, "t": f"w{i % 4}"}, ["x", "y", ("z", 1)][i % 3]) for i in range(30)]
    for x, y in stream[:15]:
        model.learn_one(x, y)
    (tmp_path / "model").write_bytes(pa_river.dumps(model))
    program = (
        "import sys, pathlib, pa_river\n"
        "path = pathlib.Path(sys.argv[1]); model = pa_river.loads(path.read_bytes())\n"
        f"for x, y in {stream[15:]!r}: model.learn_one(x, y)\n"
        "path.write_bytes(pa_river.dumps(model))\n")
    for x, y in stream[15:]:
        model.learn_one(x, y)
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "model")], check=True,
                   env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (tmp_path / "model").read_bytes() == pa_river.dumps(model)


@LABEL
@given(data=st.data())
def test_probabilities_are_finite_sum_to_one_and_order_as_the_scores(case, data):
    model = case.trained([*data.draw(case.stream), ({"a": 1.0}, "spam")])
    x = data.draw(strategies.records(st.floats(-1e9, 1e9)))
    proba, scores = model.predict_proba_one(x), model.decision_one(x)
    assert list(proba) == list(scores)
    assert all(0.0 <= p <= 1.0 for p in proba.values()) and math.isclose(sum(proba.values()), 1.0)
    assert proba[model.predict_one(x)] == max(proba.values())
    for one in scores:
        assert all(proba[one] >= proba[other] for other in scores if scores[one] > scores[other])


def test_multilabel_probabilities_are_those_of_each_label():
    model = PAMultilabel(PA())
    model.learn_one({"a": 1.0}, {"x": True, "y": False})
    predicted = model.predict_one({"a": 1e6})
    for label, pair in model.predict_proba_one({"a": 1e6}).items():
        assert sum(pair.values()) == pytest.approx(1.0) and max(pair, key=pair.get) == predicted[label]


def test_river_evaluates_a_pipeline_with_labels_of_any_type():
    model = preprocessing.StandardScaler() | PAMulticlass()
    data = [({"a": float(i % 3), "b": float(i % 2)}, ["spam", 3, ("t", 1)][i % 3]) for i in range(300)]
    assert evaluate.progressive_val_score(data, model, metrics.Accuracy()).get() > 0.9
    assert PAMulticlass()._multiclass and not PAClassifier()._multiclass


@pytest.mark.parametrize("name, weights", [
    ("pamulticlass", {"A": {"a": 0.06, "b": 0.08}, "B": {"a": -0.06, "b": -0.08}, ("new", 2): {}}),
    ("pamultilabel", {"all": {"x": 0.12, "z": 0.16}}),
])
def test_the_bytes_of_past_formats_still_load(name, weights):
    model = pa_river.loads((pathlib.Path(__file__).parents[1] / "states" / f"v1_{name}.bin").read_bytes())
    assert list(model.weights) == list(weights) and not model.learn_intercept and type(model.rule) is PA
    for label, expected in weights.items():
        assert model.weights[label] == pytest.approx(expected, rel=1e-12)
