"""The column map of a CSV: which columns make an event's key, id, time, label and features."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: The fields of an event that a map may name; `x` alone takes several columns as several values.
FIELDS = ("key", "id", "time", "x", "y", "w", "segment", "seq", "source", "op", "target", "checksum")

_TEXT = frozenset({"key", "id", "segment", "source", "op", "target", "checksum"})
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)


class Columns:
    """`key=carrier+origin,id=a+b,time=when,y=late,x=hour+dest:text`.

    Columns of one field are joined by `-` (a `-` or a backslash inside a value gets a backslash in front, so no two
    rows share a joined key by accident); those of `x` each become a feature of the column's name. `:text` behind a
    column keeps its cells as text. Without `x`, every column that no other field names is a feature.

    Examples
    --------
    >>> columns = Columns("key=carrier+origin,id=n,time=t,y=late,x=hour+dest:text")
    >>> row = {"carrier": "UA", "origin": "EWR", "n": "7", "t": "12.5", "late": "true", "hour": "5", "dest": ""}
    >>> columns.record(row)
    {'key': 'UA-EWR', 'id': '7', 'time': 12.5, 'x': {'hour': 5}, 'y': True}

    """

    def __init__(self, text: str):
        self.text = text
        self._fields: dict[str, list[tuple[str, bool]]] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            field, equals, names = part.partition("=")
            if field not in FIELDS:
                raise ValueError(f"{field!r} is not a field of an event: {', '.join(FIELDS)}")
            if not equals or not names:
                raise ValueError(f"{part!r} names no column")
            if field in self._fields:
                raise ValueError(f"{field!r} is given twice")
            self._fields[field] = [_column(name, field) for name in names.split("+")]
        for field in ("key", "time"):
            if field not in self._fields:
                raise ValueError(f"{field}=... is missing")

    def check(self, header: Sequence[str]) -> None:
        """`ValueError` naming the first column that the header of a file does not have."""
        if len(set(header)) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise ValueError(f"column {twice!r} appears twice")
        for field, columns in self._fields.items():
            for name, _ in columns:
                if name not in header:
                    raise ValueError(f"no column {name!r} for {field} (there are {', '.join(header)})")
        if "x" not in self._fields:
            used = {name for columns in self._fields.values() for name, _ in columns}
            self._fields["x"] = [(name, False) for name in header if name not in used]

    def record(self, row: Mapping[str, str]) -> dict[str, Any]:
        """Return the event of one row, as the mapping that JSON would have given; empty cells are absent."""
        record: dict[str, Any] = {}
        for field in FIELDS:
            columns = self._fields.get(field)
            if not columns:
                continue
            if field == "x":
                x = {name: value(row[name], text) for name, text in columns if row[name] != ""}
                if x:
                    record["x"] = x
            elif len(columns) > 1:
                record[field] = "-".join(_escaped(row[name]) for name, _ in columns)
            elif (cell := row[columns[0][0]]) != "":
                record[field] = value(cell, columns[0][1])
        return record


def value(cell: str, text: bool = False) -> str | int | float | bool:
    """Return what a cell says: a number is a number, true and false are bools, the rest is text.

    Examples
    --------
    >>> [value(cell) for cell in ("7", "-1.5e3", "true", "False", "EWR", "007", "1_000")]
    [7, -1500.0, True, False, 'EWR', 7, '1_000']

    """
    if text:
        return cell
    cell = cell.strip()
    if _INTEGER.fullmatch(cell):
        return int(cell)
    if _NUMBER.fullmatch(cell):
        return float(cell)  # NaN too: the event's own check refuses it, and says so in `rejected`
    return {"true": True, "false": False}.get(cell.lower(), cell)


def _column(text: str, field: str) -> tuple[str, bool]:
    name, colon, kind = text.rpartition(":")
    if not colon:
        name = text
    elif kind != "text":
        raise ValueError(f"{text!r}: the only kind of a column is :text")
    if not name:
        raise ValueError(f"{field}=... holds an empty column name")
    return name, bool(colon) or field in _TEXT


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("-", "\\-") if "-" in cell or "\\" in cell else cell
