"""The stateful operator on Beam: one cell a key, fed event by event, woken by one timer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import DebugOptions
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec, TimerSpec, on_timer
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.typehints.native_type_compatibility import convert_to_beam_type
from apache_beam.utils.timestamp import Timestamp

from beam_pipelines import apart  # noqa: F401  (wherever these DoFns are unpickled)
from beam_pipelines.coders import CellCoder, Live
from pa_river import stream
from pa_river.stream import OUTPUTS, CellSpec, Event, Holder, Output, Rejected

NAMESPACE = "pa_river"  # of Beam's metrics
COUNTED = ("duplicates", "gaps", "out_of_order", "overflow", "too_old")

TAGS = tuple(output.tag for output in OUTPUTS)

#: (position in the source, number within it, record) -> a place to sort by and a line.
#: Position None: flushed at the end.
Placing = Callable[[int | None, int, Output], tuple[bytes, bytes]]

#: Events of one key, in order, each with its position in the source.
Batch = list[tuple[int, Event]]

# Runners that have no state or no timers for Python: a pipeline on them would fail late, or lose what timers bring.
_WITHOUT_STATE = ("DaskRunner", "RayRunner")

#: Threads that Prism may run Go code on, at least: each of the eight bundles that it runs at once may spin (Beam 2.77).
_PRISM_THREADS = 16


class LearnPerKeyFn(beam.DoFn):
    """(engine key, [(position, Event), ...]) -> the outputs of its cells, tagged: wiring only.

    One cell of state a key, read once and always written: Beam keeps the live holder for the rest of the bundle and
    encodes it once. A bounded input arms one timer a key, at the end of the window: it fires when all input is in,
    whichever bundle or worker read it, so it is the end of the input for that key. An unbounded input arms one for when
    the cell wants to be woken. No input does both, so no fired time is compared with the end of the window.
    """

    CELL = ReadModifyWriteStateSpec("cell", CellCoder())
    WAKE = TimerSpec("wake", TimeDomain.WATERMARK)

    def __init__(self, spec: CellSpec, bounded: bool, placing: Placing | None = None):
        self._spec, self._bounded, self._placing = spec, bounded, placing

    def process(
        self,
        element: tuple[str, Batch],
        cell: Any = beam.DoFn.StateParam(CELL),
        wake: Any = beam.DoFn.TimerParam(WAKE),
    ) -> Iterator[Any]:
        key, batch = element
        held = cell.read()
        holder = self._open(key, held)
        put_out: list[tuple[int | None, list[Output]]] = []
        for position, event in batch:
            outputs = holder.on_event(event)
            put_out.append((position, outputs))
            if len(outputs) != 1:  # a duplicate puts out nothing, an overflow more than one record
                add_counts(holder)
        self._keep(holder, cell, wake, held is None)
        return self._tagged(put_out)

    @on_timer(WAKE)
    def woken(
        self,
        key: str = beam.DoFn.KeyParam,
        time: Timestamp = beam.DoFn.TimestampParam,
        cell: Any = beam.DoFn.StateParam(CELL),
        wake: Any = beam.DoFn.TimerParam(WAKE),
    ) -> Iterator[Any]:
        held = cell.read()
        if held is None:  # a timer that outlived its state: nothing is left to do
            return iter(())
        holder = self._open(key, held)
        outputs = holder.on_end() if self._bounded else holder.on_due(time.micros / 1e6)
        add_counts(holder)
        self._keep(holder, cell, wake, False)
        return self._tagged([(None, outputs)])

    def _open(self, key: str, held: Live | bytes | None) -> Holder:
        return held.holder if isinstance(held, Live) else self._spec.open(key, held)

    def _keep(self, holder: Holder, cell: Any, wake: Any, first: bool) -> None:
        """Write what the holder holds, or leave neither state nor timer behind."""
        if holder.is_empty():
            cell.clear()
            wake.clear()
            return
        cell.write(Live(holder))
        if self._bounded:
            if first:
                wake.set(GlobalWindow().max_timestamp())
        elif (at := holder.wake_at()) is not None:  # None also while an earlier timer is armed
            wake.set(Timestamp(micros=round(at * 1e6)))

    def _tagged(self, put_out: list[tuple[int | None, list[Output]]]) -> Iterator[Any]:
        """The records one by one; or, with a placing, what it makes of them, in one list a tag."""
        placing = self._placing
        if placing is None:
            for _, outputs in put_out:
                for output in outputs:
                    yield beam.pvalue.TaggedOutput(output.tag, output)
            return
        lines: dict[str, list[tuple[bytes, bytes]]] = {}
        for position, outputs in put_out:
            for number, output in enumerate(outputs):
                lines.setdefault(output.tag, []).append(placing(position, number, output))
        for tag, placed in lines.items():
            yield beam.pvalue.TaggedOutput(tag, placed)


def add_counts(holder: Holder) -> dict[str, int]:
    """Add to Beam's metrics what leaves no record (duplicates, too old, skipped, over a bound); return all counts."""
    counts = holder.drain_counts()
    for name, count in counts.items():
        if name in COUNTED:
            Metrics.counter(NAMESPACE, name).inc(count)
    return counts


