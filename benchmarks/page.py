"""Figures kept in a JSON file -> a page with the tables, and a plot: what the README shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Beginning of a line's name -> beginning of the peer's name, the ratio that was aimed at.
GOALS: dict[str, tuple[str, float]] = {
    "predict + learn, d=10, shared": ("river", 40), "predict + learn, d=100, shared": ("river", 20),
    "predict + learn, ~100 of 1M, shared": ("river", 10), "predict + learn, d=10, fresh": ("river", 25),
    "predict + learn, d=100, fresh": ("river", 11), "predict + learn, ~100 of 1M, fresh": ("river", 9),
    "step, d=10, shared": ("river", 70), "step, d=100, shared": ("river", 35),
    "step, ~100 of 1M, shared": ("river", 12), "PARegressor predict + learn, d=10,": ("river", 40),
    "PARegressor predict + learn, d=100,": ("river", 25), "reference, predict + learn, d=10,": ("river", 4),
    "reference, predict + learn, d=100,": ("river", 1.8), "scaler and PA": ("river", 45),
    "learn_many, d=10,": ("", 25), "learn_many, d=100,": ("", 13), "learn_many, d=1000,": ("", 7),
    "learn_many, CSR": ("", 7), "multiclass, ": ("", 10), "decode + learn + encode": ("", 35),
    "bytes a weight": ("dict", 3.5), "PASequence, averaged, an epoch, 9 tags": ("", 6),
    "PASequence, averaged, an epoch": ("", 8), "kernel epoch": ("numpy", 6),
    "operator, 100 features": ("counter", 0.67),
}

#: What `--plot` draws for the page, beside its other plot.
CURVES = "linear-cost.svg"


def write(kept: dict[str, Any], page: Path) -> None:
    """Write the page and, beside it, the plot of the ratios, from what `--json` keeps: name -> its rows and machine."""
    lines = ["# Speed, as ratios", "", "`python -m benchmarks --json docs/speed/figures.json --page docs/speed.md` "
             "writes this page; see `--help` for single", "benchmarks. Each ratio is a peer's CPU time over ours, the "
             "median over turns that both took in one run, with its", "quartiles; one thread. The load is what the "
             "machine was busy with besides.", ""]
    for name, entry in kept.items():
        machine = entry["machine"]
        lines += [f"## {name}", "", f"{machine['cpu']}, {machine['cores']} cores, load {machine['load'][0]}; "
                  f"{entry['turns']} turns; Python {machine['python']}, numpy {machine['numpy']}, River "
                  f"{machine['river']}.", "", "| what | peer | ratio | quartiles | goal | us an example |",
                  "| --- | --- | ---: | --- | ---: | --- |"]
        for row in entry["rows"]:
            lines += _lines(row)
        lines.append("")
    lines += [f"![ratios]({page.stem}/ratios.svg)", ""]
    if (page.with_suffix("") / CURVES).exists():
        lines += [f"![a step over width, names and labels]({page.stem}/{CURVES})", ""]
    page.write_text("\n".join(lines), encoding="utf-8")
    plot(kept, page.with_suffix("") / "ratios.svg")


def goal(row: dict[str, Any], peer: str) -> float | None:
    """Return what was aimed at for a row over a peer; None where nothing was: our own other roads have no goal."""
    if peer.startswith("ours"):
        return None
    for begin, (whose, ratio) in GOALS.items():
        if row["what"].startswith(begin) and peer.startswith(whose):
            return ratio
    return None


def _lines(row: dict[str, Any]) -> Iterator[str]:
    times = ", ".join(f"{name} {value:.3g}" for name, value in row["micros"].items())
    figures = ", ".join(f"{name} {value:.4g}" for name, value in row["figures"].items())
    for peer, ratio in row["ratios"].items():
        low, high = row["spread"].get(peer, (ratio, ratio))
        aim = goal(row, peer)
        yield (f"| {row['what']} | {peer} | {ratio:.3g} | {low:.3g} to {high:.3g} | {'' if aim is None else aim} | "
               f"{'; '.join(filter(None, (times, figures)))} |")
    if not row["ratios"]:
        yield f"| {row['what']} | | | | | {'; '.join(filter(None, (times, figures)))} |"
    for peer, reason in row["skipped"].items():
        yield f"| {row['what']} | {peer} | skipped: {reason} | | | |"


def plot(kept: dict[str, Any], path: Path) -> None:
    """Draw the ratios with their quartiles, and the goals, on one logarithmic axis (needs matplotlib)."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    bars = [(f"{row['what']}: {peer}", ratio, row["spread"].get(peer, (ratio, ratio)), goal(row, peer))
            for entry in kept.values() for row in entry["rows"] for peer, ratio in row["ratios"].items()]
    figure, panel = pyplot.subplots(figsize=(11, 0.24 * len(bars) + 1.2), layout="constrained")
    for place, (_, ratio, (low, high), aim) in enumerate(bars):
        panel.barh(place, ratio, color="#0072b2" if aim is None or ratio >= aim else "#d55e00")
        panel.plot([low, high], [place, place], color="black", linewidth=1)
        if aim is not None:
            panel.plot([aim], [place], "|", color="black", markersize=9)
    panel.set_yticks(range(len(bars)), [name for name, *_ in bars], fontsize=7)
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.set_xlabel("times faster than the peer (CPU time); tick: the goal; orange: below it")
    path.parent.mkdir(parents=True, exist_ok=True)
    matplotlib.rcParams["svg.hashsalt"] = "pa_river"  # the same file for the same figures
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
