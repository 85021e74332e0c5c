"""A fuzz of the compiled core for AddressSanitizer or valgrind: `python3 develop.py sanitize`, or by hand

    python tests/fuzz_core.py --seconds 60 --seed 1

Random calls on random models, hostile states among them, each compared with the reference. No pytest and no hypothesis
in here: under a sanitizer they would take most of the time.
"""

from __future__ import annotations

import argparse
import copy
import math
import random
import struct
import time
import zlib
from typing import Any

import numpy as np
import scipy.sparse

import pa_river
from pa_river import _compiled, _pairs

VALUES = (0.0, -0.0, 1.0, -2.5, 1e200, -1e-200, 5e-324, 1.7e308, math.nan, math.inf, True, 3, -7, 2**70, 10**400,
          None, "red", np.float64(2.5), np.float32(1.5), [1.0])
NAMES = ("", "a", "b", "ü", "\ud800", "x" * 500, 0, 1, -1, 2**62, 2**63, -(2**64), b"", b"bytes", (), ("a", (b"b", 2)),
         True, np.int64(9), 1.5, None)


def name(rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.2:
        return rng.choice(NAMES)
    return rng.randrange(400) if kind < 0.4 else f"name {rng.randrange(2000)}"


def record(rng: random.Random) -> dict[Any, Any]:
    odd = rng.random() < 0.3
    return {
        name(rng): rng.choice(VALUES) if odd and rng.random() < 0.2 else rng.gauss(0.0, 1.0)
        for _ in range(rng.choice((0, 1, 2, 5, 20, 200)))
    }


def damaged(rng: random.Random, data: bytes) -> bytes:
    """`data` with a few bytes changed, cut or doubled; half of the time with a checksum that fits again."""
    body = bytearray(data[12:])
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(body))
        kind = rng.random()
        if kind < 0.5:
            body[at] ^= 1 << rng.randrange(8)
        elif kind < 0.7:
            body[at:at + 4] = struct.pack("<I", rng.choice((0, 1, 2**16, 2**31, 2**32 - 1)))
        elif kind < 0.85:
            del body[at:at + rng.randrange(1, 9)]
        else:
            body[at:at] = body[at:at + rng.randrange(1, 30)]
        body = body or bytearray(b"N")
    checksum = zlib.crc32(body) if rng.random() < 0.8 else rng.randrange(2**32)
    return data[:8] + struct.pack("<I", checksum) + bytes(body)


