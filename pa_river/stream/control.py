"""Control events: query, reset, rollback and forget; their answers are `drift` records."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pa_river.state import StateError
from pa_river.stream.records import Drift, Event, Output, Prediction
from pa_river.stream.seen import CONTROL, digest_y

if TYPE_CHECKING:
    from pa_river.stream.cell_state import CellState


def checksum(model: bytes) -> str:
    """What a rollback may give to make sure that the version it names is the model it means.

    Examples
    --------
    >>> checksum(b"")
    'cae66941d9efbd404e4d88758ea67670'

    """
    return hashlib.blake2b(model, digest_size=16).hexdigest()


def handle(cell: CellState, event: Event, out: list[Output]) -> None:
    """Carry out one event that has an `op`."""
    if event.op == "query":
        _query(cell, event, out)
    elif event.op is not None and event.id is not None and not _is_repeated(cell, event, event.id, out):
        try:
            result = _OPERATIONS[event.op](cell, event, out)
        except _Refused as refusal:
            cell.reject(event, "control", str(refusal), out)
            return
        evidence = {"target": event.target, "result": result, "parent": cell.parent}
        out.append(Drift(cell.key, event.time, None, event.op, evidence, cell.version))
        cell.seen.add(event.id, CONTROL, 0, _digest(event), cell.clock)
        cell.moved(out)


class _Refused(Exception):
    """A control event that cannot be carried out; nothing has changed."""


def _query(cell: CellState, event: Event, out: list[Output]) -> None:
    try:
        prediction, score = cell.model.predict(event.x)
    except (StateError, MemoryError):
        raise
    except Exception as error:  # whatever a model raises costs this event alone
        cell.model.undo()
        cell.reject(event, "predict", f"{type(error).__name__}: {error}", out)
        return
    out.append(Prediction(cell.key, event.id, event.time, prediction, score, cell.version))


def _reset(cell: CellState, event: Event, out: list[Output]) -> str:
    cell.keep_model()
    cell.model.replace(None)
    cell.parent = None
    cell.version += 1
    return "reset to the untrained model"


def _rollback(cell: CellState, event: Event, out: list[Output]) -> str:
    """To the version named, or the newest kept one; only the model, never pending, marks or duplicates."""
    kept = {version: model for version, _, model in cell.old_models() if version != cell.version}
    version = event.target if event.target is not None else max(kept, default=None)
    if not isinstance(version, int) or version not in kept:
        raise _Refused(f"version {version!r} is not kept here; kept are {sorted(kept)}")
    if event.checksum is not None and event.checksum != checksum(kept[version]):
        raise _Refused(f"the model of version {version} has the checksum {checksum(kept[version])}")
    cell.keep_model()  # so that a rollback can itself be rolled back
    cell.model.replace(kept[version])
    cell.parent = version
    cell.version += 1
    return f"rolled back to version {version}"


def _forget(cell: CellState, event: Event, out: list[Output]) -> str:
    """Take one example out: of the model if it was learned, of what waits if it was not."""
    target = str(event.target)
    if event.target is not None and target in cell.pending:
        cell.drop_features(target, cell.clock, out)
        return "dropped before it was learned"
    if event.target is not None and target in cell.early:
        cell.drop_label(target, cell.clock, out)
        return "dropped before it was learned"
    if not cell.settings.kind.forgets:
        raise _Refused("this model cannot forget an example: it has no unlearn_one")
    try:
        cell.model.unlearn(target)
    except (StateError, MemoryError):
        raise
    except Exception as error:  # an unknown id, or whatever else the model raises, costs this event alone
        cell.model.undo()
        raise _Refused(f"{type(error).__name__}: {error}") from error
    cell.parent = cell.version
    cell.version += 1
    return "removed from the model"


def _is_repeated(cell: CellState, event: Event, id: str, out: list[Output]) -> bool:
    seen = cell.seen.get(id, cell.clock)
    if seen is None and id not in cell.pending and id not in cell.early:
        return False
    if seen is not None and seen[0] == CONTROL and seen[2] == _digest(event):
        cell.count("duplicates")
    else:
        cell.reject(event, "control", "id seen before", out)
    return True


def _digest(event: Event) -> int:
    return digest_y((str(event.op), event.target))


_OPERATIONS = {"reset": _reset, "rollback": _rollback, "forget": _forget}
