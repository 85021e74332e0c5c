"""`python -m beam_pipelines.live`: one model per key from Kafka, without an end, and on again after a crash."""

from __future__ import annotations

import _thread
import fcntl
import logging
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from beam_pipelines import _quiet  # noqa: F401  isort: skip  (before Beam: it silences one warning of its import)
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from beam_pipelines import kept, live_arguments, options
from beam_pipelines.broker import Broker, Partition
from beam_pipelines.command import ArgumentError
from beam_pipelines.kafka import ReadLog, ReadLogToItsEnd
from beam_pipelines.kafka_java import ReadByJava
from beam_pipelines.kafka_sink import Publisher, Publishing
from beam_pipelines.learn import Batch, typed
from beam_pipelines.live_arguments import PROGRAM
from beam_pipelines.serve import Resume, Serve, WriteUnits
from beam_pipelines.sinks import LINES, SNAPSHOTS
from beam_pipelines.store import LiveStore
from beam_pipelines.units import Unit
from pa_river.stream import CellSpec


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when done, 1 when the job failed, 2 for wrong arguments, each with one line."""
    try:
        args, beam_args = live_arguments.parse(argv)
        if args.export:
            return export(args.output)
        live_arguments.check_output(args)
        spec = spec_of(args)
        if args.warm_start is not None:
            kept.check_warm(spec, args.warm_start, is_meant=args.on_change is not None)
        broker = live_arguments.broker_of(args)
        root = beam.Pipeline(options=PipelineOptions(beam_args))
        logs = broker.partitions(args.topic, args.since)
        args.output.mkdir(parents=True, exist_ok=True)
    except (ArgumentError, ValueError, OSError, ImportError) as error:
        return _fail(error, 2)
    watch: Watch | None = None
    try:
        with _alone(args.output), _runner_log(args.verbose):
            try:
                store, run, logs = begin(args, spec, logs)
                build(root, args, spec, broker, store, run, logs)
                publisher = None if args.publish is None else Publisher(broker, args.publish, LiveStore(store.path))
                if publisher is not None:
                    publisher.open()
            except (ArgumentError, ValueError) as error:
                return _fail(error, 2)
            beats = not args.until_end and args.expansion_service is None
            watch = Watch(store, args.stall if beats else None)
            with Publishing(publisher), watch:
                root.run().wait_until_finish()
    except KeyboardInterrupt:
        if watch is not None and watch.has_stalled:
            return _fail(f"nothing came through the job for {args.stall:.0f} s: --resume goes on from here", 1)
        return _fail("interrupted: --resume goes on from here", 1)
    except Exception as error:  # whatever a runner, a broker or a disk raises ends here: in one line, and exit code 1
        return _fail(error, 1)
    return 0


def spec_of(args: Namespace) -> CellSpec:
    """Return what every cell starts from."""
    try:
        model = options.parse_model(args.model)
    except ValueError as error:
        raise ArgumentError(f"--model: {error}") from None
    return CellSpec(
        model, label_ttl=args.label_ttl, idle_ttl=args.idle_ttl, order=args.order, shards=args.shards,
        at_end="snapshot", snapshot_every=args.snapshot_every,
        keep_marks=args.idle_ttl is not None,  # or a key that left would come back as its last resume point
        reader=None if args.warm_start is None else kept.Before(args.warm_start.resolve()),
    )


def begin(args: Namespace, spec: CellSpec, logs: list[Partition]) -> tuple[LiveStore, int, list[Partition]]:
    """Open what DIR holds, or begin it; the number of this run, and the logs from where each is read on.

    `ArgumentError` if what it holds cannot go on so.
    """
    path = args.output.resolve() / SNAPSHOTS
    if args.overwrite:
        for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            name.unlink(missing_ok=True)
    store = LiveStore(path, args.keep)
    run, logs = store.begin(logs)
    if (blob := store.any_blob()) is not None and (model := kept.model_of(blob)) is not None:
        kept.check_fit(spec, model, f"--resume: {args.output}", is_meant=args.on_change is not None)
    store.close()
    live_arguments.write_fingerprint(args)
    return store, run, logs


def build(
    root: beam.Pipeline, args: Namespace, spec: CellSpec, broker: Broker, store: LiveStore, run: int,
    logs: list[Partition],
) -> None:
    """Add the whole job to a pipeline: source, cells, sink."""
    reading = live_arguments.reading_of(args)
    if args.expansion_service is not None:
        records = root | "Read" >> ReadByJava(broker, args.topic, reading, args.expansion_service)
    else:
        read = beam.ParDo((ReadLogToItsEnd if args.until_end else ReadLog)(broker, reading))
        partitions = root | "Logs" >> beam.Create(logs, reshuffle=False).with_output_types(Partition)
        records = partitions | "Spread" >> beam.Reshuffle() | "Read" >> read.with_outputs(ReadLog.UNREAD, main="events")
    events = typed(records.events, tuple[str, Batch])
    if spec.shards is not None:
        events = events | "ToShards" >> beam.Map(to_shard, spec).with_output_types(tuple[str, Batch])
    waiting: list[tuple[str, Batch]] = [(key, []) for key in store.waiting()]
    if waiting:  # keys that no event may come to, while something of theirs is due: opened, so that a timer is set
        woken = root | "Waiting" >> beam.Create(waiting).with_output_types(tuple[str, Batch])
        events = typed((woken, events) | "All" >> beam.Flatten(), tuple[str, Batch])
    within = None if args.until_end else args.save_within
    serve = Serve(spec, Resume(store), save_every=args.save_every, save_within=within)
    if args.cells_apart:
        serve = serve.with_resource_hints(min_ram="1MB")  # another environment, and so another worker
    units = events | "Learn" >> serve
    unread = typed(records[ReadLog.UNREAD], Unit)
    (units, unread) | "Units" >> beam.Flatten() | "Write" >> WriteUnits(store, run)


def to_shard(element: tuple[str, Batch], spec: CellSpec) -> tuple[str, Batch]:
    """A key's batch under the engine key that holds the key's cell; a heartbeat as it is."""
    key, batch = element
    return (spec.engine_key(key) if batch else key), batch


def export(output: Path) -> int:
    """Write the records of DIR as JSON lines, in the order in which they were stored."""
    if not (output / SNAPSHOTS).is_file():
        return _fail(f"--export: there is no {SNAPSHOTS} in {output}", 2)
    store = LiveStore(output / SNAPSHOTS)
    for tag in LINES:
        beside = output / f"{tag}.jsonl.new"
        with open(beside, "w") as file:
            file.writelines(f"{made.line}\n" for _, made in store.records(tag))
        beside.replace(output / f"{tag}.jsonl")
    return 0


class Watch:
    """Interrupts the main thread when no heartbeat came through the job for `stall` seconds.

    A runner may wait for ever for a worker that is gone (measured on Prism, Beam 2.77); a job that hangs is not started
    again by anyone.
    """

    def __init__(self, store: LiveStore, stall: float | None) -> None:
        self._store, self._stall = store, stall
        self.has_stalled = False
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        if self._stall is not None:
            self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._done.set()

    def _look(self) -> None:
        assert self._stall is not None
        begun = time.time()
        while not self._done.wait(min(1.0, self._stall)):
            if time.time() - max(begun, self._store.beat()) > self._stall:
                self.has_stalled = True
                _thread.interrupt_main()
                return


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """Hold DIR for this process; the lock dies with it, however it ends."""
    with open(output / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RuntimeError(f"another job is running in {output}") from None
        yield


@contextmanager
def _runner_log(verbose: bool) -> Iterator[None]:
    """Without `verbose`, keep what SDK and runner log off the terminal: pages of traceback for one failed bundle."""
    before = logging.root.manager.disable
    if not verbose:
        logging.disable(logging.CRITICAL)
        logging.getLogger("apache_beam").setLevel(logging.CRITICAL)  # for good: workers speak after the end
        threading.excepthook = _ignored  # of Beam's own threads: what ends them ends the job, which says why
    try:
        yield
    finally:
        logging.disable(before)


def _ignored(given: threading.ExceptHookArgs) -> None:
    """Say nothing of a thread that was ended by an exception."""


def _fail(reason: BaseException | str, code: int) -> int:
    """Print one line: of an error that carries a worker's traceback, that traceback's last line."""
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()] or [type(reason).__name__]
    text = lines[-1] if any(line.startswith("Traceback ") for line in lines) else " ".join(lines)
    with suppress(BrokenPipeError):
        print(f"{PROGRAM}: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
