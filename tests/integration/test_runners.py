"""The flights job on Prism and on FnApiRunner: the same models, byte for byte."""

import sqlite3
import sys

import pytest

from tests.integration import rig

pytestmark = pytest.mark.slow


def flights(output, *args):
    command = [sys.executable, "-m", "beam_pipelines.run", "--job", "flights", "--output", output, "--no_report", *args]
    job = rig.Process(command, output.with_suffix(".log"))
    try:
        assert job.wait(400) == 0, job.said()[-3000:]
    finally:
        job.reap()
    query = "SELECT key, generation, version, time, reason, model, cell FROM snapshots ORDER BY 1, 2, 3"
    lines = {path.name: path.read_bytes() for path in output.glob("*.jsonl")}
    return sqlite3.connect(output / "snapshots.db").execute(query).fetchall(), lines


@pytest.fixture(scope="module")
def in_process(tmp_path_factory):
    return flights(tmp_path_factory.mktemp("flights") / "out")


def test_flights_on_prism_give_the_same_bytes(in_process, prism, tmp_path):
    assert flights(tmp_path / "out", "--runner", "PrismRunner", "--prism_location", prism) == in_process


@pytest.mark.parametrize(("options", "workers"), [([], 1), (["--cells_apart"], 2)])
def test_flights_on_prism_with_workers_of_a_pool_give_the_same_bytes(
    in_process, prism, pool, tmp_path, options, workers
):
    given = ["--runner", "PrismRunner", "--prism_location", prism, *pool.options, *options]
    assert flights(tmp_path / "out", *given) == in_process
    assert pool.said().count("Starting worker with command") == workers  # a process each