class Learned(NamedTuple):
    """What `LearnPerKey` puts out, a PCollection each."""

    predictions: Any
    outcomes: Any
    rejected: Any
    orphans: Any
    drift: Any
    snapshots: Any


class LearnPerKey(beam.PTransform):
    """PCollection[Event] -> `Learned`: one model a key, scored before it learns, with late labels.

    Parameters
    ----------
    model
        The estimator that each key starts from; it is copied, never trained itself.
    options
        Those of `pa_river.stream.CellSpec`: label_ttl, idle_ttl, order, lateness, shards, detector, action, at_end,
        on_return, dedupe_size ... `ValueError` in words when the transform is built.

    Notes
    -----
    The input must be in the global window. `ValueError` when applied: to another window, to a runner without state
    and timers, or to an unbounded input on FnApiRunner, which fires event-time timers after every bundle.

    Examples
    --------
    >>> import apache_beam as beam
    >>> from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    >>> from pa_river import PAClassifier
    >>> from pa_river.stream import Event
    >>> events = [Event("k", "1", 0.0, {"a": 1.0}), Event("k", "1", 5.0, None, True), Event("k", "2", 6.0, {"a": 1.0})]
    >>> with beam.Pipeline(runner=FnApiRunner()) as root:
    ...     learned = root | beam.Create(events) | LearnPerKey(PAClassifier(learn_intercept=False))
    ...     _ = learned.predictions | beam.Map(lambda p: print(p.id, p.prediction, p.score))
    1 False 0.0
    2 True 1.0

    """

    def __init__(self, model: Any, **options: Any):
        super().__init__()
        self._spec = CellSpec(model, **options)

    def expand(self, events: Any) -> Learned:
        keyed = events | "ToKey" >> beam.ParDo(_KeyFn(self._spec.shards)).with_outputs(Rejected.tag, main="keyed")
        learned = learn_keyed(keyed.keyed, self._spec)
        refused = typed(keyed[Rejected.tag], Rejected)
        return learned._replace(rejected=(learned.rejected, refused) | "Rejected" >> beam.Flatten())


def learn_keyed(keyed: Any, spec: CellSpec, placing: Placing | None = None, is_apart: bool = False) -> Learned:
    """Run the cells over PCollection[(key, Batch)]; with `placing`, emit lists of what it makes of each record.

    `is_apart` asks the runner for another environment than the rest of the job has, and so for another worker.
    """
    check_runner(keyed)
    bounded = keyed.is_bounded
    learn = beam.ParDo(LearnPerKeyFn(spec, bounded, placing))
    if is_apart:
        learn = learn.with_resource_hints(min_ram="1MB")
    outputs = typed(keyed, tuple[str, Batch]) | "Learn" >> learn.with_outputs(*TAGS)
    kinds = [record if placing is None else list[tuple[bytes, bytes]] for record in OUTPUTS]
    return Learned(*(typed(outputs[tag], kind) for tag, kind in zip(TAGS, kinds, strict=True)))


def typed(collection: Any, hint: Any) -> Any:
    """Say what a tagged output holds, which `with_output_types` cannot: else its keys and records would be pickled."""
    collection.element_type = convert_to_beam_type(hint)
    return collection


def check_runner(events: Any) -> None:
    """`ValueError` in one line if the operator cannot work over this input on this runner."""
    window = type(events.windowing.windowfn)
    if window is not GlobalWindows:
        raise ValueError(f"LearnPerKey needs its input in the global window, got {window.__name__}")
    runner = type(events.pipeline.runner).__name__
    if runner in _WITHOUT_STATE:
        raise ValueError(f"{runner} has no state and timers, which LearnPerKey needs")
    if runner == "FnApiRunner" and not events.is_bounded:
        raise ValueError("FnApiRunner fires event-time timers after each bundle of an unbounded input: use PrismRunner")
    if runner == "PrismRunner":
        # Prism splits a slow bundle of a stateful stage inside a key, whose halves then run at once and overwrite each
        # other's state (Beam 2.77, measured: updates lost). This experiment is its own switch for that.
        events.pipeline.options.view_as(DebugOptions).add_experiment("prism_disable_sdf_split")
        # It waits for some bundles by asking again and again; with as many threads as cores, on one core none is left
        # to bring what it waits for (measured: the job stands still). A Prism started from here inherits this.
        os.environ.setdefault("GOMAXPROCS", str(max(_PRISM_THREADS, os.cpu_count() or 1)))


class _KeyFn(beam.DoFn):
    """Event -> (engine key, [(0, Event)]), its key canonical text; what is no event becomes a rejected record."""

    def __init__(self, shards: int | None):
        self._shards = shards

    def process(self, element: Event) -> Iterator[Any]:
        event = element if type(element.key) is str else stream.event_from(element._asdict())
        if isinstance(event, Rejected):
            yield beam.pvalue.TaggedOutput(Rejected.tag, event)
        else:
            yield stream.engine_key(event.key, self._shards), [(0, event)]
