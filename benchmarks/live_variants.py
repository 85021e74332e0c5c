"""The live job with another operator in the cells' place, as a process of its own: what `benchmarks.live` measures.

    python -m benchmarks.live_variants cells|single|counter ARGUMENTS OF beam_pipelines.live
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import apache_beam as beam
from apache_beam.coders import VarIntCoder
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec

from beam_pipelines import live
from beam_pipelines.learn import Batch, check_runner, typed
from beam_pipelines.serve import Serve
from beam_pipelines.units import BEAT, Unit, unit
from benchmarks.stream_operator import record


class Count(beam.PTransform):
    """`Serve` with a number for a cell: the same records, one an event, and no more."""

    def __init__(self, *ignored: Any, **also: Any) -> None:
        super().__init__()

    def expand(self, keyed: Any) -> Any:
        check_runner(keyed)
        return typed(keyed, tuple[str, Batch]) | "Count" >> beam.ParDo(_CountFn()).with_output_types(Unit)


class _CountFn(beam.DoFn):
    COUNT = ReadModifyWriteStateSpec("count", VarIntCoder())

    def process(self, element: tuple[str, Batch], count: Any = beam.DoFn.StateParam(COUNT)) -> Iterator[Unit]:
        key, batch = element
        number = count.read() or 0
        outputs = [record(event, number + place) for place, (_, event) in enumerate(batch, 1)]
        count.write(number + len(batch))
        yield unit(key, 0, [] if key == BEAT else outputs, [], None, False)


class Single(Serve):
    """`Serve` fed event by event, without the source's grouping by key."""

    def expand(self, keyed: Any) -> Any:
        return super().expand(keyed | "Single" >> beam.FlatMap(_apart).with_output_types(tuple[str, Batch]))


def _apart(element: tuple[str, Batch]) -> Iterator[tuple[str, Batch]]:
    key, batch = element
    yield from ((key, [event]) for event in batch) if batch else [element]


VARIANTS: dict[str, Callable[..., Any]] = {"cells": Serve, "single": Single, "counter": Count}


def main(arguments: list[str]) -> int:
    """Run the live command with the named operator."""
    with mock.patch.object(live, "Serve", VARIANTS[arguments[0]]):
        return live.main(arguments[1:])


if __name__ == "__main__":
    # By its real name: what a worker unpickles must not be of `__main__`.
    from benchmarks import live_variants

    sys.exit(live_variants.main(sys.argv[1:]))
