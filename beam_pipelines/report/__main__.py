"""`python -m beam_pipelines.report DIR`: write the page about a run again, from its output files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from beam_pipelines.report import ReportError, write_report


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this command."""
    parser = argparse.ArgumentParser(
        prog="python -m beam_pipelines.report",
        description=(
            "Write DIR/report.html from the output files of a run: one page that opens offline, with error over time "
            "against simple rules, by key and segment, label delays, orphans, rejected records, drift and sizes."
        ),
        epilog="Exit status: 0 done, 2 if DIR is not the directory of a finished run.",
    )
    parser.add_argument(
        "dir",
        metavar="DIR",
        type=Path,
        help=(
            "where a run has left predictions.jsonl, outcomes.jsonl, "
            "rejected.jsonl, orphans.jsonl, drift.jsonl and, if it keeps models, snapshots.db"
        ),
    )
    parser.add_argument("--title", help="what the run is called on the page (default: the name of DIR)")
    parser.add_argument("--about", default="", help="one sentence for a stranger: what is predicted")
    parser.add_argument("--unit", default="", help="unit of a regression's target, such as minutes")
    parser.add_argument("--quiet", action="store_true", help="no progress on a terminal")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, write, say where; 2 on a directory that is no finished run."""
    args = build_parser().parse_args(argv)
    try:
        path = write_report(args.dir, progress=not args.quiet, title=args.title, about=args.about, unit=args.unit)
    except (ReportError, OSError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
