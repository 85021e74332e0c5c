"""The baselines solve the same problem, and MID-SVM that of a support vector machine."""

import importlib.util

import numpy as np
import pytest
from sklearn.svm import SVC

from pa_river import kernels
from pa_river.odm import loops
from pa_river.odm.baselines import Retraining
from pa_river.odm.midsvm import MIDSVM
from pa_river.odm.newton import newton
from pa_river.odm.problem import Problem
from pa_river.odm.rows import DenseRows
from tests.unit.odm import oracle
from tests.unit.odm.streams import Stream


@pytest.mark.parametrize("method, tol", [("cold", 1e-9), ("warm", 1e-9), ("newton", 0.0)])
def test_retraining_reaches_the_optimum_after_every_change(method, tol):
    stream = Stream(lambda problem: Retraining(problem, method, tol or 1e-3, 20_000), lam=5.0, theta=0.2, seed=1)
    stream.engine.refined = lambda: stream.problem.alpha[: stream.problem.count]
    for _ in stream.random(16):
        assert stream.error() <= 1e-6


def test_a_warm_start_takes_fewer_sweeps_than_a_cold_one():
    sweeps = []
    for method in ("cold", "warm"):
        stream = Stream(lambda problem, method=method: Retraining(problem, method), lam=10.0, theta=0.1, seed=2)
        stream.change(80, 0)
        for _ in range(10):
            stream.change(1, 1)
        sweeps.append(sum(stream.engine.sweeps[1:]))
    assert sweeps[1] < sweeps[0]


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method"):
        Retraining(Problem(0.1, DenseRows(kernels.RBF(1.0), 2)), "lukewarm")


@pytest.mark.parametrize("lam, theta", [(0.01, 0.1), (10.0, 0.0), (100.0, 0.9), (1000.0, 0.3)])
def test_newton_ends_at_the_optimum_from_anywhere(lam, theta):
    rng = np.random.default_rng(3)
    X, y = rng.random((40, 3)), rng.choice([-1.0, 1.0], 40)
    H, cost = oracle.rbf_gram(X, y, 1.0), np.full(40, lam)
    expected = oracle.retrained(H, cost, cost, theta)
    for start in (None, rng.normal(size=40) * lam):
        alpha, gamma, steps = newton(H, cost, cost, theta, start)
        assert np.abs(alpha - expected).max() <= 1e-9 * np.abs(expected).max()
        assert gamma == pytest.approx(H @ alpha, abs=1e-9) and steps < 60


class SVM:
    """MID-SVM over random data, with libsvm's objective beside it."""

    def __init__(self, m, d, C, seed):
        rng = np.random.default_rng(seed)
        self.X = rng.random((m + 200, d))
        self.y = np.where(self.X.sum(axis=1) + 0.4 * rng.normal(size=len(self.X)) > d / 2, 1.0, -1.0)
        self.problem = Problem(0.0, DenseRows(kernels.RBF(1.0 / d), d))
        self.live = self.problem.admit(list(self.X[:m]), list(self.y[:m]), [1.0] * m, [1.0] * m)
        self.machine, self.C, self.next, self.rng = MIDSVM(self.problem, C), C, m, rng

    def change(self, coming, leaving):
        rows = range(self.next, self.next + coming)
        self.next += coming
        slots = self.problem.admit(
            [self.X[i] for i in rows], [self.y[i] for i in rows], [1.0] * coming, [1.0] * coming) if coming else []
        gone = [int(slot) for slot in self.rng.choice(self.live, leaving, replace=False)]
        self.machine.change(slots, gone)
        self.live = [slot for slot in self.live if slot not in gone] + slots

    def objectives(self):
        live = np.array(self.live)
        y = self.problem.y[live]
        Q = self.problem.H[np.ix_(live, live)]
        svc = SVC(C=self.C, kernel="precomputed", tol=1e-10).fit(Q * np.outer(y, y), y)
        expected = np.zeros(len(live))
        expected[svc.support_] = np.abs(svc.dual_coef_[0])
        found = self.machine.alpha[live]
        return [0.5 * a @ Q @ a - a.sum() for a in (found, expected)], svc.decision_function(Q * np.outer(y, y))


