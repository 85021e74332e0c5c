"""Uniclass learners as detectors of Beam's own `ml.anomaly`: they drop into its `AnomalyDetection` transform."""

from __future__ import annotations

import logging
import math
from typing import Any

import apache_beam as beam
from apache_beam.ml.anomaly.base import AnomalyDetector
from apache_beam.ml.anomaly.specifiable import specifiable
from apache_beam.ml.anomaly.thresholds import FixedThreshold

from beam_pipelines.options import parse_model

_logger = logging.getLogger(__name__)


@specifiable
class PAUniclassDetector(AnomalyDetector):
    """`PAUniclass`, or a pipeline that ends in it, for `apache_beam.ml.anomaly.transforms.AnomalyDetection`.

    Parameters
    ----------
    model
        The detector in the words of the command line's `--model`. Text, because Beam sends detectors as specifications
        of plain values; parsed, never evaluated.
    kwargs
        Of Beam's `AnomalyDetector`: `model_id`, `features`, `target`, `threshold_criterion`. Without a criterion a
        score above 1, a record outside the radius, is an outlier.

    Notes
    -----
    A record is scored, then learned. Score NaN, label -2 (missing): nothing was learned yet. Score None, label None:
    the record was refused and nothing is learned from it; the log says why. One model a key, kept by Beam in its own
    encoding; for versions, snapshots and late events use `beam_pipelines.run`.

    Examples
    --------
    >>> detector = PAUniclassDetector("StandardScaler() | PAUniclass(PA1(C=0.1), max_radius=3.0)")
    >>> detector.score_one(beam.Row(amount=3.0))
    nan

    """

    def __init__(self, model: str = "PAUniclass()", **kwargs: Any):
        kwargs.setdefault("threshold_criterion", FixedThreshold(1.0))
        super().__init__(**kwargs)
        self._model = parse_model(model)
        if not hasattr(self._model, "score_one") or getattr(self._model, "_supervised", False):
            raise ValueError(f"{model!r} is no anomaly detector (write a call, such as PAUniclass(max_radius=3.0))")
        self._learned = False

    def learn_one(self, x: beam.Row) -> None:
        """Learn one record; one that cannot be learned leaves the model as it was."""
        model = self._model  # the first look at it may still build it, and then raise
        try:
            model.learn_one(x.as_dict())
        except ValueError as error:  # scored None, so Beam's output says that it was refused
            _logger.warning("record not learned: %s", error)
        else:
            self._learned = True

    def score_one(self, x: beam.Row) -> float | None:
        """Return distance / radius; NaN before anything was learned; None for a record that is refused."""
        model = self._model
        try:
            score = float(model.score_one(x.as_dict()))
        except ValueError as error:
            _logger.warning("record not scored: %s", error)
            return None
        return score if self._learned else math.nan
