"""Cost must stay linear: a step against the width of a record, the size of a model, the number of labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pa_river
from benchmarks import data
from benchmarks.measure import Contestant, Row, compare

WIDTHS = (10, 30, 100, 300, 1000, 3000, 10_000)
NAMES = (10**2, 10**3, 10**4, 10**5, 10**6, 10**7)
LABELS = (2, 5, 10, 30, 100, 300, 1000)
#: What a curve is drawn over: the word that its rows begin with -> the axis.
AXES = {
    "width": "features a record", "names": "names in the model, 100 features a record",
    "labels": "labels, 100 features",
}


def _steps(step: Callable[..., Any], records: list[tuple[Any, Any]], units: int) -> Contestant:
    """Take a step a record; what is reported is the time a unit."""
    def prepare() -> Callable[[], int]:
        def run() -> int:
            for x, y in records:
                step(x, y)
            return len(records) * units
        return run
    return prepare


def linear_cost(turns: int) -> list[Row]:
    """Time a step, over what it should be proportional to: features, and features times labels. Flat is linear."""
    rows = []
    for width in WIDTHS:
        records = data.records(max(20, 40_000 // width), width)
        rows.append(_row("width", width, "a feature", pa_river.PAClassifier().step, records, width, turns))
    for names in NAMES:
        model = pa_river.PAClassifier()
        for begin in range(0, names, 1000):
            model.learn_one({f"feature{j}": 1.0 for j in range(begin, min(begin + 1000, names))}, begin % 2000 == 0)
        stride = max(1, names // 100)
        records = [({f"feature{(j * stride + i * 7) % names}": 1.0 for j in range(100)}, i % 2 == 0)
                   for i in range(500)]
        rows.append(_row("names", names, "a feature", model.step, records, 100, turns))
    for labels in LABELS:
        labelled = [(x, number % labels) for number, (x, _) in enumerate(data.records(max(100, 1000 // labels), 100))]
        step = pa_river.PAMulticlass(labels=list(range(labels))).step
        for x, y in labelled:
            step(x, y)
        rows.append(_row("labels", labels, "a feature and label", step, labelled, 100 * labels, turns))
    return rows


def _row(
    axis: str, size: int, unit: str, step: Callable[..., Any], records: list[tuple[Any, Any]], units: int, turns: int,
) -> Row:
    row = compare(f"step, time {unit}, {axis} {size}", "ours", {"ours": _steps(step, records, units)}, turns)
    row.figures[axis] = size
    row.figures["us a step"] = row.micros["ours"] * units
    return row


def plot(rows: list[Row], path: Path) -> None:
    """Draw time a step over each of the three sizes, with the line of proportion through the last point."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(AXES), figsize=(12, 3.6), layout="constrained")
    for panel, (axis, label) in zip(axes, AXES.items()):
        points = [(row.figures[axis], row.figures["us a step"]) for row in rows if axis in row.figures]
        sizes, micros = [size for size, _ in points], [micro for _, micro in points]
        panel.loglog(sizes, micros, "o-", label="measured")
        flat = axis == "names"  # a look-up in a larger model costs the same, but for the cache
        line = [micros[0] for _ in sizes] if flat else [micros[-1] * size / sizes[-1] for size in sizes]
        panel.loglog(sizes, line, "--", color="grey", label="constant" if flat else "proportional")
        panel.set_xlabel(label)
        panel.set_ylabel("microseconds a step")
        panel.legend(frameon=False)
    matplotlib.rcParams["svg.hashsalt"] = "pa_river"  # the same file for the same figures
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


BENCHMARKS = {"linear_cost": linear_cost}
