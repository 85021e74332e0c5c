"""What a run put out, as a table for the terminal, counted from its files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

_KEYS = 12  # rows of the table; the rest is one line


class _Line(msgspec.Struct):
    key: str | None = None
    loss: float | None = None
    kind: str | None = None
    stage: str | None = None


def _lines(path: Path) -> Iterator[_Line]:
    decode = msgspec.json.Decoder(_Line).decode
    with open(path, "rb") as file:
        for line in file:
            yield decode(line)


def table(output: Path, seconds: float, events: int, counted: Mapping[str, int]) -> str:
    """Return the summary of a run: its files, its pace, and what was counted and put into no file.

    `events` is 0 where the workers are in other processes, which tell no number here.
    """
    predicted = Counter(line.key for line in _lines(output / "predictions.jsonl"))
    answered: Counter[str | None] = Counter()
    losses: dict[str | None, list[float]] = {}
    for line in _lines(output / "outcomes.jsonl"):
        answered[line.key] += 1
        if line.loss is not None:
            losses.setdefault(line.key, []).append(line.loss)
    orphans = Counter(line.kind for line in _lines(output / "orphans.jsonl"))
    rejected = Counter(line.stage for line in _lines(output / "rejected.jsonl"))
    rows: list[tuple[str, ...]] = [("key", "predictions", "outcomes", "mean loss")]
    keys = sorted(predicted | answered, key=lambda key: (-predicted[key], str(key)))
    for key in keys[:_KEYS]:
        rows.append((str(key), f"{predicted[key]:,}", f"{answered[key]:,}", _mean(losses.get(key, []))))
    if len(keys) > _KEYS:
        rest = keys[_KEYS:]
        counts = [f"{sum(found[key] for key in rest):,}" for found in (predicted, answered)]
        rows.append((f"{len(rest):,} more", *counts, _mean([loss for key in rest for loss in losses.get(key, [])])))
    everything = [loss for found in losses.values() for loss in found]
    rows.append((f"all {len(keys):,}", f"{predicted.total():,}", f"{answered.total():,}", _mean(everything)))
    rate = f"{events:,} events in {seconds:.1f} s, {events / seconds:,.0f} a second" if events else f"{seconds:.1f} s"
    return "\n".join([
        *_aligned(rows),
        f"orphans: {_parts(orphans)}; rejected: {_parts(rejected)}",
        *([", ".join(f"{name}: {count:,}" for name, count in sorted(counted.items()))] if counted else []),
        rate,
    ])  # fmt: skip


def _mean(losses: list[float]) -> str:
    return f"{math.fsum(losses) / len(losses):.4g}" if losses else "-"


def _parts(counts: Counter[str | None]) -> str:
    parts = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items(), key=str))
    return parts or "none"


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        yield "  ".join([name.ljust(first), *map(str.rjust, cells, widths)])
