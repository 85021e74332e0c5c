"""A margin machine per key with a window, and examples withdrawn by id, from the command over real records."""

import json

import numpy as np
from river import datasets

from beam_pipelines import run
from tests.unit.odm import oracle

MODEL = "ODMClassifier(lam=10.0, theta=0.1, kernel=RBF(0.5), max_size=40)"
WINDOW, LAM, THETA, GAMMA = 40, 10.0, 0.1, 0.5


def events():
    """Three keys over River's phishing sites; every 25th event withdraws what came twelve events earlier."""
    for i, (x, y) in enumerate(datasets.Phishing().take(300)):
        yield {"key": f"site{i % 3}", "id": f"e{i}", "time": float(i), "x": x, "y": bool(y)}
        if i % 25 == 24:
            yield {"key": f"site{(i - 12) % 3}", "id": f"c{i}", "time": i + 0.5, "op": "forget", "target": f"e{i - 12}"}


def ran(path, parts):
    for n, part in enumerate(parts):
        source = path.with_suffix(f".{n}.jsonl")
        source.write_text("".join(json.dumps(event) + "\n" for event in part))
        arguments = ["--input", str(source), "--output", str(path), "--model", MODEL, "--order", "sequence",
                     "--at_end", "snapshot", "--no_report", *(["--resume"] if n else [])]
        assert run.main(arguments) == 0
    return {
        tag: [json.loads(line) for line in (path / f"{tag}.jsonl").read_text().splitlines()]
        for tag in ("predictions", "rejected", "drift")
    }


def test_a_window_per_key_that_forgets_by_id_scores_as_retraining_does_and_goes_on_after_a_stop(tmp_path):
    given = list(events())
    whole = ran(tmp_path / "whole", [given])
    parts = ran(tmp_path / "parts", [given[:150], given[150:]])
    scores = {(p["key"], p["id"]): p["score"] for p in whole["predictions"]}
    again = {(p["key"], p["id"]): p["score"] for p in parts["predictions"]}
    assert scores.keys() == again.keys() and len(scores) == 300
    assert max(abs(scores[name] - again[name]) for name in scores) <= 1e-8
    for outputs in (whole, parts):
        assert not outputs["rejected"]
        assert [line["action"] for line in outputs["drift"]] == ["forget"] * 12

    held = {}
    for n, event in enumerate(given):
        window = held.setdefault(event["key"], [])
        if event.get("op") == "forget":
            held[event["key"]] = [entry for entry in window if entry[0] != event["target"]]
            continue
        x = np.array(list(event["x"].values()))
        if n % 29 == 0 and window:
            X, signs = np.array([entry[1] for entry in window]), np.array([entry[2] for entry in window])
            cost = np.full(len(window), LAM)
            alpha = oracle.retrained(oracle.rbf_gram(X, signs, GAMMA), cost, cost, THETA)
            expected = float((alpha * signs) @ np.exp(-GAMMA * ((X - x) ** 2).sum(axis=1)))
            assert abs(scores[event["key"], event["id"]] - expected) <= 1e-8
        window.append((event["id"], x, 1.0 if event["y"] else -1.0))
        del window[:-WINDOW]
