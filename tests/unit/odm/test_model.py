"""ODMClassifier as its user meets it: ids, windows, batches, errors, state, against retraining."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from river import compose, metrics, preprocessing
from scipy import sparse

import pa_river
from pa_river import ODMClassifier, kernels
from tests.unit.odm import oracle

ENGINES = ["auto", "path", "pivot", "frozen", "primal"]


def data(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, X.sum(axis=1) + 0.3 * rng.normal(size=n) > d / 2


def retrained(X, y, lam=10.0, theta=0.1, gamma=1.0, right=None, w=None):
    signs, w = np.where(y, 1.0, -1.0), np.ones(len(y)) if w is None else np.asarray(w)
    H = oracle.rbf_gram(np.asarray(X), signs, gamma)
    return oracle.retrained(H, lam * w, (lam if right is None else right) * w, theta), H


def close(model, X, y, **parameters):
    alpha, H = retrained(X, y, **parameters)
    assert len(model) == len(alpha)
    assert np.abs(model.alpha - alpha).max() <= 1e-8 * np.abs(alpha).max()
    assert model.margins() == pytest.approx(H @ alpha, abs=1e-8)
    return True


def as_dict(row):
    return {str(i): value for i, value in enumerate(row.tolist())}


@pytest.mark.parametrize("engine", ENGINES)
def test_learning_one_by_one_at_once_or_in_parts_gives_the_retrained_solution(engine):
    X, y = data(90)
    one, many, parts = (ODMClassifier(10.0, 0.1, engine=engine) for _ in range(3))
    for row, label in zip(X, y):
        one.learn_one(dict(enumerate(row.tolist())), label)
    many.learn_many(X, y)
    parts.learn_many(X[:60], y[:60])
    for start in range(60, 90, 5):
        parts.learn_many(X[start:start + 5], y[start:start + 5])
    for model in (one, many, parts):
        assert close(model, X, y)
        assert model.version == 90


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_unlearned_leaves_no_trace(engine):
    X, y = data(60, seed=1)
    model = ODMClassifier(10.0, 0.1, engine=engine)
    model.learn_many(X, y, ids=range(60))
    for id in (3, 59, 0):
        model.unlearn_one(id=id)
    model.unlearn_one(dict(enumerate(X[7].tolist())), y[7])
    model.unlearn_many(ids=[20, 21, 22])
    model.unlearn_many(X[30:33], y[30:33])
    left = [i for i in range(60) if i not in (3, 59, 0, 7, 20, 21, 22, 30, 31, 32)]
    assert model.ids == left
    assert close(model, X[left], y[left])


def test_one_update_takes_what_comes_and_what_leaves():
    X, y = data(40, seed=2)
    model = ODMClassifier(10.0, 0.1)
    model.learn_many(X[:30], y[:30], ids=range(30))
    coming = [(as_dict_int(X[i]), y[i], i) for i in range(30, 40)]
    model.update(add=coming, remove=[0, 5, (as_dict_int(X[9]), y[9])])
    left = [i for i in range(40) if i not in (0, 5, 9)]
    assert model.ids == left and close(model, X[left], y[left])
    model.update(add=[(as_dict_int(X[0]), y[0], 1)], remove=[1])  # an id that leaves may come again
    left = [i for i in left if i != 1]
    assert close(model, X[[*left, 0]], y[[*left, 0]])


def as_dict_int(row):
    return dict(enumerate(row.tolist()))


def test_weights_scale_both_costs():
    X, y = data(30, seed=3)
    w = np.linspace(0.1, 3.0, 30)
    model = ODMClassifier(10.0, 0.2, lam_right=4.0)
    for row, label, weight in zip(X, y, w):
        model.learn_one(as_dict_int(row), label, weight)
    assert close(model, X, y, theta=0.2, right=4.0, w=w)
    batch = ODMClassifier(10.0, 0.2, lam_right=4.0)
    batch.learn_many(X, y, w=w)
    assert close(batch, X, y, theta=0.2, right=4.0, w=w)


def test_with_max_size_the_oldest_leave():
    X, y = data(70, seed=4)
    model = ODMClassifier(10.0, 0.1, max_size=25)
    for i in range(40):
        model.learn_one(as_dict_int(X[i]), y[i], id=i)
        assert len(model) == min(i + 1, 25)
    assert model.ids == list(range(15, 40)) and close(model, X[15:40], y[15:40])
    model.learn_many(X[40:50], y[40:50], ids=range(40, 50))
    assert model.ids == list(range(25, 50)) and close(model, X[25:50], y[25:50])
    model.learn_many(X, y, ids=range(100, 170))  # more than fit
    assert model.ids == list(range(145, 170)) and close(model, X[45:], y[45:])
    assert model.version == 120


def test_emptied_to_nothing_it_is_as_new_and_learns_again():
    X, y = data(20, seed=5)
    model = ODMClassifier(10.0, 0.1)
    for _ in range(2):
        model.learn_many(X, y, ids=range(20))
        for id in range(20):
            model.unlearn_one(id=id)
        assert len(model) == 0 and model.decision_one(as_dict_int(X[0])) == 0.0
        assert model.predict_one(as_dict_int(X[0])) is False
        assert model.certificate() == (0.0, 0.0, 0.0, 0.0)
        assert model.margins().tolist() == [] and model.leave_one_out().tolist() == [] and model.support == []
    model.learn_many(X, y)
    assert close(model, X, y)


def test_the_decision_is_the_sum_over_the_support():
    X, y = data(50, seed=6)
    model = ODMClassifier(5.0, 0.3, kernels.RBF(2.0))
    model.learn_many(X, y)
    kernel, x = kernels.RBF(2.0), {0: 0.3, 1: 0.9, 2: 0.1, "never seen": 0.5}
    expected = sum(coefficient * kernel(z, x) for z, coefficient in model.support)
    assert model.decision_one(x) == pytest.approx(expected, abs=1e-12)
    assert len(model.support) < 50
    assert model.predict_many(X).tolist() == [model.predict_one(as_dict_int(row)) for row in X]


def test_leave_one_out_margins_are_those_of_retraining_without_each():
    X, y = data(40, seed=7)
    for lam, theta in ((1.0, 0.1), (100.0, 0.4)):
        model = ODMClassifier(lam, theta)
        model.learn_many(X, y)
        before = pa_river.dumps(model)
        found = model.leave_one_out()
        for i in range(40):
            rest = [j for j in range(40) if j != i]
            alpha, _ = retrained(X[rest], y[rest], lam, theta)
            cross = oracle.rbf_gram(X, np.where(y, 1.0, -1.0), 1.0)[i, rest]
            assert found[i] == pytest.approx(cross @ alpha, abs=1e-8)
        assert pa_river.dumps(model) == before


def test_the_certificate_is_of_the_size_of_rounding_and_tells_a_wrong_solution():
    X, y = data(60, seed=8)
    model = ODMClassifier(100.0, 0.1)
    model.learn_many(X, y)
    certificate = model.certificate()
    assert abs(certificate.gap) <= 1e-9 * certificate.primal and certificate.residual <= 1e-11
    wrong = model._solver.problem.certificate(model._solver.exact() * 1.01)
    assert wrong.gap > 1e-4 and wrong.residual > 1e-4


@pytest.mark.parametrize(
    "kernel",
    [kernels.Linear(), kernels.Polynomial(2, coef0=1.0), kernels.RBF(0.5), lambda x, z: 1.0 + kernels.Linear()(x, z)],
    ids=["linear", "polynomial", "rbf", "any callable"],
)
def test_every_kernel_gives_the_solution_of_its_own_gram_matrix(kernel):
    X, y = data(30, seed=9)
    model = ODMClassifier(2.0, 0.1, kernel)
    for row, label in zip(X, y):
        model.learn_one(as_dict_int(row), label)
    signs = np.where(y, 1.0, -1.0)
    K = np.array([[kernel(as_dict_int(a), as_dict_int(b)) for b in X] for a in X])
    expected = oracle.retrained(K * np.outer(signs, signs), np.full(30, 2.0), np.full(30, 2.0), 0.1)
    assert model.alpha == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_a_bias_comes_through_the_kernel():
    xs = [{"a": value} for value in (1.0, 1.2, 2.0, 2.2)]
    model = ODMClassifier(1000.0, 0.0, kernels.Polynomial(1, coef0=1.0))
    for x, y in zip(xs, (False, False, True, True)):
        model.learn_one(x, y)
    assert [model.predict_one(x) for x in xs] == [False, False, True, True]
    assert model.predict_one({}) is False and model.decision_one({}) < -1.0


def test_what_cannot_be_done_is_said_and_changes_no_byte():
    X, y = data(12, seed=10)
    model = ODMClassifier(10.0, 0.1)
    model.learn_many(X, y, ids=range(12))
    before = pa_river.dumps(model)
    x = as_dict_int(X[0])
    for call, message in [
        (lambda: model.learn_one(x, True, id=3), "there is an example with the id 3 already"),
        (lambda: model.learn_many(X[:2], y[:2], ids=["a", "a"]), "id 'a' already"),
        (lambda: model.learn_many(X[:2], y[:2], ids=["a"]), "X has 2 rows, ids has 1"),
        (lambda: model.unlearn_one(id="unknown"), "no example with the id 'unknown'"),
        (lambda: model.unlearn_one({0: 9.0}, True), "no example equal to this x and y"),
        (lambda: model.unlearn_one(x, not y[0]), "no example equal to this x and y"),
        (lambda: model.unlearn_one(), "takes an id, or x and y"),
        (lambda: model.unlearn_many(), "takes ids, or X and y"),
        (lambda: model.unlearn_many(ids=[1, 1]), "to be removed twice"),
        (lambda: model.unlearn_many(ids=[1, 99]), "no example with the id 99"),
        (lambda: model.unlearn_many(X[[0, 0]], y[[0, 0]]), "no example equal"),
        (lambda: model.update(add=[(x, True, 1), (x, True, 1)], remove=[1]), "id 1 already"),
        (lambda: model.update(add=[(x,)]), "update"),
        (lambda: model.learn_one({"a": float("nan")}, True), "feature 'a'"),
        (lambda: model.learn_one(x, "yes"), "binary label"),
        (lambda: model.learn_one(x, True, -1.0), "weight"),
        (lambda: model.learn_one(x, True, 1e308), "out of the range"),
        (lambda: model.learn_one(x, True, id=[1]), "hashable"),
        (lambda: model.learn_one(x, True, id=float("nan")), "equal to itself"),
        (lambda: model.learn_many([[1.0, float("inf"), 0.0]], [True]), "row 0: feature 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
        assert pa_river.dumps(model) == before


@pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.Polynomial(3)], ids=str)
def test_an_example_beyond_the_kernels_range_is_refused_and_changes_no_byte(kernel):
    model = ODMClassifier(1.0, 0.1, kernel)
    model.learn_many(*data(10, seed=11))
    before = pa_river.dumps(model)
    for huge in (1e200, 1e60, 1e7):
        message = "not finite, or beyond" if huge > 1e10 else "beyond what finite precision can solve"
        with pytest.raises(ValueError, match=message):
            model.learn_one({"new": huge}, True)
        with pytest.raises(ValueError, match=message):
            model.update(add=[({0: 1.0}, True), ({"new": huge}, True)], remove=[])
        assert pa_river.dumps(model) == before
    assert model._solver.problem.rows.width == 3  # the refused name has left no column


def test_a_failure_inside_the_solver_puts_everything_back(monkeypatch):
    X, y = data(40, seed=12)
    model = ODMClassifier(10.0, 0.1)
    model.learn_many(X[:30], y[:30], ids=range(30))
    model.update(add=[(as_dict_int(X[30]), y[30], 30)], remove=[0])
    before = pa_river.dumps(model)

    def fail(*_args, **_more):
        raise np.linalg.LinAlgError("made up")

    monkeypatch.setattr("pa_river.odm.problem.newton", fail)
    monkeypatch.setattr(type(model._solver.engine), "_change", fail)
    with pytest.raises(ValueError, match="cannot be factored"):
        model.update(add=[(as_dict_int(X[31]), y[31], 31)], remove=[1, 2])
    monkeypatch.undo()
    assert pa_river.dumps(model) == before
    model.update(add=[(as_dict_int(X[31]), y[31], 31)], remove=[1, 2])
    assert close(model, X[3:32], y[3:32])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stored_model_continues_equal_within_1e_8(engine):
    X, y = data(60, seed=13)
    model = ODMClassifier(10.0, 0.1, max_size=40, engine=engine)
    model.learn_many(X[:35], y[:35], ids=[("row", i) for i in range(35)])
    loaded = pa_river.loads(pa_river.dumps(model))
    assert repr(loaded) == repr(model) and loaded.ids == model.ids and loaded.version == model.version
    assert pa_river.dumps(loaded) == pa_river.dumps(model)
    for i in range(35, 60):
        x = as_dict_int(X[i])
        assert loaded.decision_one(x) == pytest.approx(model.decision_one(x), rel=1e-8, abs=1e-10)
        for each in (model, loaded):
            each.learn_one(x, y[i], id=("row", i))
        assert loaded.alpha == pytest.approx(model.alpha, rel=1e-8, abs=1e-9)


def test_multipliers_in_stored_bytes_that_solve_nothing_are_solved_again():
    X, y = data(20, seed=14)
    model = ODMClassifier(10.0, 0.1)
    model.learn_many(X, y)
    state = model._get_state()
    other = ODMClassifier(10.0, 0.1)
    other._set_state({**state, "alpha": np.zeros(20)})
    assert close(other, X, y)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s.update(y=s["y"][:-1]), lambda s: s.update(ids=["a", "a", *s["ids"][2:]]),
        lambda s: s.update(version=-1),
        lambda s: s.update(alpha=np.full(5, np.nan)), lambda s: s.update(w=np.full(5, -1.0)),
        lambda s: s.update(x=[{"a": float("inf")}] * 5), lambda s: s.update(y=["no"] * 5), lambda s: s.pop("alpha"),
        lambda s: s.update(x=s["x"] * 3, y=s["y"] * 3, ids=[None] * 15, w=np.ones(15), alpha=np.ones(15)),
    ],
)
def test_a_state_that_does_not_fit_is_refused(spoil):
    model = ODMClassifier(max_size=10)
    model.learn_many(*data(5))
    state = model._get_state()
    spoil(state)
    model._get_state = lambda: state
    with pytest.raises(pa_river.StateError):
        pa_river.loads(pa_river.dumps(model))


def test_copies_and_pickles_go_their_own_way():
    X, y = data(30, seed=15)
    model = ODMClassifier(10.0, 0.1)
    model.learn_many(X, y, ids=range(30))
    model.unlearn_one(id=4)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        twin.unlearn_one(id=5)
        twin.learn_one(as_dict_int(X[4]), y[4], id=4)
        order = [i for i in range(30) if i not in (4, 5)] + [4]
        assert close(twin, X[order], y[order])
    assert model.ids == [i for i in range(30) if i != 4]
    assert len(model.clone()) == 0


def test_frames_and_sparse_matrices_are_read_as_rows():
    X, y = data(20, seed=16)
    frame, matrix = ODMClassifier(10.0, 0.1), ODMClassifier(10.0, 0.1)
    frame.learn_many(pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(y))
    matrix.learn_many(sparse.csr_matrix(X), y)
    assert close(frame, X, y) and close(matrix, X, y)
    predicted = frame.predict_many(pd.DataFrame(X, columns=["a", "b", "c"], index=range(5, 25)))
    assert predicted.index.tolist() == list(range(5, 25)) and predicted.tolist() == matrix.predict_many(X).tolist()


def test_it_runs_in_a_river_pipeline():
    X, y = data(120, seed=17)
    model = compose.Pipeline(preprocessing.StandardScaler(), ODMClassifier(10.0, 0.1, max_size=60))
    metric = metrics.Accuracy()
    for row, label in zip(X, y):
        x = as_dict(row)
        metric.update(bool(label), model.predict_one(x))
        model.learn_one(x, bool(label))
    assert metric.get() > 0.6


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"lam": 0.0}, "lam"), ({"lam": float("nan")}, "lam"), ({"theta": 1.0}, "theta"), ({"theta": -0.1}, "theta"),
        ({"theta": "0.1"}, "theta"), ({"kernel": 3}, "kernel"), ({"lam_right": -1.0}, "lam_right"),
        ({"max_size": 0}, "max_size"), ({"engine": "fast"}, "engine"),
    ],
)
def test_a_parameter_out_of_range_is_named_when_built(parameters, message):
    with pytest.raises(ValueError, match=rf"ODMClassifier\({message}=...\)"):
        ODMClassifier(**parameters)


def test_auto_takes_the_primal_engine_where_the_rank_is_low_and_the_frozen_one_elsewhere():
    low, high = ODMClassifier(10.0, 0.0), ODMClassifier(10.0, 0.0, kernels.RBF(1.0))
    X, y = data(400, d=1, seed=18)
    low.learn_many(X, y)
    low.learn_one({0: 0.123}, True)
    Z, labels = data(400, d=12, seed=18)
    high.learn_many(Z, labels)
    high.learn_one({0: 0.123}, True)
    assert (low._solver.engine.name, high._solver.engine.name) == ("primal", "frozen")
    assert close(low, np.vstack([X, [[0.123]]]), np.append(y, True), theta=0.0)
    for i in range(400):  # one dimension, then many: the features no longer do
        low.learn_one({0: Z[i, 0], 1: 9.0 * Z[i, 1], 2: 9.0 * Z[i, 2], 3: 9.0 * Z[i, 3]}, labels[i])
    assert low._solver.engine.name == "frozen"
    assert low.certificate().residual <= 1e-10


def test_text_of_very_many_names_is_kept_sparse(monkeypatch):
    monkeypatch.setattr("pa_river.odm.solver.WIDEST", 50)
    monkeypatch.setattr("pa_river.odm.rows.SparseRows._REBUILD", 7)
    rng = np.random.default_rng(19)
    for kernel in (kernels.RBF(0.1), kernels.Linear()):
        model, kept = ODMClassifier(10.0, 0.1, kernel, max_size=30), []
        for i in range(60):
            words = {f"w{word}": float(rng.integers(1, 4)) for word in rng.integers(0, 200, 8)}
            model.learn_one(words, bool(i % 2))
            kept = [*kept, (words, i % 2)][-30:]
        assert type(model._solver.problem.rows).__name__ == "SparseRows"
        signs = np.array([1.0 if y else -1.0 for _, y in kept])
        K = np.array([[kernel(a, b) for b, _ in kept] for a, _ in kept])
        expected = oracle.retrained(K * np.outer(signs, signs), np.full(30, 10.0), np.full(30, 10.0), 0.1)
        assert model.alpha == pytest.approx(expected, rel=1e-8, abs=1e-9)
        words = {"w1": 1.0, "w2": 2.0, "unseen": 1.0}
        assert model.decision_one(words) == pytest.approx(
            sum(c * kernel(z, words) for z, c in model.support), abs=1e-9
        )


def test_names_that_come_and_go_leave_no_columns_behind():
    model = ODMClassifier(1.0, 0.1, max_size=10)
    for i in range(300):
        model.learn_one({f"name{i}": 1.0, "always": i / 300}, bool(i % 3))
    assert model._solver.problem.rows.width <= 60
    assert model._solver.problem.rows.X.shape[1] <= 128
    assert model.certificate().residual <= 1e-12


def test_far_off_but_close_examples_keep_their_distance():
    # |x|^2 + |z|^2 - 2 x.z would lose all digits of a distance of 1 at 1e9
    model = ODMClassifier(1.0, 0.0, kernels.RBF(1.0))
    model.learn_one({"a": 1e9}, True)
    model.learn_one({"a": 1e9 + 1.0}, False)
    k = np.exp(-1.0)
    expected = np.linalg.solve(np.array([[2.0, -k], [-k, 2.0]]), np.ones(2))
    assert model.alpha == pytest.approx(expected, rel=1e-12)


def test_a_machine_stored_by_version_0_1_0_still_loads():
    model = pa_river.loads((Path(__file__).parents[2] / "states" / "v1_odmclassifier.bin").read_bytes())
    assert model.ids == ["first", ("row", 2)] and model.max_size == 3 and model.version == 2
    # no strip: (H + diag(1/2, 1/4)) alpha = 1 with H = [[1, -1], [-1, 2]]
    assert model.alpha == pytest.approx([1.3684210526315790, 1.0526315789473684], rel=1e-12)
    model.unlearn_one(id="first")
    assert model.alpha == pytest.approx([1.0 / 2.25], rel=1e-12)


def _window(changes, engine):
    rng = np.random.default_rng(20)
    model = ODMClassifier(1000.0, 0.05, kernels.RBF(0.5), max_size=60, engine=engine)
    worst = 0.0
    for t in range(changes):
        x = rng.random(3)
        model.learn_one(as_dict(x), bool(x.sum() + 0.5 * rng.normal() > 1.5), id=t)
        if t % 5 == 4:
            model.unlearn_one(id=t - int(rng.integers(0, 4)))
        if t % (changes // 50) == 0 or t > changes - 20:
            certificate = model.certificate()
            assert abs(certificate.gap) <= 1e-9 * certificate.primal
            worst = max(worst, certificate.residual)
    return worst


def test_a_stream_of_thousands_of_changes_stays_certified():
    assert _window(4000, "auto") <= 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_stream_of_a_hundred_thousand_changes_stays_certified(engine):
    assert _window(83_000, engine) <= 1e-11
