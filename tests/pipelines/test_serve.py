"""The live operator over bounded input in process: units to the file, on from the file, warm from another."""

import pytest
from apache_beam import Create, Pipeline
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

import pa_river
from beam_pipelines import units
from beam_pipelines.broker import Partition
from beam_pipelines.learn import Batch
from beam_pipelines.serve import Resume, Serve, WriteUnits
from beam_pipelines.store import LiveStore
from pa_river import PAClassifier
from pa_river.stream import CellSpec, Event, Snapshot, SnapshotStore

LOG = Partition("t", 0, 0, 1_000, 0, "")


def events(count=60, keys=3):
    """Features now, labels five steps later, as a log numbers them."""
    found = []
    for step in range(count):
        found.append(Event(f"k{step % keys}", str(step), float(step), {"a": float(step % 5 - 2), "b": 1.0}))
        if step >= 5:
            found.append(Event(f"k{(step - 5) % keys}", str(step - 5), float(step), None, step % 5 > 2))
    return [event._replace(source="t-0", seq=number) for number, event in enumerate(found)]


def batches(given):
    found = {}
    for event in given:
        found.setdefault(event.key, []).append((event.seq, event))
    return list(found.items())


def spec(**options):
    return CellSpec(PAClassifier(), at_end="snapshot", **options)


def served(path, given, cells=None, warm=None, save_every=7):
    """One run of the job; (the offset it must be read from, its store)."""
    store = LiveStore(path)
    run, (log,) = store.begin([LOG])
    given = [event for event in given if event.seq >= log.start]
    with Pipeline(runner=FnApiRunner()) as root:
        keyed = root | Create(batches(given), reshuffle=False).with_output_types(tuple[str, Batch])
        made = keyed | Serve(cells or spec(), Resume(store, warm), save_every=save_every, save_within=None)
        made | WriteUnits(store, run)
    return log.start, store


def said(store):
    return {(made.id, made.kind): made.line for _, made in store.records()}


def plain(given, cells=None):
    """What cells say without an engine."""
    holders, found = {}, {}
    for event in given:
        holder = holders.setdefault(event.key, (cells or spec()).open(event.key, None))
        for output in holder.on_event(event):
            if not isinstance(output, Snapshot):
                made = units.record(output)
                found[made.id, made.kind] = made.line
    return found, {key: pa_river.dumps(holder.model()) for key, holder in holders.items()}


def models(store, cells=None):
    return {key: pa_river.dumps((cells or spec()).open(key, store.blob(key)).model()) for key in ("k0", "k1", "k2")}


def test_a_run_stores_what_plain_cells_say(tmp_path):
    _, store = served(tmp_path / "snapshots.db", events())
    assert (said(store), models(store)) == plain(events())


def test_a_second_run_goes_on_where_the_first_one_stopped(tmp_path):
    path = tmp_path / "snapshots.db"
    served(path, events()[:50])
    start, store = served(path, events())
    assert start == 50
    assert (said(store), models(store)) == plain(events())
    assert store.conflicts() == 0


def test_events_that_come_again_change_nothing(tmp_path):
    path = tmp_path / "snapshots.db"
    served(path, events()[:50])
    store = LiveStore(path)
    store.begin([LOG])
    before = models(store)
    run, _ = store.begin([LOG])
    with Pipeline(runner=FnApiRunner()) as root:
        keyed = root | Create(batches(events()[:50]), reshuffle=False).with_output_types(tuple[str, Batch])
        keyed | Serve(spec(), Resume(store), save_every=7, save_within=None) | WriteUnits(store, run)
    assert models(store) == before and store.conflicts() == 0


def test_keys_begin_as_a_bounded_run_left_them(tmp_path):
    holder = spec().open("k0", None)
    for event in events(40, keys=1):
        holder.on_event(event._replace(source="backfill"))
    (snapshot,) = [output for output in holder.on_end() if isinstance(output, Snapshot)]
    warm = SnapshotStore(tmp_path / "backfill.db")
    warm.write([snapshot])
    later = [Event("k0", "new", 100.0, {"a": 1.0}, source="t-0", seq=0)]
    _, store = served(tmp_path / "snapshots.db", later, warm=warm)
    (line,) = said(store).values()
    expected = spec().open("k0", holder.dumps()).on_event(later[0])
    assert line == expected[0].to_json() and f'"version":{snapshot.version}' in line


def test_a_model_rolled_back_while_no_job_ran_is_the_one_that_goes_on(tmp_path):
    path, cells = tmp_path / "snapshots.db", spec(snapshot_every=4)
    _, store = served(path, events()[:50], cells)
    learned = cells.open("k0", store.blob("k0")).version()
    written = SnapshotStore(path).roll_back("k0", 4)
    assert written.version > learned > 4
    _, store = served(path, events()[:51], cells)  # one event of each key, more or less
    later = served(path, [*events()[:51], Event("k0", "new", 99.0, {"a": 1.0}, source="t-0", seq=51)], cells)[1]
    model = pa_river.loads(written.model)
    assert f'"score":{model.decision_one({"a": 1.0})},"version":{written.version}' in said(later)["new", "prediction"]


def test_keys_in_which_something_waits_for_its_time_are_named(tmp_path):
    cells = spec(label_ttl=10.0)
    given = [event._replace(seq=number) for number, event in enumerate(events(2))]
    _, store = served(tmp_path / "snapshots.db", given, cells)
    assert store.waiting() == ["k0", "k1"]
    _, store = served(tmp_path / "other.db", given)
    assert store.waiting() == []  # without a time to live nothing is due


def test_an_unbounded_input_is_refused_on_fnapirunner():
    from beam_pipelines.broker import Broker
    from beam_pipelines.kafka import ReadLog, Reading
    import apache_beam as beam

    root = Pipeline(runner=FnApiRunner())
    read = root | Create([LOG]).with_output_types(Partition) | beam.ParDo(ReadLog(Broker("b:1"), Reading()))
    with pytest.raises(ValueError, match="use PrismRunner"):
        read | Serve(spec(), Resume(LiveStore("nowhere")), save_every=1, save_within=1.0)
