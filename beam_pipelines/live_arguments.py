"""The arguments of `beam_pipelines.live`: declared, checked against each other, and worded in one line when wrong."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from beam_pipelines import command
from beam_pipelines.broker import PREFIX, Broker, parse_settings
from beam_pipelines.command import ArgumentError, Parser, count, one_way, seconds
from beam_pipelines.kafka import TOMBSTONES, Reading
from beam_pipelines.sinks import SNAPSHOTS

PROGRAM = "beam_pipelines.live"

_ORDERS = ("arrival", "event_time")

_FOR_EVER = 10 * 365 * 86_400  # seconds

_EXAMPLES = f"""\
examples:
  python -m beam_pipelines.live --bootstrap localhost:9092 --topic events --output live --resume
      read the topic for ever on Prism, which Beam downloads; started again after a crash, the same line goes on
  python -m beam_pipelines.live --bootstrap localhost:9092 --topic events --output live --until_end
      catch up with what the topic holds now, then stop
  python -m beam_pipelines.run --input older.jsonl --output backfill --at_end snapshot --model "..."
  python -m beam_pipelines.live --bootstrap localhost:9092 --topic clicks buys --output live --resume --model "..." \\
      --warm_start backfill/snapshots.db --since 2024-05-01T00:00:00Z
      keys begin as a bounded run over older events left them, and the topics where its files end
  {PREFIX}SASL_PASSWORD=... {PREFIX}SASL_USERNAME=... python -m beam_pipelines.live \\
      --kafka security.protocol=SASL_SSL sasl.mechanism=PLAIN --bootstrap ... --topic ... --output live --resume
  python -m beam_pipelines.live --output live --export
      write predictions.jsonl, outcomes.jsonl ... of what is stored so far

a record's value is an event as one JSON object; the record's key and time stand in where the event has none:
      {{"key": "de-17", "id": "a1", "time": "2024-05-01T12:00:00Z", "x": {{"load": 0.7}}}}
      {{"key": "de-17", "id": "a1", "time": "2024-05-01T13:30:00Z", "y": true}}

DIR/{SNAPSHOTS} holds everything: the views predictions, outcomes, rejected, orphans, drift (each record once, whatever
crashed and was read again), the snapshots, and what the job goes on from. Events of one key should come from one
partition: between partitions there is no order.

bounds, for each key: 10,000 open predictions or 4 MB of them (the oldest leaves as an orphan), 1,024 answered ids and
1,024 offsets of each partition known for duplicates; labels wait for ever unless --label_ttl is given, and keys stay
for ever unless --idle_ttl is; with --order event_time 10,000 events or 4 MB of them wait for their time (over it the
oldest goes early and is counted as overflow). A record may
have 4 MB and an event 100,000 values. Partitions added to a topic are read from the next start on.

