"""`python -m evaluation.odm --data ../shared/data`: the incremental machine against retraining and MID-SVM."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evaluation import odm_data, odm_protocol, odm_report
from evaluation.results import write

#: The set on whose subsets the cost by size is measured, with parameters as tuned on it.
BY_SIZE = ("a9a", 10.0, 0.1)


def build_parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m evaluation.odm", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Add and delete instances of LIBSVM sets with the incremental machine:\n"
                    "times against cold and warm retraining, accuracy against retraining and MID-SVM.",
        epilog="examples:\n  python -m evaluation.odm --data ../shared/data\n"
               "  python -m evaluation.odm --data ../shared/data --sets heart,sonar --partitions 2 --output /tmp/odm\n"
               "  python -m evaluation.odm --report   # tables and plots again, from what was measured before\n"
               "What --output holds is not measured again: a run that was stopped goes on with the next partition.",
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--output", type=Path, default=Path("docs/odm"), help="folder of page, plots, measurements")
    parser.add_argument("--sets", default=",".join(odm_data.SETS), help="names, comma-separated")
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000, help="larger sets are cut to this many rows at random")
    parser.add_argument("--changes", type=int, default=400, help="varying instances added and deleted at most")
    parser.add_argument("--seconds", type=float, default=20.0,
                        help="CPU time for each kind of retraining on a partition; beyond it an even sample is taken")
    parser.add_argument("--sizes", default="250,500,1000,2000,4000", help="subset sizes for cost by size; empty: none")
    parser.add_argument("--again", action="store_true", help="measure the sets afresh, and forget what was measured")
    parser.add_argument("--report", action="store_true", help="measure nothing; the page from measurements.json")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and report; 2 for wrong arguments."""
    args = build_parser().parse_args(argv)
    names = [name for name in args.sets.split(",") if name]
    unknown = [name for name in names if name not in odm_data.SETS]
    wrong = (
        f"no set is called {unknown[0]!r}; there are: {', '.join(odm_data.SETS)}" if unknown else
        "--partitions, --rows and --changes must be positive" if min(args.partitions, args.rows, args.changes) < 1 else
        f"{args.data} is no folder; --data names the one with the data sets"
        if not args.report and not (args.data / "libsvm").is_dir() else ""
    )
    if wrong:
        print(f"evaluation.odm: {wrong}", file=sys.stderr)
        return 2
    store = args.output / "measurements.json"
    measured: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {"sets": {}, "sizes": []}
    if not args.report:
        _one_thread()
        args.output.mkdir(parents=True, exist_ok=True)
        for name in names:
            done = [] if args.again else measured["sets"].get(name, [])
            for partitions in _measure(args, name, done):
                measured["sets"][name] = partitions
                measured["how"] = _how(args)
                store.write_text(json.dumps(measured))
        if args.sizes:
            measured["sizes"] = _by_size(args)
            store.write_text(json.dumps(measured))
    if not measured["sets"]:
        print(f"evaluation.odm: nothing was measured into {store} yet", file=sys.stderr)
        return 2
    order = [name for name in odm_data.SETS if name in measured["sets"]]
    how = measured.get("how", "")
    result = odm_report.report({name: measured["sets"][name] for name in order}, measured["sizes"], how)
    print(f"{len(order)} sets; {write(result, args.output)}")
    return 0


def _measure(args: argparse.Namespace, name: str, done: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield what was measured on a set after each partition, those that were done before among it."""
    if len(done) >= args.partitions:
        return
    X, y = odm_data.read(args.data, name)
    partitions = list(done)
    for seed in range(len(done), args.partitions):
        begun = time.perf_counter()
        split = odm_data.partition(X, y, seed, args.rows)
        parameters = odm_protocol.tune(split)
        one = odm_protocol.run(split, *parameters, args.changes, args.seconds)
        partitions.append({**one, "seconds": args.seconds})
        print(f"{name} {seed}: m={partitions[-1]['m']} lam, theta, C={parameters} "
              f"cold {odm_report.ratio(partitions[-1], 'single', 'cold', 'fast'):.1f}x "
              f"warm {odm_report.ratio(partitions[-1], 'single', 'warm', 'fast'):.1f}x; "
              f"{time.perf_counter() - begun:.0f} s", flush=True)
        yield partitions


def _how(args: argparse.Namespace) -> str:
    return _HOW.format(
        tuned=odm_protocol.TUNED_ON, folds=odm_protocol.FOLDS, partitions=args.partitions, rows=args.rows,
        changes=args.changes, tolerance=odm_protocol.TOLERANCE, epochs=odm_protocol.EPOCHS, block=odm_protocol.BLOCK,
    )


_HOW = (
    "Protocol: features in [0, 1], 4:1 split, 75 % of the training part as history, RBF exp(-|x - z|^2 / d), lam and "
    "theta (and C of MID-SVM) from the paper's grids by accuracy in {folds}-fold cross-validation on the history, on "
    "at most {tuned:,} of its instances; {partitions} random partitions, or as many as the table says; sets of more "
    "than {rows:,} rows cut to that many. Up to {changes} varying instances are added and then deleted in the same "
    "order, one or five a change. Every method makes the same changes; retraining starts, for the warm one, from the "
    "exact multipliers before the change, keeps all kernel values, stops at a residual of {tolerance:g} or after "
    "{epochs} sweeps, and takes an even sample of the changes where all would need more than the seconds of the "
    "table. Thread CPU time, one BLAS thread, methods interleaved in blocks of {block} changes; a time includes the "
    "kernel values of what comes."
)


def _by_size(args: argparse.Namespace) -> list[dict[str, float]]:
    name, lam, theta = BY_SIZE
    X, y = odm_data.read(args.data, name)
    split = odm_data.partition(X, y, 0, args.rows)
    return odm_protocol.by_size(*split.history, [int(size) for size in args.sizes.split(",")], lam, theta)


def _one_thread() -> None:
    import threadpoolctl  # type: ignore[import-untyped]  # comes with scikit-learn

    threadpoolctl.threadpool_limits(1)


if __name__ == "__main__":
    sys.exit(main())
