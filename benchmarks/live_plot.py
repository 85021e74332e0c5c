"""The two pictures of docs/live.md, from the figures that `benchmarks.live` kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw(figures: dict[str, Any], folder: Path) -> None:
    """Write pace.svg and soak.svg; what was not measured is left out."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "pa_river", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})
    if "pace" in figures:
        _pace(figures["pace"]["figures"], folder / "pace.svg")
    if "soak" in figures:
        _soak(figures["soak"]["figures"], folder / "soak.svg")


def _pace(rows: list[dict[str, Any]], path: Path) -> None:
    """CPU, which a busy machine blurs less than the pace itself: the workers' part, and the runner's on top."""
    from matplotlib import pyplot

    runners = list(dict.fromkeys(row["runner"] for row in rows))
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    figure, axes = pyplot.subplots(1, len(runners), figsize=(9.0, 3.4), squeeze=False)
    for axis, runner in zip(axes[0], runners):
        own = [row for row in rows if row["runner"] == runner]
        keys = sorted({row["keys"] for row in own})
        for row in own:
            variant = variants.index(row["variant"])
            place = keys.index(row["keys"]) + (variant - (len(variants) - 1) / 2) / (len(variants) + 1)
            width, colour = 0.9 / (len(variants) + 1), f"C{variant}"
            axis.bar(place, row["worker_us"], width, color=colour)
            axis.bar(place, row["runner_us"] or 0.0, width, bottom=row["worker_us"], color=colour, alpha=0.45)
        axis.set(title=runner, xlabel="keys", xticks=range(len(keys)), xticklabels=[f"{number:,}" for number in keys])
    for variant, name in enumerate(variants):
        axes[0][-1].bar(0, 0, color=f"C{variant}", label=name)
    axes[0][0].set_ylabel("CPU a record, us (pale: the runner's)")
    axes[0][-1].legend()
    _save(figure, path)


def _soak(found: dict[str, Any], path: Path) -> None:
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6.5, 3.2))
    seconds = [row[0] / 60 for row in found["series"]]
    for place, name in ((1, "our worker"), (2, "Prism"), (3, "driver")):
        axis.plot(seconds, [row[place] for row in found["series"]], label=name)
    axis.set(xlabel="minutes", ylabel="resident MB", ylim=(0, None))
    axis.legend()
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