secrets come from the environment alone: {PREFIX}SASL_PASSWORD sets sasl.password, and so on.
exit code: 0 done, 1 the job failed (start it again with --resume), 2 wrong arguments.
Any other option goes to Beam as it is, for example --prism_location ./prism, or --environment_type EXTERNAL
--environment_config localhost:50000 for workers of their own.
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's own arguments; what it does not know is Beam's."""
    parser = Parser(
        prog=f"python -m {PROGRAM}",
        description="Learn one model per key from Kafka, without an end; go on after a crash with nothing lost and "
        "nothing learned twice.",
        epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )
    default = Reading()
    add = parser.add_argument_group("what to read").add_argument
    add("--bootstrap", metavar="HOST:PORT", help="the broker; several with commas")
    add("--topic", metavar="NAME", nargs="+", action="extend", help="topics to read, every partition of them")
    add("--kafka", metavar="NAME=VALUE", nargs="+", action="extend", default=[],
        help="properties of the client (librdkafka's names), no secrets")
    add("--since", metavar="TIME", type=_time,
        help="begin each partition that DIR does not know yet with its first record of that time or later (RFC 3339 or "
        "epoch seconds; the records' times, not the events'); the default is all that the topic holds")
    add("--until_end", action="store_true", help="stop where the logs end now; the default is never to stop")
    add("--expansion_service", metavar="HOST:PORT",
        help="read by Beam's own ReadFromKafka, whose Java expansion service is there; every start then reads the "
        "topics from their beginning, and skips what is known")
    add("--lateness", metavar="S", type=seconds, default=default.lateness,
        help="how much later than a later event of its partition one may come, in event time (default: 0)")
    add("--idle_after", metavar="S", type=seconds, default=default.idle_after,
        help="a partition read to its end and silent so long holds back no timer: its event time goes on with the wall "
        "clock (default: %(default)s)")
    add("--max_future", metavar="S", type=seconds, default=default.max_future,
        help="reject events further ahead of the wall clock (default: %(default)s)")
    add("--tombstones", choices=TOMBSTONES, default=default.tombstones,
        help="records without a value: rejected (default), skipped, or a reset of their key's model")
    add("--null_key", metavar="KEY", help="the key of records that name none (default: they are rejected)")
    add = parser.add_argument_group("what to learn").add_argument
    add("--model", metavar="EXPR", default="PAClassifier(PA1(1.0))",
        help="calls, |, +, literals; names of pa_river, then of River (default: %(default)s)")
    add("--label_ttl", metavar="S", type=seconds,
        help="how long a prediction waits for its label, and a label for its features, in event time (default: for "
        "ever)")
    add("--idle_ttl", metavar="S", type=seconds,
        help="after how long without an event, in event time, a key leaves with a last snapshot; its offsets and the "
        "number of its generation stay, and it comes back as a new model (default: never)")
    add("--order", metavar="ORDER", default="arrival",
        help="arrival: each partition's own (default); event_time: by event time, at equal times labels first, then by "
        "partition and offset, once no partition can bring an earlier event by --lateness and --idle_after; also "
        "between partitions. What comes later than that is handled at once and counted as out_of_order")
    add("--shards", metavar="N", type=count,
        help="deal the keys into so many engine keys, each with many cells: for many cold keys (default: none)")
    add("--warm_start", metavar="DB", type=Path,
        help="snapshots.db of a bounded run: where keys begin that are new here")
    add = parser.add_argument_group("what to write").add_argument
    add("--output", metavar="DIR", type=Path, help=f"a folder for {SNAPSHOTS}")
    add("--resume", action="store_true", help="go on from what DIR holds, if it holds anything")
    add("--overwrite", action="store_true", help="begin anew, and replace what DIR holds")
    add("--on_change", choices=("keep",), help="with --resume and another model: keep the models there are")
    add("--publish", metavar="PREFIX",
        help="send each stored record to the topic PREFIX.predictions, PREFIX.outcomes ... as well, in transactions: "
        "consumers with isolation.level=read_committed (librdkafka's default) see it once, whatever crashes")
    add("--save_every", metavar="N", type=count, default=200,
        help="events of a key between two resume points: what is done again after a crash (default: %(default)s)")
    add("--save_within", metavar="S", type=seconds, default=10.0,
        help="seconds after which a resume point is written although fewer came (default: %(default)s)")
    add("--snapshot_every", metavar="N", type=count, default=1_000,
        help="updates of a key between two snapshots of its model (default: %(default)s)")
    add("--keep", metavar="N", type=count, default=100, help="snapshots kept a key (default: %(default)s)")
    add("--export", action="store_true", help="write what DIR holds as JSON lines, and do nothing else")
    parser.add_argument("--runner", metavar="NAME", default="PrismRunner",
                        help="a Beam runner with state and timers, by name (default: PrismRunner)")
    parser.add_argument("--cells_apart", action="store_true",
                        help="ask the runner for a worker of the cells' own, apart from source and sink: two processes "
                        "where workers are processes (--environment_type EXTERNAL)")
    parser.add_argument("--stall", metavar="S", type=seconds, default=300.0,
                        help="end the job when nothing has come through it for so long, which a dead worker may cause "
                        "(default: %(default)s; a silent topic is no such case)")
    parser.add_argument("--verbose", action="store_true", help="show the runner's own log")
    return parser


def parse(argv: Sequence[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """Return the checked arguments and those for Beam; `ArgumentError` in one line."""
    args, beam_args = build_parser().parse_known_args(argv)
    for name in ("output",) if args.export else ("bootstrap", "topic", "output"):
        if not getattr(args, name):
            raise ArgumentError(f"--{name} is required")
    if args.resume and args.overwrite:
        raise ArgumentError("--resume or --overwrite, not both")
    if args.order not in _ORDERS:
        raise ArgumentError(f"--order {args.order}: not over a broker, whose offsets are marks only (there are "
                            f"{' and '.join(_ORDERS)})")
    if args.order == "event_time" and args.expansion_service is not None:
        raise ArgumentError("--order event_time goes by the watermark of the command's own reader: leave out "
                            "--expansion_service")
    for name in ("idle_ttl", "label_ttl", "shards"):
        if getattr(args, name) == 0:
            raise ArgumentError(f"--{name} must be greater than 0")
    if args.runner == "FnApiRunner" and not args.until_end:
        raise ArgumentError("FnApiRunner fires event-time timers after each bundle of an unbounded input: use "
                            "PrismRunner, or --until_end")
    for name in ("until_end", "since"):
        if args.expansion_service is not None and getattr(args, name):
            raise ArgumentError(f"--{name} is for the command's own reader: leave out --expansion_service")
    for name in ("save_every", "snapshot_every", "keep"):
        if not getattr(args, name):
            raise ArgumentError(f"--{name} must be a whole number >= 1, got 0")
    if args.warm_start is not None and not args.warm_start.is_file():
        raise ArgumentError(f"--warm_start {args.warm_start}: no such file")
    # Beam's client gives up on a job after `job_server_timeout` seconds, 300 unless told otherwise.
    return args, ["--runner", args.runner, "--streaming", "--job_server_timeout", str(_FOR_EVER), *beam_args]


def broker_of(args: argparse.Namespace) -> Broker:
    return Broker(args.bootstrap, parse_settings(args.kafka))


def reading_of(args: argparse.Namespace) -> Reading:
    return Reading(args.lateness, args.idle_after, args.max_future, args.tombstones, args.null_key)


def check_output(args: argparse.Namespace) -> None:
    """`ArgumentError` if DIR must not be touched, or holds the models of another job."""
    output: Path = args.output
    if not command.goes_on(output, args.resume, args.overwrite):
        return
    changed = command.changed(command.read_fingerprint(output, "live job"), fingerprint(args))
    if lasting := [name for name in changed if name in ("order", "shards")]:
        raise ArgumentError(f"--resume: {', '.join(lasting)} cannot change under the cells in {output}: give "
                            "--overwrite")
    if changed and args.on_change is None:
        raise ArgumentError(f"--resume: {', '.join(changed)} changed since the job in {output} began: give --on_change "
                            "keep, or --overwrite")


def fingerprint(args: argparse.Namespace) -> dict[str, Any]:
    """Return what must not change under a folder's models without a word from the user."""
    return {"job": "live", "model": one_way(args.model), "order": args.order, "shards": args.shards}


def write_fingerprint(args: argparse.Namespace) -> None:
    """Say in DIR whose models it holds."""
    command.write_fingerprint(args.output, fingerprint(args))


def _time(text: str) -> float:
    """Seconds since 1970; without an offset a time is UTC."""
    try:
        return seconds(text)
    except ValueError:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
