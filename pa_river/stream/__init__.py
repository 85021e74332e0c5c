"""One key's operator with no engine in it: events and due clocks in, records out, bytes or nothing kept."""

from pa_river.stream.control import checksum
from pa_river.stream.holder import CellSpec, Holder
from pa_river.stream.parsing import check_values, event_from, parse, too_far_ahead
from pa_river.stream.records import (
    OUTPUTS,
    Drift,
    Event,
    Orphan,
    Outcome,
    Output,
    Prediction,
    Rejected,
    Snapshot,
    payload,
)
from pa_river.stream.snapshots import SnapshotStore, diff, rollback_event
from pa_river.stream.spec import engine_key

__all__ = [
    "OUTPUTS",
    "CellSpec",
    "Drift",
    "Event",
    "Holder",
    "Orphan",
    "Outcome",
    "Output",
    "Prediction",
    "Rejected",
    "Snapshot",
    "SnapshotStore",
    "check_values",
    "checksum",
    "diff",
    "engine_key",
    "event_from",
    "parse",
    "payload",
    "rollback_event",
    "too_far_ahead",
]
