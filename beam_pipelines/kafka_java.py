"""Beam's own ReadFromKafka, run by a Java worker, as another source of the live job."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.io.kafka import ReadFromKafka
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from beam_pipelines.broker import Broker
from beam_pipelines.kafka import Reading, event_of
from beam_pipelines.units import Record, Unit
from pa_river.stream import Event, Rejected

_TIME_TYPES = {-1: 0, 0: 1, 1: 2}  # Java's NoTimestampType, CreateTime, LogAppendTime -> librdkafka's


class _Message(NamedTuple):
    """A row of ReadFromKafka, asked like a message of confluent-kafka."""

    row: Any

    def key(self) -> bytes | None:
        return None if self.row.key is None else bytes(self.row.key)

    def value(self) -> bytes | None:
        return None if self.row.value is None else bytes(self.row.value)

    def offset(self) -> int:
        return int(self.row.offset)

    def timestamp(self) -> tuple[int, int]:
        return _TIME_TYPES[self.row.timestampTypeId], int(self.row.timestamp)


class ReadByJava(beam.PTransform):
    """Topics -> (key, Batch), and units of what became no event, tagged `unread`; as `kafka.ReadLog` does.

    Notes
    -----
    Every start reads from the first offset: what is known already is skipped by its marks. The watermark is of the
    records' times, not of the events', and events of one key whose records came in the same millisecond may change
    places on a runner that orders by time alone. Secrets cannot reach the Java worker this way.

    """

    UNREAD = "unread"

    def __init__(self, broker: Broker, topics: Sequence[str], reading: Reading, expansion_service: str) -> None:
        super().__init__()
        self._broker, self._topics = broker, list(topics)
        self._reading, self._expansion_service = reading, expansion_service

    def expand(self, root: Any) -> Any:
        config = {"bootstrap.servers": self._broker.bootstrap, "auto.offset.reset": "earliest", **self._broker.settings}
        rows = root | "ByJava" >> ReadFromKafka(
            config, self._topics, with_metadata=True, timestamp_policy=ReadFromKafka.create_time_policy,
            consumer_polling_timeout=1, expansion_service=self._expansion_service,
        )
        return rows | "Decode" >> beam.ParDo(_Decode(self._reading)).with_outputs(self.UNREAD, main="events")


class _Decode(beam.DoFn):
    """Rows of one bundle -> their events by key, in order of offset within each partition."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._batches: dict[str, tuple[Timestamp, list[tuple[int, Event]]]] = {}

    def start_bundle(self) -> None:
        self._batches = {}

    def process(self, element: Any, stamp: Any = beam.DoFn.TimestampParam) -> Iterator[Any]:
        source, message = f"{element.topic}-{element.partition}", _Message(element)
        found = event_of(message, source, self._reading, time.time())
        if isinstance(found, Event):
            self._batches.setdefault(found.key, (stamp, []))[1].append((message.offset(), found))
            return
        records = []
        if isinstance(found, Rejected):
            kind = f"{Rejected.tag}:{source}:{message.offset()}"
            records.append(Record(Rejected.tag, found.id or "", kind, found.to_json()))
        span = (source, message.offset(), message.offset() + 1)
        yield beam.pvalue.TaggedOutput(ReadByJava.UNREAD, Unit("", 0, records, [], [span], None, False))

    def finish_bundle(self) -> Iterator[Any]:
        for key, (stamp, batch) in self._batches.items():
            yield WindowedValue((key, batch), stamp, [GlobalWindow()])
