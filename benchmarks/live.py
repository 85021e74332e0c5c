"""Figures of the live job over a real broker on Prism, and of the bounded one: pace, latency, recovery, bytes, a soak.

    python -m benchmarks.live pace        events/s and CPU an event by keys and shards, next to a bare counter
    python -m benchmarks.live latency     from an event's sending to its stored prediction
    python -m benchmarks.live recovery    from kill -9 and the command's new start to the first new record
    python -m benchmarks.live bytes       of a key, and of a prediction that waits for its label
    python -m benchmarks.live soak        memory over ten minutes, the worker's and the runner's apart
    python -m benchmarks.live plot        docs/live/pace.svg and soak.svg from the figures

Each writes its part of docs/live/figures.json. Needs what the integration tests need: Go, Java 17 and Maven.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from benchmarks import live_bounded, live_plot, measure
from tests.integration import rig, tools

FIGURES = rig.ROOT / "docs" / "live" / "figures.json"
KEYS = (1, 100, 10_000, 100_000)
VARIANTS = ("counter", "single", "cells", "sharded")
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Bench:
    """A broker, and live jobs over its topics."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prism = tools.prism()
        self.broker = rig.Broker(tools.kafka(), folder)
        self._count = 0

    def topic(self) -> str:
        self._count += 1
        return self.broker.topic(f"bench{self._count}")

    @contextmanager
    def job(self, topic: str, *arguments: object, variant: str = "cells") -> Iterator[rig.Live]:
        """A job that is reaped at the end; its folder is new."""
        self._count += 1
        output = self.folder / f"out{self._count}"
        started = rig.Live(self.broker, topic, output, self.prism, *map(str, arguments),
                           module=("benchmarks.live_variants", variant))  # fmt: skip
        try:
            yield started
        finally:
            started.reap()


