"""Each kind of model in a cell: what it is asked, told and judged by."""

from __future__ import annotations

import json
import math
import pickle

import pytest
from pa_river import PAClassifier, PACostSensitive, PAMulticlass, PARegressor, labels, state
from pa_river.stream import CellSpec, Event, Outcome
from river import preprocessing
from tests.strategies_stream import Bomb
from tests.unit.stream.one_key import A, ask, run, tell


@state.storable
class Detector(Bomb):
    """An unsupervised model: its score is the number of examples before."""

    _supervised = False

    def learn_one(self, x):
        self.count += 1

    def score_one(self, x):
        return float(self.count)


def test_an_unsupervised_model_scores_then_learns_at_once_and_nothing_waits():
    held = CellSpec(Detector()).open("k", None)
    first, second, outcome = run(held, ask("1", 0.0), Event("k", "2", 1.0, A, True))
    assert (first.prediction, first.score, second.score) == (None, 0.0, 1.0)
    assert (outcome.y, outcome.loss) == (True, None)
    assert run(held, ask("1", 2.0)) == []
    assert run(held, tell("9", 3.0, True))[0].kind == "no_features"
    assert held.version() == 2


@state.storable
class Tagger(Bomb):
    """A sequence model: every token gets the last tag it was taught."""

    _normalise_y = staticmethod(labels.tags)

    def learn_one(self, x, y, w=1.0):
        self.total = y[-1]

    def predict_one(self, x):
        return [self.total for _ in x]


@state.storable
class Topics(Tagger):
    """A multilabel model: the topics it was taught last."""

    _normalise_y = staticmethod(labels.label_set)

    def learn_one(self, x, y, w=1.0):
        self.total = {name: flag for name, flag in y.items()}

    def predict_one(self, x):
        return self.total or {}


def test_sequences_pass_as_lists_and_the_loss_is_the_share_of_wrong_tags():
    held = CellSpec(Tagger()).open("k", None)
    run(held, Event("k", "1", 0.0, ["the", "cat"], ["D", "N"]), ask("2", 1.0, [{"w": "a"}, {"w": "b"}]))
    held = CellSpec(Tagger()).open("k", held.dumps())
    (outcome,) = run(held, tell("2", 2.0, ["D", "N"]))
    assert (outcome.prediction, outcome.y, outcome.loss) == (["N", "N"], ["D", "N"], 0.5)


def test_multilabel_passes_as_a_dict_and_the_loss_is_the_share_of_wrong_labels():
    held = CellSpec(Topics()).open("k", None)
    run(held, Event("k", "1", 0.0, A, {"sport": True, "news": False}), ask("2", 1.0))
    (outcome,) = run(held, tell("2", 2.0, {"sport": 0, "art": True}))
    assert outcome.loss == pytest.approx(2 / 3)  # sport and art are wrong, news is right


def test_a_regressor_is_judged_by_the_absolute_error_and_its_score_is_its_prediction():
    held = CellSpec(PARegressor()).open("k", None)
    said, outcome = run(held, Event("k", "1", 0.0, A, 3))
    assert (said.prediction, said.score, outcome.y, outcome.loss) == (0.0, 0.0, 3.0, 3.0)


@pytest.mark.parametrize("cost", [{"x": {"y": 2.0}, "y": {"x": 5.0}}, lambda y, r: {"x": 2.0, "y": 5.0}[y]])
def test_a_cost_sensitive_model_is_judged_by_its_cost_and_before_it_knows_a_label_by_none(cost):
    held = CellSpec(PACostSensitive(cost)).open("k", None)
    outputs = run(held, *[Event("k", str(at), float(at), A, y) for at, y in enumerate(["x", "y", "x", "x"])])
    losses = [(o.prediction, o.y, o.loss) for o in outputs if isinstance(o, Outcome)]
    assert losses[1:3] == [("x", "y", 5.0), ("y", "x", 2.0)]
    assert held.version() == 4
    assert callable(cost) == (losses[0] == (None, "x", None))  # a mapping names its labels, so something is predicted


def test_a_pipeline_with_a_cost_function_is_kept_in_a_cell():
    settings = CellSpec(preprocessing.StandardScaler() | PACostSensitive(lambda y, r: 4.0))
    held = settings.open("k", None)
    run(held, ask("1", 0.0, y="x"), ask("2", 1.0, {"a": 3.0}, y="z"))
    held = settings.open("k", held.dumps())
    said, outcome = run(held, ask("3", 2.0, {"a": -3.0}, y="z"))
    assert (said.prediction, outcome.loss, held.version()) == ("x", 4.0, 3)


@pytest.mark.parametrize("label", [math.inf, ("a", -math.inf), frozenset("a"), ("a", frozenset()), 1j, 10**400])
def test_a_label_that_neither_bytes_nor_json_hold_costs_its_event_and_not_its_key(label):
    held = CellSpec(PAMulticlass()).open("k", None)
    rejected = run(held, ask("1", 0.0, y=label), ask("2", 1.0), tell("2", 2.0, label), tell("3", 3.0, label))
    assert [output.tag for output in rejected] == ["rejected", "predictions", "rejected", "rejected"]
    outputs = run(held, tell("2", 4.0, ("a", b"b")), ask("4", 5.0))
    assert [json.loads(output.to_json())["key"] for output in [*rejected, *outputs]] == ["k"] * 6
    assert held.dumps() is not None
    assert held.model().decision_one(A) == pytest.approx({("a", b"b"): 0.5})


def test_a_label_model_scores_by_its_winner():
    held = CellSpec(preprocessing.StandardScaler() | PAMulticlass()).open("k", None)
    run(held, Event("k", "1", 0.0, {"a": 1.0}, "x"), Event("k", "2", 1.0, {"a": 3.0}, "y"))
    (said,) = run(held, ask("3", 2.0, {"a": 5.0}))
    scaled = held.model()["StandardScaler"].transform_one({"a": 5.0})
    scores = held.model()["PAMulticlass"].decision_one(scaled)
    assert (said.prediction, said.score) == (max(scores, key=scores.get), max(scores.values()))


def test_the_settings_of_a_job_travel_to_its_workers():
    costs = PACostSensitive({"x": {"y": 2.0}, "y": {"x": 5.0}})
    for model in (PAClassifier(), PARegressor(), Detector(), costs, preprocessing.StandardScaler() | PAClassifier()):
        sent = pickle.loads(pickle.dumps(CellSpec(model, label_ttl=5.0)))
        assert [output.tag for output in sent.open("k", None).on_event(ask("1", 0.0))] == ["predictions"]
