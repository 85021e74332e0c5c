"""The uniclass learner inside Beam's AnomalyDetection transform."""

from __future__ import annotations

import math

import apache_beam as beam
import pytest
from apache_beam.ml.anomaly.thresholds import FixedThreshold
from apache_beam.ml.anomaly.transforms import AnomalyDetection
from apache_beam.testing.util import assert_that

import pa_river
from beam_pipelines.anomaly import PAUniclassDetector

RECORDS = [("a", 1.0), ("b", 9.0), ("a", 1.2), ("b", 9.1), ("a", 50.0), ("a", 1.1), ("b", math.nan)]
RADIUS = 2.0


def expected():
    """(key, value) -> score and label, by the learner itself, key by key."""
    result = {}
    for key in "ab":
        model = pa_river.PAUniclass(pa_river.PA1(0.5), eps=RADIUS)
        for name, value in RECORDS:
            if name != key:
                continue
            if math.isnan(value):
                result[key, "nan"] = (None, None)
                continue
            score = model.score_one({"value": value})
            result[key, value] = (score, int(score > 1.0)) if model.version else ("nan", -2)
            model.learn_one({"value": value})
    return result


def found(result):
    key, result = result
    (prediction,) = result.predictions
    value, score = result.example.value, prediction.score
    score = "nan" if score is not None and math.isnan(score) else score
    return (key, "nan" if math.isnan(value) else value), (score, prediction.label)


def test_the_detector_drops_into_anomaly_detection_and_scores_as_the_learner():
    def check(results):
        assert dict(map(found, results)) == expected()

    detector = PAUniclassDetector(f"PAUniclass(PA1(0.5), eps={RADIUS})")
    with beam.Pipeline("FnApiRunner") as root:
        records = root | beam.Create([(key, beam.Row(value=value)) for key, value in RECORDS])
        assert_that(records | AnomalyDetection(detector), check)


def test_a_pipeline_of_scaler_and_learner_is_a_detector_too():
    detector = PAUniclassDetector("StandardScaler() | PAUniclass(max_radius=3.0)", model_id="scaled",
                                  threshold_criterion=FixedThreshold(1.5))
    for value in (1.0, 2.0, 3.0, 2.5, 1.5):
        detector.learn_one(beam.Row(value=value))
    assert detector.score_one(beam.Row(value=100.0)) > detector.score_one(beam.Row(value=2.0))
    assert detector._model_id == "scaled"


def test_a_refused_record_has_no_score_and_changes_nothing():
    detector = PAUniclassDetector()
    detector.learn_one(beam.Row(value=3.0))
    before = pa_river.dumps(detector._model)
    assert detector.score_one(beam.Row(value=math.inf)) is None
    detector.learn_one(beam.Row(value=math.inf))
    assert pa_river.dumps(detector._model) == before


def test_a_supervised_model_is_refused():
    with pytest.raises(ValueError, match="no anomaly detector"):
        PAUniclassDetector("PAClassifier()").score_one(beam.Row(value=1.0))