def pace(bench: Bench, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Each variant catches up with the same log, in turns; its pace is measured while it is under way."""
    rows: list[dict[str, Any]] = []
    for keys in args.keys:
        bounded = [variant for variant in args.variants if variant != "single"]
        rows += live_bounded.pace(keys, args.events // 4, bounded, args.shards, bench.folder)
        topic = bench.topic()
        bench.broker.send(topic, live_bounded.log(args.events, keys))
        for variant in args.variants:
            is_sharded = variant == "sharded"
            more = ["--shards", args.shards] if is_sharded else []
            with bench.job(topic, "--resume", *more, variant="cells" if is_sharded else variant) as job:
                found = _under_way(job, args.events, args.seconds)
            rows.append({"runner": "Prism, Kafka", "keys": keys, "variant": variant, **found})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def _under_way(job: rig.Live, events: int, seconds: float) -> dict[str, Any]:
    """Records a second and CPU a record from the first stored bundle on, for so many seconds or to the last."""
    rig.wait_for(lambda: _stored(job), 180, "no records")
    first = last = (_stored(job), time.monotonic(), *_cpu(job))
    while last[0] < events and (time.monotonic() - first[1] < seconds or first is last):
        time.sleep(0.1)
        if _stored(job) > last[0]:
            last = (_stored(job), time.monotonic(), *_cpu(job))
        if job.poll() is not None or time.monotonic() - first[1] > 10 * seconds:
            raise RuntimeError(f"it stands still: {job.said()}")
    count, took, worker, runner = (after - before for after, before in zip(last, first, strict=True))
    return {"records": count, "per_second": round(count / took), "worker_us": round(worker / count * 1e6, 1),
            "runner_us": round(runner / count * 1e6, 1)}  # fmt: skip


def latency(bench: Bench, args: argparse.Namespace) -> dict[str, Any]:
    """Send at a steady rate; look for the stored predictions every few milliseconds."""
    topic = bench.topic()
    with bench.job(topic, "--resume") as job:
        bench.broker.send(topic, [rig.event("k0", "first", 0.0, x={"a": 1.0})])
        job.wait_for_records(1, 180)
        sent, seen = _sent_and_seen(bench, topic, args.rate, args.seconds, job.output)
    late = sorted(seen.values())
    return {"rate": args.rate, "events": len(sent), "seen": len(late), "p50_ms": _quantile(late, 0.5),
            "p99_ms": _quantile(late, 0.99)}  # fmt: skip


def _sent_and_seen(
    bench: Bench, topic: str, rate: float, seconds: float, output: Path
) -> tuple[dict[str, float], dict[str, float]]:
    """When each event was sent, and how much later its prediction was first seen in the job's file."""
    sent: dict[str, float] = {}
    seen: dict[str, float] = {}
    producer = Producer({"bootstrap.servers": bench.broker.bootstrap, "linger.ms": 0})
    db = sqlite3.connect(f"file:{output}/snapshots.db?mode=ro", uri=True, timeout=30)
    begun, last, end = time.monotonic(), 1, seconds + 10.0
    try:
        while (now := time.monotonic() - begun) < end and not (now > seconds and len(seen) == len(sent)):
            if now < seconds and len(sent) < now * rate:
                id = f"e{len(sent)}"
                key, value = rig.event(f"k{len(sent) % 100}", id, float(len(sent)), x={"a": 1.0, "b": 2.0}, y=True)
                sent[id] = time.monotonic()
                producer.produce(topic, value, key)
                producer.poll(0)
            rows = db.execute("SELECT n, id FROM records WHERE n > ? AND kind = 'prediction'", (last,)).fetchall()
            at = time.monotonic()
            for last, id in rows:
                seen[id] = at
            time.sleep(0.002)
    finally:
        db.close()
        producer.flush(10)
    return sent, {id: at - sent[id] for id, at in seen.items()}


def recovery(bench: Bench, args: argparse.Namespace) -> dict[str, Any]:
    """Kill the driver (and so its workers) in mid-stream; start the same command again."""
    topic, output = bench.topic(), bench.folder / "recovered"
    bench.broker.send(topic, live_bounded.log(args.events, 100))
    seconds = []
    for _ in range(args.turns + 1):
        before = rig.rows(output, "SELECT count(*) FROM records")[0][0]
        begun = time.monotonic()
        job = rig.Live(bench.broker, topic, output, bench.prism, "--resume", "--save_within", "1")
        try:
            job.wait_for_records(before + 1, 180)
            seconds.append(time.monotonic() - begun)
            time.sleep(1.0)
            rig.kill(job.pid)
        finally:
            job.reap()
    again = sorted(seconds[1:])  # the first start recovers nothing
    return {"turns": len(again), "first_start_s": round(seconds[0], 1), "median_s": round(again[len(again) // 2], 1),
            "longest_s": round(again[-1], 1)}  # fmt: skip


def soak(bench: Bench, args: argparse.Namespace) -> dict[str, Any]:
    """Events and late labels at a steady rate for some minutes, workers in a pool of their own; memory every 5 s."""
    topic, pool = bench.topic(), rig.Pool(bench.folder)
    try:
        with bench.job(topic, "--resume", "--save_within", "5", *pool.options) as job:
            bench.broker.send(topic, [rig.event("k0", "first", 0.0, x={"a": 1.0})])
            job.wait_for_records(1, 180)
            series = []
            begun, events = time.monotonic(), live_bounded.log(int(args.rate * args.seconds * 2), args.keys[0])
            for turn in range(int(args.seconds)):
                bench.broker.send(topic, itertools.islice(events, int(args.rate)))
                time.sleep(max(0.0, begun + turn + 1 - time.monotonic()))
                if turn % 5 == 4:
                    worker, runner = sum(map(_rss, pool.workers())), sum(map(_rss, job.prism()))
                    series.append([turn + 1, round(worker, 1), round(runner, 1), round(_rss(job.pid), 1), _stored(job)])
    finally:
        pool.reap()
    half = [row[1] for row in series[len(series) // 2:]]
    return {"rate": args.rate, "keys": args.keys[0], "seconds": args.seconds, "columns": [
        "second", "worker_mb", "runner_mb", "driver_mb", "records"], "series": series,
        "worker_mb_second_half": [min(half), max(half)]}  # fmt: skip


def _stored(job: rig.Live) -> int:
    return int(rig.rows(job.output, "SELECT coalesce(max(n), 0) FROM records")[0][0])


def _cpu(job: rig.Live) -> tuple[float, float]:
    """CPU seconds of the driver, whose threads are the workers, and of Prism."""
    prism = set(job.prism())
    spent = {pid: _seconds(pid) for pid in job.members()}
    return sum(spent[pid] for pid in spent if pid not in prism), sum(spent.get(pid, 0.0) for pid in prism)


def _seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it ended
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def _rss(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 1e6
    except OSError:
        return 0.0


def _quantile(ordered: Sequence[float], share: float) -> float:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 1)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure one thing, print it and keep it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.live", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pace", "latency", "recovery", "bytes", "soak", "plot"))
    parser.add_argument("--keys", type=int, nargs="+", help="pace: 1 100 10000 100000; soak: 1000")
    parser.add_argument("--events", type=int, default=400_000, help="records of the log (%(default)s)")
    parser.add_argument("--seconds", type=float, help="pace: 20 at most a variant; latency: 60; soak: 600")
    parser.add_argument("--rate", type=float, help="events a second: latency 50, soak 300")
    parser.add_argument("--shards", type=int, default=16, help="pace: engine keys of the sharded variant (16)")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS),
                        help="pace: a bare counter; single: events not grouped by key at the source; cells; sharded")
    parser.add_argument("--turns", type=int, default=5, help="recovery: kills (5)")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="the file to keep the figures in")
    args = parser.parse_args(argv)
    rig.reap_when_terminated()
    args.keys = args.keys or ([1_000] if args.what == "soak" else list(KEYS))
    args.seconds = args.seconds or {"pace": 20.0, "latency": 60.0, "soak": 600.0}.get(args.what, 0.0)
    args.rate = args.rate or {"latency": 50.0, "soak": 300.0}.get(args.what, 0.0)
    known = json.loads(args.figures.read_text()) if args.figures.exists() else {}
    if args.what == "plot":
        live_plot.draw(known, args.figures.parent)
        return 0
    if args.what == "bytes":
        found: Any = live_bounded.sizes()
    else:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder))
            try:
                found = {"pace": pace, "latency": latency, "recovery": recovery, "soak": soak}[args.what](bench, args)
            finally:
                bench.broker.reap()
    command = " ".join(["python -m benchmarks.live", *(sys.argv[1:] if argv is None else argv)])
    commands = [command]
    if args.what == "pace" and args.what in known:  # what was not measured now stays
        name = itemgetter("runner", "keys", "variant")
        now = set(map(name, found))
        found = [row for row in known["pace"]["figures"] if name(row) not in now] + found
        commands = [*known["pace"]["commands"], command]
    known[args.what] = {"commands": commands, "machine": measure.machine(), "figures": found}
    args.figures.parent.mkdir(parents=True, exist_ok=True)
    args.figures.write_text(json.dumps(known, indent=1) + "\n")
    print(json.dumps(found, indent=1) if args.what != "soak" else json.dumps({**found, "series": len(found["series"])}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
