"""The live job's file -> Kafka, in transactions: each record once for every consumer that reads what is committed."""

from __future__ import annotations

import _thread
import json
import logging
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

from beam_pipelines.broker import Broker, BrokerError
from beam_pipelines.sinks import LINES
from beam_pipelines.store import LiveStore
from beam_pipelines.units import Record

_LOG = logging.getLogger(__name__)

_ANSWER = 10.0  # seconds for one answer of the broker, before it is asked again
_START = 60.0  # seconds for the broker to take the producer in when the job begins
_LOOK = 0.05  # seconds between two looks for new records
_MOST = 2_000  # records of one transaction
_LARGEST = "message.max.bytes"


class Publisher:
    """Sends a file's records to `prefix.predictions`, `prefix.outcomes` ..., in the order in which they were stored.

    A transaction holds records and, as the committed offset of a consumer group of the file's own, the number of the
    last one: what is sent and how far that is are one, whatever dies in between. Records of one model key go to one
    partition, in order; a message's key is the JSON list [key, id, kind].

    Parameters
    ----------
    broker
        Where to.
    prefix
        Of the topics, which must be there, or be made by the broker.
    store
        The file, which `LiveStore.begin` has opened.

    Notes
    -----
    The transactional id is the file's: `open` fences whoever published it before, whose next transaction fails, and
    ends what that one left open. A record larger than `message.max.bytes` (1,000,000 unless set) stays in the file, and
    `{"key": ..., "id": ..., "too_large": bytes}` is sent in its place. Source of the idea: Beam's own exactly-once sink
    for Kafka, which keeps its place in the offsets of a group, too.

    """

    def __init__(self, broker: Broker, prefix: str, store: LiveStore) -> None:
        self._broker, self._prefix, self._store = broker, prefix, store
        self._largest = int(broker.config().get(_LARGEST, 1_000_000)) - 1_000  # room for the key and the framing
        self._producer: Any = None
        self._group: Any = None  # what says in a transaction whose offset it is
        self._partitions: dict[str, int] = {}
        self._sent = 0
        self._stopped = threading.Event()

    def open(self) -> None:
        """Take over from whoever published this file before; `BrokerError` in one line if that cannot be."""
        from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

        name = f"pa_river-{self._prefix}-{self._store.identity():x}"
        try:
            settings = self._broker.config(**{"transactional.id": name, "linger.ms": 5})
            self._producer = Producer(settings, logger=_LOG)  # else a fenced client speaks on stderr by itself
            self._insist(self._producer.init_transactions, time.monotonic() + _START)
            for tag in LINES:
                self._partitions[tag] = self._count(f"{self._prefix}.{tag}")
            consumer = Consumer(self._broker.config(**{"group.id": name, "enable.auto.commit": False}))
            try:
                self._group = consumer.consumer_group_metadata()
                place = TopicPartition(f"{self._prefix}.{LINES[0]}", 0)
                (known,) = _committed(consumer, place, time.monotonic() + _START)
            finally:
                consumer.close()
        except KafkaException as error:
            raise BrokerError(f"--publish {self._prefix}: {error.args[0].str()}") from None
        # The broker forgets a group that was silent for a week (offsets.retention.minutes): the file knows it as well.
        self._sent = max(known.offset, self._store.published())
        if self._sent > self._store.last():
            raise BrokerError(f"--publish {self._prefix}: {self._sent} records of {self._store.path} were sent, which "
                              f"has {self._store.last()}: is it an older copy? Give another prefix, or --overwrite")

    def send(self) -> int:
        """Send what is stored and was not sent, in one transaction; how many records, 0 if there were none.

        `RuntimeError` if another publisher has taken over, or the broker refuses a record. One that is away is waited
        for.
        """
        from confluent_kafka import KafkaError, KafkaException

        records = self._store.after(self._sent, _MOST)
        if not records:
            return 0
        while True:
            refused: list[Any] = []
            try:
                self._transact(records, refused)
                break
            except KafkaException as error:
                told = error.args[0]
                if told.fatal() or told.code() == KafkaError._FATAL:
                    raise RuntimeError(f"--publish {self._prefix}: another job has taken over, or the broker has ended "
                                       f"this one's transaction: {told.str()}") from None
                lasting = [why for why in refused if not _passes(why)]
                if lasting or not told.txn_requires_abort() or self._stopped.is_set():
                    raise RuntimeError(f"--publish {self._prefix}: {(lasting or [told])[0].str()}") from None
                self._insist(self._producer.abort_transaction)
        self._sent = records[-1][0]
        self._store.set_published(self._sent)
        return len(records)

    def close(self) -> None:
        self._store.close()

    def stop(self) -> None:
        """Wait no longer for a broker that is away."""
        self._stopped.set()

    def _transact(self, records: list[tuple[int, str, Record]], refused: list[Any]) -> None:
        from confluent_kafka import TopicPartition

        def reported(error: Any, message: Any) -> None:
            if error is not None:
                refused.append(error)

        self._producer.begin_transaction()
        for _, key, made in records:
            line = made.line
            if len(line.encode()) > self._largest:
                line = json.dumps({"key": key, "id": made.id, "too_large": len(line.encode())})
            name = json.dumps([key, made.id, made.kind], separators=(",", ":"))
            partition = zlib.crc32(key.encode()) % self._partitions[made.tag]
            while True:
                try:
                    self._producer.produce(f"{self._prefix}.{made.tag}", line, name, partition, on_delivery=reported)
                    break
                except BufferError:  # more than the client holds: wait until some are through
                    self._producer.poll(0.1)
        place = TopicPartition(f"{self._prefix}.{LINES[0]}", 0, records[-1][0])
        self._insist(lambda seconds: self._producer.send_offsets_to_transaction([place], self._group, seconds))
        self._insist(self._producer.commit_transaction)

    def _insist(self, ask: Callable[[float], Any], end: float | None = None) -> Any:
        """Ask until there is an answer: a call that was not answered is to be made again, says the client."""
        from confluent_kafka import KafkaException

        while True:
            try:
                return ask(_ANSWER)
            except KafkaException as error:
                is_over = self._stopped.is_set() or end is not None and time.monotonic() > end
                if is_over or not error.args[0].retriable():
                    raise

    def _count(self, topic: str) -> int:
        """The topic's partitions; asking for a topic has it made, by a broker that makes topics."""
        end = time.monotonic() + _ANSWER
        while True:
            known = self._producer.list_topics(topic, timeout=_ANSWER).topics[topic]
            if known.error is None and known.partitions:
                return len(known.partitions)
            if time.monotonic() > end:
                raise BrokerError(f"--publish {self._prefix}: topic {topic!r}: "
                                  f"{known.error.str() if known.error else 'has no partition'}")
            time.sleep(0.2)


