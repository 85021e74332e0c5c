"""Processes of the integration tests: a broker, worker pools, jobs. Each has a timeout, and its children are reaped."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = Path(__file__).resolve().parents[2]

#: In the environment of every process that is started here, and so of all that it starts: the tests' process id.
MARK = "PA_RIVER_TESTED_BY"

USER, PASSWORD = "learner", "told-to-nobody"

_SERVER = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners=PLAINTEXT://localhost:{port},GUARDED://localhost:{guarded},CONTROLLER://localhost:{controller}
advertised.listeners=PLAINTEXT://localhost:{port},GUARDED://localhost:{guarded}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.guarded.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
    user_{user}="{password}";
log.dirs={data}
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.hours=-1
"""


def reap_when_terminated() -> None:
    """Let a polite kill end this process as Ctrl-C does, so that what it started is reaped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def wait_for(what: Callable[[], Any], seconds: float, about: str) -> Any:
    """The first true value of `what`; `TimeoutError` after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.05)
    raise TimeoutError(f"{about}: not within {seconds:.0f} s")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


class Process:
    """A command in a session of its own, with its output in a file; `reap` leaves nothing of it."""

    def __init__(self, command: Sequence[str | Path], log: Path, **environment: str) -> None:
        self.log = log
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # pools start plain `python`
        with open(log, "ab") as file:
            self._process = subprocess.Popen(
                ["nice", *map(str, command)], stdout=file, stderr=file, cwd=ROOT, start_new_session=True,
                env={**os.environ, "PATH": path, MARK: str(os.getpid()), **environment},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float) -> int:
        """The exit code; after so many seconds the process is reaped and `TimeoutError` raised."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.reap()
            raise TimeoutError(f"no end within {seconds:.0f} s; its log ends: {self.said()[-2000:]}") from None

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def members(self) -> dict[int, str]:
        """The command lines of all living processes of the session, by process id."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except (OSError, ValueError, IndexError):  # it ended while it was looked at
                    continue
                if session == self.pid and line:
                    found[int(entry.name)] = line
        return found

    def reap(self) -> None:
        """Kill the whole session and wait until nothing of it is left."""
        for pid in self.members():
            _kill(pid)
        self._process.wait(30)
        wait_for(lambda: not self.members(), 30, "processes of a session went on after kill -9")


class Broker(Process):
    """One node of Kafka in KRaft mode; the same folder and port again after `reap`, with `start`.

    At `guarded` it lets in `USER` with `PASSWORD` only (SASL/PLAIN).
    """

    def __init__(self, jars: Path, folder: Path) -> None:
        self._jars, self._folder, port, guarded = jars, folder, free_port(), free_port()
        self.bootstrap, self.guarded = f"localhost:{port}", f"localhost:{guarded}"
        self._settings = folder / "server.properties"
        self._settings.write_text(_SERVER.format(
            port=port, guarded=guarded, controller=free_port(), data=folder / "data", user=USER, password=PASSWORD))
        format_it = ["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", self._settings]
        subprocess.run(self._java(*format_it), check=True, capture_output=True, timeout=120)
        self.start()

    def start(self) -> None:
        """Start, or start again, and wait until it answers."""
        super().__init__(self._java("kafka.Kafka", self._settings), self._folder / "broker.log")
        try:
            wait_for(self._answers, 120, "the broker did not answer")
        except TimeoutError:
            self.reap()
            raise

    def topic(self, name: str, partitions: int = 2) -> str:
        """Make a topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for made in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(30)
        return name

    def drop(self, name: str) -> None:
        """Delete a topic, and wait until it is gone."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for gone in admin.delete_topics([name]).values():
            gone.result(30)
        wait_for(lambda: name not in admin.list_topics(timeout=10).topics, 30, f"{name} was not deleted")

    def send(
        self, topic: str, records: Iterable[tuple[str | bytes | None, str | bytes | None]], at: float | None = None
    ) -> int:
        """Produce (key, value) records in order, with the time of now, or of `at`; how many."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 20, "enable.idempotence": True})
        count = 0
        for count, (key, value) in enumerate(records, 1):
            while True:
                try:
                    producer.produce(topic, value, key, timestamp=round((time.time() if at is None else at) * 1000))
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(120) == 0
        return count

    def read(self, topic: str, isolation: str = "read_committed") -> list[tuple[tuple[str, str, str], str]]:
        """((key, id, kind), line) of all that a consumer is given of a topic that is published to, to its end."""
        consumer = Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": "reader", "auto.offset.reset": "earliest",
            "isolation.level": isolation, "enable.partition.eof": True, "enable.auto.commit": False,
        })  # fmt: skip
        ends = len(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.subscribe([topic])
        found, ended = [], set()

        def at_end() -> bool:
            for message in consumer.consume(1_000, 0.5):
                if message.error() is None:
                    key, id, kind = json.loads(message.key())
                    found.append(((key, id, kind), message.value().decode()))
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    ended.add(message.partition())
            return len(ended) == ends

        try:
            wait_for(at_end, 120, f"the end of {topic} was not reached")
        finally:
            consumer.close()
        return found

    def _java(self, *arguments: str | Path) -> list[str | Path]:
        return ["java", "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{self._jars}/*", *arguments]

    def _answers(self) -> bool:
        if self.poll() is not None:
            raise RuntimeError(f"the broker ended: {self.said()[-2000:]}")
        try:
            AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(timeout=2)
        except KafkaException:
            return False
        return True


class Pool(Process):
    """A worker pool: Prism asks it for one Python process for each environment of a job."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.options = ["--environment_type", "EXTERNAL", "--environment_config", f"localhost:{port}"]
        module = "apache_beam.runners.worker.worker_pool_main"
        super().__init__([sys.executable, "-m", module, "--service_port", str(port)], folder / "pool.log")
        wait_for(lambda: _listens(port), 60, "the worker pool did not open its port")

    def workers(self) -> list[int]:
        """Process ids of the workers."""
        return [pid for pid, line in self.members().items() if pid != self.pid and "SdkHarness" in line]


