"""The live job over a real broker, on Prism: bad records, brokers that go, topics made anew, records sent on."""

import json
import os
import signal
import sys
import time

import pytest

from beam_pipelines import live
from beam_pipelines.options import parse_model
from pa_river.stream import CellSpec
from tests.integration import crashes, rig

pytestmark = pytest.mark.slow

GOOD = [rig.event(f"k{step % 3}", str(step), 1_000.0 + step, x={"a": step % 5 - 2}, y=step % 2 == 0)
        for step in range(300)]  # fmt: skip


def _turn(record):
    """Where a bounded source with --order sequence places it."""
    event = json.loads(record[1])
    return event["time"], "x" in event


def rejected(output):
    return [json.loads(line) for (line,) in rig.rows(output, "SELECT line FROM records WHERE tag = 'rejected'")]


def test_a_poisoned_record_is_rejected_and_neither_stops_nor_loops_the_job(broker, topic, live, tmp_path):
    poison = [
        ("k0", b"\xff\xfe"), ("k0", "[" * 100_000), ("k0", "{}"), (b"\xff", "{}"), ("k0", None), (None, '{"x": {}}'),
        rig.event("k0", "late", 1e15, x={"a": 1}), rig.event("k0", "0", 1_000.0, x={"a": 9}, y=True),
        rig.event("k0", "nested", 1_000.0, x={"a": {"b": 1}}), rig.event("k0", "odd", 1_000.0, x={"a": 1}, y="maybe"),
    ]  # fmt: skip
    broker.send(topic, [*GOOD[:150], *poison, *poison, *GOOD[150:]])
    job = live("--until_end")
    assert job.wait(180) == 0, job.said()
    assert len(rejected(job.output)) == 2 * len(poison)
    assert rig.rows(job.output, "SELECT count(*) FROM outcomes") == [(300,)]
    assert live("--until_end", "--resume").wait(180) == 0  # reads nothing again: all is done
    assert len(rejected(job.output)) == 2 * len(poison)


def test_tombstones_and_records_without_a_key_go_where_they_are_sent(broker, topic, live):
    broker.send(topic, [*GOOD[:3], ("k0", None), (None, '{"id": "n", "time": 1003, "x": {"a": 1}, "y": true}')])
    job = live("--until_end", "--tombstones", "reset", "--null_key", "nobody", "--max_future", "1e12")
    assert job.wait(180) == 0, job.said()
    assert rejected(job.output) == []
    assert rig.rows(job.output, "SELECT action, version FROM drift") == [("reset", 2)]
    assert rig.rows(job.output, "SELECT id FROM predictions WHERE key = 'nobody'") == [("n",)]


def test_a_topic_made_anew_stops_the_start_in_one_line(broker, topic, live):
    broker.send(topic, GOOD)
    assert live("--until_end").wait(180) == 0
    broker.drop(topic)
    broker.topic(topic)
    broker.send(topic, GOOD[:10])
    job = live("--until_end", "--resume", output=live("--export").output)
    assert job.wait(180) == 2
    assert "was made anew" in job.said().splitlines()[-1]


def test_a_broker_that_goes_away_and_returns_costs_no_event(broker, topic, live):
    broker.send(topic, GOOD[:150])
    job = live("--resume")
    job.wait_for_records(300, 120)
    broker.reap()
    time.sleep(5)
    assert job.poll() is None
    broker.start()
    broker.send(topic, GOOD[150:])
    job.wait_for_records(600, 120)
    assert rig.rows(job.output, "SELECT count(*), count(DISTINCT id) FROM outcomes") == [(300, 300)]


def test_a_label_that_never_comes_leaves_by_the_watermark_also_after_a_crash(broker, topic, live):
    waits = rig.event("k0", "waits", 1_000.0, x={"a": 1})
    broker.send(topic, [waits])
    first = live("--resume", "--label_ttl", "60", "--save_within", "0.5")
    first.wait_for_records(1, 120)
    rig.wait_for(lambda: rig.rows(first.output, "SELECT count(*) FROM cells WHERE blob IS NOT NULL") == [(1,)], 60,
                 "no resume point")  # fmt: skip
    first.reap()
    partitions = [rig.event(f"other{number}", "1", 1_100.0, x={"a": 1}, y=True) for number in range(8)]
    broker.send(topic, partitions)  # no event of k0, but time passes in every partition
    second = live("--resume", "--label_ttl", "60", "--idle_after", "1")
    second.wait_for_records(18, 120)
    assert rig.rows(second.output, "SELECT key, id, kind FROM orphans") == [("k0", "waits", "unlabelled")]


