"""`python -m evaluation.paper all`: every figure and table of the documents, regenerated beside the published one."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from evaluation import (
    anomalies, boundaries, digits, drifting, gaussians, letters, misprint, regressions, sequences, teaching, texts,
    topics,
)
from evaluation.results import Experiment, Result, table, write

MODULES = (
    gaussians, digits, teaching, misprint, boundaries, regressions, anomalies, topics, letters, texts, sequences,
    drifting,
)
EXPERIMENTS: list[Experiment] = [one for module in MODULES for one in module.EXPERIMENTS]


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    listed = "\n".join(f"  {one.name:22s} {one.help}" for one in EXPERIMENTS)
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.paper", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Regenerate the documents' experiments: our numbers beside the published ones, and plots.",
        epilog=f"experiments:\n{listed}\n\nexamples:\n  python -m evaluation.paper all --data ../shared/data\n"
               "  python -m evaluation.paper robustness effect-of-C --output /tmp/paper",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="experiments to run, or `all`")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--output", type=Path, default=Path("docs/paper"), help="where the pages go")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiments that are named; 2 for an unknown name or a missing folder."""
    args = build_parser().parse_args(argv)
    known = {one.name: one for one in EXPERIMENTS}
    unknown = [name for name in args.names if name != "all" and name not in known]
    if unknown:
        print(f"evaluation.paper: no experiment is called {unknown[0]!r}; there are: {', '.join(known)}, all",
              file=sys.stderr)
        return 2
    if not args.data.is_dir():
        print(f"evaluation.paper: {args.data} is no folder; --data names the one with the data sets", file=sys.stderr)
        return 2
    chosen = list(known.values()) if "all" in args.names else [known[name] for name in dict.fromkeys(args.names)]
    for one in chosen:
        begun = time.perf_counter()
        result = one.run(args.data)
        page = write(result, args.output)
        print(f"{one.name}: {_summary(result)}; {time.perf_counter() - begun:.0f} s; {page}")
    _write_index(args.output)
    return 0


def _summary(result: Result) -> str:
    reached = [row.reached for row in result.rows if row.reached is not None]
    return f"{sum(reached)} of {len(reached)} rows reached"


def _write_index(output: Path) -> None:
    there = {page.stem for page in output.glob("*.md")}
    rows = [(f"[{one.name}]({one.name}.md)" if one.name in there else f"{one.name} (not run yet)", one.help)
            for one in EXPERIMENTS]
    text = "\n".join(["# The documents' results, regenerated", "",
                      "`python -m evaluation.paper all --data ../shared/data` writes these pages anew.", "",
                      table(["page", "what"], rows), ""])
    (output / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
