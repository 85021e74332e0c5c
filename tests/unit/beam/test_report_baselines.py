"""The baselines of the report against slow rules that River's `simulate_qa` asks and teaches."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict

import numpy as np
import pytest
from river import compose, linear_model, preprocessing

import pa_river
from beam_pipelines.report import baselines, gather, read
from pa_river.stream import Event
from tests.unit.beam import report_files


def majority(labels):
    counts, leader = Counter(), False
    for label in labels:
        counts[label] += 1
        leader = label if counts[label] > counts[leader] else leader
    return leader


SLOW = {
    "majority so far": majority,
    "last label": lambda labels: labels[-1] if labels else 0.0,
    "mean so far": lambda labels: statistics.fmean(labels) if labels else 0.0,
    "median so far": lambda labels: statistics.median_low(labels) if labels else 0.0,
}


def slow_losses(found, rule):
    """{id: loss} by a rule that is given all labels of the key that River had released."""
    labels, answers = defaultdict(list), {}
    for case, answered in report_files.moments(found):
        if answered:
            labels[case.key].append(case.y)
        else:
            answers[case.id] = rule(labels[case.key])
    if isinstance(found[0].y, float):
        return {case.id: abs(answers[case.id] - case.y) for case in found}
    return {case.id: float(answers[case.id] != case.y) for case in found}


def gathered(directory, events=None, rival=None):
    plain = {"title": None, "about": "", "unit": "", "facts": None}
    return gather.collect(directory, lambda text: None, events=events, rival=rival, **plain)


def losses_of(report, directory):
    ids = [record["id"] for record in lines(directory / "outcomes.jsonl")]
    return {c.name: dict(zip(ids, c.loss.tolist())) for c in report.contenders}


def lines(path):
    found = []
    read.each(path, found.append, lambda text: None)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("regression", [False, True])
def test_rules_lose_what_slow_rules_under_simulate_qa_lose(tmp_path, regression, seed):
    found = report_files.cases(300, seed, regression=regression)
    directory = report_files.write(tmp_path / "run", found)

    report = gathered(directory)

    losses = losses_of(report, directory)
    names = ["median so far", "mean so far", "last label"] if regression else ["majority so far", "last label"]
    assert list(losses) == ["the models", *names]
    for name in names:
        assert losses[name] == pytest.approx(slow_losses(found, SLOW[name]), abs=1e-9), name
    assert losses["the models"] == pytest.approx({case.id: report_files.loss(case) for case in found})
    assert report.agreeing == 1.0


def test_a_rule_never_sees_the_label_of_its_own_question_even_without_delay(tmp_path):
    answers = [True, False, False, True]
    outcomes = [report_files.outcome("k", None, y, False, int(y), version=i) for i, y in enumerate(answers)]
    report = gathered(report_files.write(tmp_path / "run", outcomes=outcomes))
    last = next(c for c in report.contenders if c.name == "last label")
    assert last.loss.tolist() == [1.0, 1.0, 0.0, 1.0]  # answers False (untrained), True, False, False


def test_the_time_of_a_question_is_that_of_its_prediction_where_a_difference_of_floats_would_be_off(tmp_path):
    asked, label = 0.1, 0.9
    late = report_files.outcome("k", "1", True, False, 1, time=label, delay=label - asked)
    said = {"key": "k", "id": "1", "time": asked, "prediction": False, "score": None, "version": 0}
    report = gathered(report_files.write(tmp_path / "run", outcomes=[late], predictions=[said]))
    assert label - (label - asked) != asked  # the case is a case
    assert (report.outcomes.asked[0], report.outcomes.known[0]) == (asked, label)


@pytest.mark.parametrize("lag", [-5.0, 0.0])
def test_a_label_that_came_first_is_known_from_its_features_on(lag):
    assert read.moments(100.0, lag) == (100.0, 100.0)
    assert read.moments(100.0, 30.0) == (70.0, 100.0)


def events_of(found):
    for case, answered in report_files.moments(found):
        when = case.asked + case.delay if answered else case.asked
        yield Event(case.key, case.id, when, None if answered else case.x, case.y if answered else None)


def test_river_is_driven_as_by_hand_one_model_a_key(tmp_path):
    for regression, model in ((False, linear_model.PAClassifier()), (True, linear_model.PARegressor())):
        found = report_files.cases(200, 7, regression=regression)
        directory = report_files.write(tmp_path / str(regression), found)
        models, answers = defaultdict(model.clone), {}
        for case, answered in report_files.moments(found):
            if answered:
                models[case.key].learn_one(case.x, case.y)
            else:
                answers[case.id] = models[case.key].predict_one(case.x)
        by_hand = {c.id: abs(answers[c.id] - c.y) if regression else float(answers[c.id] != c.y) for c in found}

        # Noise the cell would pass over: everything twice, a rejected record, a query, a label before its features.
        noisy = [event for one in events_of(found) for event in (one, one)]
        noisy += [Event("k0", "q", 2e9, {"a": 1.0}, op="query"), pa_river.stream.Rejected(None, None, "", "parse", "")]
        report = gathered(directory, events=noisy)

        assert losses_of(report, directory)[report.contenders[-1].name] == pytest.approx(by_hand)
        assert report.summaries[-1].count == len(found)


def test_river_learns_an_early_label_with_its_features():
    rows = [report_files.outcome("k", str(i), True, False, 1) for i in range(2)]
    events = [Event("k", "0", 1.0, None, True), Event("k", "0", 2.0, {"a": 1.0})]
    events += [Event("k", "1", 3.0, {"a": 1.0}, True)]
    found = read._Rows(read.Names())
    for row in rows:
        found.add(row)
    contender = baselines.driven(found.freeze(), events, linear_model.PAClassifier(), "River's", lambda text: None)
    assert contender.loss.tolist() == [1.0, 0.0]  # the first question before any label, the second after one


def test_what_river_cannot_take_is_counted_and_leaves_the_rest():
    rows = [report_files.outcome("k", str(i), True, False, 1) for i in range(2)]
    events = [Event("k", "0", 1.0, {"a": float("inf")}, True), Event("k", "1", 3.0, {"a": 1.0}, True)]
    found = read._Rows(read.Names())
    for row in rows:
        found.add(row)
    contender = baselines.driven(found.freeze(), events, linear_model.PAClassifier(), "River's", lambda text: None)
    assert np.isnan(contender.loss[0]) and contender.loss[1] == 1.0
    assert contender.note == "1 events it could not take"


def test_the_counterpart_has_the_same_settings_behind_the_same_transformers():
    ours = preprocessing.StandardScaler() | pa_river.PAClassifier(pa_river.PA2(C=0.5), learn_intercept=False)
    theirs = baselines.counterpart(ours)
    assert isinstance(theirs, compose.Pipeline) and isinstance(theirs[0], preprocessing.StandardScaler)
    own = theirs[1]
    assert isinstance(own, linear_model.PAClassifier)
    assert (own.C, own.mode, own.learn_intercept) == (0.5, 2, False)
    assert baselines.counterpart(pa_river.PAClassifier()).mode == 1
    assert baselines.counterpart(linear_model.LinearRegression()) is None
