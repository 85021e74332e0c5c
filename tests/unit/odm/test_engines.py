"""Every engine against retraining by an independent solver, after each of many changes."""

import numpy as np
import pytest

from pa_river import kernels
from pa_river.odm import compiled, engine, loops
from pa_river.odm.engine import Lost
from pa_river.odm.primal import PrimalEngine, TooWide
from pa_river.odm.problem import Problem
from pa_river.odm.rows import DenseRows
from tests.unit.odm import oracle
from tests.unit.odm.streams import ENGINES, Stream

EACH = pytest.mark.parametrize("name", ENGINES)
NATIVE = pytest.mark.skipif(loops.native is None, reason="the compiled core was not built")


@EACH
@pytest.mark.parametrize(
    "lam, right, theta, d",
    [
        (1e-3, None, 0.1, 2), (1.0, None, 0.0, 3), (1.0, 3.0, 0.0, 2), (10.0, None, 0.1, 6), (10.0, 2.0, 0.3, 3),
        (100.0, None, 0.5, 2), (1000.0, None, 0.1, 3), (1000.0, 30.0, 0.9, 2),
    ],
)
def test_after_every_change_the_solution_is_that_of_retraining(name, lam, right, theta, d):
    stream = Stream(ENGINES[name], lam=lam, theta=theta, d=d, right=right, seed=d)
    for _ in stream.random(36):
        assert stream.error() <= (1e-8 if lam <= 100 else 1e-7)


@EACH
@pytest.mark.parametrize("theta", [0.0, 0.1, 0.9])
def test_the_duality_gap_of_the_solution_is_rounding(name, theta):
    stream = Stream(ENGINES[name], lam=10.0, theta=theta, seed=4)
    for _ in stream.random(20):
        H, below, above = stream.parts()
        if len(H):
            alpha = stream.engine.refined()[stream.problem.live()]
            assert abs(oracle.gap(H, below, above, theta, alpha)) <= 1e-9


@EACH
def test_without_a_strip_the_solution_is_one_linear_solve(name):
    stream = Stream(ENGINES[name], lam=2.0, theta=0.0, seed=1)
    for _ in stream.random(24):
        H, below, _ = stream.parts()
        expected = oracle.refined_solve(H + np.diag(1.0 / below), np.ones(len(H))) if len(H) else np.zeros(0)
        assert stream.engine.refined()[stream.problem.live()] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@EACH
@pytest.mark.parametrize("lam", [1.0, 100.0, 1000.0])
def test_to_unlearn_what_was_learned_is_the_identity(name, lam):
    stream = Stream(ENGINES[name], lam=lam, theta=0.1, seed=7)
    stream.change(40, 0)
    live = stream.problem.live()
    before = stream.engine.refined()[live]
    for size in (1, 5):
        stream.change(0, stream.change(size, 0))
        after = stream.engine.refined()[live]
        assert np.abs(after - before).max() <= (1e-8 if lam <= 100 else 1e-7) * np.abs(before).max()


@EACH
def test_many_copies_of_one_x_with_both_labels_stay_exact(name):
    stream = Stream(ENGINES[name], lam=100.0, theta=0.1, seed=3, copies=0.9)
    for _ in stream.random(30):
        assert stream.error() <= 1e-8


@EACH
def test_a_linear_kernel_of_rank_below_its_size_stays_exact(name):
    stream = Stream(ENGINES[name], lam=50.0, theta=0.2, d=4, seed=5, kernel=kernels.Linear())
    for _ in stream.random(30):
        assert stream.error() <= 1e-8


@EACH
def test_a_long_run_of_single_changes_stays_exact_and_goes_through_folds_and_checks(name):
    stream = Stream(ENGINES[name], lam=1000.0, theta=0.05, d=2, seed=11)
    stream.change(30, 0)
    for t in range(400):
        stream.change(1, 1)
        if t % 40 == 0:
            assert stream.error() <= 1e-7
    assert stream.engine.pivots > engine.CHECK_EVERY


@EACH
def test_what_is_lost_to_rounding_is_solved_from_scratch(name, monkeypatch):
    stream = Stream(ENGINES[name], lam=10.0, theta=0.1, seed=2)
    stream.change(25, 0)

    def lose(added, removed):
        raise Lost

    monkeypatch.setattr(stream.engine, "_change", lose)
    stream.change(4, 3)
    monkeypatch.undo()
    assert stream.engine.refits == 1
    assert stream.error() <= 1e-10
    stream.change(4, 3)
    assert stream.error() <= 1e-10


@pytest.mark.parametrize("name", ["pivot", "frozen", "primal"])
def test_sweeps_that_do_not_settle_end_in_newtons_method(name, monkeypatch):
    from pa_river.odm import primal

    stream = Stream(ENGINES[name], lam=100.0, theta=0.2, seed=6)
    monkeypatch.setattr(engine, "SWEEPS", 0)
    monkeypatch.setattr(primal, "SWEEPS", 0)
    for _ in range(5):
        stream.change(6, 0)
        assert stream.error() <= 1e-9
    assert stream.engine.refits == 5


