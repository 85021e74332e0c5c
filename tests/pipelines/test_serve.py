"""The live operator over bounded input in process: units to the file, on from the file, warm from another."""

import pytest
from apache_beam import Create, Map, Pipeline
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

import pa_river
from beam_pipelines import units
from beam_pipelines.broker import Partition
from beam_pipelines.learn import Batch
from beam_pipelines.live import to_shard
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


def served(path, given, cells=None, save_every=7):
    """One run of the job; (the offset it must be read from, its store)."""
    store = LiveStore(path)
    run, (log,) = store.begin([LOG])
    cells = cells or spec()
    given = [event for event in given if event.seq >= log.start]
    with Pipeline(runner=FnApiRunner()) as root:
        keyed = root | Create(batches(given), reshuffle=False).with_output_types(tuple[str, Batch])
        keyed = keyed | Map(to_shard, cells).with_output_types(tuple[str, Batch])
        made = keyed | Serve(cells, Resume(store), save_every=save_every, save_within=None)
        made | WriteUnits(store, run)
    return log.start, store


def said(store):
    return {(made.id, made.kind): made.line for _, made in store.records()}


def sorted_by_key(store):
    return {(key, made.id, made.kind) for _, key, made in store.after(0, 10_000)}


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
    cells = cells or spec()
    held = {key: cells.open(cells.engine_key(key), store.blob(cells.engine_key(key))) for key in ("k0", "k1", "k2")}
    return {key: pa_river.dumps(holder.model(key)) for key, holder in held.items() if holder.version(key)}


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
    _, store = served(tmp_path / "snapshots.db", later, spec(reader=warm))
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


@pytest.mark.parametrize("options", [{"shards": 2}, {"order": "event_time", "shards": 2}, {"order": "event_time"}])
def test_shards_and_order_change_nothing_in_what_is_stored_and_gone_on_from(tmp_path, options):
    cells, path = spec(snapshot_every=4, **options), tmp_path / "snapshots.db"
    served(path, events()[:50], cells)
    start, store = served(path, events(), cells)
    assert start == 50
    found = dict(plain(events())[0])
    assert said(store) == found and store.conflicts() == 0
    assert models(store, cells) == plain(events())[1]
    written = SnapshotStore(path).roll_back("k0", 4)
    store = served(path, [*events(), Event("k0", "new", 99.0, {"a": 1.0}, source="t-0", seq=len(events()))], cells)[1]
    assert f'"version":{written.version}' in said(store)["new", "prediction"]


def test_two_keys_of_one_shard_may_use_the_same_id(tmp_path):
    given = [Event(f"k{number}", "1", float(number), {"a": 1.0}, source="t-0", seq=number) for number in range(6)]
    _, store = served(tmp_path / "snapshots.db", given, spec(shards=1))
    assert sorted_by_key(store) == {(f"k{number}", "1", "prediction") for number in range(6)}


def test_a_key_that_left_stays_gone_in_the_next_run_and_knows_its_offsets(tmp_path):
    path, cells = tmp_path / "snapshots.db", spec(idle_ttl=20.0, keep_marks=True, snapshot_every=2)
    given = [Event("k0", "1", 1.0, {"a": 1.0}, True), Event("k0", "2", 2.0, {"a": 1.0}, False),
             Event("k0", "3", 50.0, {"a": 1.0}, True), Event("k0", "4", 500.0, {"a": 1.0})]  # fmt: skip
    given = [event._replace(source="t-0", seq=number) for number, event in enumerate(given)]
    served(path, given[:3], cells)
    _, store = served(path, given, cells)
    versions = {id: line[line.index('"version"'):] for (id, kind), line in said(store).items() if kind == "prediction"}
    assert versions == {"1": '"version":0}', "2": '"version":1}', "3": '"version":0}', "4": '"version":0}'}
    assert cells.open("k0", store.blob("k0")).on_event(given[1]) == []


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
