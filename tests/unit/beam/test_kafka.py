"""The Kafka source without a broker: what a record becomes, the event time of a partition, spans of offsets."""

import json

import pytest
from apache_beam.io.restriction_trackers import OffsetRange
from apache_beam.utils.timestamp import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines import kafka
from beam_pipelines.broker import Broker, BrokerError, Partition, parse_settings
from beam_pipelines.event_time import Clock, ClockCoder
from beam_pipelines.kafka import Reading, event_of
from beam_pipelines.kafka_java import _Decode
from pa_river.stream import Event, Rejected

X = {"key": "k", "id": "1", "time": 5.0, "x": {"a": 1.0}}
NO_TIME, PRODUCERS, BROKERS = 0, 1, 2  # whose time a record has


class Message:
    def __init__(self, value=None, key=b"k", offset=7, stamp=(PRODUCERS, 9_000)):
        self._value = json.dumps(value).encode() if isinstance(value, dict) else value
        self._key, self._offset, self._stamp = key, offset, stamp

    def value(self):
        return self._value

    def key(self):
        return self._key

    def offset(self):
        return self._offset

    def timestamp(self):
        return self._stamp


def read(message, wall=10.0, **how):
    return event_of(message, "t-0", Reading(**how), wall)


def test_the_place_in_the_log_is_the_source_and_number_whatever_the_event_says():
    event = read(Message({**X, "source": "mine", "seq": 1}))
    assert event == Event("k", "1", 5.0, {"a": 1.0}, seq=7, source="t-0")


def test_key_time_and_id_stand_in_where_the_event_has_none():
    bare = {"x": {"a": 1.0}, "y": True}
    assert read(Message(bare))[:3] == ("k", "t-0:7", 9.0)
    assert read(Message({**bare, "key": "own", "time": 1, "id": "i"}))[:3] == ("own", "i", 1.0)
    assert read(Message(bare, stamp=(NO_TIME, 0))).stage == "validate"


@pytest.mark.parametrize(
    ("message", "stage", "word"),
    [
        (Message(b"\xff\xfe"), "parse", "not JSON"),
        (Message(b"[1]"), "parse", "a JSON object is needed"),
        (Message(b"[" * 100_000), "parse", "nested too deep"),
        (Message(X, key=b"\xff"), "parse", "the record's key is not UTF-8"),
        (Message({"x": {"a": 1.0}, "id": "1"}, key=None), "validate", "key"),
        (Message({**X, "x": {"a": "b" * 5_000_000}}), "parse", "more than"),
        (Message({**X, "time": 1e300}), "validate", "time must be"),
        (Message({**X, "time": 1e12}), "validate", "ahead of the wall clock"),
        (Message(None), "parse", "a tombstone"),
    ],
)
def test_a_poisoned_record_is_rejected_with_a_word(message, stage, word):
    rejected = read(message)
    assert isinstance(rejected, Rejected) and rejected.stage == stage and word in rejected.reason
    rejected.to_json()


@given(value=st.none() | st.binary(max_size=60) | st.text().map(str.encode), key=st.none() | st.binary())
def test_no_record_raises(value, key):
    assert isinstance(read(Message(value, key)), (Event, Rejected))


def test_tombstones_go_where_they_are_sent():
    assert read(Message(None), tombstones="skip") is None
    assert read(Message(None), tombstones="reset") == Event("k", "t-0:7", 9.0, seq=7, source="t-0", op="reset")
    assert isinstance(read(Message(None, key=None), tombstones="reset"), Rejected)


def test_a_record_without_a_key_goes_to_the_key_that_is_given():
    assert read(Message({"x": {"a": 1.0}, "y": True}, key=None), null_key="all").key == "all"


def test_how_far_ahead_an_event_may_be_is_judged_by_the_brokers_clock_where_it_has_one():
    ahead = {**X, "time": 100.0}
    assert isinstance(read(Message(ahead), wall=50.0, max_future=10.0), Rejected)
    assert isinstance(read(Message(ahead), wall=95.0, max_future=10.0), Event)
    # read again hours later, the record is judged as it was at first
    assert isinstance(read(Message(ahead, stamp=(BROKERS, 50_000)), wall=9_999.0, max_future=10.0), Rejected)


@given(bundles=st.lists(st.lists(st.integers(0, 100_000).map(lambda ms: ms / 1000), max_size=5), max_size=20),
       lateness=st.integers(0, 50))
