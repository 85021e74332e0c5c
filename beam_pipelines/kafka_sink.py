"""Records -> Kafka, each under a message key by which a second copy is known; and their reader, which drops it."""

from __future__ import annotations

import json
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from beam_pipelines.broker import Broker
from beam_pipelines.units import Record

_PATIENCE = 300.0  # seconds that a broker may be away before the bundle fails, and with it the job


class Publisher:
    """Sends records to `prefix.predictions`, `prefix.outcomes` ...; it is back when the broker has them all.

    A record's message key is the JSON list [key, id, kind]. Records of one model key go to one partition, in order.

    Parameters
    ----------
    broker
        Where to.
    prefix
        Of the topics, which must be there, or be made by the broker.

    """

    def __init__(self, broker: Broker, prefix: str) -> None:
        self._broker, self._prefix = broker, prefix
        self._producer: Any = None
        self._partitions: dict[str, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_broker": self._broker, "_prefix": self._prefix, "_producer": None, "_partitions": {}}

    def send(self, records: Iterable[tuple[str, Record]]) -> None:
        """Send (model key, record) pairs; `RuntimeError` if the broker did not take one."""
        from confluent_kafka import Producer

        if self._producer is None:
            self._producer = Producer(self._broker.config(**{
                "enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": int(_PATIENCE * 1000),
            }))
        failed: list[str] = []

        def reported(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(f"{message.topic()}: {error.str()}")

        for key, made in records:
            topic = f"{self._prefix}.{made.tag}"
            name = json.dumps([key, made.id, made.kind], separators=(",", ":"))
            partition = zlib.crc32(key.encode()) % self._count(topic)
            while True:
                try:
                    self._producer.produce(topic, made.line, name, partition, on_delivery=reported)
                    break
                except BufferError:  # more than the client holds: wait until some are through
                    self._producer.poll(0.1)
        if self._producer.flush(_PATIENCE) or failed:
            raise RuntimeError(f"records were not taken by the broker: {failed[0] if failed else 'no answer'}")

    def _count(self, topic: str) -> int:
        if topic not in self._partitions:
            known = self._producer.list_topics(topic, timeout=_PATIENCE).topics[topic]
            self._partitions[topic] = max(1, len(known.partitions))
        return self._partitions[topic]


def first_copies(messages: Iterable[Any], remember: int = 1_000_000) -> Iterator[Any]:
    """Messages of one such topic without the second copies, by message key.

    A copy comes at most as late as the job is set back by a crash: `remember` keys are known, the oldest leaving first.
    """
    seen: OrderedDict[bytes, None] = OrderedDict()
    for message in messages:
        key = message.key()
        if key in seen:
            continue
        seen[key] = None
        if len(seen) > remember:
            seen.popitem(last=False)
        yield message
