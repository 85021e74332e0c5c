"""kill -9 of driver, Prism and worker under a live job over a real broker."""

import pytest

from tests.integration import crashes

pytestmark = pytest.mark.slow


def test_after_kill_9_of_driver_prism_and_worker_every_event_has_counted_once(broker, prism, tmp_path):
    figures = crashes.run(broker, prism, tmp_path, kills=3, count=40_000, keys=100, seed=6)
    print(figures)
    faults = ("missing", "unexpected", "different", "second_copies_that_differ",
              "outcomes_that_contradict_their_prediction", "models_that_differ")
    assert {name: figures[name] for name in faults} == dict.fromkeys(faults, 0)
    assert sum(figures["kills"].values()) == 3
