"""The jobs that come with the package: a reader, a sample of real data, and the model unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from beam_pipelines.flights import Flights
from beam_pipelines.sources import Reader

_SAMPLES = Path(__file__).parent / "samples"


@dataclass(frozen=True)
class Job:
    """What `--job NAME` stands for."""

    about: str
    reader: Callable[[], Reader]
    sample: Path
    model: str
    unit: str = ""


JOBS = {
    "flights": Job(
        "Will the flight arrive more than 15 minutes late? One model per carrier and origin.",
        lambda: Flights("late"),
        _SAMPLES / "flights_2013_01.csv.gz",
        "PAClassifier(PA1(1.0))",
    ),
    "flights_delay": Job(
        "By how many minutes will the flight arrive late? One model per carrier and origin.",
        lambda: Flights("delay"),
        _SAMPLES / "flights_2013_01.csv.gz",
        "PARegressor(PA1(1.0))",
        unit="minutes",
    ),
}
