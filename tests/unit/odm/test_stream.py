"""The machine as the model of one key: window, forgetting by id, state that continues."""

import numpy as np
import pytest

from pa_river import ODMClassifier
from pa_river.stream import CellSpec, Drift, Event, Rejected
from tests.unit.odm import oracle


def example(id, time, row, label):
    return Event("k", f"id{id}", float(time), x={f"f{j}": value for j, value in enumerate(row)}, y=bool(label))


@pytest.mark.parametrize("bundle", [1, 7, 1000])
def test_a_key_forgets_by_window_and_by_event_and_is_the_retrained_machine(bundle):
    rng = np.random.default_rng(0)
    X = rng.random((50, 2))
    y = X.sum(axis=1) + 0.2 * rng.normal(size=50) > 1.0
    spec = CellSpec(ODMClassifier(10.0, 0.1, max_size=20))
    events = [example(i, i, X[i], y[i]) for i in range(50)]
    events += [Event("k", "c1", 50.0, op="forget", target="id45"), Event("k", "c2", 51.0, op="forget", target="id45"),
               Event("k", "c3", 52.0, op="forget", target="id3")]
    held, outputs, sizes = spec.open("k", None), [], []
    for at, event in enumerate(events):
        if at % bundle == 0:
            data = held.dumps() if at else None
            sizes.append(len(data or b""))
            held = spec.open("k", data)
        outputs += held.on_event(event)
    # the first is removed; the same again and one that left the window are refused, in words, and cost nothing
    answers = [output for output in outputs if isinstance(output, Drift)]
    assert [answer.action for answer in answers if "removed" in str(answer.evidence)] == ["forget"]
    assert not [output for output in outputs if isinstance(output, Rejected) and output.stage == "learn"]
    said = " ".join(str(output) for output in outputs[50:])
    assert "no example with the id 'id3'" in said and "no example with the id 'id45'" in said

    model = held.model()
    left = [i for i in range(30, 50) if i != 45]
    assert model.ids == [f"id{i}" for i in left]
    signs = np.where(y[left], 1.0, -1.0)
    cost = np.full(len(left), 10.0)
    expected = oracle.retrained(oracle.rbf_gram(X[left], signs, 1.0), cost, cost, 0.1)
    assert np.abs(model.alpha - expected).max() <= 1e-8 * np.abs(expected).max()
    if bundle == 1:
        assert max(sizes[21:]) <= 1.2 * sizes[21] + 1500  # a full window's state stays as large as it is
