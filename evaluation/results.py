"""What an experiment gives back, and how it is written down: a page of markdown, its plots, one index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass
class Row:
    """A published figure or claim beside ours."""

    what: str
    published: str
    ours: str
    #: True: reached; False: not reached; None: nothing to reach, shown for the reader
    reached: bool | None = None
    note: str = ""


@dataclass
class Result:
    """One experiment's outcome."""

    name: str
    title: str
    text: str
    rows: list[Row]
    #: file name without ending -> a matplotlib figure
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A runnable experiment: what the command calls it, one line of help, and the function that runs it."""

    name: str
    help: str
    run: Callable[[Path], Result]


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield the items under a progress bar on the terminal."""
    from tqdm import tqdm

    yield from tqdm(items, desc=what, total=total, leave=False, dynamic_ncols=True)


def write(result: Result, output: Path) -> Path:
    """Write the page of a result and its plots into `output`; return the page's path."""
    output.mkdir(parents=True, exist_ok=True)
    lines = [f"# {result.title}", "", result.text.strip(), ""]
    if result.rows:
        lines += ["| what | published | ours | state |", "| --- | --- | --- | --- |"]
        lines += [f"| {row.what} | {row.published} | {row.ours} | {_state(row)} |" for row in result.rows]
        lines.append("")
    for name, figure in result.figures.items():
        figure.savefig(output / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
        lines += [f"![{name}]({name}.svg)", ""]
    page = output / f"{result.name}.md"
    page.write_text("\n".join(lines), encoding="utf-8")
    return page


def _state(row: Row) -> str:
    word = {True: "reached", False: "**not reached**", None: ""}[row.reached]
    return "; ".join(part for part in (word, row.note) if part)


def table(head: list[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a markdown table."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def new_figure(width: float = 9.0, height: float = 3.6, columns: int = 1) -> tuple[Any, list[Any]]:
    """Return a matplotlib figure that needs no display and gives the same bytes each time, and its axes."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "pa_river"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, columns, figsize=(width, height), squeeze=False)
    pyplot.close(figure)  # kept by the caller, not by pyplot
    return figure, list(axes[0])