@EACH
def test_the_diagonal_of_the_inverse_gives_leave_one_out_where_the_sets_hold(name):
    stream = Stream(ENGINES[name], lam=0.5, theta=0.0, seed=8, copies=0.0)  # no strip: the sets cannot change
    stream.change(20, 0)
    stream.change(6, 5)
    diagonal = stream.engine.inverse_diagonal()
    H, below, _ = stream.parts()
    for i, slot in enumerate(sorted(stream.live)):
        rest = [j for j in range(len(H)) if j != i]
        alpha = np.linalg.solve(H[np.ix_(rest, rest)] + np.diag(1.0 / below[rest]), np.ones(len(rest)))
        shortcut = 1.0 - stream.problem.alpha[slot] / diagonal[slot]
        assert shortcut == pytest.approx(H[i, rest] @ alpha, abs=1e-10)


def test_on_the_path_nobody_crosses_back_right_after_crossing():
    for seed in range(8):
        lam, theta = [1.0, 100.0, 1000.0][seed % 3], [0.0, 0.3][seed % 2]
        stream = Stream(ENGINES["path"], lam=lam, theta=theta, seed=seed, right=30.0)
        for _ in stream.random(20):
            trace = stream.engine.trace
            for first, second in zip(trace, trace[1:]):
                back = first.slot == second.slot and (first.side == 0) != (second.side == 0)
                through = first.side == 0 and second.length <= 1e-12  # L to R through an empty strip goes on
                assert not back or through or second.length > 1e-12


def test_the_path_ends_with_few_breakpoints_and_without_the_way_out():
    stream = Stream(ENGINES["path"], lam=100.0, theta=0.1, seed=9)
    longest = 0
    for _ in stream.random(60):
        longest = max(longest, len(stream.engine.trace))
        assert sum(event.length for event in stream.engine.trace) <= 1.0 + 1e-12
    assert 0 < longest < 200
    assert stream.engine.refits == 0


def test_ties_on_the_path_are_processed_one_by_one():
    problem = Problem(0.1, DenseRows(kernels.RBF(1.0), 2))
    path = ENGINES["path"](problem)
    grid = [np.array([i / 3, j / 3]) for i in range(4) for j in range(4)]  # symmetric: events coincide
    labels = [1.0 if x[0] > 0.5 else -1.0 for x in grid]
    slots = problem.admit(grid, labels, [100.0] * 16, [100.0] * 16)
    path.change(slots, [])
    path.change([], slots[5:11])
    path.change(problem.admit(grid[5:11], labels[5:11], [100.0] * 6, [100.0] * 6), [])
    live = problem.live()
    H = oracle.rbf_gram(problem.rows.X[live], problem.y[live], 1.0)
    expected = oracle.retrained(H, np.full(16, 100.0), np.full(16, 100.0), 0.1)
    assert path.refined()[live] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_kernel_of_high_rank_is_too_wide_for_the_primal():
    rng = np.random.default_rng(0)
    problem = Problem(0.1, DenseRows(kernels.RBF(1.0), 20))
    problem.admit(list(rng.random((80, 20))), [1.0] * 80, [1.0] * 80, [1.0] * 80)
    problem.solve()
    with pytest.raises(TooWide):
        PrimalEngine(problem, limit=20)


@NATIVE
def test_screening_changes_no_pivot(monkeypatch):
    counts = []
    for worth in (0, 10**12):
        monkeypatch.setattr(compiled, "_WORTH", worth)
        monkeypatch.setattr(compiled, "FEATURES", 8)
        stream = Stream(ENGINES["compiled frozen"], lam=100.0, theta=0.6, d=5, seed=12, copies=0.0)
        pivots = []
        stream.change(120, 0)
        stream.engine.rebuild()
        for _ in range(150):  # arrivals only: a landmark that leaves keeps its slot, and slots give the order of pivots
            stream.change(1, 0)
            pivots.append(stream.engine.pivots)
        assert stream.error() <= 1e-8
        counts.append((pivots, stream.engine.core.looks))
        for _ in range(60):
            stream.change(1, 2)
        assert stream.error() <= 1e-8
    assert counts[0][0] == counts[1][0]
    assert counts[0][1] < counts[1][1] / 2  # and saves most of the looks


@NATIVE
def test_the_compiled_frozen_engine_makes_the_pivots_of_its_reference():
    runs = []
    for name in ("frozen", "compiled frozen"):
        stream = Stream(ENGINES[name], lam=30.0, theta=0.2, seed=13)
        runs.append([(stream.engine.pivots, stream.engine.sweeps, stream.engine.folds) for _ in stream.random(80)])
    assert runs[0] == runs[1]
