"""Kill a live job again and again; whatever dies, each event counts once. Used small by a test, large by `proof`."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from beam_pipelines import units
from beam_pipelines.options import parse_model
from pa_river import state, stream
from pa_river.stream import CellSpec, Event
from tests.integration import rig

MODEL = "StandardScaler() | PAClassifier(PA1(C=0.1))"
VICTIMS = ("driver", "prism", "worker")

#: The figures that must be 0.
FAULTS = ("missing", "unexpected", "different", "second_copies_that_differ",
          "outcomes_that_contradict_their_prediction", "models_that_differ", "published_twice",
          "published_and_not_stored", "stored_and_not_published")  # fmt: skip


def log(count: int, keys: int, seed: int) -> Iterator[tuple[str, str]]:
    """About `count` records: features, their labels 50 examples later, some doubled, some without a label."""
    draw = random.Random(seed)
    late: list[tuple[int, tuple[str, str]]] = []
    made = example = 0
    while made < count:
        key, id, at = f"k{int(draw.random() ** 2 * keys)}", str(example), 1e9 + example / 10
        x = {f"f{draw.randrange(20)}": round(draw.gauss(0, 1), 3) for _ in range(5)}
        batch = [rig.event(key, id, at, x=x)]
        if draw.random() < 0.97:
            y = sum(x.values()) + draw.gauss(0, 0.5) > 0
            late.append((example + 50, rig.event(key, id, at + 5, y=y)))
        while late and late[0][0] <= example:
            batch.append(late.pop(0)[1])
        if draw.random() < 0.02:
            batch.append(batch[-1])  # a producer that sends again
        yield from batch
        made += len(batch)
        example += 1


def expected(sent: list[tuple[str, str]], spec: CellSpec) -> tuple[dict[tuple[str, str, str], str], dict[str, Any]]:
    """What plain cells say, without engine, broker or crash: the records, and (version, model) of each key."""
    holders: dict[str, Any] = {}
    said = {}
    for number, (key, value) in enumerate(sent):
        holder = holders.setdefault(key, spec.open(key, None))
        event = stream.parse(value)
        assert isinstance(event, Event)
        for output in holder.on_event(event._replace(source="log", seq=number)):
            if not isinstance(output, stream.Snapshot):
                made = units.record(output)
                said[key, made.id, made.kind] = made.line
    return said, {key: model(holder) for key, holder in holders.items()}


def model(holder: Any) -> tuple[int, bytes]:
    return holder.version(), state.dumps(holder.model())


def run(
    broker: rig.Broker, prism: Path, folder: Path, *, kills: int, count: int, keys: int, seed: int
) -> dict[str, Any]:
    """Send `count` records, kill `kills` times, and compare with plain cells; the figures, all counts of faults 0.

    A part of the log is sent before each start: however fast the job is, there is something new to be killed over.
    """
    draw = random.Random(seed)
    spec = CellSpec(parse_model(MODEL))
    sent = list(log(count, keys, seed))
    topic = broker.topic(f"crash-{folder.name}")
    ends = [len(sent) * (turn + 1) // (kills + 1) for turn in range(kills + 1)]
    said, models = expected(sent, spec)
    pool = rig.Pool(folder)
    output = folder / "out"
    killed: Counter[str] = Counter()
    recoveries: list[float] = []
    begun = time.monotonic()
    try:
        while True:
            turn = killed.total()
            broker.send(topic, sent[ends[turn - 1] if turn else 0:ends[turn]])
            there = len(set(sent[:ends[turn]]))  # a record each, but for what is sent again
            before = rig.rows(output, "SELECT count(*) FROM records")[0][0]
            started = time.monotonic()
            # Two environments, so two worker processes: source and sink in one, cells in the other.
            job = rig.Live(broker, topic, output, prism, "--resume", "--model", MODEL, "--save_every", "100",
                           "--save_within", "1", "--cells_apart", "--stall", "60", "--publish", topic,
                           *pool.options)  # fmt: skip
            try:
                if turn == kills:
                    job.wait_for_records(len(said), 600)
                    _settled(output)
                    up_to = "SELECT value >= (SELECT max(n) FROM records) FROM job WHERE name = 'published'"
                    rig.wait_for(lambda: rig.rows(output, up_to) == [(1,)], 60, "records that were not sent on")
                    break
                job.wait_for_records(before + 1 + int(draw.random() * (there - before - 1)), 600)
                if before:
                    recoveries.append(time.monotonic() - started)
                time.sleep(draw.random())
                victim = VICTIMS[turn % len(VICTIMS)]
                _strike(victim, job, pool, draw)
                killed[victim] += 1
                if victim != "driver":  # the job must notice, and end by itself
                    assert job.wait(240) == 1, job.said()
            finally:
                job.reap()
                for pid in pool.workers():  # of a job that is gone; a supervisor would end them with it
                    rig.kill(pid)
    finally:
        pool.reap()
    return {
        "events": len(sent), "keys": len(models), "kills": dict(killed), "seed": seed,
        "seconds": round(time.monotonic() - begun, 1),
        "median_seconds_from_start_to_first_new_record": round(sorted(recoveries)[len(recoveries) // 2], 1),
        **_faults(output, said, models, spec), **_published(broker, topic, output),
    }


def _strike(victim: str, job: rig.Live, pool: rig.Pool, draw: random.Random) -> None:
    pids = {"driver": [job.pid], "prism": job.prism(), "worker": pool.workers()}[victim]
    rig.kill(draw.choice(sorted(pids)))


def _settled(output: Path) -> None:
    """Wait until a resume point covers everything."""
    rig.wait_for(lambda: rig.rows(output, "SELECT count(*) FROM open") == [(0,)], 60, "units without a resume point")


def _published(broker: rig.Broker, topic: str, output: Path) -> dict[str, int]:
    """How what consumers of committed records are given differs from the job's file."""
    given: Counter[tuple[tuple[str, str, str], str]] = Counter()
    for (tag,) in rig.rows(output, "SELECT DISTINCT tag FROM records"):
        given.update(broker.read(f"{topic}.{tag}"))
    stored = rig.records(output).items()
    return {
        "published": given.total(),
        "published_twice": given.total() - len(given),
        "published_and_not_stored": len(given.keys() - stored),
        "stored_and_not_published": len(stored - given.keys()),
    }


def _faults(output: Path, said: dict[Any, str], models: dict[str, Any], spec: CellSpec) -> dict[str, int]:
    """How the job's file differs from what plain cells say."""
    found = rig.records(output)
    cells = {key: spec.open(key, blob) for key, blob in rig.rows(output, "SELECT key, blob FROM cells")}
    predictions = {key[:2]: json.loads(line) for key, line in found.items() if key[2] == "prediction"}
    outcomes = {key[:2]: json.loads(line) for key, line in found.items() if key[2] == "outcome"}
    return {
        "records": len(found),
        "missing": len(said.keys() - found.keys()),
        "unexpected": len(found.keys() - said.keys()),
        "different": sum(found[key] != said[key] for key in found.keys() & said.keys()),
        "second_copies_that_differ": sum(count for (count,) in rig.rows(
            output, "SELECT value FROM job WHERE name = 'conflicts'")),
        "outcomes_that_contradict_their_prediction": sum(
            outcome["prediction"] != predictions[key]["prediction"] for key, outcome in outcomes.items()),
        "models_that_differ": sum(key not in cells or model(cells[key]) != right for key, right in models.items()),
    }
