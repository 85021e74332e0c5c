"""`python -m benchmarks [name...]`: run, print a table, write JSON."""

from __future__ import annotations

from benchmarks import measure

measure.one_thread()  # before numpy and scikit-learn start their threads

import argparse  # noqa: E402
import dataclasses  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from pathlib import Path  # noqa: E402

from benchmarks import costs, page, summary  # noqa: E402
from benchmarks.catalogue import found, measured  # noqa: E402


def main(argv: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all."""
    known = found()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(known)}; all if none is given")
    parser.add_argument("--turns", type=int, default=7, help="turns that the contestants take (7)")
    parser.add_argument("--plot", type=Path, help="draw the curves of `linear_cost` to this file; the page shows "
                                                  f"{page.CURVES} beside its figures (needs matplotlib)")
    parser.add_argument("--json", type=Path, help="keep the figures in this file; those of other benchmarks stay in it")
    parser.add_argument("--page", type=Path, help="write what --json keeps as a page with a plot (needs matplotlib)")
    parser.add_argument("--readme", type=Path, help="put the short table of what --json keeps between its marks")
    parser.add_argument("--report", action="store_true", help="measure nothing: page and table from what --json keeps")
    args = parser.parse_args(argv)
    unknown = [name for name in args.names if name not in known]
    if unknown:
        print(f"benchmarks: no benchmark is called {unknown[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    machine = measure.machine()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    kept = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    for name in [] if args.report else args.names or known:
        begun = measure.machine()
        rows = measured(name, args.turns)
        for row in rows:
            print(_line(row), flush=True)
        kept[name] = {"machine": begun, "turns": args.turns, "rows": [dataclasses.asdict(row) for row in rows]}
        if args.json:  # after each: a long run that is stopped has not run for nothing
            args.json.parent.mkdir(parents=True, exist_ok=True)
            args.json.write_text(json.dumps(kept, indent=1) + "\n")
        if args.plot and name == "linear_cost":
            costs.plot(rows, args.plot)
    if args.page:
        page.write({name: kept[name] for name in known if name in kept}, args.page)
    if args.readme:
        summary.update(kept, args.readme)
    return 0


def _line(row: measure.Row) -> str:
    parts = [f"{row.what:<72}"]
    for peer, ratio in row.ratios.items():
        low, high = row.spread.get(peer, (ratio, ratio))
        parts.append(f"{ratio:6.1f}x {peer} ({low:.1f} to {high:.1f})")
    parts += [f"{name} {value:.3g} us" for name, value in row.micros.items()]
    parts += [f"{name} {value:.1f}" for name, value in row.figures.items()]
    parts += [f"[{name}: {reason}]" for name, reason in row.skipped.items()]
    return "  ".join(parts)


if __name__ == "__main__":
    raise SystemExit(main())
