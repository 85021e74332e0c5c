"""kill -9 of driver, Prism and worker under a live job over a real broker."""

import pytest

from tests.integration import crashes

pytestmark = pytest.mark.slow


def test_after_kill_9_of_driver_prism_and_worker_every_event_has_counted_once(broker, prism, tmp_path):
    figures = crashes.run(broker, prism, tmp_path, kills=3, count=40_000, keys=100, seed=6)
    print(figures)
    assert {name: figures[name] for name in crashes.FAULTS} == dict.fromkeys(crashes.FAULTS, 0)
    assert sum(figures["kills"].values()) == 3
