"""Kafka -> events: one restriction a partition, offsets held by the runner, a watermark of event time."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import coders
from apache_beam.coders.typecoders import registry
from apache_beam.io.iobase import RestrictionProgress
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.transforms.core import RestrictionProvider
from apache_beam.utils.timestamp import Duration, Timestamp

from beam_pipelines import apart  # noqa: F401  (wherever these DoFns are unpickled)
from beam_pipelines.broker import Broker, Partition
from beam_pipelines.event_time import ClockEstimator, Clocks
from beam_pipelines.units import BEAT, Record, Unit, spans
from pa_river import state, stream
from pa_river.stream import Event, Rejected

NO_END = 2**62  # the stop of a log that is read for ever
TOMBSTONES = ("reject", "skip", "reset")

_FETCH = {
    "group.id": "pa_river", "enable.auto.commit": False,  # offsets are the runner's, not a consumer group's
    "auto.offset.reset": "error",  # a log that no longer has the offset must stop the job, not start it elsewhere
    "enable.partition.eof": False, "queued.max.messages.kbytes": 16_384,
}
_BEAT_EVERY = 5.0  # seconds between two heartbeats of a partition
_ASK = 2.0  # seconds to wait for the broker's word on where a log ends


class Reading(NamedTuple):
    """How records become events, and when a silent log stops holding back the others.

    Parameters
    ----------
    lateness
        Seconds of event time by which an event may come after a later one of its partition: what the watermark lags.
    idle_after
        Seconds without a record, at the log's end, after which its watermark goes on at the pace of the wall clock.
    max_future
        Seconds by which an event may be ahead of the wall clock (of the broker's, where the log has its times).
    tombstones
        A record without a value: "reject", "skip", or "reset" the key's model.
    null_key
        The key of records that name none, in the record or in the event; None: they are rejected.
    batch
        Records read in one bundle, at most.

    """

    lateness: float = 0.0
    idle_after: float = 30.0
    max_future: float = 3600.0
    tombstones: str = "reject"
    null_key: str | None = None
    batch: int = 1_000


def event_of(message: Any, source: str, reading: Reading, wall: float) -> Event | Rejected | None:
    """The event of one record; why it is none; or None for a tombstone that is to be skipped. Never an exception."""
    offset, value = message.offset(), message.value()
    kind, stamp = message.timestamp()  # kind 0: the broker gave none; 2: its own clock, else the producer's
    if value is None and reading.tombstones == "skip":
        return None
    try:
        key = None if message.key() is None else message.key().decode()
    except UnicodeDecodeError as error:
        return _rejected(message, f"the record's key is not UTF-8: {error.reason} at byte {error.start}")
    key = reading.null_key if key is None else key
    if value is None:
        if reading.tombstones == "reject" or key is None or kind == 0:
            return _rejected(message, "a tombstone: the record has no value")
        return Event(key, f"{source}:{offset}", stamp / 1000, seq=offset, source=source, op="reset")
    found = stream.parse(value, key=key, time=None if kind == 0 else stamp / 1000)
    if isinstance(found, Rejected):
        return found
    # The log's own numbering, whatever the event says of itself; an id for an example that has none.
    id = f"{source}:{offset}" if found.id is None else found.id
    event = Event(found[0], id, *found[2:7], offset, source, *found[9:])
    return stream.too_far_ahead(event, min(wall, stamp / 1000) if kind == 2 else wall, reading.max_future) or event


def _rejected(message: Any, reason: str) -> Rejected:
    text = b"" if message.value() is None else message.value()
    return Rejected(None, None, stream.payload(text), "parse", reason)


class LogTracker(OffsetRestrictionTracker):
    """Offsets of one log; it stops where the reader is, and nowhere else: half of an endless log is no part of it."""

    def try_split(self, fraction_of_remainder: float) -> Any:
        return super().try_split(fraction_of_remainder) if fraction_of_remainder == 0 else None

    def current_progress(self) -> RestrictionProgress:
        return RestrictionProgress(completed=1, remaining=1)

    def is_bounded(self) -> bool:
        return self.stop_position() < NO_END  # type: ignore[no-any-return]


class RangeCoder(coders.Coder):
    """An offset range as two numbers of eight bytes."""

    def encode(self, value: OffsetRange) -> bytes:
        return struct.pack(">qq", value.start, value.stop)

    def decode(self, encoded: bytes) -> OffsetRange:
        return OffsetRange(*struct.unpack(">qq", encoded))

    def is_deterministic(self) -> bool:
        return True


class _Logs(RestrictionProvider):
    def __init__(self, until_end: bool) -> None:
        self._until_end = until_end

    def initial_restriction(self, element: Partition) -> OffsetRange:
        return OffsetRange(element.start, element.end if self._until_end else NO_END)

    def create_tracker(self, restriction: OffsetRange) -> LogTracker:
        return LogTracker(restriction)

    def restriction_coder(self) -> coders.Coder:
        return RangeCoder()

    def restriction_size(self, element: Partition, restriction: OffsetRange) -> int:
        return 1


class _Consumers:
    """The process's open consumers by partition, each where it was left: a bundle takes one out and puts it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, str, int], tuple[Any, int]] = {}

    def take(self, broker: Broker, partition: Partition, offset: int) -> Any:
        from confluent_kafka import Consumer, TopicPartition

        with self._lock:
            consumer, at = self._idle.pop((broker.bootstrap, partition.topic, partition.number), (None, -1))
        if consumer is None:
            consumer = Consumer(broker.config(**_FETCH))
        if at != offset:
            consumer.assign([TopicPartition(partition.topic, partition.number, offset)])
        return consumer

    def put(self, broker: Broker, partition: Partition, consumer: Any, offset: int) -> None:
        with self._lock:
            self._idle[broker.bootstrap, partition.topic, partition.number] = consumer, offset


_consumers = _Consumers()


class _Read(beam.DoFn):
    """Partition -> (key, [(offset, Event), ...]), and units of what became no event."""

    UNREAD = "unread"

    def __init__(self, broker: Broker, reading: Reading) -> None:
        self._broker, self._reading = broker, reading
        self._beaten: dict[str, float] = {}

    def _read(
        self, partition: Partition, start: int, stop: int, tracker: Any, estimator: ClockEstimator
    ) -> Generator[Any, None, int]:
        """Put out what there is at `start`; where to go on, or -1 if the runner has taken the rest away."""
        reading = self._reading
        consumer = _consumers.take(self._broker, partition, start)
        messages = _poll(consumer, partition, reading.batch, stop)
        # Behind the last record there may be markers of transactions, which are never handed out.
        after = messages[-1].offset() + 1 if messages else start
        if stop < NO_END and (not messages or after < stop):
            after = max(after, min(stop, _position(consumer, partition, after)))
        if after > start and not tracker.try_claim(after - 1):
            return -1  # whoever reads next begins at `start`
        wall = time.time()
        batches: dict[str, list[tuple[int, Event]]] = {}
        rejected: list[Record] = []
        kept: list[int] = []
        times: list[float] = []
        for message in messages:
            event = event_of(message, partition.source, reading, wall)
            if isinstance(event, Event):
                batches.setdefault(event.key, []).append((message.offset(), event))
                kept.append(message.offset())
                times.append(event.time)
            elif event is not None:  # its place is its name: the same line may be sent, and rejected, twice
                kind = f"rejected:{partition.source}:{message.offset()}"
                rejected.append(Record(Rejected.tag, event.id or "", kind, event.to_json()))
        clock = estimator.get_estimator_state()
        if messages:
            clock = clock.after(times, reading.lateness, wall)
        elif _is_at_end(consumer, partition, after):
            clock = clock.idle(reading.lateness, reading.idle_after, wall)
        stamp = Timestamp(micros=(0 if clock.stamp is None else clock.stamp) * 1000)
        for key, batch in batches.items():
            yield beam.window.TimestampedValue((key, batch), stamp)
        passed = _gaps(partition.source, start, after, kept)
        if passed or rejected:
            aside = Unit("", 0, rejected, [], passed, None, False)
            yield beam.pvalue.TaggedOutput(self.UNREAD, beam.window.TimestampedValue(aside, stamp))
        if wall - self._beaten.get(partition.source, 0.0) >= _BEAT_EVERY:
            self._beaten[partition.source] = wall
            yield beam.window.TimestampedValue((BEAT, []), stamp)
        estimator.set_clock(clock)
        _consumers.put(self._broker, partition, consumer, after)
        return after


class ReadLog(_Read):
    """A partition read for ever, a bundle a time: the runner keeps the offset between them."""

    @beam.DoFn.unbounded_per_element()  # type: ignore[untyped-decorator]
    def process(
        self,
        element: Partition,
        tracker: Any = beam.DoFn.RestrictionParam(_Logs(False)),
        estimator: Any = beam.DoFn.WatermarkEstimatorParam(Clocks()),
    ) -> Iterator[Any]:
        span = tracker.current_restriction()
        if (yield from self._read(element, span.start, span.stop, tracker, estimator)) >= 0:
            tracker.defer_remainder(Duration(0))


class ReadLogToItsEnd(_Read):
    """A partition read to where it ended when the job began: a bounded input.

    All in one bundle: FnApiRunner fires the timer at the end of the input after the first bundle that leaves a rest.
    """

    def process(
        self,
        element: Partition,
        tracker: Any = beam.DoFn.RestrictionParam(_Logs(True)),
        estimator: Any = beam.DoFn.WatermarkEstimatorParam(Clocks()),
    ) -> Iterator[Any]:
        span = tracker.current_restriction()
        at = span.start
        while 0 <= at < span.stop:
            at = yield from self._read(element, at, span.stop, tracker, estimator)


def _poll(consumer: Any, partition: Partition, most: int, stop: int) -> list[Any]:
    """What there is now, or the first record that comes within half a second."""
    first = consumer.poll(0.5)
    found = [] if first is None else [first, *consumer.consume(most - 1, 0.0)]
    messages = []
    for message in found:
        if message.error() is None:
            if message.offset() < stop:
                messages.append(message)
        else:
            _check(message.error(), partition)
    return messages


def _check(error: Any, partition: Partition) -> None:
    """Raise what waiting will not cure; a broker that is away comes back, and librdkafka asks again by itself."""
    from confluent_kafka import KafkaError

    if error.code() in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
        raise RuntimeError(f"{partition.source}: the log no longer holds the offset to go on from: {error.str()}")
    lasting = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)
    if error.fatal() or error.code() in lasting:
        raise RuntimeError(f"{partition.source}: {error.str()}")