class Live(Process):
    """A live job under test."""

    def __init__(
        self, broker: Broker, topic: str, output: Path, prism: Path, *arguments: str,
        module: Sequence[str] = ("beam_pipelines.live",), **environment: str,
    ) -> None:
        self.output = output
        command = [sys.executable, "-m", *module, "--bootstrap", broker.bootstrap, "--topic", topic,
                   "--output", output, "--prism_location", prism, *arguments]  # fmt: skip
        super().__init__(command, output.with_suffix(".log"), **environment)

    def prism(self) -> list[int]:
        """Process ids of the job's Prism."""
        return [pid for pid, line in self.members().items() if "--job_port" in line]

    def wait_for_records(self, count: int, seconds: float) -> None:
        """Wait until so many records are stored; `RuntimeError` if the job ends before."""

        def stored() -> bool:
            if self.poll() is not None:
                raise RuntimeError(f"the job ended with {self.poll()}: {self.said()[-2000:]}")
            return rows(self.output, "SELECT count(*) FROM records")[0][0] >= count

        wait_for(stored, seconds, f"{count} records were not stored")


def left_over() -> dict[int, str]:
    """The command lines of all living processes that these tests started, whatever session they are in."""
    mark, found = f"{MARK}={os.getpid()}".encode(), {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                is_ours = mark in (entry / "environ").read_bytes().split(b"\0")
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it ended while it was looked at
                continue
            if is_ours:
                found[int(entry.name)] = line
    return {pid: line for pid, line in found.items() if line}


def rows(output: Path, query: str) -> list[tuple[Any, ...]]:
    """Rows of a job's file; [(0,)] while it is not there yet."""
    try:
        db = sqlite3.connect(f"file:{output}/snapshots.db?mode=ro", uri=True, timeout=30)
    except sqlite3.OperationalError:
        return [(0,)]
    try:
        return db.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error) or "unable to open" in str(error):
            return [(0,)]
        raise
    finally:
        db.close()


def records(output: Path) -> dict[tuple[str, str, str], str]:
    """What a job stored: (key, id, kind) -> line."""
    return {(key, id, kind): line for key, id, kind, line in rows(output, "SELECT key, id, kind, line FROM records")}


def event(key: str, id: str, time: float, **rest: Any) -> tuple[str, str]:
    """A record of the log: (key, value)."""
    return key, json.dumps({"key": key, "id": id, "time": time, **rest})


def kill(pid: int) -> None:
    """kill -9 of one process, which may be gone."""
    _kill(pid)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) == 0
