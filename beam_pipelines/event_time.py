"""The event time of one partition of a log: timestamps that keep order, a watermark, and when silence moves it on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from apache_beam import coders
from apache_beam.io.iobase import WatermarkEstimator
from apache_beam.transforms.core import WatermarkEstimatorProvider
from apache_beam.utils.timestamp import Timestamp

from pa_river import state


class Clock(NamedTuple):
    """The event time of one partition, in whole milliseconds; what its watermark estimator keeps."""

    mark: int | None = None  # the watermark
    stamp: int | None = None  # of the last bundle's elements
    newest: int | None = None  # the largest event time
    heard: int | None = None  # wall time of the last record, or of the first look at a log without one

    def after(self, times: Sequence[float], lateness: float, wall: float) -> Clock:
        """The clock behind a bundle of events at `times`.

        The bundle's elements get its least time as their timestamp, so that they hold back whatever is due after
        them until they are handled; and always a later one than the last bundle's, because a runner keeps the order of
        one key's elements only where their timestamps tell it.
        """
        heard = int(wall * 1000)
        if not times:
            return self._replace(heard=heard)
        newest = max(_milliseconds(max(times)), _MIN if self.newest is None else self.newest)
        mark = _MIN if self.mark is None else self.mark
        stamp = max(_milliseconds(min(times)), mark, _MIN if self.stamp is None else self.stamp + 1)
        return Clock(max(mark, newest - int(lateness * 1000)), stamp, newest, heard)

    def idle(self, lateness: float, idle_after: float, wall: float) -> Clock:
        """The clock of a log that has nothing to say, `wall` seconds after the epoch."""
        now = int(wall * 1000)
        if self.heard is None:
            return self._replace(heard=now)
        silent = now - self.heard - int(idle_after * 1000)
        if silent <= 0:
            return self
        since = now - int(idle_after * 1000) if self.newest is None else self.newest + silent
        mark = since - int(lateness * 1000)
        return self._replace(mark=mark if self.mark is None else max(mark, self.mark))


_MIN = -(2**53)


def _milliseconds(seconds: float) -> int:
    """Rounded down, and within what a runner can tell apart: an event may claim any finite time."""
    return int(min(max(seconds, -1e11), 2e11) * 1000 // 1)


class ClockEstimator(WatermarkEstimator):
    """The watermark of a partition: what its `Clock` says."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def current_watermark(self) -> Timestamp | None:
        return None if self._clock.mark is None else Timestamp(micros=self._clock.mark * 1000)

    def get_estimator_state(self) -> Clock:
        return self._clock

    def set_clock(self, clock: Clock) -> None:
        """Go on with this clock; a method, since Beam's lock around an estimator wraps methods alone."""
        self._clock = clock

    def observe_timestamp(self, timestamp: Timestamp) -> None:
        """Element timestamps say nothing that the clock does not."""


class ClockCoder(coders.Coder):
    """Four numbers, or none."""

    def encode(self, value: Clock) -> bytes:
        return state.pack(tuple(value))

    def decode(self, encoded: bytes) -> Clock:
        return Clock(*state.unpack(encoded))

    def is_deterministic(self) -> bool:
        return True


class Clocks(WatermarkEstimatorProvider):
    """Begins each partition with a clock that knows nothing."""

    def initial_estimator_state(self, element: Any, restriction: Any) -> Clock:
        return Clock()

    def create_watermark_estimator(self, estimator_state: Clock) -> ClockEstimator:
        return ClockEstimator(estimator_state)

    def estimator_state_coder(self) -> coders.Coder:
        return ClockCoder()