def _position(consumer: Any, partition: Partition, default: int) -> int:
    from confluent_kafka import TopicPartition

    (at,) = consumer.position([TopicPartition(partition.topic, partition.number)])
    return max(default, int(at.offset))


def _is_at_end(consumer: Any, partition: Partition, offset: int) -> bool:
    """Whether the broker, asked now, says that nothing follows: one that is away does not make a log idle."""
    from confluent_kafka import KafkaException, TopicPartition

    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(partition.topic, partition.number), timeout=_ASK)
    except KafkaException:
        return False
    return bool(end <= offset)


def _gaps(source: str, start: int, after: int, kept: Sequence[int]) -> list[tuple[str, int, int]]:
    """The spans of [start, after) that went to no cell.

    Examples
    --------
    >>> _gaps("t-0", 10, 20, [10, 11, 15])
    [('t-0', 12, 15), ('t-0', 16, 20)]

    """
    found = []
    for _, first, last in [*spans(source, kept), (source, after, after)]:
        if first > start:
            found.append((source, start, first))
        start = last
    return found


class PartitionCoder(coders.Coder):
    """A partition, packed."""

    def encode(self, value: Partition) -> bytes:
        return state.pack(tuple(value))

    def decode(self, encoded: bytes) -> Partition:
        return Partition(*state.unpack(encoded))

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> Any:
        return Partition


registry.register_coder(Partition, PartitionCoder)
