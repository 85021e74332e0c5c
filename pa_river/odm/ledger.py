"""Who is in: the examples in order of arrival, found by id, by value, or as the oldest."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from pa_river.terms import Features


class Example(NamedTuple):
    """One learned example. `x` has no zeros; `y` is True or False; `id` is None where none was given."""

    x: Features
    y: bool
    w: float
    id: Hashable | None


class Ledger:
    """Examples under serial numbers that only rise."""

    def __init__(self) -> None:
        self._next = 0
        self._examples: dict[int, Example] = {}
        self._slots: dict[int, int] = {}
        self._by_id: dict[Hashable, int] = {}
        self._equal: dict[tuple[Hashable, bool], dict[int, None]] = {}  # a dict of None keeps the order of arrival

    def __len__(self) -> int:
        return len(self._examples)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._by_id

    def slots(self) -> list[int]:
        """Return the slots in order of arrival."""
        return list(self._slots.values())

    def examples(self) -> list[Example]:
        """Return the examples in order of arrival."""
        return list(self._examples.values())

    def slot(self, serial: int) -> int:
        """Return where the solver holds an example."""
        return self._slots[serial]

    def id_of(self, serial: int) -> Hashable | None:
        """Return the id of an example, None if it has none."""
        return self._examples[serial].id

    def oldest(self, count: int, but: set[int]) -> list[int]:
        """Return the serials of the `count` oldest that are not among `but`."""
        return list(islice((serial for serial in self._examples if serial not in but), count))

    def of_id(self, id: Hashable) -> int:
        """Return the serial of an id; `ValueError` if nobody has it."""
        try:
            return self._by_id[id]
        except KeyError:
            raise ValueError(f"there is no example with the id {id!r} to remove") from None

    def of_pair(self, x: Features, y: bool, but: set[int]) -> int:
        """Return the serial of the oldest example equal to (x, y); `ValueError` if there is none."""
        for serial in self._equal.get(_key(x, y), ()):
            if serial not in but:
                return serial
        raise ValueError("there is no example equal to this x and y to remove")

    def add(self, example: Example, slot: int) -> None:
        """Enter an example."""
        serial = self._next
        self._next = serial + 1
        self._examples[serial], self._slots[serial] = example, slot
        self._equal.setdefault(_key(example.x, example.y), {})[serial] = None
        if example.id is not None:
            self._by_id[example.id] = serial

    def remove(self, serial: int) -> None:
        """Strike an example out."""
        example = self._examples.pop(serial)
        del self._slots[serial]
        key = _key(example.x, example.y)
        del self._equal[key][serial]
        if not self._equal[key]:
            del self._equal[key]
        if example.id is not None:
            del self._by_id[example.id]


def identity(id: Any) -> Hashable:
    """Return an id as it is kept, numpy scalars as Python's; `ValueError` unless it can be looked up."""
    value = id.item() if isinstance(id, np.generic) else id
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"an id must be hashable, got {value!r}") from None
    if value != value:
        raise ValueError(f"an id must be equal to itself, got {value!r}")
    return value  # type: ignore[no-any-return]


def _key(x: Features, y: bool) -> tuple[Hashable, bool]:
    return frozenset(x.items()), y