def test_models_of_a_bounded_run_go_on_in_the_live_job_as_if_it_had_been_one(broker, topic, live, tmp_path):
    sent = list(crashes.log(4_000, 20, 3))
    older, newer = sorted(sent[:3_000], key=_turn), sent[3_000:]
    (tmp_path / "older.jsonl").write_text("".join(value + "\n" for _, value in older))
    backfill = rig.Process([sys.executable, "-m", "beam_pipelines.run", "--input", tmp_path / "older.jsonl", "--output",
                            tmp_path / "backfill", "--order", "sequence", "--at_end", "snapshot", "--model",
                            crashes.MODEL], tmp_path / "backfill.log")  # fmt: skip
    assert backfill.wait(120) == 0, backfill.said()
    broker.send(topic, older, at=1.7e9)  # the topic still holds what the files hold
    broker.send(topic, newer, at=1.7e9 + 60)
    job = live("--until_end", "--model", crashes.MODEL, "--since", "2023-11-14T22:14:00Z",  # 1.7e9 + 40
               "--warm_start", tmp_path / "backfill" / "snapshots.db")
    assert job.wait(180) == 0, job.said()
    spec = CellSpec(parse_model(crashes.MODEL))
    before, (said, models) = crashes.expected(older, spec)[0], crashes.expected([*older, *newer], spec)
    assert rig.records(job.output) == {name: line for name, line in said.items() if name not in before}
    cells = rig.rows(job.output, "SELECT key, blob FROM cells")
    assert {key: crashes.model(spec.open(key, blob)) for key, blob in cells} == {key: models[key] for key, _ in cells}
    assert len(cells) > 10


def test_what_cannot_work_is_refused_at_the_start_in_one_line(broker, topic, tmp_path, capsys):
    given = ["--bootstrap", broker.bootstrap, "--output", str(tmp_path / "out"), "--topic"]
    for more, word in (
        (["nowhere"], "nowhere"),
        ([topic, "--runner", "FnApiRunner"], "use PrismRunner"),
        ([topic, "--bootstrap", f"localhost:{rig.free_port()}"], "broker localhost:"),
        ([topic, "--kafka", "no.such.property=1"], "no.such.property"),
    ):
        assert live.main([*given, *more]) == 2
        error = capsys.readouterr().err
        assert word in error and error.count("\n") == 1 and "Traceback" not in error


def test_on_one_core_the_job_does_not_stand_still(broker, topic, live, pool):
    sent = list(crashes.log(20_000, 100, 1))
    broker.send(topic, sent)
    said, _ = crashes.expected(sent, CellSpec(parse_model(crashes.MODEL)))
    job = live("--resume", "--model", crashes.MODEL, "--cells_apart", *pool.options)
    for pid in (job.pid, pool.pid):  # and so of all that they start
        os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
    job.wait_for_records(len(said), 180)
    assert rig.records(job.output) == said


GUARDED = {"PA_RIVER_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", "PA_RIVER_KAFKA_SASL_MECHANISM": "PLAIN",
           "PA_RIVER_KAFKA_SASL_USERNAME": rig.USER}  # fmt: skip


def test_a_broker_that_asks_for_a_password_gets_it_from_the_environment_and_nothing_else_does(broker, topic, live):
    broker.send(topic, GOOD)
    job = live("--bootstrap", broker.guarded, "--until_end", "--publish", topic,
               **GUARDED, PA_RIVER_KAFKA_SASL_PASSWORD=rig.PASSWORD)  # fmt: skip
    assert job.wait(180) == 0, job.said()
    assert rig.rows(job.output, "SELECT count(*) FROM outcomes") == [(300,)]
    assert len(broker.read(f"{topic}.outcomes")) == 300
    kept = [path for path in (job.log, *job.output.rglob("*")) if path.is_file()]
    assert job.output / "snapshots.db" in kept
    assert not [path for path in kept if rig.PASSWORD.encode() in path.read_bytes()]


@pytest.mark.parametrize("given", [{"PA_RIVER_KAFKA_SASL_PASSWORD": "guessed"}, {}], ids=["wrong", "missing"])
def test_a_wrong_or_missing_password_is_refused_at_the_start_in_one_line(broker, topic, live, given):
    job = live("--bootstrap", broker.guarded, "--until_end", **GUARDED, **given)
    assert job.wait(120) == 2
    (line,) = job.said().splitlines()
    assert ("uthentication" in line or "sasl.password" in line) and "guessed" not in line


def test_two_jobs_over_one_folder_are_refused(broker, topic, live):
    broker.send(topic, GOOD[:3])
    first = live("--resume")
    first.wait_for_records(6, 120)
    second = live("--resume")
    assert second.wait(120) == 1
    assert "another job is running" in second.said()


def test_a_job_that_hangs_ends_itself_with_one_line(broker, topic, live):
    broker.send(topic, GOOD[:3])
    job = live("--resume", "--stall", "45")
    job.wait_for_records(6, 120)
    time.sleep(10)
    (prism,) = job.prism()
    os.kill(prism, signal.SIGSTOP)  # alive, and silent
    assert job.wait(200) == 1
    assert job.said().splitlines()[-1].endswith("nothing came through the job for 45 s: --resume goes on from here")
