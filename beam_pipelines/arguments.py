"""The arguments of `beam_pipelines.run`: declared, checked against each other, and worded in one line when wrong."""

from __future__ import annotations

import argparse
import difflib
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apache_beam.options import pipeline_options

from beam_pipelines import command
from beam_pipelines.columns import Columns
from beam_pipelines.command import FINGERPRINT, ArgumentError, Parser, count, one_way, seconds
from beam_pipelines.jobs import JOBS

PROGRAM = "beam_pipelines.run"

_ORDERS = ("arrival", "sequence", "event_time")

_EXAMPLES = """\
examples:
  python -m beam_pipelines.run
      the job flights over its sample of January 2013, into ./out (overwritten)
  python -m beam_pipelines.run --job flights_delay --output delays
      the same flights, predicting the delay in minutes
  python -m beam_pipelines.run --input events.jsonl.gz --output scored --label_ttl 86400
      your own events, one JSON object a line:
      {"key": "de-17", "id": "a1", "time": "2024-05-01T12:00:00Z", "x": {"load": 0.7}}
      {"key": "de-17", "id": "a1", "time": "2024-05-01T13:30:00Z", "y": true}
  python -m beam_pipelines.run --input day1.csv day2.csv --output scored --order sequence \\
      --columns key=device,id=n,time=when,y=failed,x=load+heat+site:text \\
      --model "StandardScaler() | PAClassifier(PA1(C=0.1))"
  python -m beam_pipelines.snapshots list out/snapshots.db

bounds, for each key: 10,000 open predictions or 4 MB of them (the oldest leaves as an orphan), 1,024 answered ids
known for duplicates; labels wait for ever and keys stay for ever unless --label_ttl and --idle_ttl are given. A
line may have 4 MB and an event 100,000 values. --order sequence and event_time hold the text of the inputs in memory
to sort them; under event_time, up to 10,000 events or 4 MB of one time wait in a key for each other (over it the
oldest goes early, counted as overflow).

exit code: 0 done (also with rejected records), 1 the run failed, 2 wrong arguments.
Any other option goes to Beam as it is, for example --runner PrismRunner --prism_location ./prism.
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's own arguments; what it does not know is Beam's."""
    parser = Parser(
        prog=f"python -m {PROGRAM}",
        description="Learn one model per key from events with late labels; score each event before it is learned.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    jobs = " ".join(f"{name}: {job.about}" for name, job in JOBS.items())
    add = parser.add_argument_group("what to read").add_argument
    add("--job", metavar="NAME", help=f"a job of this package, with its own reader and sample. {jobs}")
    add("--input", metavar="FILE", nargs="+", action="extend", type=Path,
        help="JSON lines, or CSV with --columns; plain or .gz; several are read in the order given")
    add("--columns", metavar="MAP",
        help="for CSV: key=carrier+origin,id=...,time=...,y=...,x=a+b; without x, every other column is a feature; an "
        "empty cell is absent; COLUMN:text keeps numbers as text")
    add("--order", metavar="ORDER",
        help="arrival: as the lines come (default); sequence: sorted by time, labels first, and learned in that order "
        "whatever the runner does (the jobs' default); event_time: sorted so, too, but at equal times by the events' "
        "own source, seq and id, so that the order of the lines does not matter")
    add = parser.add_argument_group("what to learn").add_argument
    add("--model", metavar="EXPR",
        help="calls, |, +, literals; names of pa_river, then of River (default: PAClassifier(PA1(1.0)))")
    add("--label_ttl", metavar="S", type=seconds,
        help="how long a prediction waits for its label, and a label for its features, in seconds of event time "
        "(default: for ever)")
    add("--idle_ttl", metavar="S", type=seconds,
        help="after how long without an event a key's model is let go (default: never)")
    add("--detector", metavar="EXPR", help="a drift detector (not in this version)")
    add("--action", metavar="NAME", default="none", help="what an alarm does: none (no other in this version)")
    add("--shards", metavar="N", type=count,
        help="deal the keys into so many engine keys, each with many cells: for many cold keys on a runner that keeps "
        "its state elsewhere (default: none; no result depends on it)")
    where = parser.add_argument_group("what to write")
    add = where.add_argument
    add("--output", metavar="DIR", type=Path,
        help="a folder for predictions.jsonl, outcomes.jsonl, rejected.jsonl, orphans.jsonl, drift.jsonl, snapshots.db "
        "and report.html")
    again = where.add_mutually_exclusive_group()
    again.add_argument("--overwrite", action="store_true", help="replace what an earlier run left in DIR")
    again.add_argument("--resume", action="store_true",
                       help="go on from the snapshots in DIR and append to its files")
    add("--on_change", choices=("keep", "fresh"),
        help="with --resume, where model, columns, shards or order are not those of DIR: keep its models, or start new")
    add("--at_end", choices=("flush", "snapshot"), default="flush",
        help="flush: open predictions leave as orphans (default); snapshot: they stay open in the snapshots")
    add("--snapshot_every", metavar="N", type=count,
        help="also keep a snapshot of a key's model each N updates (default: only when the key leaves and at the end)")
    add("--max_rejected", metavar="N", type=count, help="fail the run when more records are rejected (default: never)")
    add("--no_report", action="store_true", help="leave out report.html")
    parser.add_argument("--runner", metavar="NAME", default="FnApiRunner",
                        help="a Beam runner, by name (default: FnApiRunner, in this process)")
    parser.add_argument("--cells_apart", action="store_true",
                        help="ask the runner for a worker of the cells' own, apart from source and sink: two processes "
                        "where workers are processes (--environment_type EXTERNAL)")
    parser.add_argument("--verbose", action="store_true", help="also print the runner's log of what failed")
    return parser


def parse(argv: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """Return the checked arguments and those for Beam; `ArgumentError` in one line."""
    args, beam_args = build_parser().parse_known_args(argv)
    _check_beam(args.runner, beam_args)
    if args.job is None and args.input is None:
        args.job = "flights"
        if args.output is None:
            args.output, args.overwrite = Path("out"), not args.resume
    if args.job is not None and args.job not in JOBS:
        raise ArgumentError(f"--job {args.job}: no such job (there are {', '.join(JOBS)})")
    if args.output is None:
        raise ArgumentError("--output is required")
    if args.on_change and not args.resume:
        raise ArgumentError("--on_change needs --resume")
    _check_later(args)
    if args.job is not None:
        if args.columns is not None:
            raise ArgumentError("--columns is for your own CSV: a job has its own reader")
        args.input = args.input or [JOBS[args.job].sample]
    args.order = args.order or ("sequence" if args.job else "arrival")
    args.model = args.model or (JOBS[args.job].model if args.job else "PAClassifier(PA1(1.0))")
    if args.columns is not None:
        try:
            Columns(args.columns)
        except ValueError as error:
            raise ArgumentError(f"--columns: {error}") from None
    return args, ["--runner", args.runner, *beam_args]


def _check_later(args: argparse.Namespace) -> None:
    """Refuse what the contract names and this version does not have: a flag must not be taken and ignored."""
    if args.order is not None and args.order not in _ORDERS:
        raise ArgumentError(f"--order {args.order}: no such order (there are {', '.join(_ORDERS)})")
    if args.detector is not None or args.action != "none":
        raise ArgumentError("--detector and --action are not in this version")
    if args.shards == 0:
        raise ArgumentError("--shards must be a whole number >= 1, got 0")


def _check_beam(runner: str, beam_args: Sequence[str]) -> None:
    """Refuse what neither this command nor Beam knows, which Beam itself would only log; a job server may know more."""
    known = argparse.ArgumentParser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for options in pipeline_options.PipelineOptions.__subclasses__():
        if options.__module__.startswith("apache_beam."):
            options._add_argparse_args(known)  # as PipelineOptions.get_all_options does
    values, unknown = known.parse_known_args(list(beam_args))
    if unknown and runner in ("FnApiRunner", "PrismRunner", "DirectRunner"):
        ours = [action.option_strings[-1] for action in build_parser()._actions]
        near = difflib.get_close_matches(unknown[0].partition("=")[0], ours, n=1)
        raise ArgumentError(f"unknown argument {unknown[0]}" + (f" (did you mean {near[0]}?)" if near else ""))
    if values.max_cache_memory_usage_mb:
        raise ArgumentError("--max_cache_memory_usage_mb must stay 0: a cell kept live across bundles could carry a "
                            "failed bundle into its retry")


def fingerprint(args: argparse.Namespace) -> dict[str, Any]:
    """Return what must not change under a folder's models without a word from the user."""
    return {"columns": args.columns, "job": args.job, "model": one_way(args.model), "order": args.order,
            "shards": args.shards}


def write_fingerprint(args: argparse.Namespace, read_before: list[str]) -> None:
    """Say in DIR what the run was, and which inputs DIR holds the outcome of."""
    found = {**fingerprint(args), "inputs": [*read_before, *map(_digest, args.input)]}
    command.write_fingerprint(args.output, found)


def check_output(args: argparse.Namespace) -> tuple[bool, list[str]]:
    """Return whether DIR's models go on, and the inputs read before; `ArgumentError` if DIR must not be touched."""
    output: Path = args.output
    if not command.goes_on(output, args.resume, args.overwrite):
        if args.resume:
            raise ArgumentError(f"--resume: there is nothing in {output}")
        return False, []
    before = command.read_fingerprint(output, "finished run")
    read_before = before.get("inputs")
    if not isinstance(read_before, list):
        raise ArgumentError(f"--resume: {output} holds no finished run ({FINGERPRINT} cannot be read)")
    changed = command.changed(before, fingerprint(args))
    if changed and args.on_change is None:
        what = ", ".join(changed)
        raise ArgumentError(f"--resume: {what} changed since the run in {output}: give --on_change keep or fresh")
    for path in args.input:
        if _digest(path) in read_before:
            raise ArgumentError(f"--resume: {path} was read before: its events would be learned twice")
    return not (changed and args.on_change == "fresh"), read_before


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