class Publishing:
    """Publishes on a thread of the driver's while the job runs; at its good end, what is left.

    What ends it interrupts the main thread and is in `error`.
    """

    def __init__(self, publisher: Publisher | None) -> None:
        self._publisher = publisher
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: Exception | None = None

    def __enter__(self) -> None:
        if self._publisher is not None:
            self._thread.start()

    def __exit__(self, kind: object, *rest: object) -> None:
        if self._publisher is None:
            return
        if kind is not None:
            self._publisher.stop()
        self._is_ending.set()
        try:
            if kind is None:
                self._thread.join()
        except KeyboardInterrupt:
            if self.error is None:
                raise
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        assert self._publisher is not None
        try:
            while True:
                is_last = self._is_ending.is_set()  # asked first: what came before it is seen
                if not self._publisher.send():
                    if is_last:
                        return
                    self._is_ending.wait(_LOOK)
        except Exception as error:  # whatever it is, the job must end and say it
            self.error = error
            _thread.interrupt_main()
        finally:
            self._publisher.close()


def _committed(consumer: Any, place: Any, end: float) -> Any:
    """The group's offset; a broker that has just begun to keep offsets first says that somebody else does."""
    from confluent_kafka import KafkaError, KafkaException

    early = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    while True:
        try:
            return consumer.committed([place], timeout=_ANSWER)
        except KafkaException as error:
            if error.args[0].code() not in early or time.monotonic() > end:
                raise
            time.sleep(0.2)


def _passes(error: Any) -> bool:
    """Whether a record that was not delivered will be, once the transaction is made again."""
    from confluent_kafka import KafkaError

    gone = (KafkaError._MSG_TIMED_OUT, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._TRANSPORT)
    return error.code() in gone or error.retriable()
