"""Fixtures of the integration tests: Prism and the broker are brought and started once, and reaped whatever happens."""

from __future__ import annotations

import itertools
import signal

import pytest

from tests.integration import rig, tools

_LONGEST = 600  # seconds for one test: then it fails, and its fixtures reap what it started

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def bounded():
    def late(number, frame):
        raise TimeoutError(f"the test took more than {_LONGEST} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(_LONGEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session", autouse=True)
def reaped():
    """Set up first, so torn down last: nothing that a test started may go on."""
    rig.reap_when_terminated()
    yield
    left = rig.left_over()
    for pid in left:
        rig.kill(pid)
    assert not left, f"processes went on after the tests: {left}"


@pytest.fixture(scope="session")
def prism():
    return tools.prism()


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    started = rig.Broker(tools.kafka(), tmp_path_factory.mktemp("broker"))
    yield started
    started.reap()


@pytest.fixture
def topic(broker, request):
    """A fresh topic of two partitions."""
    return broker.topic(f"t{next(_numbers)}")


@pytest.fixture
def live(broker, topic, tmp_path, prism):
    """Start jobs over the topic; all are reaped at the end."""
    jobs = []

    def start(*arguments, output=tmp_path / "out", topic=topic, **environment):
        jobs.append(rig.Live(broker, topic, output, prism, *map(str, arguments), **environment))
        return jobs[-1]

    yield start
    for job in jobs:
        job.reap()


@pytest.fixture
def pool(tmp_path):
    started = rig.Pool(tmp_path)
    yield started
    started.reap()
