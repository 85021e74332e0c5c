"""Bounded inputs -> numbered events: JSON lines, CSV by a column map, a job's own reader; plain or gzip."""

from __future__ import annotations

import copy
import csv
import gzip
import hashlib
import io
import itertools
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import apache_beam as beam
import numpy as np

from beam_pipelines import apart  # noqa: F401  (wherever these DoFns are unpickled)
from beam_pipelines import progress
from beam_pipelines.columns import Columns
from pa_river import stream
from pa_river.stream import Event, Rejected
from pa_river.stream.parsing import MAX_LINE

_DIGEST = 16  # hexadecimal digits of the name that an input's content gets
_CHUNK = 2_000  # events of which those of one key leave together
_GZIP = b"\x1f\x8b"
_SPACE = b" \t\r\n"


class Reader:
    """How one line of an input becomes events; a line gives none, one or several, or a rejected record."""

    #: Whether the first line of each input names the columns.
    has_header = False

    def open(self, header: str) -> None:
        """Take the header of the next input; `ValueError` naming a column that is missing."""

    def events(self, line: bytes) -> Sequence[Event | Rejected]:
        """Return what the line holds. Never raises: what is wrong with it is a rejected record."""
        raise NotImplementedError

    def times(self, line: bytes) -> Sequence[tuple[float | None, int]]:
        """Return (time, rank) of each event, to sort by: a label ranks 0 and so before features; None has no time."""
        return [
            (None, 1) if isinstance(event, Rejected) else (event.time, 0 if event.x is None and event.op is None else 1)
            for event in self.events(line)
        ]

    def event(self, line: bytes, index: int) -> Event | Rejected:
        """Return `events(line)[index]`."""
        return self.events(line)[index]


class JsonLines(Reader):
    """One JSON object a line, as `pa_river.stream.records` parses it."""

    def events(self, line: bytes) -> Sequence[Event | Rejected]:
        return (stream.parse(line),)


class CsvRows(Reader):
    """One event a row, by a column map. A row is a line: a line break inside quotes is not supported."""

    has_header = True

    def __init__(self, columns: str):
        self._text = columns
        self._columns = Columns(columns)
        self._header: list[str] = []

    def open(self, header: str) -> None:
        self._columns = Columns(self._text)  # without x=..., each input's own header says which columns are features
        self._header = next(csv.reader([header]), [])
        self._columns.check(self._header)

    def events(self, line: bytes) -> Sequence[Event | Rejected]:
        try:
            row = cells(line, len(self._header))
        except ValueError as error:
            return (reject(line, error),)
        return (stream.event_from(self._columns.record(dict(zip(self._header, row, strict=True))), text=line),)


def reject(line: bytes, reason: object) -> Rejected:
    """Return the record of a line that is not what its reader reads."""
    return Rejected(None, None, stream.payload(line), "parse", str(reason))


def cells(line: bytes, count: int) -> list[str]:
    """Return the cells of one CSV line; `ValueError` unless it is UTF-8 and has `count` of them.

    Examples
    --------
    >>> cells(b'a,"b,c",', 3)
    ['a', 'b,c', '']

    """
    if len(line) > MAX_LINE:
        raise ValueError(f"the line has more than {MAX_LINE} bytes")
    try:
        text = line.decode()
        row = text.split(",") if '"' not in text else next(csv.reader([text], strict=True), [])
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    except csv.Error as error:
        raise ValueError(f"not a CSV row: {error}") from None
    if len(row) != count:
        raise ValueError(f"a row of {len(row)} cells under a header of {count}")
    return row


def open_input(path: Path) -> IO[bytes]:
    """Open a plain or gzip file for reading, told apart by its first bytes and not by its name."""
    with open(path, "rb") as file:
        zipped = file.read(2) == _GZIP
    return io.BufferedReader(gzip.open(path), 1 << 16) if zipped else open(path, "rb")


def check_input(path: Path, reader: Reader) -> None:
    """`ValueError` or `OSError` in words, before anything runs, if the input cannot be what the reader reads."""
    with open_input(path) as file:
        first = file.readline(MAX_LINE)
        if reader.has_header:
            reader.open(_header(first, path))


