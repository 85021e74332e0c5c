"""`LearnPerKey` as a transform: what it takes, what it gives, what it refuses; and the DoFn by itself."""

import os
import random

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.transforms.window import FixedWindows, GlobalWindow

from beam_pipelines.coders import Live
from beam_pipelines.learn import LearnPerKey, LearnPerKeyFn, check_runner
from pa_river import PA1, PAClassifier
from pa_river.stream import CellSpec, Event, Prediction


def model():
    return PAClassifier(PA1(1.0), learn_intercept=False)


# The stream of the issue: two predictions before their labels, a label for nobody, one that never comes, an early one.
STORY = [
    Event("k", "id1", 0.0, {"a": 1.0}),
    Event("k", "id2", 1.0, {"a": 1.0}),
    Event("k", "id2", 2.0, None, True),
    Event("k", "id3", 3.0, {"a": 1.0}),
    Event("k", "id4", 4.0, None, True),
    Event("k", "id1", 5.0, None, True),
    Event("k", "id9", 6.0, None, True),
    Event("k", "id4", 7.0, {"a": -1.0}),
]


@pytest.mark.parametrize("repeat", [0, 2])
def test_the_story_of_one_key_end_to_end(repeat):
    options = PipelineOptions(["--direct_runner_bundle_repeat", str(repeat)])
    with beam.Pipeline(runner=FnApiRunner(), options=options) as root:
        learned = root | beam.Create(STORY, reshuffle=False) | LearnPerKey(model())
        assert learned._fields == ("predictions", "outcomes", "rejected", "orphans", "drift", "snapshots")
        said = learned.predictions | "p" >> beam.Map(lambda p: (p.id, p.prediction, p.score, p.version))
        assert_that(said, equal_to([
            ("id1", False, 0.0, 0), ("id2", False, 0.0, 0), ("id3", True, 1.0, 1), ("id4", False, -1.0, 2),
        ]), "predictions")
        losses = learned.outcomes | "o" >> beam.Map(lambda o: (o.id, o.prediction, o.y, o.loss, o.delay))
        assert_that(losses, equal_to([
            ("id2", False, True, 1.0, 1.0), ("id1", False, True, 1.0, 5.0), ("id4", False, True, 1.0, -3.0),
        ]), "outcomes")
        orphans = learned.orphans | "r" >> beam.Map(lambda o: (o.id, o.kind))
        assert_that(orphans, equal_to([("id9", "no_features"), ("id3", "unlabelled")]), "orphans")
        kept = learned.snapshots | "s" >> beam.Map(lambda s: (s.key, s.version, s.reason, s.generation))
        assert_that(kept, equal_to([("k", 3, "end", 0)]), "snapshots")
        assert_that(learned.rejected, equal_to([]), "rejected")


def test_keys_become_text_at_the_edge_and_what_is_no_key_a_rejected_record():
    given = [Event(key, "1", 0.0, {"a": 1.0}) for key in (7, 7.0, "7", True, None, ("a", 1))]
    with beam.Pipeline(runner=FnApiRunner()) as root:
        learned = root | beam.Create(given, reshuffle=False) | LearnPerKey(model())
        said = learned.predictions | "p" >> beam.Map(lambda p: p.key)
        assert_that(said, equal_to(["7", "true"]), "predictions")  # three spellings of 7: one key, two duplicates
        why = learned.rejected | "r" >> beam.Map(lambda r: r.reason.partition(",")[0])
        assert_that(why, equal_to(["key must be text"] * 2), "rejected")


def test_a_window_other_than_the_global_one_is_refused():
    with pytest.raises(ValueError, match="global window, got FixedWindows"):
        root = beam.Pipeline(runner=FnApiRunner())
        root | beam.Create(STORY) | beam.WindowInto(FixedWindows(10)) | LearnPerKey(model())


def test_an_unbounded_input_on_fn_api_runner_is_refused():
    with pytest.raises(ValueError, match="FnApiRunner fires event-time timers after each bundle"):
        root = beam.Pipeline(runner=FnApiRunner())
        root | PeriodicImpulse() | beam.Map(lambda _: STORY[0]) | LearnPerKey(model())


def test_a_runner_without_state_is_refused_by_name():
    class DaskRunner(FnApiRunner):
        pass

    root = beam.Pipeline(runner=DaskRunner())
    with pytest.raises(ValueError, match="DaskRunner has no state and timers"):
        check_runner(root | beam.Create(STORY))


