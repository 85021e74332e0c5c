"""Records out -> the files of one folder: JSON lines in the source's order, snapshots; written beside and renamed."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam

from beam_pipelines import runs
from beam_pipelines.learn import Learned
from pa_river import state
from pa_river.stream import OUTPUTS, Output, Rejected, Snapshot, SnapshotStore

#: The files that a run leaves, by what is in them.
LINES = tuple(output.tag for output in OUTPUTS if output is not Snapshot)
SNAPSHOTS = "snapshots.db"


class TooManyRejected(RuntimeError):
    """The run was told how many rejected records are too many, and met more."""


def placing(position: int | None, number: int, output: Output) -> tuple[bytes, bytes]:
    """Return where the line of a record belongs, and the line; a snapshot's is its packed fields."""
    if isinstance(output, Snapshot):
        return b"", state.pack(tuple(output))
    if position is not None:
        at = runs.place(position, number)
    else:
        at = runs.place_at_end(getattr(output, "time", 0.0), output.key or "", getattr(output, "id", None))
    return at, output.to_json().encode()


class WriteOutputs(beam.PTransform):
    """Placed lines -> merged files in `folder`, complete when the pipeline is; rename them with `publish`.

    Parameters
    ----------
    folder
        Where the files of this run are written: a folder of its own, beside where they go.
    before
        The folder of an earlier run to continue, whose lines and snapshots come first; None: there is none.
    max_rejected
        How many rejected records fail the run; None: no number does.
    reshuffle
        Whether to end the stateful stage in a real edge. Not on FnApiRunner, where it would hold every line in memory;
        on Prism a stateful stage that is fused with its sink spins on a closed channel (Beam 2.77).

    """

    def __init__(self, folder: Path, *, before: Path | None, max_rejected: int | None, reshuffle: bool):
        super().__init__()
        self._folder, self._before = folder, before
        self._max_rejected, self._reshuffle = max_rejected, reshuffle

    def expand(self, learned: Learned) -> Any:
        root = learned.predictions.pipeline
        written = [root | "Names" >> beam.Create([(tag, "") for tag in LINES]).with_output_types(tuple[str, str])]
        for tag in LINES:
            lines = getattr(learned, tag)
            if self._reshuffle:
                lines = lines | f"Edge {tag}" >> beam.Reshuffle()
            limit = self._max_rejected if tag == Rejected.tag else None
            runs_of = beam.ParDo(_WriteRuns(self._folder, tag, limit)).with_output_types(tuple[str, str])
            written.append(lines | f"Write {tag}" >> runs_of)
        snapshots = learned.snapshots
        if self._reshuffle:
            snapshots = snapshots | "Edge snapshots" >> beam.Reshuffle()
        stored = beam.ParDo(_WriteSnapshots(self._folder / SNAPSHOTS)).with_output_types(tuple[str, str])
        written.append(snapshots | "Write snapshots" >> stored)
        merged = written | beam.Flatten() | beam.GroupByKey()
        return merged | "Merge" >> beam.ParDo(_Merge(self._folder, self._before, self._max_rejected))


class _WriteRuns(beam.DoFn):
    """[(place, line), ...] -> (tag, name of a sorted run), a bundle at a time: one that failed leaves no name."""

    def __init__(self, folder: Path, tag: str, limit: int | None):
        self._folder, self._tag, self._limit = folder, tag, limit
        self._writer: runs.RunWriter | None = None
        self._count = 0

    def start_bundle(self) -> None:
        self.teardown()
        self._writer, self._count = runs.RunWriter(self._folder, self._tag), 0

    def teardown(self) -> None:
        if self._writer is not None:  # of a bundle that failed: it has no finish
            self._writer.close()
            self._writer = None

    def process(self, element: list[tuple[bytes, bytes]]) -> None:
        assert self._writer is not None
        for place, line in element:
            self._writer.add(place, line)
        self._count += len(element)
        if self._limit is not None and self._count > self._limit:
            raise TooManyRejected(_too_many(self._count, self._limit))

    def finish_bundle(self) -> Iterator[Any]:
        assert self._writer is not None
        names, self._writer = self._writer.close(), None
        for name in names:
            yield beam.utils.windowed_value.WindowedValue(
                (self._tag, name), beam.window.GlobalWindow().max_timestamp(), [beam.window.GlobalWindow()]
            )


class _WriteSnapshots(beam.DoFn):
    """Packed snapshots -> the store, one transaction a bundle; the same snapshot twice is one row."""

    def __init__(self, path: Path):
        self._path = path
        self._bundle: list[Snapshot] = []

    def start_bundle(self) -> None:
        self._bundle = []

    def process(self, element: list[tuple[bytes, bytes]]) -> Iterable[Any]:
        self._bundle.extend(Snapshot(*state.unpack(line)) for _, line in element)
        return ()

    def finish_bundle(self) -> None:
        if self._bundle:
            SnapshotStore(self._path).write(sorted(self._bundle))


class _Merge(beam.DoFn):
    """(tag, names of its runs) -> the file of that tag, once all are there."""

    def __init__(self, folder: Path, before: Path | None, max_rejected: int | None):
        self._folder, self._before, self._max_rejected = folder, before, max_rejected

    def process(self, element: tuple[str, Iterable[str]]) -> None:
        tag, names = element
        head = None if self._before is None else self._before / f"{tag}.jsonl"
        count = runs.merge(self._folder, [name for name in names if name], self._folder / f"{tag}.jsonl", head)
        if tag == Rejected.tag and self._max_rejected is not None and count > self._max_rejected:
            raise TooManyRejected(_too_many(count, self._max_rejected))


def _too_many(count: int, limit: int) -> str:
    return f"{count} rejected records are more than --max_rejected {limit}"


def prepare(output: Path, before: Path | None) -> Path:
    """Make and return a folder inside `output` for the files of one run; with `before`, its snapshots are in it."""
    folder = output / f".run-{uuid.uuid4().hex[:12]}"
    folder.mkdir(parents=True)
    if before is not None and (before / SNAPSHOTS).exists():
        shutil.copyfile(before / SNAPSHOTS, folder / SNAPSHOTS)
    SnapshotStore(folder / SNAPSHOTS).write([])  # the table is there even if no key ever is
    return folder


def publish(folder: Path, output: Path) -> None:
    """Rename the finished files into `output`, and drop the rest of the run's folder."""
    for name in (*(f"{tag}.jsonl" for tag in LINES), SNAPSHOTS):
        (folder / name).replace(output / name)
    shutil.rmtree(folder)