def _header(line: bytes, path: Path) -> str:
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: the header is not UTF-8") from None


def read_lines(path: Path, reader: Reader) -> Iterator[bytes]:
    """The lines of one input behind its header; of a line that is too long, enough to see that it is, and no more."""
    longest = MAX_LINE + 1
    with open_input(path) as file:
        try:
            if reader.has_header:
                reader.open(_header(file.readline(longest), path))
            for line in iter(partial(file.readline, longest), b""):
                if len(line) == longest and not line.endswith(b"\n"):
                    while (rest := file.readline(longest)) and not rest.endswith(b"\n"):
                        pass  # bounded memory: the rest of the line is read and let go
                if line := line.strip(_SPACE):
                    yield line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:  # a part of it would pass for the whole
            raise OSError(f"{path}: {error}") from error


class ReadEvents(beam.DoFn):
    """One impulse -> (engine key, [(position, Event), ...]) of all inputs; what cannot be read -> such Rejected.

    `arrival`: as the lines come. `sequence` and `event_time`: sorted by time, at equal times labels before features,
    then by place in the input. Under `sequence`, `source` is a name made of the inputs' content and `seq` counts 0, 1,
    2 ... for each key; under `event_time` they are the event's own, and its cell tells equal times apart.

    The events of a key among some thousand that follow each other leave together: what Beam costs an element is then
    paid once for all of them, and the order within a key is as it was. The sort holds the text of the inputs and 20
    bytes an event: events themselves are made when their turn comes.
    """

    REJECTED = "rejected"

    def __init__(self, paths: Sequence[Path], reader: Reader, order: str, shards: int | None = None):
        self._paths, self._reader, self._order, self._shards = list(paths), reader, order, shards

    def process(self, element: Any) -> Iterator[Any]:
        numbered = enumerate(self._as_they_come() if self._order == "arrival" else self._sorted())
        while chunk := list(itertools.islice(numbered, _CHUNK)):
            batches: dict[str, list[tuple[int, Event]]] = {}
            rejected: list[tuple[int, Rejected]] = []
            for position, event in chunk:
                if isinstance(event, Event):
                    batches.setdefault(stream.engine_key(event.key, self._shards), []).append((position, event))
                else:
                    rejected.append((position, event))
            yield from batches.items()
            if rejected:
                yield beam.pvalue.TaggedOutput(self.REJECTED, rejected)
            progress.step("read", len(chunk))

    def _as_they_come(self) -> Iterator[Event | Rejected]:
        for path in self._paths:
            for line in read_lines(path, self._reader):
                yield from self._reader.events(line)

    def _sorted(self) -> Iterator[Event | Rejected]:
        lines: list[bytes] = []
        times, ranks, rows, indexes, inputs = array("d"), array("b"), array("q"), array("B"), array("H")
        readers = [copy.deepcopy(self._reader) for _ in self._paths]  # each with the header of its input
        last, digest = float("-inf"), hashlib.sha256()
        for number, (path, reader) in enumerate(zip(self._paths, readers, strict=True)):
            for line in read_lines(path, reader):
                digest.update(line)
                for index, (time, rank) in enumerate(reader.times(line)):
                    last = last if time is None else time  # what has no time stays where it stands
                    times.append(last)
                    ranks.append(rank)
                    rows.append(len(lines))
                    indexes.append(index)
                    inputs.append(number)
                lines.append(line)
        order = np.lexsort((np.frombuffer(ranks, np.int8), np.frombuffer(times)))
        source = digest.hexdigest()[:_DIGEST]
        progress.total("read", len(order))
        counts: defaultdict[str, itertools.count[int]] = defaultdict(itertools.count)
        for at in order.tolist():
            event = readers[inputs[at]].event(lines[rows[at]], indexes[at])
            if isinstance(event, Event) and self._order == "sequence":
                event = Event(*event[:7], next(counts[event.key]), source, *event[9:])
            yield event