def attempt(call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except ValueError:
        return "refused"


def near(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(near(ours[key], theirs[key]) for key in ours)
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)


def compare(model: Any, twin: Any) -> None:
    assert near(model.weights, twin.weights), (model.weights, twin.weights)
    if hasattr(model, "variances"):
        assert near(model.variances, twin.variances), (model.variances, twin.variances)
    assert model.version == twin.version


BINARY, REAL = (True, False, 2), (1.0, -3.0, 1e308, "y")
LABEL = ("a", "b", 3, ("t", 1), None, 0.5, b"c", *range(10, 30))
#: What may be fuzzed, and with which y.
KINDS = (
    (pa_river.PAClassifier, BINARY), (pa_river.PARegressor, REAL), (pa_river.PAMulticlass, LABEL),
    (pa_river.PAMultilabel, ({"a": True, "b": False}, {3: True}, {}, {"c": 2})), (pa_river.ScaledPA, BINARY),
    (lambda rule, **more: pa_river.ScaledPA(rule, eps=0.1, **more), REAL),
    (lambda rule, **more: pa_river.MIRAClassifier(**more), LABEL),
    (lambda rule, **more: pa_river.AROWClassifier(0.3, **more), BINARY),
    (lambda rule, **more: pa_river.AROWMulticlass(**more), LABEL),
    (lambda rule, **more: pa_river.SCWClassifier(0.5, 0.8, "II", **more), BINARY),
    (lambda rule, **more: pa_river.SCWMulticlass(**more), LABEL),
)


def session(rng: random.Random) -> None:
    """One model's life, and its twin's on the reference; the twin takes over the state now and then, so that rounding
    cannot pile up until a passive round here is an active one there."""
    build, goals = rng.choice(KINDS)
    rule = rng.choice((None, pa_river.PA(), pa_river.PA1(0.1), pa_river.PA2(0.3)))
    model = build(rule, learn_intercept=rng.random() < 0.5)
    for _ in range(rng.randrange(1, 60)):
        twin = _compiled.on_reference(pa_river.loads(pa_river.dumps(model)))
        x, w, y = record(rng), rng.choice((1.0, 1.0, 1.0, 0.0, 2, -1.0, math.nan)), rng.choice(goals)
        kind = rng.random()
        if kind < 0.6:
            call = rng.choice(("learn_one", "step"))
            ours, theirs = attempt(getattr(model, call), x, y, w), attempt(getattr(twin, call), x, y, w)
            assert (ours == "refused") == (theirs == "refused"), (ours, theirs)
        elif kind < 0.7:
            attempt(model.predict_one, x), attempt(model.decision_one, x)
        elif kind < 0.75:
            model, twin = copy.deepcopy(model), copy.deepcopy(twin)
        elif kind < 0.85:
            wide = rng.choice((1, 5, 40))
            X = np.array([[rng.gauss(0.0, 1.0) for _ in range(wide)] for _ in range(7)])
            if rng.random() < 0.3:
                X[rng.randrange(7), rng.randrange(wide)] = rng.choice((math.nan, math.inf, 1e308, 0.0))
            Y, table = [rng.choice(goals) for _ in range(7)], rng.choice((np.asarray, scipy.sparse.csr_matrix))
            assert (attempt(model.learn_many, table(X), Y) == "refused") \
                == (attempt(twin.learn_many, table(X), Y) == "refused")
            attempt(model.predict_many, table(X))
        else:
            try:
                strange = pa_river.loads(damaged(rng, pa_river.dumps(model)))
            except pa_river.StateError:
                continue
            attempt(lambda: pa_river.dumps(strange)), attempt(lambda: strange.learn_one(x, y))
            continue
        compare(model, twin)


def token(rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.6:
        names = [f"name {rng.randrange(60)}" for _ in range(rng.choice((0, 1, 5, 20, 80)))]
        return names if rng.random() < 0.05 else list(dict.fromkeys(names))
    if kind < 0.7:
        return f"name {rng.randrange(60)}"
    return record(rng) if kind < 0.98 else rng.choice((None, 3, ["a", 1]))


def sentence(rng: random.Random) -> tuple[list[Any], list[Any]]:
    tokens = [token(rng) for _ in range(rng.choice((0, 1, 2, 5, 20)))]
    return tokens, [rng.choice(("A", "B", 3, ("C", 1), f"tag {rng.randrange(30)}")) for _ in tokens]


def tagger(rng: random.Random) -> None:
    """The same for sequences, one at a time and in batches that are read once."""
    params = {"average": rng.random() < 0.5, "update": rng.choice(("prediction", "max_loss"))}
    model = pa_river.PASequence(rng.choice((None, pa_river.PA(), pa_river.PA1(0.1), pa_river.PA2(0.3))), **params)
    for _ in range(rng.randrange(1, 15)):
        twin = _compiled.on_reference(pa_river.loads(pa_river.dumps(model)))
        stream = [sentence(rng) for _ in range(rng.choice((1, 1, 4)))]
        X, y = [x for x, _ in stream], [y for _, y in stream]
        kind = rng.random()
        if kind < 0.5:
            w = rng.choice((1.0, 1.0, 0.0, -1.0, 3))
            ours, theirs = attempt(model.step, X[0], y[0], w), attempt(twin.step, X[0], y[0], w)
        elif kind < 0.9:
            read = attempt(pa_river.Sentences, X)
            ours = "refused" if read == "refused" else attempt(model.learn_many, read, y)
            theirs = attempt(twin.learn_many, X, y)
        else:
            try:
                strange = pa_river.loads(damaged(rng, pa_river.dumps(model)))
            except pa_river.StateError:
                continue
            attempt(lambda: pa_river.dumps(strange)), attempt(strange.learn_one, X[0], y[0])
            continue
        assert (ours == "refused") == (theirs == "refused"), (ours, theirs)
        compare(model, twin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if not pa_river.NATIVE:
        raise SystemExit("the compiled core is not built: there is nothing to fuzz")
    _pairs.BLOCKS_FROM = 1000  # so that small tables go by blocks of rows, too
    rng, end, sessions = random.Random(args.seed), time.monotonic() + args.seconds, 0
    while time.monotonic() < end:
        rng.choice((session, session, tagger))(rng)
        sessions += 1
    print(f"{sessions} models lived and died, seed {args.seed}")


if __name__ == "__main__":
    main()
