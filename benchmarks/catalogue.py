"""Which benchmarks there are, and how one is measured: in a process of its own."""

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import warnings
from collections.abc import Callable

from benchmarks.measure import Row

#: A benchmark joins by its module's `BENCHMARKS`: name -> function(turns) -> rows. The operator's needs Beam.
MODULES = (
    "online", "streams", "batches", "labels", "states", "costs", "kernels", "sequences", "odm", "waiting",
)


def found() -> dict[str, Callable[[int], list[Row]]]:
    """Return every benchmark by name."""
    names = [*MODULES, "stream_operator"] if importlib.util.find_spec("apache_beam") else MODULES
    modules = [importlib.import_module(f"benchmarks.{name}") for name in names]
    return {name: function for module in modules for name, function in module.BENCHMARKS.items()}


def measured(name: str, turns: int) -> list[Row]:
    """Return the rows of a benchmark, taken in a process of its own: the heap that others leave slows small steps."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(rows, (name, turns))


def rows(name: str, turns: int) -> list[Row]:
    """Measure in this process."""
    warnings.simplefilter("ignore")  # scikit-learn announces what it will rename
    return found()[name](turns)
