"""Records sent on in transactions: whoever dies, and wherever, consumers of what is committed read each once."""

import json
import sys
import threading

import pytest

from beam_pipelines.broker import Broker, BrokerError
from beam_pipelines.kafka_sink import Publisher
from beam_pipelines.store import LiveStore
from beam_pipelines.units import Record, Unit
from tests.integration import rig
from tests.integration.test_live import GOOD

pytestmark = pytest.mark.slow

# A publisher whose transaction is whole on the broker, but for its last word, and that is killed there.
_KILLED = """
import sys, time
from beam_pipelines.broker import Broker
from beam_pipelines.kafka_sink import Publisher
from beam_pipelines.store import LiveStore
bootstrap, prefix, path = sys.argv[1:]
publisher = Publisher(Broker(bootstrap), prefix, LiveStore(path))
publisher.open()
def said_last(seconds):
    publisher._producer.flush()
    print("all is there", flush=True)
    time.sleep(600)
producer = publisher._producer
class Slow:
    commit_transaction = staticmethod(said_last)
    def __getattr__(self, name):
        return getattr(producer, name)
publisher._producer = Slow()
publisher.send()
"""


def stored(path, first, count, line="{}"):
    """A job's file with so many more predictions, of three keys."""
    store = LiveStore(path)
    run, _ = store.begin([])
    for number in range(first, first + count):
        made = Record("predictions", str(number), "prediction", line.format(number))
        store.write(run, [Unit(f"k{number % 3}", 0, [made], [], [], None, False)])
    store.close()
    return path


def names(numbers):
    return sorted((f"k{number % 3}", str(number), "prediction") for number in numbers)


@pytest.fixture
def publisher(broker, topic, tmp_path):
    """Make publishers of one file; closed at the end."""
    made = []

    def make(prefix=topic, path=tmp_path / "snapshots.db"):
        made.append(Publisher(Broker(broker.bootstrap), prefix, LiveStore(path)))
        return made[-1]

    yield make
    for one in made:
        one.stop()
        one.close()


def test_a_job_sends_what_it_stores_once_although_it_was_killed(broker, topic, live):
    broker.send(topic, GOOD)
    first = live("--resume", "--publish", topic, "--save_every", 10_000, "--save_within", 3_600)  # no resume point
    first.wait_for_records(600, 120)
    first.reap()
    broker.send(topic, [rig.event("k0", "last", 2_000.0, x={"a": 1}, y=True)])
    second = live("--until_end", "--resume", "--publish", topic)
    assert second.wait(180) == 0, second.said()
    found = [message for tag in ("predictions", "outcomes") for message in broker.read(f"{topic}.{tag}")]
    assert sorted(found) == sorted(rig.records(second.output).items()) and len(found) == 602


def test_a_publisher_killed_inside_a_transaction_leaves_nothing_that_counts(broker, topic, tmp_path, publisher):
    path = stored(tmp_path / "snapshots.db", 0, 50)
    victim = rig.Process([sys.executable, "-c", _KILLED, broker.bootstrap, topic, path], tmp_path / "victim.log")
    try:
        rig.wait_for(lambda: "all is there" in victim.said(), 90, "no transaction")
    finally:
        victim.reap()
    there = f"{topic}.predictions"
    assert len(broker.read(there, "read_uncommitted")) == 50  # so the kill fell where it should
    second = publisher()
    second.open()
    assert broker.read(there) == []  # and what was open is over: the end is reached
    assert second.send() == 50 and second.send() == 0
    assert sorted(name for name, _ in broker.read(there)) == names(range(50))
    assert len(broker.read(there, "read_uncommitted")) == 100


def test_a_publisher_that_was_taken_over_can_send_nothing_more(broker, topic, tmp_path, publisher):
    path = stored(tmp_path / "snapshots.db", 0, 10)
    old, new = publisher(), publisher()
    old.open()
    assert old.send() == 10
    new.open()
    stored(path, 10, 5)
    with pytest.raises(RuntimeError, match=f"--publish {topic}: "):
        old.send()
    assert new.send() == 5
    assert sorted(name for name, _ in broker.read(f"{topic}.predictions")) == names(range(15))


def test_a_job_whose_publisher_was_taken_over_ends_with_one_line(broker, topic, live, publisher):
    broker.send(topic, GOOD[:3])
    job = live("--resume", "--publish", topic)
    job.wait_for_records(6, 120)
    publisher(path=job.output / "snapshots.db").open()
    broker.send(topic, GOOD[3:])
    assert job.wait(120) == 1
    (line,) = job.said().splitlines()
    assert f"--publish {topic}: " in line and "another job has taken over" in line


def test_two_files_publish_under_one_prefix_without_fencing_each_other(broker, topic, tmp_path, publisher):
    stored(tmp_path / "one.db", 0, 10)
    stored(tmp_path / "two.db", 10, 10)
    one, two = publisher(path=tmp_path / "one.db"), publisher(path=tmp_path / "two.db")
    one.open()
    two.open()
    assert (one.send(), two.send()) == (10, 10)
    assert sorted(name for name, _ in broker.read(f"{topic}.predictions")) == names(range(20))


def test_a_broker_that_goes_away_inside_a_transaction_is_waited_for(broker, topic, tmp_path, publisher):
    stored(tmp_path / "snapshots.db", 0, 30)
    waiting = publisher()
    waiting.open()
    producer, returns = waiting._producer, threading.Timer(5.0, broker.start)

    class Torn:
        def commit_transaction(self, seconds):
            if returns.ident is None:  # the first time: all is sent, and the broker goes before the last word
                producer.flush()
                broker.reap()
                returns.start()
            return producer.commit_transaction(seconds)

        def __getattr__(self, name):
            return getattr(producer, name)

    waiting._producer = Torn()
    assert waiting.send() == 30
    returns.join()
    assert sorted(name for name, _ in broker.read(f"{topic}.predictions")) == names(range(30))


def test_a_record_larger_than_a_message_may_be_is_named_in_its_place(broker, topic, tmp_path, publisher):
    stored(tmp_path / "snapshots.db", 0, 1)
    stored(tmp_path / "snapshots.db", 1, 1, line='"' + "x" * 2_000_000 + '"')
    one = publisher()
    one.open()
    assert one.send() == 2
    found = dict(broker.read(f"{topic}.predictions"))
    assert json.loads(found["k1", "1", "prediction"]) == {"key": "k1", "id": "1", "too_large": 2_000_002}


def test_an_older_copy_of_a_file_is_refused(broker, topic, tmp_path, publisher):
    path = stored(tmp_path / "snapshots.db", 0, 10)
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    stored(path, 10, 10)
    first = publisher()
    first.open()
    assert first.send() == 20
    with pytest.raises(BrokerError, match="20 records of .*copy.db were sent, which has 10: is it an older copy"):
        publisher(path=copy).open()


def test_what_is_stored_meanwhile_keeps_its_order_in_each_partition(broker, topic, tmp_path, publisher):
    one = publisher()
    stored(tmp_path / "snapshots.db", 0, 1)
    one.open()
    total = 1
    while total < 200:
        stored(tmp_path / "snapshots.db", total, 33)
        total += 33
        one.send()
    found = [name for name, _ in broker.read(f"{topic}.predictions")]
    for key in ("k0", "k1", "k2"):
        numbers = [int(id) for own, id, _ in found if own == key]
        assert numbers == sorted(numbers) and len(numbers) > 50
