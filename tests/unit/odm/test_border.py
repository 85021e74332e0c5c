"""The compiled bordered inverse: columns made several at a time, kept, carried through folds; and the compiled path."""

import numpy as np
import pytest

from pa_river.odm import compiled, loops
from tests.unit.odm.streams import ENGINES, Stream

pytestmark = pytest.mark.skipif(loops.native is None, reason="the compiled core was not built")


def wrong_by(engine, against_base):
    """How far the kept columns are from B0 h, or from a solution with the base's own system."""
    n, problem = engine.n, engine.problem
    base = engine.base[:n]
    half = np.tril(engine.B[:n, :n])
    B = half + np.tril(half, -1).T
    costs = [problem.cost(slot, side) for slot, side in zip(base, engine.sides[:n])]
    Q = problem.H[np.ix_(base, base)] + np.diag(1.0 / np.array(costs))
    errors = []
    for slot, column in engine.core.columns().items():
        h = problem.H[slot, base]
        errors.append(np.abs(column - (B @ h if against_base else np.linalg.solve(Q, h))).max())
    return max(errors, default=0.0), len(errors)


@pytest.mark.parametrize("size", [1, 3, 6, 7, 40, 530, 1050])
def test_columns_made_in_one_pass_are_the_products_with_the_base(size):
    stream = Stream(compiled.CompiledFrozenEngine, lam=1.0, theta=0.0, d=9, seed=size, copies=0.0)
    problem, engine = stream.problem, stream.engine

    def admit(count):
        drawn = [stream.draw() for _ in range(count)]
        return problem.admit([x for x, _ in drawn], [y for _, y in drawn], [1.0] * count, [1.0] * count)

    admit(size)
    problem.solve()
    for count in (1, 2, 3, 4, 5, 6, 7) if size < 100 else (6,):
        slots = admit(count)
        engine.rebuild()  # the new ones are inside so far
        before = engine.core.passes
        engine.core.warm(slots)
        if size < compiled.LARGE:  # beyond, the columns of those inside are there from the start
            assert engine.core.passes - before == (1 if count <= 6 else 2)
        assert set(engine.core.columns()) >= set(slots)
        error, found = wrong_by(engine, against_base=True)
        assert found >= count and error <= 1e-12 * size


@pytest.mark.parametrize("name", ["compiled frozen", "compiled path"])
@pytest.mark.parametrize(
    "lam, theta, tolerance", [(1.0, 0.5, 1e-12), (5.0, 0.5, 1e-11), (30.0, 0.4, 1e-9), (1000.0, 0.4, 1e-8)]
)
def test_columns_that_are_kept_stay_true_through_folds(name, lam, theta, tolerance):
    stream = Stream(ENGINES[name], lam=lam, theta=theta, d=2, seed=3, copies=0.0)
    stream.change(120, 0)
    kept = 0
    for _ in range(250):
        stream.change(1, 1)
        error, found = wrong_by(stream.engine, against_base=False)
        assert error <= tolerance
        kept = max(kept, found)
    assert stream.engine.folds >= 5 and stream.engine.refits == 0
    assert kept > 0


@pytest.mark.parametrize("lam, carried", [(1.0, True), (1000.0, False)])
def test_columns_outlive_a_fold_only_where_rounding_stays_small(lam, carried):
    stream = Stream(compiled.CompiledFrozenEngine, lam=lam, theta=0.5, d=2, seed=5, copies=0.0)
    stream.change(150, 0)
    stream.change(1, 0)  # room for more
    engine = stream.engine
    engine.fold()
    engine.core.warm(stream.problem.inside().tolist())
    assert engine.core.columns()
    while not engine.k:
        stream.change(1, 1)
    engine.fold()
    assert bool(engine.core.columns()) is carried


def test_a_batch_reads_the_base_once_and_makes_the_pivots_of_one_by_one():
    counts = []
    for size in (1, 6):
        stream = Stream(compiled.CompiledFrozenEngine, lam=1.0, theta=0.0, d=6, seed=7, copies=0.0)
        stream.change(100, 0)
        before = stream.engine.core.passes, stream.engine.pivots
        for _ in range(24 // size):
            stream.change(size, 0)
        assert stream.error() <= 1e-10
        counts.append((stream.engine.core.passes - before[0], stream.engine.pivots - before[1]))
    assert counts[0] == (24, 24)  # no strip: each that comes is one pivot
    assert counts[1] == (4, 24)


def test_what_comes_back_from_outside_the_strip_costs_no_pass():
    stream = Stream(compiled.CompiledFrozenEngine, lam=1.0, theta=0.5, d=3, seed=2, copies=0.0)
    stream.change(60, 0)
    core, pivots, passes = stream.engine.core, 0, 0
    for _ in range(200):
        fresh = stream.change(1, 0)
        before = core.passes
        stream.change(0, fresh)
        passes += core.passes - before
        pivots += 1
    # what an arrival pushes into the strip, its removal pushes out again: from a column that was kept
    assert passes <= pivots / 20
    assert stream.error() <= 1e-10


@pytest.mark.parametrize("seed", range(6))
def test_the_compiled_path_has_the_breakpoints_of_its_reference(seed):
    traces = []
    for name in ("path", "compiled path"):
        lam, theta = [10.0, 30.0, 100.0][seed % 3], [0.1, 0.5][seed % 2]
        stream = Stream(ENGINES[name], lam=lam, theta=theta, seed=seed, right=20.0, copies=0.0)
        events, lengths = [], []
        for _ in range(40):
            fresh = stream.change(3, 0)
            stream.change(0, fresh[:1])  # not drawn by slot: the engines use slots again in another order
            x = stream.problem.rows.X
            events += [(tuple(x[event.slot]), event.side) for event in stream.engine.trace]
            lengths += [event.length for event in stream.engine.trace]
        traces.append((events, lengths))
    assert traces[0][0] == traces[1][0] and len(lengths) >= 20
    assert traces[0][1] == pytest.approx(traces[1][1], abs=1e-8)


def test_the_path_looks_only_at_instances_that_can_reach_an_edge():
    looks = []
    for far in (True, False):
        stream = Stream(ENGINES["compiled path"], lam=1.0, theta=0.5, d=2, seed=4, copies=0.0)
        stream.change(250, 0)
        before = stream.engine.core.looks
        for _ in range(30):
            if not far:  # as if nothing were known
                stream.engine.core.bind(*(getattr(stream.problem, part) for part in ("H", "alpha", "side", "costs")))
            stream.change(1, 1)
        looks.append(stream.engine.core.looks - before)
        assert stream.error() <= 1e-10
    assert looks[0] < 0.7 * looks[1]


def test_a_path_of_too_many_ties_ends_with_end_point_pivots(monkeypatch):
    stream = Stream(ENGINES["compiled path"], lam=10.0, theta=0.2, seed=6)
    stream.change(30, 0)
    core = stream.engine.core
    monkeypatch.setattr(stream.engine, "core", _Stopped(core))
    for _ in range(5):
        stream.change(3, 1)
        assert stream.error() <= 1e-9
    assert stream.engine.refits == 0


class _Stopped:
    """A core whose path is said not to end, after it was followed."""

    def __init__(self, core):
        self._core = core

    def __getattr__(self, name):
        return getattr(self._core, name)

    def follow(self, added, removed, count):
        _, trace = self._core.follow(added, removed, count)
        return 2, trace
