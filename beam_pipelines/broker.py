"""A Kafka broker as the live job meets it: settings, secrets from the environment, topics and where their logs end."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

PREFIX = "PA_RIVER_KAFKA_"

_SECRET = re.compile(r"password|secret|token|credential|\.key$|key\.pem|jaas|sasl\.username")
_TIMEOUT = 15.0  # seconds for one answer of the broker at the start


class BrokerError(ValueError):
    """What is wrong with the broker, a topic or a setting, in one line."""


class Partition(NamedTuple):
    """One log to read, as it was when the job began; `source` is what its events' offsets are numbers of."""

    topic: str
    number: int
    start: int  # the first offset to read
    end: int  # the log's end when the job began
    first: int  # the log's first offset
    incarnation: str  # of the topic: another one under the same name has another

    @property
    def source(self) -> str:
        """The name that the events of this log carry.

        Examples
        --------
        >>> Partition("clicks", 3, 0, 0, 0, "").source
        'clicks-3'

        """
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True)
class Broker:
    """Where the broker is; secrets are read from the environment of the process that connects, and kept nowhere.

    Parameters
    ----------
    bootstrap
        host:port, several with commas.
    settings
        Properties of librdkafka by name, none of them a secret.

    Notes
    -----
    `PA_RIVER_KAFKA_SASL_PASSWORD` in the environment sets `sasl.password`, and so on. A worker process needs the same
    environment as the driver.

    Examples
    --------
    >>> Broker("localhost:9092", {"sasl.password": "x"})
    Traceback (most recent call last):
    ...
    beam_pipelines.broker.BrokerError: sasl.password is a secret: set PA_RIVER_KAFKA_SASL_PASSWORD in the environment

    """

    bootstrap: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.bootstrap.strip():
            raise BrokerError("bootstrap must be host:port")
        for name in self.settings:
            if _SECRET.search(name):
                variable = PREFIX + name.upper().replace(".", "_")
                raise BrokerError(f"{name} is a secret: set {variable} in the environment")

    def config(self, **more: Any) -> dict[str, Any]:
        """Everything a client is built from, the environment's part included: never log it, never store it."""
        given = {"bootstrap.servers": self.bootstrap, "log_level": 2, "client.id": "pa_river"}
        return {**given, **self.settings, **from_environment(os.environ), **more}

    def partitions(self, topics: Sequence[str], since: float | None = None) -> list[Partition]:
        """Every partition of the topics, to be read from its first offset, or from the first record of that time on.

        `BrokerError` if a topic is not there. `since` is in seconds since 1970, of the records' times, not the events'.
        """
        from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

        told: list[Any] = []  # a client that is not let in is not told so by the call that waits, but aside
        try:
            settings = {"group.id": "pa_river-start", "enable.auto.commit": False, "error_cb": told.append}
            consumer = Consumer(self.config(**settings))
        except KafkaException as error:
            raise BrokerError(f"the settings of Kafka are refused: {_words(error)}") from None
        try:
            found = []
            for topic in topics:
                known = consumer.list_topics(topic, timeout=_TIMEOUT).topics[topic]
                if known.error is not None or not known.partitions:
                    raise BrokerError(f"topic {topic!r}: {known.error.str() if known.error else 'has no partition'}")
                incarnation = self._incarnation(topic)
                for number in sorted(known.partitions):
                    first, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=_TIMEOUT)
                    start = first
                    if since is not None:
                        asked = [TopicPartition(topic, number, round(since * 1000))]
                        (after,) = consumer.offsets_for_times(asked, timeout=_TIMEOUT)
                        start = after.offset if after.offset >= 0 else end  # none: all of it is older
                    found.append(Partition(topic, number, start, end, first, incarnation))
            return found
        except KafkaException as error:
            consumer.poll(0.0)  # hands out what was told
            refused = [aside.str() for aside in told if aside.code() == KafkaError._AUTHENTICATION]
            raise BrokerError(f"broker {self.bootstrap}: {(refused or [_words(error)])[0]}") from None
        finally:
            consumer.close()

    def _incarnation(self, topic: str) -> str:
        """The topic's own id, or "" from a broker too old to have one."""
        from confluent_kafka import KafkaException, TopicCollection
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(self.config())
        try:
            futures = admin.describe_topics(TopicCollection([topic]), request_timeout=_TIMEOUT)
            return str(futures[topic].result(timeout=_TIMEOUT).topic_id)
        except KafkaException:
            return ""


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The properties that the environment sets.

    Examples
    --------
    >>> from_environment({"PA_RIVER_KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "HOME": "/"})
    {'security.protocol': 'SASL_SSL'}

    """
    return {
        name.removeprefix(PREFIX).lower().replace("_", "."): value
        for name, value in environ.items() if name.startswith(PREFIX)
    }


def parse_settings(given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` each -> properties; `BrokerError` for what is not one."""
    settings = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BrokerError(f"{text!r} is not NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings


def _words(error: Any) -> str:
    first = error.args[0] if error.args else error
    return str(first.str() if hasattr(first, "str") else first)
