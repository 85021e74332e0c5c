"""The main job against River's own delayed evaluation: every prediction and every final weight, to the last bit."""

import csv
import datetime
import gzip
import json
import sqlite3
from collections import defaultdict
from contextlib import closing

import pytest
from river import stream

import pa_river
from beam_pipelines import run
from beam_pipelines.jobs import JOBS

MODELS = {"flights": lambda: pa_river.PAClassifier(pa_river.PA1(1.0)),
          "flights_delay": lambda: pa_river.PARegressor(pa_river.PA1(1.0))}  # fmt: skip


class Flight(dict):
    """A flight's features; what River's machinery asks for beside them is an attribute, so that no model sees it."""


def flights_by_key(job):
    """{key: [(id, features, label)]} of the flights that landed, read here by hand and by no code of the package."""
    found = defaultdict(list)
    with gzip.open(JOBS[job].sample, "rt", newline="") as file:
        for row in csv.DictReader(file):
            hour, minute = divmod(int(row["sched_dep_time"]), 100)
            when = datetime.datetime(2013, int(row["month"]), int(row["day"]), hour, minute)
            x = Flight({
                f"dest={row['dest']}": 1.0, f"hour={hour}": 1.0, f"weekday={when:%a}": 1.0,
                "day": (hour * 60 + minute) / 1440, "distance": int(row["distance"]) / 1000,
            })  # fmt: skip
            x.when = when
            if row["arr_delay"] == "":
                continue  # never labelled: River's side has no such rows
            x.wait = datetime.timedelta(minutes=int(row["dep_delay"]) + int(row["air_time"]))
            y = float(row["arr_delay"])
            id = "-".join(row[name] for name in ("month", "day", "carrier", "flight", "origin"))
            found[f"{row['carrier']}-{row['origin']}"].append((id, x, y > 15 if job == "flights" else y))
    return found


@pytest.fixture(scope="module", params=list(JOBS))
def ran(request, tmp_path_factory):
    output = tmp_path_factory.mktemp("oracle") / request.param
    assert run.main(["--job", request.param, "--output", str(output), "--no_report"]) == 0
    return request.param, output


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def test_predictions_outcomes_and_models_equal_rivers_simulate_qa_to_the_last_bit(ran):
    job, output = ran
    predicted = {line["id"]: line for line in lines(output / "predictions.jsonl")}
    outcomes = defaultdict(list)
    for line in lines(output / "outcomes.jsonl"):
        outcomes[line["key"]].append(line)
    with closing(sqlite3.connect(output / "snapshots.db")) as database:
        stored = dict(database.execute("SELECT key, model FROM snapshots"))
    checked = 0
    for key, flights in flights_by_key(job).items():
        model, said = MODELS[job](), {}
        dataset = ((x, y) for _, x, y in flights)
        answered = iter(outcomes[key])
        for number, x, y in stream.simulate_qa(dataset, lambda x: x.when, lambda x, y: x.wait):
            id = flights[number][0]
            if y is None:
                said[number] = model.predict_one(x), model.decision_one(x)
                assert (predicted[id]["prediction"], predicted[id]["score"]) == said[number]
                assert predicted[id]["version"] == model.version
                checked += 1
            else:
                model.learn_one(x, y)
                outcome = next(answered)  # outcomes come in the order in which River reveals the labels
                assert (outcome["id"], outcome["y"], outcome["prediction"]) == (id, y, said[number][0])
        final = pa_river.loads(stored.pop(key))
        assert final.weights == model.weights and final.intercept == model.intercept
        assert final.version == model.version
        assert next(answered, None) is None
    assert checked == 26_398
    assert all(not pa_river.loads(blob).weights for blob in stored.values())  # keys of which nothing ever landed


def test_every_flight_is_accounted_for(ran):
    job, output = ran
    predicted = [line["id"] for line in lines(output / "predictions.jsonl")]
    answered = [line["id"] for line in lines(output / "outcomes.jsonl")]
    orphans = lines(output / "orphans.jsonl")
    assert len(predicted) == len(set(predicted)) == 27_004
    assert sorted(predicted) == sorted([*answered, *(line["id"] for line in orphans)])
    assert {line["kind"] for line in orphans} == {"unlabelled"}
    assert lines(output / "rejected.jsonl") == lines(output / "drift.jsonl") == []
    assert [(o["time"], o["key"], o["id"]) for o in orphans] == sorted((o["time"], o["key"], o["id"]) for o in orphans)
