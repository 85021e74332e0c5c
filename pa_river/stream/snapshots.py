"""The versioned store of models and cells: one SQLite file to write, list, compare, roll back and start warm from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from pa_river import state
from pa_river.stream.cell_state import high_marks, with_model
from pa_river.stream.control import checksum
from pa_river.stream.records import Event, Snapshot

_SCHEMA = """
CREATE TABLE IF NOT EXISTS snapshots(
    key TEXT NOT NULL, generation INTEGER NOT NULL, version INTEGER NOT NULL, time REAL NOT NULL, reason TEXT NOT NULL,
    model BLOB NOT NULL, cell BLOB NOT NULL, PRIMARY KEY (key, generation, version)
)
"""
# A retried bundle writes the same row again; of two states of one version the later one counts.
_WRITE = """
INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key, generation, version) DO UPDATE SET
    time = excluded.time, reason = excluded.reason, model = excluded.model, cell = excluded.cell
WHERE excluded.time >= snapshots.time
"""
_COLUMNS = "key, generation, version, time, reason, model, cell"
_NEWEST = "ORDER BY generation DESC, version DESC"


class Listed(NamedTuple):
    """A snapshot without its blobs."""

    key: str
    generation: int
    version: int
    time: float
    reason: str
    model_bytes: int
    cell_bytes: int


class SnapshotStore:
    """`snapshots.db`: snapshots by (key, generation, version).

    Parameters
    ----------
    path
        The file; made, with its table, at the first write. A reader of a file that is not there finds nothing.

    Notes
    -----
    Each call opens the file for itself: an instance may be shared between threads and sent to other processes, and as
    the `reader` of a `CellSpec`. `ValueError` names a file that is no such store. One write is one transaction.

    Examples
    --------
    >>> SnapshotStore("no/such/file.db").newest("k") is None
    True

    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)

    def write(self, snapshots: Iterable[Snapshot]) -> None:
        """Write all or none; the same snapshot again changes nothing."""
        with self._open() as connection, connection:
            connection.execute(_SCHEMA)
            connection.executemany(_WRITE, snapshots)

    def list(self, key: str | None = None) -> list[Listed]:
        """What is stored, by key, oldest first; of one key if it is given."""
        where, given = ("", ()) if key is None else ("WHERE key = ?", (key,))
        query = "SELECT key, generation, version, time, reason, length(model), length(cell) FROM snapshots"
        return [Listed(*row) for row in self._rows(f"{query} {where} ORDER BY key, generation, version", given)]

    def get(self, key: str, version: int, generation: int | None = None) -> Snapshot | None:
        """One snapshot; of the newest generation that has the version, if none is given."""
        where = "key = ? AND version = ? AND (? IS NULL OR generation = ?)"
        return self._first(f"WHERE {where} {_NEWEST}", (key, version, generation, generation))

    def newest(
        self, key: str, *, before: tuple[str, int] | None = None, until: float | None = None
    ) -> Snapshot | None:
        """The newest snapshot of a key.

        Parameters
        ----------
        key
            Whose.
        before
            A (source, seq) that it must not have handled yet: where a replay of that source goes on.
        until
            The latest event time that it may have seen.

        """
        where = f"WHERE key = ? AND (? IS NULL OR time <= ?) {_NEWEST}"
        for row in self._rows(f"SELECT {_COLUMNS} FROM snapshots {where}", (key, until, until)):
            found = Snapshot(*row)
            if before is None or high_marks(found.cell).get(before[0], -1) < before[1]:
                return found
        return None

    def newest_of_all(self, *, until: float | None = None) -> Iterator[Snapshot]:
        """The newest snapshot of each key, in order of key: where a job starts warm from."""
        for (key,) in list(self._rows("SELECT DISTINCT key FROM snapshots ORDER BY key", ())):
            found = self.newest(key, until=until)
            if found is not None:
                yield found

    def roll_back(self, key: str, version: int, generation: int | None = None) -> Snapshot:
        """Make an older model the newest one: a new version with that model in the newest cell, written and returned.

        Only the model goes back: marks, waiting examples and known ids stay as they are in the newest cell.
        """
        old, newest = self.get(key, version, generation), self.newest(key)
        if old is None or newest is None:
            raise ValueError(f"{self.path}: no snapshot of key {key!r} with version {version}")
        if not newest.cell:
            raise ValueError(f"{self.path}: the newest snapshot of key {key!r} holds no cell")
        following = newest.version + 1
        cell = with_model(newest.cell, old.model, version=following, parent=old.version)
        written = newest._replace(version=following, reason="rollback", model=old.model, cell=cell)
        self.write([written])
        return written

    def _open(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self.path, timeout=30.0))

    def _first(self, where: str, given: tuple[Any, ...]) -> Snapshot | None:
        for row in self._rows(f"SELECT {_COLUMNS} FROM snapshots {where} LIMIT 1", given):
            return Snapshot(*row)
        return None

    def _rows(self, query: str, given: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        if not Path(self.path).exists():
            return
        with self._open() as connection:
            try:
                yield from connection.execute(query, given)
            except sqlite3.DatabaseError as error:
                if "no such table" in str(error):  # a file that nothing was written to yet
                    return
                raise ValueError(f"{self.path} is not a snapshot store: {error}") from error


def rollback_event(snapshot: Snapshot, id: str, time: float) -> Event:
    """The control event that takes a running key back to the model of a snapshot, if its cell still holds it."""
    return Event(
        snapshot.key, id, time, op="rollback", target=snapshot.version, checksum=checksum(snapshot.model)
    )


def diff(first: Snapshot, second: Snapshot, **not_stored: Any) -> dict[str, tuple[Any, Any]]:
    """What differs between two models: name -> (in the first, in the second), None where one has no such weight.

    Names are those of `weights`, with "intercept" and the constructor's parameters beside them; a label model's are
    (label, name).
    """
    before, after = (_flat(state.loads(snapshot.model, **not_stored)) for snapshot in (first, second))
    names = {**before, **after}
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


def _flat(model: Any) -> dict[Any, Any]:
    last = getattr(model, "_last_step", model)
    flat = {name: repr(value) for name, value in last._get_params().items()}
    for part in ("weights", "intercept"):
        value = getattr(last, part, None)
        if isinstance(value, Mapping):
            for name, weight in value.items():
                nested = weight if isinstance(weight, Mapping) else None
                if nested is None:
                    flat[name if part == "weights" else (part, name)] = weight
                else:
                    flat.update({(name, inner): number for inner, number in nested.items()})
        elif value is not None:
            flat[part] = value
    return flat
