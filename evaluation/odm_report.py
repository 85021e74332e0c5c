"""Tables and plots of the incremental machine's experiment, from the measured partitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluation.results import Result, Row, new_figure, table

Records = Mapping[str, Sequence[Mapping[str, Any]]]

_METHODS = {
    "fast": "engine chosen by size and rank", "path": "the paper's path", "warm": "warm retraining",
    "cold": "cold retraining",
}


def report(records: Records, sizes: Sequence[Mapping[str, float]], how: str) -> Result:
    """Return the page: `records` maps a set to its partitions, as `odm_protocol.run` returns them."""
    parts = [
        how,
        "## Time per change\n\nMilliseconds of thread CPU time per change, mean and standard deviation over the "
        "partitions of the mean over a partition's changes. SID takes one instance a change, BID five. s: CPU "
        "seconds for each kind of retraining on a partition.",
        _times(records),
        "## Speedup over retraining\n\nRatio of the same changes' times in the same run; mean and standard deviation "
        "over partitions.",
        _speedups(records),
        "## Accuracy\n\nPercent on the test part, mean and standard deviation.",
        _accuracies(records),
        "## Exactness\n\nThe largest over partitions, relative to the largest multiplier: against the first solution "
        "after all was added and deleted again (identity), and between the two engines with all added (agreement); and "
        "the largest residual.",
        _exactness(records),
    ]
    figures: dict[str, Any] = {
        "odm-cumulative": _cumulative(records), "odm-accuracy": _boxes(records),
    }
    if sizes:
        figures["odm-size"] = _sizes(sizes)
    return Result("incremental-odm", "Incremental and decremental optimal margin distribution machine",
                  "\n\n".join(part.strip() for part in parts), _claims(records), figures)


def ratio(one: Mapping[str, Any], word: str, slow: str, fast: str) -> float:
    """Return how many times longer `slow` takes than `fast` on one partition."""
    ms = one[word]["ms"]
    return float(np.mean(ms[slow]) / np.mean(ms[fast]))


def _spread(values: Sequence[float], digits: int = 3) -> str:
    mean = float(np.mean(values))
    return f"{_short(mean, digits)} ± {_short(float(np.std(values)), 2)}"


def _short(value: float, digits: int) -> str:
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{places}f}" if abs(value) < 10**digits else f"{value:,.0f}"


def _mean(one: Mapping[str, Any], word: str, method: str) -> float:
    return float(np.mean(one[word]["ms"][method]))


def _times(records: Records) -> str:
    rows = []
    for name, all_ in records.items():
        first = all_[0]
        rows.append([
            name, len(all_), first["m"], first["d"], round(float(np.mean([one["outside"] for one in all_]))),
            ", ".join(sorted({f"{one['lam']:g} / {one['theta']:g}" for one in all_})),
            ", ".join(sorted({one["single"]["engine"] for one in all_})),
            ", ".join(sorted({f"{one['seconds']:g}" for one in all_})),
            *(_spread([_mean(one, "single", method) for one in all_]) for method in _METHODS),
            *(_spread([_mean(one, "batch", method) for one in all_]) for method in _METHODS),
        ])
    return table([
        "set", "partitions", "m", "d", "S", "lam / theta", "engine", "s", "SID", "SID path", "warm SR", "SR-ODM", "BID",
        "BID path", "warm BR", "BR-ODM",
    ], rows)


def _speedups(records: Records) -> str:
    pairs = [
        ("single", "cold", "fast"), ("single", "warm", "fast"), ("single", "cold", "path"), ("single", "warm", "path"),
        ("batch", "cold", "fast"), ("batch", "warm", "fast"), ("batch", "cold", "path"),
    ]
    rows = []
    for name, all_ in records.items():
        capped = max(one["single"]["capped"]["cold"] for one in all_)
        bid = [5.0 * _mean(one, "single", "fast") / _mean(one, "batch", "fast") for one in all_]
        paths = [5.0 * _mean(one, "single", "path") / _mean(one, "batch", "path") for one in all_]
        rows.append([
            name, *(_spread([ratio(one, *pair) for one in all_]) for pair in pairs), _spread(bid, 2),
            _spread(paths, 2), f"{_sweeps(all_, 'cold'):.0f}" + (" (capped)" if capped else ""),
            f"{_sweeps(all_, 'warm'):.0f}",
        ])
    means = ["geometric mean"]
    for pair in pairs:
        means.append(_short(_geometric([_average(all_, *pair) for all_ in records.values()]), 3))
    rows.append([*means, "", "", "", ""])
    return table([
        "set", "SID / SR", "SID / warm", "SID path / SR", "SID path / warm", "BID / BR", "BID / warm", "BID path / BR",
        "BID over SID", "BID path over SID path", "cold sweeps", "warm sweeps",
    ], rows)


def _sweeps(partitions: Sequence[Mapping[str, Any]], kind: str) -> float:
    return float(np.mean([one["single"]["sweeps"][kind] for one in partitions]))


def _average(partitions: Sequence[Mapping[str, Any]], word: str, slow: str, fast: str) -> float:
    return float(np.mean([ratio(one, word, slow, fast) for one in partitions]))


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _accuracies(records: Records) -> str:
    rows = []
    for name, all_ in records.items():
        columns = [[one["accuracy"][key] for one in all_] for key in ("odm", "retrained", "odm 100", "midsvm 100")]
        rows.append([name, *(f"{np.mean(column):.1f} ± {np.std(column):.1f}" for column in columns),
                     f"{sum(one['accuracy']['midsvm retrained'] for one in all_):.0f}"])
    return table(["set", "ID-ODM, all added", "retrained ODM", "ID-ODM, 100 added", "MID-SVM, 100 added",
                  "MID-SVM trained again"], rows)


def _exactness(records: Records) -> str:
    rows = []
    for name, all_ in records.items():
        both = [one[word] for one in all_ for word in ("single", "batch")]
        rows.append([name, *(f"{max(one[key] for one in both):.0e}" for key in ("identity", "agreement", "residual"))])
    return table(["set", "identity", "agreement", "residual"], rows)


def _claims(records: Records) -> list[Row]:
    def least(slow: str, fast: str) -> tuple[float, str]:
        return min((_average(all_, "single", slow, fast), name) for name, all_ in records.items())

    def geometric(slow: str, fast: str) -> float:
        return _geometric([_average(all_, "single", slow, fast) for all_ in records.values()])

    path, paths = least("cold", "path"), [_average(all_, "single", "cold", "path") for all_ in records.values()]
    cold, warm = least("cold", "fast"), least("warm", "fast")
    few = {name: _average(all_, "single", "cold", "fast") for name, all_ in records.items() if all_[0]["d"] <= 4}
    apart = max(abs(float(np.mean([one["accuracy"]["odm"] - one["accuracy"]["retrained"] for one in all_])))
                for all_ in records.values())
    margins = [float(np.mean([one["accuracy"]["odm 100"] - one["accuracy"]["midsvm 100"] for one in all_]))
               for all_ in records.values()]
    wins, losses = sum(margin > 0.0 for margin in margins), sum(margin < 0.0 for margin in margins)
    fastest = least("cold", "fast")
    mean = float(np.mean([_average(all_, "single", "cold", "fast") for all_ in records.values()]))
    rows = [
        Row("speedup over retraining, least set", "> 4", f"{fastest[0]:.1f} ({fastest[1]})", fastest[0] > 4.0,
            f"with the paper's path alone {path[0]:.1f} ({path[1]})"),
        Row("speedup over retraining, mean of sets", "9.1", f"{mean:.0f}", mean >= 9.1,
            f"with the paper's path alone {np.mean(paths):.1f}"),
        Row("over cold retraining, geometric mean", "100 (our goal)", f"{geometric('cold', 'fast'):.0f}",
            geometric("cold", "fast") >= 100.0),
        Row("over warm retraining, geometric mean", "40 (our goal)", f"{geometric('warm', 'fast'):.0f}",
            geometric("warm", "fast") >= 40.0),
        Row("over cold retraining, least set", "8 (our goal)", f"{cold[0]:.1f} ({cold[1]})", cold[0] >= 8.0),
        Row("over warm retraining, least set", "4 (our goal)", f"{warm[0]:.1f} ({warm[1]})", warm[0] >= 4.0),
    ]
    if few:
        rows.append(Row("over cold retraining, sets of 4 features or fewer", "1,000 (our goal)",
                        ", ".join(f"{name} {value:,.0f}" for name, value in few.items()), min(few.values()) >= 1000.0))
    rows += [
        Row("accuracy against retraining", "nearly none lost", f"at most {apart:.2f} points apart", apart <= 0.1),
        Row("accuracy above MID-SVM, 100 added", "most sets", f"{wins} of {len(records)} sets",
            2 * wins > len(records), f"below on {losses}; {np.mean(margins):+.1f} points on average"),
    ]
    return rows


def _cumulative(records: Records) -> Any:
    names = list(records)
    columns = min(4, len(names))
    deep = math.ceil(len(names) / columns)
    figure, _ = new_figure(3.0 * columns, 2.5 * deep)
    figure.clear()
    for place, name in enumerate(names):
        axis = figure.add_subplot(deep, columns, place + 1)
        for word, style in (("single", "-"), ("batch", "--")):
            one = records[name][0][word]
            instances = one["changes"] * (1 if word == "single" else 5)
            for color, method in zip(("C2", "C0", "C1", "C3"), _METHODS):
                values = np.array(one["ms"][method]) / 1e3
                # a sample of the changes stands for all of them
                at = np.linspace(0.0, instances, len(values) + 1)[1:]
                label = _METHODS[method] if word == "single" else None
                axis.plot(at, np.cumsum(values) * one["changes"] / len(values), style, color=color, label=label, lw=1.0)
        axis.set_yscale("log")
        axis.set_title(name, fontsize=9)
        axis.tick_params(labelsize=7)
    figure.axes[0].legend(fontsize=6)
    figure.supxlabel("instances added, then deleted (solid: one a change, dashed: five)", fontsize=9)
    figure.supylabel("cumulative CPU seconds", fontsize=9)
    figure.tight_layout()
    return figure


def _boxes(records: Records) -> Any:
    figure, (axis,) = new_figure(max(6.0, 0.8 * len(records)), 3.6)
    axis.boxplot([[one["accuracy"]["odm"] for one in all_] for all_ in records.values()])
    retrained = [np.mean([one["accuracy"]["retrained"] for one in all_]) for all_ in records.values()]
    axis.plot(range(1, len(records) + 1), retrained, "rD", ms=4, label="retrained, mean")
    axis.set_xticks(range(1, len(records) + 1), list(records), rotation=45, ha="right", fontsize=8)
    axis.set_ylabel("test accuracy of ID-ODM, %")
    axis.legend(fontsize=8)
    return figure


def _sizes(sizes: Sequence[Mapping[str, float]]) -> Any:
    figure, (axis,) = new_figure(6.0, 3.8)
    for color, method in zip(("C2", "C0", "C1", "C3"), _METHODS):
        axis.loglog([point["m"] for point in sizes], [point[method] for point in sizes], "o-", color=color, ms=3,
                    label=_METHODS[method])
    held = [int(point["m"]) for point in sizes]
    axis.set_xticks(held, [f"{m:,}" for m in held])
    axis.set_xticks([], minor=True)
    axis.set_xlabel("instances held, m")
    axis.set_ylabel("CPU ms a change")
    axis.legend(fontsize=8)
    return figure
