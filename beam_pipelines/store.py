"""The live job's file: records once each, snapshots, resume points, and from where to read again; no engine in it."""

from __future__ import annotations

import math
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from beam_pipelines.broker import Partition
from beam_pipelines.units import BEAT, Record, Unit
from pa_river.stream import SnapshotStore, sections

#: One transaction a bundle writes all of them. `cells`: the resume point of each engine key; `stored` counts the units
#: up to which none is missing, `ahead` holds those behind a missing one. `open`: units that no resume point covers yet.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS records(
    n INTEGER PRIMARY KEY, tag TEXT NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
    line TEXT NOT NULL, UNIQUE (key, id, kind));
CREATE TABLE IF NOT EXISTS cells(
    key TEXT PRIMARY KEY, serial INTEGER NOT NULL, stored INTEGER NOT NULL, blob BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ahead(
    key TEXT NOT NULL, serial INTEGER NOT NULL, blob BLOB, PRIMARY KEY (key, serial)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS open(
    key TEXT NOT NULL, serial INTEGER NOT NULL, source TEXT NOT NULL, first INTEGER NOT NULL,
    PRIMARY KEY (key, serial, source)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS handled(
    source TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (source, first)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS logs(
    source TEXT PRIMARY KEY, incarnation TEXT NOT NULL, highest INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS job(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS rolled_back ON snapshots(key) WHERE reason = 'rollback';
"""
_VIEWS = {
    "predictions": "key id time prediction score version",
    "outcomes": "key id time segment prediction y loss delay version",
    "rejected": "key id payload stage reason",
    "orphans": "key id time kind y prediction",
    "drift": "key time detector action evidence version",
}


class LiveStore:
    """What a live job has put out, in one SQLite file that a killed job goes on from.

    Parameters
    ----------
    path
        The file, made by `begin`. It is a `SnapshotStore` too.
    keep
        Snapshots kept a key, the newest ones.

    Notes
    -----
    A resume point counts once every unit before it is stored: units may overtake each other on the way here, and one
    that is still under way when the job dies must be put out again. `begin` starts a run: it forgets what came behind a
    missing unit, and units of an earlier run that arrive late add their records, which are the same, and no more.

    """

    def __init__(self, path: str | Path, keep: int = 100) -> None:
        self.path = str(path)
        self.keep = keep
        self._connection: sqlite3.Connection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "keep": self.keep, "_connection": None}

    def begin(self, partitions: Iterable[Partition]) -> tuple[int, list[Partition]]:
        """Start a run over these logs: its number, and the logs from where each must be read on.

        `ValueError` in one line, and nothing begun, if a log is not the one that was read before.
        """
        SnapshotStore(self.path).write([])
        with closing(_connect(self.path)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(_SCHEMA)
            for tag, fields in _VIEWS.items():
                columns = ", ".join(f"json_extract(line, '$.{name}') AS {name}" for name in fields.split())
                db.execute(f"CREATE VIEW IF NOT EXISTS {tag} AS SELECT n, {columns} FROM records WHERE tag = '{tag}'")
            with _transaction(db):
                offsets = _offsets(db)
                found = [self._checked(db, partition, offsets) for partition in partitions]
                db.execute("DELETE FROM handled")
                db.execute("DELETE FROM open")
                db.execute("DELETE FROM ahead")
                db.execute("DELETE FROM cells WHERE blob IS NULL")
                db.execute("UPDATE cells SET serial = 0, stored = 0")
                # Of what was under way nothing is known: only what lies before it is known to be done.
                offsets.update({partition.source: partition.start for partition in found})
                db.executemany("INSERT INTO handled VALUES (?, -1, ?)", offsets.items())
                db.execute("INSERT INTO job VALUES ('run', 1) ON CONFLICT DO UPDATE SET value = value + 1")
                db.execute("INSERT INTO job VALUES ('identity', ?) ON CONFLICT DO NOTHING", (secrets.randbits(62),))
            return _run(db), found

    def write(self, run: int, units: Sequence[Unit]) -> None:
        """Store units in one transaction; of a record that is there already, the first copy stays."""
        db = self._kept()
        with _transaction(db):
            for unit in units:
                self._put_records(db, unit)
            self._put_snapshots(db, units)
            if _run(db) == run:
                for unit in units:
                    self._put_chain(db, unit)
                self._put_handled(db, units)
                if any(unit.key == BEAT for unit in units):
                    _put_job(db, "beat", int(time.time()))

    def blob(self, key: str) -> bytes | None:
        """What an engine key goes on from; None: it begins."""
        row = self._kept().execute("SELECT blob FROM cells WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def rolled_back(self) -> set[str]:
        """The keys that have a snapshot of which a model was taken back."""
        return {key for (key,) in self._kept().execute("SELECT DISTINCT key FROM snapshots WHERE reason = 'rollback'")}

    def beat(self) -> int:
        """When the last heartbeat came through the whole job, in wall-clock seconds; 0: never."""
        with closing(_connect(self.path)) as db:
            row = db.execute("SELECT value FROM job WHERE name = 'beat'").fetchone()
            return 0 if row is None else int(row[0])

    def waiting(self) -> list[str]:
        """The engine keys in whose resume point something waits for its time."""
        with closing(_connect(self.path)) as db:
            rows = db.execute("SELECT key, blob FROM cells WHERE blob IS NOT NULL ORDER BY key")
            return [key for key, blob in rows if any(due < math.inf for _, due, _ in sections.split_cells(blob)[0])]

    def records(self, tag: str | None = None, after: int = 0) -> Iterator[tuple[int, Record]]:
        """(number, record) in the order in which they were stored."""
        with closing(_connect(self.path)) as db:
            where = "n > ? AND (? IS NULL OR tag = ?) ORDER BY n"
            query = f"SELECT n, tag, id, kind, line FROM records WHERE {where}"
            for n, *fields in db.execute(query, (after, tag, tag)):
                yield n, Record(*fields)

    def after(self, number: int, most: int) -> list[tuple[int, str, Record]]:
        """(number, key, record) of the first ones stored after that number."""
        query = "SELECT n, key, tag, id, kind, line FROM records WHERE n > ? ORDER BY n LIMIT ?"
        return [(n, key, Record(*fields)) for n, key, *fields in self._kept().execute(query, (number, most))]

    def any_blob(self) -> bytes | None:
        """What some engine key goes on from; None: there is none yet."""
        row = self._kept().execute("SELECT blob FROM cells WHERE blob IS NOT NULL LIMIT 1").fetchone()
        return None if row is None else row[0]

    def last(self) -> int:
        """The number of the newest record."""
        return int(self._kept().execute("SELECT coalesce(max(n), 0) FROM records").fetchone()[0])

    def conflicts(self) -> int:
        """How often a second copy of a record said something else than the first, which stays."""
        return self._job("conflicts")

    def identity(self) -> int:
        """What no other file has, nor this one when it is begun anew."""
        return self._job("identity")

    def published(self) -> int:
        """The number of the last record that was sent on."""
        return self._job("published")

    def set_published(self, number: int) -> None:
        """Remember it."""
        with _transaction(db := self._kept()):
            _put_job(db, "published", number)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _checked(self, db: sqlite3.Connection, log: Partition, offsets: Mapping[str, int]) -> Partition:
        """The log, to be read from where it must be; remembered if it is new."""
        known = db.execute("SELECT incarnation, highest FROM logs WHERE source = ?", (log.source,)).fetchone()
        was, highest = (log.incarnation, 0) if known is None else known
        if log.end < highest or "" not in (was, log.incarnation) and was != log.incarnation:
            raise ValueError(f"topic {log.topic} was made anew: {log.source} ends at offset {log.end}, and "
                             f"{self.path} knows a log of that name up to {highest}; give --overwrite or another topic")
        start = offsets.get(log.source, max(log.first, log.start))
        if start < log.first:
            raise ValueError(f"{log.source} begins at offset {log.first}, and {self.path} must go on from {start}: "
                             "what lies between is gone; give --overwrite to begin anew")
        db.execute("INSERT INTO logs VALUES (?, ?, 0) ON CONFLICT DO NOTHING", (log.source, log.incarnation))
        return log._replace(start=start)

    def _put_records(self, db: sqlite3.Connection, unit: Unit) -> None:
        insert = "INSERT INTO records(tag, key, id, kind, line) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        for made in unit.records:
            key = made.key or unit.key
            if db.execute(insert, (made.tag, key, made.id, made.kind, made.line)).rowcount:
                continue
            where = (key, made.id, made.kind)
            (line,) = db.execute("SELECT line FROM records WHERE key = ? AND id = ? AND kind = ?", where).fetchone()
            if line != made.line:
                db.execute("INSERT INTO job VALUES ('conflicts', 1) ON CONFLICT DO UPDATE SET value = value + 1")

    def _put_snapshots(self, db: sqlite3.Connection, units: Sequence[Unit]) -> None:
        rows = sorted((row for unit in units for row in unit.snapshots), key=lambda row: row[:3])
        db.executemany(
            "INSERT INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key, generation, version) DO UPDATE SET "
            "time = excluded.time, reason = excluded.reason, model = excluded.model, cell = excluded.cell "
            "WHERE excluded.time >= snapshots.time", rows,
        )
        for key in {row[0] for row in rows}:
            db.execute(
                "DELETE FROM snapshots WHERE key = ?1 AND (generation, version) < (SELECT generation, version FROM "
                "snapshots WHERE key = ?1 ORDER BY generation DESC, version DESC LIMIT 1 OFFSET ?2)",
                (key, self.keep - 1),
            )

    def _put_chain(self, db: sqlite3.Connection, unit: Unit) -> None:
        """Count the unit; move the key's resume point if none before it is missing."""
        key, serial = unit.key, unit.serial
        if unit.is_new:
            least: dict[str, int] = {}
            for source, first, _ in unit.handled:
                least[source] = min(first, least.get(source, first))
            rows = [(key, serial, source, first) for source, first in least.items()]
            db.executemany("INSERT INTO open VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)
        if not serial:
            return
        row = db.execute("SELECT serial, stored FROM cells WHERE key = ?", (key,)).fetchone()
        point, stored = (0, 0) if row is None else row
        if serial != stored + 1:
            if serial > stored:
                db.execute("INSERT INTO ahead VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (key, serial, unit.blob))
            return
        blob, stored = unit.blob, serial
        point = point if blob is None else serial
        for number, waiting in db.execute("SELECT serial, blob FROM ahead WHERE key = ? ORDER BY serial", (key,)):
            if number != stored + 1:
                break
            stored = number
            if waiting is not None:
                blob, point = waiting, number
        db.execute("DELETE FROM ahead WHERE key = ? AND serial <= ?", (key, stored))
        db.execute(
            "INSERT INTO cells VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET serial = excluded.serial, "
            "stored = excluded.stored, blob = coalesce(excluded.blob, cells.blob)", (key, point, stored, blob),
        )
        if blob is not None:
            db.execute("DELETE FROM open WHERE key = ? AND serial <= ?", (key, point))

    def _put_handled(self, db: sqlite3.Connection, units: Sequence[Unit]) -> None:
        """Join the spans of what was handled: few rows, as many as there are holes."""
        spans: dict[str, list[tuple[int, int]]] = {}
        for unit in units:
            for source, first, last in unit.handled:
                spans.setdefault(source, []).append((first, last))
        for source, found in spans.items():
            known = db.execute("SELECT first, last FROM handled WHERE source = ?", (source,)).fetchall()
            joined: list[list[int]] = []
            for first, last in sorted([*known, *found]):
                if joined and first <= joined[-1][1]:
                    joined[-1][1] = max(last, joined[-1][1])
                else:
                    joined.append([first, last])
            db.execute("UPDATE logs SET highest = max(highest, ?) WHERE source = ?", (joined[-1][1], source))
            now = {(first, last) for first, last in joined}
            gone = [(source, first) for first, last in known if (first, last) not in now]
            db.executemany("DELETE FROM handled WHERE source = ? AND first = ?", gone)
            db.executemany("INSERT INTO handled VALUES (?, ?, ?)", [(source, *span) for span in now - set(known)])

    def _job(self, name: str) -> int:
        row = self._kept().execute("SELECT value FROM job WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])

    def _kept(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _connect(self.path)
        return self._connection


def _put_job(db: sqlite3.Connection, name: str, value: int) -> None:
    db.execute("INSERT INTO job VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (name, value))


def _run(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT value FROM job WHERE name = 'run'").fetchone()[0])


def _offsets(db: sqlite3.Connection) -> dict[str, int]:
    """From where each source must be read again: nothing before it is missing, in no cell and in no record."""
    offsets = dict(db.execute("SELECT source, last FROM handled WHERE first = -1"))
    for source, first in db.execute("SELECT source, min(first) FROM open GROUP BY source"):
        offsets[source] = min(first, offsets[source])
    return offsets


class _transaction:
    """BEGIN IMMEDIATE ... COMMIT, or ROLLBACK: a writer waits its turn instead of failing half way."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._db.execute("COMMIT" if kind is None else "ROLLBACK")


def _connect(path: str) -> sqlite3.Connection:
    # Bundles of one DoFn may run on one thread after another, never on two at once.
    db = sqlite3.connect(path, timeout=60.0, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA synchronous = NORMAL")  # a lost last transaction is put out again, a torn one cannot be
    return db