@pytest.mark.parametrize("m, d, C", [(120, 4, 1.0), (150, 10, 10.0), (120, 6, 100.0), (60, 3, 0.1)])
def test_midsvm_keeps_libsvms_solution_while_examples_come_and_leave(m, d, C):
    svm = SVM(m, d, C, seed=4)
    for coming, leaving in [(0, 0), (5, 0), (1, 1), (5, 3), (0, 5), (5, 5), (3, 0), (0, 1)]:
        svm.change(coming, leaving)
        (found, expected), scores = svm.objectives()
        assert found == pytest.approx(expected, rel=1e-7)
        assert svm.machine.residual() <= 1e-6
        live = np.array(svm.live)
        n = svm.problem.count
        rows = svm.problem.H[live, :n] * np.outer(svm.problem.y[live], svm.problem.y[:n])
        assert svm.machine.decision(rows) == pytest.approx(scores, abs=1e-4)
    assert svm.machine.breakpoints > 0
    assert svm.machine.retrained == 0


@pytest.mark.parametrize("d, m, C", [(4, 150, 100.0), (6, 200, 100.0), (8, 300, 1000.0)])
def test_midsvm_does_not_go_round_in_circles_among_copies(d, m, C):
    rng = np.random.default_rng(2)
    X = (rng.random((m + 20, d)) < 0.5).astype(float)
    y = np.where(X.sum(axis=1) + 0.5 * rng.normal(size=len(X)) > d / 2, 1.0, -1.0)
    problem = Problem(0.0, DenseRows(kernels.RBF(1.0 / d), d))
    problem.admit(list(X[:m]), list(y[:m]), [1.0] * m, [1.0] * m)
    machine = MIDSVM(problem, C)
    for begin in range(m, m + 20, 5):
        before = machine.breakpoints
        machine.change(problem.admit(list(X[begin:begin + 5]), list(y[begin:begin + 5]), [1.0] * 5, [1.0] * 5), [])
        assert machine.residual() <= 1e-6
        assert machine.breakpoints - before < 500  # where ties go on for ever, it is trained again instead
    assert machine.retrained > 0


def test_the_compiled_loops_do_what_the_numpy_ones_do(monkeypatch):
    if loops.native is None:
        pytest.skip("the compiled core was not built")
    monkeypatch.setenv("PA_RIVER_NATIVE", "0")
    spec = importlib.util.find_spec("pa_river.odm.loops")
    pure = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pure)
    assert pure.native is None
    rng = np.random.default_rng(5)
    X, x, y = rng.random((20, 4)), rng.random(4), rng.choice([-1.0, 1.0], 20)
    assert loops.rbf_row(X, 13, x, 0.7, 0.3) == pytest.approx(pure.rbf_row(X, 13, x, 0.7, 0.3), rel=1e-14)
    H = oracle.rbf_gram(X, y, 1.0)
    both = []
    for each in (loops, pure):
        B = np.zeros((24, 24))
        B[:10, :10] = np.linalg.inv(H[:10, :10] + np.eye(10))
        u = B[:10, :10] @ H[:10, 10]
        each.grow_inverse(B, 10, u, 2.0 - H[10, :10] @ u)
        b = each.shrink_inverse(B, 11, 3)
        alpha, gamma = np.zeros(20), np.zeros(20)
        each.coordinate_descent(H, np.arange(20), alpha, gamma, np.full(20, 3.0), np.full(20, 2.0), 0.1, 1e-12, 5000, 1)
        svm = np.zeros(20)
        each.smo(H, np.arange(20), y, svm, 2.0, 1e-12, 10**6)
        G = np.zeros((20, 24))
        each.enter(G, y, 5, 5, X[:5, 0].copy(), -1.0)
        both.append((B[:10, :10].copy(), b, alpha, gamma, svm, G))
    for compiled, reference in zip(*both):
        assert compiled == pytest.approx(reference, rel=1e-7, abs=1e-9)
    side = np.array([1, 2, 0], np.int8)
    for values, expected in [([1.0, np.nan, 2.0], True), ([1.0, 2.0, np.inf], False), ([1e101, 0.0, 0.0], False)]:
        for each in (loops, pure):
            assert each.tame(np.array(values), side, 3, 1e100) is expected
