"""How far an in-process run is: counts kept by the DoFns, read by a bar on the terminal.

A module's own counters, because FnApiRunner's workers are threads of this process while its `run()` blocks and tells
nothing. Where the workers are other processes nothing is counted here, and no result depends on it.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

_counts: dict[str, int] = {}
_totals: dict[str, int] = {}


def step(name: str, count: int) -> None:
    """Count some more; a count that two threads lose between them is not worth a lock."""
    _counts[name] = _counts.get(name, 0) + count


def count(name: str) -> int:
    """How many were counted since the bar began."""
    return _counts.get(name, 0)


def total(name: str, count: int) -> None:
    """Say how many there will be."""
    _totals[name] = count


@contextmanager
def bar(name: str, what: str, unit: str, every: float = 0.2) -> Iterator[None]:
    """Show the count of `name` on stderr while the body runs; silent where stderr is no terminal."""
    _counts.pop(name, None)
    _totals.pop(name, None)
    done = threading.Event()
    size = shutil.get_terminal_size()  # 80 by 24 where a terminal tells no size, on which tqdm would show nothing
    with tqdm(
        desc=what, unit=unit, unit_scale=True, disable=None, leave=False, ncols=size.columns, nrows=size.lines
    ) as shown:

        def show() -> None:
            while not done.wait(every):
                shown.total = _totals.get(name)
                shown.update(_counts.get(name, 0) - shown.n)

        watcher = threading.Thread(target=show, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