def test_stamps_rise_and_hold_back_what_is_due_after_the_events(bundles, lateness):
    clock, newest = Clock(), 0.0
    for times in bundles:
        before, clock = clock, clock.after(times, lateness, 1000.0)
        if not times:
            continue
        assert before.stamp is None or clock.stamp > before.stamp
        assert before.mark is None or clock.stamp >= before.mark  # never late
        newest = max(newest, *times)
        assert clock.mark <= max(int(newest * 1000) - lateness * 1000, before.mark or 0)
        if before.mark is None or min(times) * 1000 > max(before.mark, before.stamp):
            assert clock.stamp <= min(times) * 1000


def test_a_silent_log_goes_on_at_the_pace_of_the_wall_clock():
    clock = Clock().after([100.0], 5.0, 1000.0)
    assert clock.mark == 95_000
    assert clock.idle(5.0, 30.0, 1030.0).mark == 95_000
    assert clock.idle(5.0, 30.0, 1042.0).mark == 107_000
    assert clock.idle(5.0, 30.0, 1042.0).after([101.0], 5.0, 1043.0).stamp >= 107_000


def test_a_log_without_a_record_holds_nothing_back_once_it_was_silent():
    first = Clock().idle(5.0, 30.0, 1000.0)
    assert first.mark is None
    assert first.idle(5.0, 30.0, 1031.0).mark == 996_000


@given(start=st.integers(0, 5), kept=st.sets(st.integers(5, 30)), more=st.integers(0, 5))
def test_gaps_and_kept_numbers_make_up_the_whole_span(start, kept, more):
    numbers = sorted(kept)
    after = (numbers[-1] + 1 if numbers else start) + more
    covered = [number for _, first, last in kafka._gaps("t", start, after, numbers) for number in range(first, last)]
    assert sorted([*covered, *numbers]) == list(range(start, after))


class Row:
    """What Java's ReadFromKafka hands over."""

    def __init__(self, offset, value, key=b"k"):
        self.topic, self.partition, self.offset, self.key = "t", 0, offset, key
        self.value = None if value is None else json.dumps(value).encode()
        self.timestamp, self.timestampTypeId = 9_000, 0


def test_rows_of_beams_own_reader_become_the_same_events_grouped_by_key():
    decode = _Decode(Reading())
    decode.start_bundle()
    aside = [unread.value for row in (Row(7, X), Row(8, {**X, "id": "2"}), Row(9, {**X, "key": "other"}), Row(10, None))
             for unread in decode.process(row, Timestamp(9))]  # fmt: skip
    batches = {value.value[0]: value.value[1] for value in decode.finish_bundle()}
    assert batches["k"] == [(7, read(Message(X))), (8, read(Message({**X, "id": "2"}, offset=8)))]
    assert [offset for offset, _ in batches["other"]] == [9]
    (unit,) = aside
    assert unit.handled == [("t-0", 10, 11)] and unit.records[0].kind == "rejected:t-0:10"


def test_a_log_is_left_where_the_reader_is_and_split_nowhere_else():
    tracker = kafka.LogTracker(OffsetRange(10, kafka.NO_END))
    assert tracker.try_split(0.5) is None
    assert tracker.try_claim(20)
    _, rest = tracker.try_split(0)
    assert (rest.start, rest.stop) == (21, kafka.NO_END)


def test_what_the_runner_keeps_comes_back_from_its_bytes():
    for coder, value in (
        (ClockCoder(), Clock(1, 2, None, -4)),
        (kafka.RangeCoder(), OffsetRange(3, kafka.NO_END)),
        (kafka.PartitionCoder(), Partition("t", 1, 2, 3, 0, "id")),
    ):
        assert coder.decode(coder.encode(value)) == value


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: Broker(" "), "host:port"),
        (lambda: Broker("b:1", {"ssl.key.password": "x"}), "PA_RIVER_KAFKA_SSL_KEY_PASSWORD"),
        (lambda: Broker("b:1", {"sasl.username": "x"}), "is a secret"),
        (lambda: parse_settings(["client.id"]), "is not NAME=VALUE"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line(build, word):
    with pytest.raises(BrokerError, match=word):
        build()


def test_secrets_are_read_where_a_client_is_built_and_kept_nowhere(monkeypatch):
    broker = Broker("b:1", {"security.protocol": "SASL_SSL"})
    monkeypatch.setenv("PA_RIVER_KAFKA_SASL_PASSWORD", "hunter2")
    assert broker.config()["sasl.password"] == "hunter2"
    assert "hunter2" not in repr(broker) and "hunter2" not in str(vars(broker))
