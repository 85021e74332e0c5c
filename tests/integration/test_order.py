"""By event time on Prism, over a real broker: whatever order events come in, the same records and the same models."""

import random

import pytest

import pa_river
from pa_river import PA1, PAClassifier
from pa_river.stream import CellSpec
from tests.integration import rig

pytestmark = pytest.mark.slow

LATENESS = 20.0
KEYS = 8
EVENTS = 1_200  # more than one bundle of each partition


def events():
    """(time, message): features now, labels some seconds later, queries between."""
    found = []
    for step in range(EVENTS):
        key, time = f"k{step % KEYS}", 1_000.0 + step
        x = {"a": step % 5 - 2, "b": step % 3}
        found.append((time, rig.event(key, str(step), time, x=x)))
        found.append((time + 7.0, rig.event(key, str(step), time + 7.0, y=step % 7 > 3)))
        if step % 10 == 0:
            found.append((time + 0.5, rig.event(key, f"q{step}", time + 0.5, x=x, op="query")))
    return sorted(found)


def shuffled(found, seed):
    """An order of arrival in which nothing comes more than the lateness behind a later event."""
    draw = random.Random(seed)
    return sorted(found, key=lambda entry: entry[0] + draw.uniform(0.0, LATENESS))


def learned(broker, job, shards):
    """The records and the models of the job, once it has told everything."""
    told = 2 * EVENTS + EVENTS // 10
    query = "SELECT count(*) FROM records WHERE key LIKE 'k%'"
    rig.wait_for(lambda: rig.rows(job.output, query) == [(told,)], 120, f"fewer than {told} records")
    outcomes = dict(rig.rows(job.output, "SELECT key, count(*) FROM outcomes WHERE key LIKE 'k%' GROUP BY 1"))
    models = {}

    def saved():
        models.update(models_of(job, shards))
        return {key: version for key, (version, _) in models.items()} == outcomes

    rig.wait_for(saved, 60, "the last resume points are missing")
    job.reap()
    records = rig.rows(job.output, "SELECT key, id, kind, line FROM records WHERE key LIKE 'k%' ORDER BY 1, 2, 3")
    return records, models


def models_of(job, shards):
    """key -> (version, model) of what the job would go on from."""
    spec, models = CellSpec(PAClassifier(PA1(1.0)), order="event_time", shards=shards), {}
    for name, blob in rig.rows(job.output, "SELECT key, blob FROM cells WHERE blob IS NOT NULL"):
        holder = spec.open(name, blob)
        models.update({key: (holder.version(key), pa_river.dumps(holder.model(key))) for key in holder.keys()})
    return {key: model for key, model in models.items() if key.startswith("k")}


@pytest.mark.parametrize("shards", [None, 2])
def test_events_shuffled_within_the_lateness_give_what_the_sorted_ones_give(broker, live, tmp_path, shards):
    results = []
    more = [] if shards is None else ["--shards", shards]
    for seed in (None, 1):
        topic = broker.topic(f"order{shards}{seed}")
        found = events() if seed is None else shuffled(events(), seed)
        broker.send(topic, [message for _, message in found])
        end = 4_000.0  # a later event in every partition: nothing of the others is waited for any more
        broker.send(topic, [rig.event(f"other{number}", "1", end, x={"a": 1}) for number in range(16)])
        job = live("--resume", "--order", "event_time", "--lateness", LATENESS, "--idle_after", 2, "--save_within", 0.5,
                   *more, output=tmp_path / f"out{seed}", topic=topic)  # fmt: skip
        results.append(learned(broker, job, shards))
    assert results[0] == results[1]
    assert len(results[0][1]) == KEYS
