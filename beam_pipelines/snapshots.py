"""`python -m beam_pipelines.snapshots`: list, show, compare, roll back and export the models of a `snapshots.db`."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from beam_pipelines.command import ArgumentError, Parser
from pa_river import state
from pa_river.stream import Snapshot, SnapshotStore, diff, rollback_event
from pa_river.stream.parsing import event_from
from pa_river.stream.records import Rejected

PROGRAM = "beam_pipelines.snapshots"

_EXAMPLES = """\
examples:
  python -m beam_pipelines.snapshots list out/snapshots.db
  python -m beam_pipelines.snapshots show out/snapshots.db UA-EWR --top 10
  python -m beam_pipelines.snapshots diff out/snapshots.db UA-EWR 100 3625
  python -m beam_pipelines.snapshots rollback out/snapshots.db UA-EWR 100
  python -m beam_pipelines.snapshots rollback out/snapshots.db --all --to 2013-01-20T00:00:00Z --output events.jsonl
  python -m beam_pipelines.snapshots export out/snapshots.db UA-EWR model.bin

exit code: 0 done, 2 wrong arguments or no such snapshot.
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command and its five verbs."""
    parser = Parser(
        prog=f"python -m {PROGRAM}", description=__doc__.partition(": ")[2].capitalize() if __doc__ else None,
        epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|show|diff|rollback|export")

    def verb(name: str, run: Callable[[SnapshotStore, Any], None], help: str) -> argparse.ArgumentParser:
        found = verbs.add_parser(name, help=help, description=help, allow_abbrev=False)
        found.set_defaults(run=run)
        found.add_argument("db", metavar="DB", type=Path)
        return found

    verb("list", _list, "what is stored, by key, oldest first").add_argument("--key", help="of this key alone")

    show = verb("show", _show, "one model: its parameters and its heaviest weights")
    show.add_argument("key", metavar="KEY")
    _which(show)
    show.add_argument("--top", metavar="N", type=int, default=20, help="how many weights (default: 20)")

    compare = verb("diff", _diff, "what differs between two versions of a key, the largest change first")
    compare.add_argument("key", metavar="KEY")
    compare.add_argument("first", metavar="VERSION", type=int)
    compare.add_argument("second", metavar="VERSION", type=int)
    compare.add_argument("--top", metavar="N", type=int, default=20, help="how many differences (default: 20)")

    back = verb("rollback", _rollback, "make an older model the newest version of its key; marks, open predictions and "
                "known ids stay. With --all: write control events that do so in a running job")
    back.add_argument("key", metavar="KEY", nargs="?")
    back.add_argument("version", metavar="VERSION", type=int, nargs="?")
    back.add_argument("--generation", metavar="MS", type=int, help="of this generation (default: the newest)")
    back.add_argument("--all", action="store_true", help="every key, to its newest model of --to TIME or before")
    back.add_argument("--to", metavar="TIME", help="RFC 3339 or epoch seconds of event time")
    back.add_argument("--output", metavar="FILE", help="the job's input, to append the events to (default: stdout)")

    export = verb("export", _export, "the bytes of one model, which pa_river.loads opens")
    export.add_argument("key", metavar="KEY")
    export.add_argument("file", metavar="FILE", type=Path)
    _which(export)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0 when done, 2 with one line where the arguments do not fit."""
    try:
        args = build_parser().parse_args(argv)
        if not args.db.is_file():
            raise ValueError(f"{args.db}: no such file")
        args.run(SnapshotStore(args.db), args)
    except (ArgumentError, ValueError, OSError) as error:  # StateError is a ValueError
        print(f"{PROGRAM}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    return 0


def _which(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", metavar="N", type=int, help="of this version (default: the newest)")
    parser.add_argument("--generation", metavar="MS", type=int, help="of this generation (default: the newest)")


def _found(store: SnapshotStore, key: str, version: int | None, generation: int | None = None) -> Snapshot:
    if version is None and generation is not None:
        versions = [row.version for row in store.list(key) if row.generation == generation]
        version = max(versions, default=-1)
    found = store.newest(key) if version is None else store.get(key, version, generation)
    if found is None:
        what = f"key {key!r}" if version is None else f"version {version} of key {key!r}"
        raise ValueError(f"{store.path}: no snapshot of {what}")
    return found


def _list(store: SnapshotStore, args: Any) -> None:
    rows = store.list(args.key)
    if args.key is not None and not rows:
        raise ValueError(f"{store.path}: no snapshot of key {args.key!r}")
    table = [("key", "generation", "version", "time", "reason", "model bytes", "cell bytes")]
    table += [
        (row.key, str(row.generation), str(row.version), _shown(row.time), row.reason, f"{row.model_bytes:,}",
         f"{row.cell_bytes:,}")
        for row in rows
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


def _show(store: SnapshotStore, args: Any) -> None:
    snapshot = _found(store, args.key, args.version, args.generation)
    model = state.loads(snapshot.model)
    print(f"{snapshot.key}, version {snapshot.version}, {_shown(snapshot.time)}, {snapshot.reason}")
    print(model)
    # The weights are those that differ from a model that has none: the same flat names as in `diff`.
    untrained = snapshot._replace(model=state.dumps(model.clone()))
    weights = {name: after for name, (_, after) in diff(untrained, snapshot).items() if isinstance(after, float)}
    for name in sorted(weights, key=lambda name: (-abs(weights[name]), str(name)))[:args.top]:
        print(f"{weights[name]:+.6g}  {_name(name)}")
    if len(weights) > args.top:
        print(f"... and {len(weights) - args.top:,} more")


def _diff(store: SnapshotStore, args: Any) -> None:
    changes = diff(_found(store, args.key, args.first), _found(store, args.key, args.second))

    def size(name: Any) -> tuple[float, str]:
        before, after = (value if isinstance(value, float) else 0.0 for value in changes[name])
        return -abs(after - before), str(name)

    for name in sorted(changes, key=size)[:args.top]:
        before, after = ("-" if value is None else f"{value:.6g}" if isinstance(value, float) else value
                         for value in changes[name])
        print(f"{before} -> {after}  {_name(name)}")
    rest = len(changes) - args.top
    print("no difference" if not changes else f"... and {rest:,} more" if rest > 0 else f"{len(changes):,} in all")


def _rollback(store: SnapshotStore, args: Any) -> None:
    if args.all:
        if args.to is None or args.key is not None:
            raise ValueError("rollback --all takes --to TIME and no key")
        _write_events(store, _time(args.to), args.output)
        return
    if args.key is None or args.version is None or args.to is not None or args.output is not None:
        raise ValueError("rollback takes KEY VERSION, or --all --to TIME")
    written = store.roll_back(args.key, args.version, args.generation)
    print(f"{written.key}: version {written.version} has the model of version {args.version}")


def _write_events(store: SnapshotStore, to: float, output: str | None) -> None:
    """One event a key: at the key's last known time, its id made of what it asks for, so that it counts once."""
    lines = []
    for snapshot in store.newest_of_all(until=to):
        newest = store.newest(snapshot.key)
        assert newest is not None
        if (newest.generation, newest.version) != (snapshot.generation, snapshot.version):
            id = f"rollback-{snapshot.generation}-{snapshot.version}-from-{newest.version}"
            lines.append(rollback_event(snapshot, id, newest.time).to_json() + "\n")
    if output is None:
        sys.stdout.writelines(lines)
    else:
        with open(output, "a") as file:
            file.writelines(lines)
        print(f"{output}: {len(lines)} events appended")


def _export(store: SnapshotStore, args: Any) -> None:
    snapshot = _found(store, args.key, args.version, args.generation)
    args.file.write_bytes(snapshot.model)
    print(f"{args.file}: {snapshot.key}, version {snapshot.version}, {len(snapshot.model):,} bytes for pa_river.loads")


def _time(text: str) -> float:
    """A time as events have it: epoch seconds or RFC 3339."""
    event = event_from({"key": "k", "id": "1", "time": text, "y": True})
    if isinstance(event, Rejected):
        raise ValueError(f"--to {text}: not epoch seconds and not RFC 3339")
    return event.time


def _shown(time: float) -> str:
    try:
        return datetime.datetime.fromtimestamp(time, datetime.UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # beyond the calendar: event times may be any finite number
        return str(time)


def _name(name: Any) -> str:
    return name if isinstance(name, str) else repr(name)


if __name__ == "__main__":
    sys.exit(main())