@pytest.mark.parametrize(("given", "expected"), [(None, 16), ("3", 3)])
def test_prism_gets_threads_to_spin_on_unless_the_user_says_how_many(monkeypatch, given, expected):
    class PrismRunner(FnApiRunner):
        pass

    monkeypatch.setenv("GOMAXPROCS", given or "")
    if given is None:
        monkeypatch.delenv("GOMAXPROCS")
    check_runner(beam.Pipeline(runner=PrismRunner()) | beam.Create(STORY))
    assert int(os.environ["GOMAXPROCS"]) >= expected and given in (None, os.environ["GOMAXPROCS"])


@pytest.mark.parametrize("options", [{"lateness": 1.0}, {"label_ttl": -1}, {"shards": 0}, {"at_end": "stop"}])
def test_what_a_cell_cannot_do_is_refused_when_the_transform_is_built(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        LearnPerKey(model(), **options)


@pytest.mark.parametrize("shards", [None, 2])
def test_by_event_time_a_bounded_input_in_any_order_gives_what_the_sorted_one_gives(shards):
    ordered = [Event(f"k{step % 3}", str(step), float(step), {"a": step % 4 - 1.5}, step % 3 > 0) for step in range(40)]
    expected = []
    for key in ("k0", "k1", "k2"):
        held = CellSpec(model()).open(key, None)
        outputs = [output for event in ordered if event.key == key for output in held.on_event(event)]
        expected += [output for output in outputs if output.tag == "outcomes"]
    with beam.Pipeline(runner=FnApiRunner()) as root:
        shuffled = random.Random(5).sample(ordered, len(ordered))
        learned = root | beam.Create(shuffled) | LearnPerKey(model(), order="event_time", shards=shards)
        assert_that(learned.outcomes, equal_to(expected))


class Cell:
    """Beam's state of one key: the live object within a bundle, its bytes after one."""

    def __init__(self):
        self.value, self.reads, self.writes = None, 0, 0

    def read(self):
        self.reads += 1
        return self.value

    def write(self, value):
        self.writes += 1
        self.value = value

    def clear(self):
        self.value = None


class Timer:
    def __init__(self):
        self.at = None
        self.calls = []

    def set(self, at):
        self.at = at
        self.calls.append(at)

    def clear(self):
        self.at = None


def test_a_bounded_input_arms_one_timer_a_key_at_the_end_of_the_window_and_leaves_nothing_behind():
    fn, cell, wake = LearnPerKeyFn(CellSpec(model(), label_ttl=100.0), bounded=True), Cell(), Timer()
    for event in STORY[:3]:
        list(fn.process(("k", [(0, event)]), cell, wake))
    assert wake.calls == [GlobalWindow().max_timestamp()]
    assert (cell.reads, cell.writes) == (3, 3)
    cell.value = cell.value.holder.dumps()  # the bundle ends
    flushed = [output.tag for output in fn.woken("k", wake.at, cell, wake)]
    assert flushed == ["orphans", "snapshots"]
    assert cell.value is None and wake.at is None


def test_an_unbounded_input_arms_the_earliest_deadline_and_only_when_it_comes_first():
    fn, cell, wake = LearnPerKeyFn(CellSpec(model(), label_ttl=10.0), bounded=False), Cell(), Timer()
    for event in (Event("k", "1", 5.0, {"a": 1.0}), Event("k", "2", 7.0, {"a": 1.0}), Event("k", "3", 2.0, {"a": 1.0})):
        list(fn.process(("k", [(0, event)]), cell, wake))
    assert [float(at.micros) / 1e6 for at in wake.calls] == [15.001, 12.001]
    due = [output.value for output in fn.woken("k", wake.at, cell, wake)]
    assert [(orphan.id, orphan.kind, orphan.time) for orphan in due] == [("3", "unlabelled", 12.0)]
    assert float(wake.at.micros) / 1e6 == 15.001


def test_a_timer_whose_state_is_gone_does_nothing():
    fn = LearnPerKeyFn(CellSpec(model(), label_ttl=10.0), bounded=False)
    assert list(fn.woken("k", GlobalWindow().max_timestamp(), Cell(), Timer())) == []


def test_a_batch_of_events_equals_the_events_one_by_one():
    spec = CellSpec(model())
    one, many = (LearnPerKeyFn(spec, bounded=True) for _ in range(2))
    cells = Cell(), Cell()
    singly = [out.value for event in STORY for out in one.process(("k", [(0, event)]), cells[0], Timer())]
    batch = list(enumerate(STORY))
    at_once = [out.value for out in many.process(("k", batch), cells[1], Timer())]
    assert at_once == singly and isinstance(at_once[0], Prediction)
    assert isinstance(cells[1].value, Live) and cells[1].writes == 1
    assert cells[0].value.holder.dumps() == cells[1].value.holder.dumps()
