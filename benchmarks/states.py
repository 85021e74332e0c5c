"""What a model costs between two events: decode, learn, encode; and the memory of one that stays."""

from __future__ import annotations

import sys
from collections.abc import Callable

from river import linear_model

import pa_river
from benchmarks.measure import Contestant, Row, compare, needs

#: weights of the model, features of the event
SIZES = ((10, 10), (100, 100), (1000, 20), (1000, 100), (100_000, 100))


def cycle(turns: int) -> list[Row]:
    """decode + predict + learn + encode of one event, against a cloudpickled River model."""
    rows = []
    for weights, features in SIZES:
        rounds = max(10, 100_000 // weights)
        x = {f"feature{j}": 1.0 + j % 3 for j in range(features)}
        ours = pa_river.PAClassifier()
        ours.learn_one({f"feature{j}": 1.0 for j in range(weights)}, True)
        theirs = linear_model.PAClassifier(C=1.0, mode=1)
        theirs.learn_one({f"feature{j}": 1.0 for j in range(weights)}, True)

        def native() -> Callable[[], int]:
            def run() -> int:
                blob = pa_river.dumps(ours)
                for turn in range(rounds):
                    model = pa_river.loads(blob)
                    model.step(x, turn % 2 == 0)
                    blob = pa_river.dumps(model)
                return rounds
            return run

        def cloud() -> Contestant:
            import cloudpickle  # type: ignore[import-untyped]

            def prepare() -> Callable[[], int]:
                def run() -> int:
                    blob = cloudpickle.dumps(theirs)
                    for turn in range(rounds):
                        model = cloudpickle.loads(blob)
                        model.predict_one(x)
                        model.learn_one(x, turn % 2 == 0)
                        blob = cloudpickle.dumps(model)
                    return rounds
                return run
            return prepare

        rows.append(compare(f"decode + learn + encode, {weights} weights, {features} features", "ours", {
            "ours": native, "river, cloudpickle": needs("cloudpickle", cloud)}, turns))
    return rows


def memory(turns: int) -> list[Row]:
    """Bytes a weight of a model that stays in memory, against a Python dict of the same names."""
    rows = []
    for count in (100, 10_000, 1_000_000):
        model, weights = pa_river.PAClassifier(), {}
        for begin in range(0, count, 100):
            x = {f"feature{j}": 1.0 for j in range(begin, min(begin + 100, count))}
            model.learn_one(x, begin % 200 == 0)
            weights.update(dict.fromkeys(x, 0.0))
        # what a dict holds, each object rounded to 16 bytes as Python's allocator does
        objects = (size for name in weights for size in (sys.getsizeof(name), sys.getsizeof(0.0)))
        held = sum(-(-size // 16) * 16 for size in objects) + sys.getsizeof(weights)
        own = sys.getsizeof(model._store) if pa_river.NATIVE else held
        packed = sys.getsizeof(pa_river.loads(pa_river.dumps(model))._store) if pa_river.NATIVE else held
        rows.append(Row(
            f"bytes a weight, {count} names", ratios={"dict": held / own, "dict, ours just loaded": held / packed},
            figures={"ours": own / count, "ours just loaded": packed / count, "dict": held / count}))
    return rows


BENCHMARKS = {"cycle": cycle, "memory": memory}
