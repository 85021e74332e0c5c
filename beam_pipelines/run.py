"""`python -m beam_pipelines.run`: one model per key from a file of events with late labels, and what came out of it."""

from __future__ import annotations

import gc
import logging
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from beam_pipelines import _quiet  # noqa: F401  isort: skip  (before Beam: it silences one warning of its import)
import apache_beam as beam
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import worker_handlers

from beam_pipelines import arguments, kept, options, progress, sinks, sources, summary
from beam_pipelines.arguments import PROGRAM
from beam_pipelines.command import ArgumentError
from beam_pipelines.jobs import JOBS
from beam_pipelines.learn import NAMESPACE, learn_keyed, typed
from beam_pipelines.report import write_report
from beam_pipelines.report.baselines import counterpart
from pa_river.stream import CellSpec, Rejected, SnapshotStore


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when done, 1 when the run failed, 2 for wrong arguments, each with one line."""
    try:
        args, beam_args = arguments.parse(argv)
        reader = reader_of(args)
        goes_on, read_before = arguments.check_output(args)
        spec = spec_of(args, goes_on)
        root = beam.Pipeline(options=PipelineOptions(beam_args))
    except (ArgumentError, ValueError, OSError) as error:
        return _fail(error, 2)
    begun = time.perf_counter()
    folder = None
    try:
        folder = sinks.prepare(args.output, args.output if args.resume else None)
        build(root, args, spec, reader, folder)
        quiet, rare, plain = _runner_log(args.verbose), _rare_collections(), _no_state_cache()
        with progress.bar("read", "learning", " events"), quiet, rare, plain:
            result = root.run()
            result.wait_until_finish()
        counted = counts_of(result)
        sinks.publish(folder, args.output)
        arguments.write_fingerprint(args, read_before)
        took, events = time.perf_counter() - begun, progress.count("read")
        report = None if args.no_report else report_of(args, reader)
    except KeyboardInterrupt:
        return _fail("interrupted; what was in the output folder is as it was", 1)
    except Exception as error:  # whatever a runner, a source or a disk raises ends here: in one line, and exit code 1
        return _fail(error, 1)
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
    inputs = ", ".join(path.name for path in args.input)
    print(f"{args.job or inputs}: {args.model} over {inputs} on {args.runner}\n")
    print(summary.table(args.output, took, events, counted))
    print(f"\n{args.output}: " + ", ".join(sorted(path.name for path in args.output.iterdir())))
    if report is not None:
        print(f"open {report} in a browser")
    return 0


def reader_of(args: Namespace) -> sources.Reader:
    """Return the reader that the arguments ask for, each input opened once to see that it can be read."""
    if args.job is not None:
        reader = JOBS[args.job].reader()
    else:
        reader = sources.CsvRows(args.columns) if args.columns is not None else sources.JsonLines()
    for path in args.input:
        try:
            sources.check_input(path, reader)
        except FileNotFoundError:
            raise ArgumentError(f"--input {path}: no such file") from None
        except (OSError, EOFError) as error:
            raise ArgumentError(f"--input {path}: {getattr(error, 'strerror', None) or error}") from None
        except ValueError as error:
            raise ArgumentError(f"--input {path}: {error}") from None
    return reader


def spec_of(args: Namespace, goes_on: bool) -> CellSpec:
    """Return what every cell starts from: with `goes_on`, the snapshots that the output folder holds."""
    try:
        model = options.parse_model(args.model)
    except ValueError as error:
        raise ArgumentError(f"--model: {error}") from None
    reader = SnapshotStore(args.output.resolve() / sinks.SNAPSHOTS) if goes_on else None
    spec = CellSpec(
        model, label_ttl=args.label_ttl, idle_ttl=args.idle_ttl, order=args.order, at_end=args.at_end,
        snapshot_every=args.snapshot_every, shards=args.shards,
        lateness=0.0 if args.order == "event_time" else None,  # the source sorts
        keep_marks=args.idle_ttl is not None,  # or a key that left would come back as the folder knows it
        reader=reader,
    )
    if reader is not None and (snapshot := next(reader.newest_of_all(), None)) is not None:
        kept.check_fit(spec, snapshot.model, f"--resume: {args.output}", is_meant=args.on_change is not None)
    return spec


def build(root: beam.Pipeline, args: Namespace, spec: CellSpec, reader: sources.Reader, folder: Path) -> None:
    """Add the whole job to a pipeline: sources, cells, sinks."""
    read = beam.ParDo(sources.ReadEvents(args.input, reader, args.order, args.shards))
    events = root | beam.Impulse() | "Read" >> read.with_outputs(sources.ReadEvents.REJECTED, main="events")
    learned = learn_keyed(events.events, spec, sinks.placing, args.cells_apart)
    place = beam.Map(_unread).with_output_types(list[tuple[bytes, bytes]])
    unread = typed(events[sources.ReadEvents.REJECTED], list[tuple[int, Rejected]]) | "Place" >> place
    rejected = (learned.rejected, unread) | "AllRejected" >> beam.Flatten()
    learned._replace(rejected=rejected) | sinks.WriteOutputs(
        folder, before=args.output if args.resume else None, max_rejected=args.max_rejected,
        reshuffle=args.runner != "FnApiRunner",
    )


def report_of(args: Namespace, reader: sources.Reader) -> Path:
    """Write the report, its baselines driven over the same events, which are read once more for it."""
    job = JOBS.get(args.job)
    facts = {"input": ", ".join(path.name for path in args.input), "runner": args.runner}
    read = sources.ReadEvents(args.input, reader, args.order).process(None)
    batches = (element[1] for element in read if isinstance(element, tuple))
    return write_report(
        args.output, progress=True, facts=facts, about=job.about if job else "", unit=job.unit if job else "",
        # Of a run that went on only the last inputs are at hand, so a rival would see a part of the stream.
        baseline_events=None if args.resume else (event for batch in batches for _, event in batch),
        baseline_model=counterpart(options.parse_model(args.model)),
    )


def counts_of(result: Any) -> dict[str, int]:
    """Return what the cells count and put into no record, from the runner's metrics; nothing where it keeps none."""
    found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))
    return {counter.key.metric.name: counter.result for counter in found["counters"]}


def _unread(records: list[tuple[int, Rejected]]) -> list[tuple[bytes, bytes]]:
    return [sinks.placing(position, 0, record) for position, record in records]


@contextmanager
def _runner_log(verbose: bool) -> Iterator[None]:
    """Without `verbose`, keep what SDK and runner log off the terminal: pages of traceback for one failed bundle."""
    before = logging.root.manager.disable
    if not verbose:
        logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let the cyclic collector walk the cells, which live until the end and hold no cycles, a tenth as often."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _no_state_cache() -> Iterator[None]:
    """Switch off the cache that FnApiRunner's worker has whatever `--max_cache_memory_usage_mb` says.

    It holds live cells, and weighs each value that it reads or writes by a walk through all modules of the process:
    measured, 1 ms a key and bundle (docs/profile.md). With its size 0 the worker talks to the state directly.
    """
    before = worker_handlers.STATE_CACHE_SIZE_MB
    worker_handlers.STATE_CACHE_SIZE_MB = 0
    try:
        yield
    finally:
        worker_handlers.STATE_CACHE_SIZE_MB = before


def _fail(reason: BaseException | str, code: int) -> int:
    """Print one line: of an error that carries a worker's traceback, that traceback's last line."""
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()] or [type(reason).__name__]
    text = lines[-1] if any(line.startswith("Traceback ") for line in lines) else " ".join(lines)
    print(f"{PROGRAM}: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
