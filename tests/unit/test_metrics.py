"""The ranking metrics against scikit-learn's, and by hand where it has none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss

from pa_river import PAMultilabel, metrics

rows = st.lists(st.tuples(st.lists(st.booleans(), min_size=5, max_size=5),
                          st.lists(st.integers(-2, 2).map(float), min_size=5, max_size=5)), min_size=1, max_size=6)


@pytest.mark.parametrize("cls, peer", [
    (metrics.RankingLoss, label_ranking_loss), (metrics.AveragePrecision, label_ranking_average_precision_score),
])
@given(rows=rows)
def test_a_metric_equals_scikit_learns_ties_included(cls, peer, rows):
    metric = cls()
    for flags, scores in rows:
        metric.update(dict(enumerate(flags)), dict(enumerate(scores)))
    expected = peer(np.array([flags for flags, _ in rows]), np.array([scores for _, scores in rows]))
    assert metric.get() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("y, scores, wrong", [
    ({"a": True, "b": False}, {"a": 1.0, "b": 0.0}, 0.0),
    ({"a": True, "b": False}, {"a": 0.0, "b": 1.0}, 1.0),
    ({"a": True, "b": False}, {"a": 0.0, "b": 0.0}, 1.0),  # a tie is no ranking
    ({"a": True, "b": True}, {"a": 0.0, "b": 0.0}, 0.0),
    ({"a": False}, {"a": 0.0, "b": 3.0}, 0.0),  # nothing is relevant
    ({"a": True}, {"b": -9.0}, 1.0),  # the model does not know a
    ({"a": True}, {"a": -9.0}, 0.0),
    ({"a": True}, {"a": True, "b": False}, 0.0),  # predicted sets rank too
    ({"a": True, "b": False}, {"a": {True: 0.4, False: 0.6}, "b": {True: 0.3, False: 0.7}}, 0.0),
], ids=repr)
def test_one_error_and_ranking_loss_of_one_pair_agree(y, scores, wrong):
    for metric in (metrics.OneError(), metrics.RankingLoss()):
        metric.update(y, scores)
        assert metric.get() == wrong


def test_metrics_revert_clone_compare_and_know_their_models():
    metric, fresh = metrics.OneError(), metrics.OneError()
    metric.update({"a": True, "b": False}, {"a": 1.0, "b": 0.0})
    metric.update({"a": True, "b": False}, {"a": 0.0, "b": 1.0})
    assert metric.get() == 0.5
    metric.revert({"a": True, "b": False}, {"a": 0.0, "b": 1.0})
    assert metric.get() == fresh.get() == metric.clone().get() == 0.0
    assert not metrics.RankingLoss().bigger_is_better and metrics.AveragePrecision().bigger_is_better
    assert metric.works_with(PAMultilabel()) and repr(metrics.RankingLoss()) == "RankingLoss: 0.00%"


@pytest.mark.parametrize("name", ["RankingLoss", "OneError", "AveragePrecision"])
def test_a_score_that_is_no_number_is_refused_and_not_counted(name):
    found = getattr(metrics, name)()
    with pytest.raises(ValueError, match="NaN"):
        found.update({"a": True, "b": False}, {"a": 1.0, "b": math.nan})
    found.update({"a": True, "b": False}, {"a": 1.0, "b": 0.0})
    assert found.get() == found._right
