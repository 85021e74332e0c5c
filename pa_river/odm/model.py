"""The exact incremental and decremental optimal margin distribution machine as a River classifier."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base

from pa_river import _proba, _validate, batch, kernels, labels, state
from pa_river.features import features
from pa_river.odm.ledger import Example, Ledger, identity
from pa_river.odm.problem import Certificate
from pa_river.odm.solver import ENGINES, Arrival, Solver
from pa_river.terms import Features

_DEFAULT = kernels.RBF(1.0)


@state.storable
class ODMClassifier(base.Classifier):
    """Optimal margin distribution machine that learns and unlearns exactly: always the solution of retraining.

    It minimises 1/2 |w|^2 + lam/2 sum xi_i^2 + lam_right/2 sum eps_i^2, where xi_i and eps_i are how far the margin
    gamma_i = y_i <w, phi(x_i)> lies below 1 - theta and above 1 + theta: margins near 1, with small variance, instead
    of only the least of them large.

    Parameters
    ----------
    lam
        What a squared distance below the strip costs, against 1/2 |w|^2; not divided by the number of examples.
    theta
        Half the width of the strip in which a margin costs nothing, 0 <= theta < 1.
    kernel
        `RBF(1.0)` if None; any callable k(x, z) on feature dicts. There is no free bias: one comes through the kernel,
        such as `Polynomial(1, coef0=1.0)`.
    lam_right
        What a squared distance above the strip costs; `lam` if None.
    max_size
        Examples kept at most: with one more the oldest leaves. None keeps all.
    engine
        "path" (the paper's), "pivot", "frozen", "primal", or "auto", which takes "primal" where the kernel matrix is
        numerically of low rank and "frozen" elsewhere. All give the same solution.

    Notes
    -----
    x: feature name -> finite number, absent means 0. y: True, 1 or False, 0, -1. w scales lam and lam_right. A
    `ValueError` leaves the model untouched. With m examples, s of them outside the strip, and d features a change costs
    O(s^2 + m d) ("frozen") or O(r^2 + m r) ("primal", rank r); the memory is at most 64 m^2 + 16 m d bytes beside the
    records themselves, and `max_size` bounds m. After every change the solution is that of retraining within 1e-8
    relative (lam <= 100; 1e-7 at 1000); multipliers and margins are refined when read. Sources: Chen, Zhang, Shi and
    Jin, Incremental and Decremental Optimal Margin Distribution Learning, IJCAI 2023, and docs/odm.md.

    Examples
    --------
    >>> from pa_river import ODMClassifier, kernels
    >>> model = ODMClassifier(lam=1.0, theta=0.0, kernel=kernels.Linear())
    >>> model.learn_one({"a": 1.0}, True, id="first")
    >>> model.decision_one({"a": 1.0})  # the w that minimises w^2 / 2 + (1 - w)^2 / 2
    0.5
    >>> model.learn_one({"a": 1.0}, True, id="second")
    >>> model.unlearn_one(id="first")
    >>> round(model.decision_one({"a": 1.0}), 12)
    0.5

    """

    def __init__(
        self, lam: float = 1.0, theta: float = 0.1, kernel: Any = None, *, lam_right: float | None = None,
        max_size: int | None = None, engine: str = "auto",
    ) -> None:
        owner = type(self).__name__
        self.lam = _validate.require_positive(owner, "lam", lam)
        if not (_validate.is_number(theta) and 0.0 <= theta < 1.0):
            raise ValueError(f"{owner}(theta=...) must be a number with 0 <= theta < 1, got {theta!r}")
        self.theta = float(theta)
        if kernel is not None and not callable(kernel):
            raise ValueError(f"{owner}(kernel=...) must be a kernel such as RBF(1.0), or None, got {kernel!r}")
        self.kernel = kernel
        self.lam_right = None if lam_right is None else _validate.require_positive(owner, "lam_right", lam_right)
        self.max_size = None if max_size is None else _validate.require_count(owner, "max_size", max_size)
        self.engine = _validate.require_choice(owner, "engine", engine, ("auto", *ENGINES))
        self._ledger = Ledger()
        self._solver = self._new_solver()
        self._version = 0

    def _new_solver(self) -> Solver:
        return Solver(self.theta, _DEFAULT if self.kernel is None else self.kernel, self.engine)

    _normalise_y = staticmethod(labels.binary)

    @property
    def version(self) -> int:
        """How many examples were learned, those that have left since included."""
        return self._version

    def __len__(self) -> int:
        return len(self._ledger)

    @property
    def ids(self) -> list[Hashable | None]:
        """The ids of the examples it holds, in order of arrival."""
        return [example.id for example in self._ledger.examples()]

    @property
    def alpha(self) -> NDArray[np.float64]:
        """The multipliers in order of arrival, refined: > 0 below the strip, < 0 above it, 0 inside."""
        return self._solver.exact()[self._ledger.slots()]

    @property
    def support(self) -> list[tuple[dict[Any, float], float]]:
        """The examples outside the strip with their coefficients alpha_i y_i, in order of arrival."""
        pairs = zip(self._ledger.examples(), self.alpha.tolist())
        return [(dict(example.x), a if example.y else -a) for example, a in pairs if a]

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0, *, id: Hashable | None = None) -> None:
        """Learn one example exactly.

        Parameters
        ----------
        x
            Feature name -> finite number; a missing name or None means 0, text is an indicator feature.
        y
            True, 1, or False, 0, -1.
        w
            Importance, finite and >= 0: it scales `lam` and `lam_right` for this example. 0 changes nothing at all.
        id
            A name to unlearn it by; no two examples may have the same.

        Raises
        ------
        ValueError
            If a feature, y, w or the id is refused. The model is as before.

        """
        example = self._example(x, y, w, id)
        if example.w:
            self._change([example], [])

    def unlearn_one(self, x: Mapping[Any, Any] | None = None, y: Any = None, *, id: Hashable | None = None) -> None:
        """Unlearn one example exactly: the one with this id, else the oldest equal to (x, y).

        Raises
        ------
        ValueError
            If there is none. The model is as before.

        """
        if id is not None:
            self._change([], [id])
        elif x is None:
            raise ValueError("unlearn_one takes an id, or x and y")
        else:
            self._change([], [(x, y)])

    def step(self, x: Mapping[Any, Any], y: Any, w: float = 1.0, *, id: Hashable | None = None) -> bool:
        """Return what `predict_one(x)` returns, then learn."""
        example = self._example(x, y, w, id)
        prediction = self._solver.decision(example.x) > 0.0
        if example.w:
            self._change([example], [])
        return prediction

    def learn_many(self, X: Any, y: Any, ids: Iterable[Hashable] | None = None, *, w: Any = None) -> None:
        """Learn the rows of X at once, all or nothing.

        Parameters
        ----------
        X
            numpy array or scipy sparse matrix, (n, d): column j is the feature `j`, an int; or a pandas frame, whose
            columns are the names.
        y
            n labels.
        ids
            n ids, or None.
        w
            n weights, or one for all; None for 1.

        Raises
        ------
        ValueError
            Naming row and column; nothing is learned then.

        """
        rows = batch.examples(batch.rows(X), y, w, labels.binary)
        names: Sequence[Any] = [None] * len(rows) if ids is None else list(ids)
        if len(names) != len(rows):
            raise ValueError(f"X has {len(rows)} rows, ids has {len(names)}")
        self._change([_plain(*row, id) for row, id in zip(rows, names) if row[2]], [])

    def unlearn_many(self, X: Any = None, y: Any = None, ids: Iterable[Hashable] | None = None) -> None:
        """Unlearn examples at once, all or nothing: by ids, else the oldest equal to each row of X with its label."""
        if ids is not None:
            self._change([], list(ids))
        elif X is None or y is None:
            raise ValueError("unlearn_many takes ids, or X and y")
        else:
            self._change([], [(phi, label) for phi, label, _ in batch.examples(batch.rows(X), y, None, labels.binary)])

    def update(self, add: Iterable[Sequence[Any]] = (), remove: Iterable[Any] = ()) -> None:
        """Let examples come and leave in one exact step, all or nothing.

        Parameters
        ----------
        add
            Tuples (x, y), (x, y, id) or (x, y, id, w).
        remove
            Ids, or pairs (x, y) whose oldest equal example leaves. What leaves was there before; an id that leaves may
            come again in the same call.

        Raises
        ------
        ValueError
            As in `learn_one` and `unlearn_one`. The model is as before.

        """
        coming = []
        for item in add:
            if not 2 <= len(item) <= 4:
                raise ValueError(f"update(add=...) takes (x, y), (x, y, id) or (x, y, id, w), got {len(item)} values")
            id, w = item[2] if len(item) > 2 else None, item[3] if len(item) > 3 else 1.0
            coming.append(self._example(item[0], item[1], w, id))
        self._change([example for example in coming if example.w], list(remove))

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> bool:
        """Return whether the score is above 0. Never changes the model."""
        return self.decision_one(x) > 0.0

    def decision_one(self, x: Mapping[Any, Any]) -> float:
        """Return the raw score sum_i alpha_i y_i k(x_i, x). Never changes the model."""
        return self._solver.decision(features(x))

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[bool, float]:
        """Return the logistic of the raw score for both labels.

        It sums to 1 and orders as the score does, but is no calibrated probability: a margin has no scale of its own.
        """
        return _proba.logistic(self.decision_one(x))

    def predict_many(self, X: Any) -> Any:
        """Return the predictions for the rows of X: a Series for a frame, with its index; else an array."""
        return batch.like(X, [self._solver.decision(phi) > 0.0 for phi in batch.rows(X)], bool)

    def margins(self) -> NDArray[np.float64]:
        """Return y_i f(x_i) of the examples it holds, in order of arrival. O(m^2)."""
        self._solver.problem.ready()
        return self._solver.problem.margins(self._solver.exact())[self._ledger.slots()]

    def leave_one_out(self) -> NDArray[np.float64]:
        """Return the margin each example would have if it alone were unlearned, in order of arrival. O(s^3).

        A negative one is an error of leave-one-out cross-validation.
        """
        return self._solver.leave_one_out()[self._ledger.slots()]

    def certificate(self) -> Certificate:
        """Return how far the solution can be from the optimum: (gap, residual, primal, dual). O(m^2).

        The duality gap bounds what the objective can still fall; the residual is the largest violation of the
        optimality conditions, in units of the margin. Both are of the size of rounding.
        """
        return self._solver.certificate()

    def _example(self, x: Mapping[Any, Any], y: Any, w: Any, id: Any) -> Example:
        return _plain(features(x), labels.binary(y), _validate.example_weight(w), id)

    def _change(self, coming: list[Example], leaving: list[Any]) -> None:
        ledger = self._ledger
        out: list[int] = []
        taken: set[int] = set()
        for item in leaving:
            serial = self._find(item, taken)
            if serial in taken:
                raise ValueError(f"the id {item!r} is to be removed twice")
            out.append(serial)
            taken.add(serial)
        freed = {ledger.id_of(serial) for serial in out}
        names: set[Hashable] = set()
        for example in coming:
            if example.id is not None:
                if example.id in names or example.id in ledger and example.id not in freed:
                    raise ValueError(f"there is an example with the id {example.id!r} already")
                names.add(example.id)
        kept = coming
        if self.max_size is not None:
            kept = coming[-self.max_size :]
            excess = len(ledger) - len(out) + len(kept) - self.max_size
            if excess > 0:
                out += ledger.oldest(excess, taken)
        if kept or out:
            slots = self._solver.change([self._arrival(example) for example in kept], [ledger.slot(s) for s in out])
            for serial in out:
                ledger.remove(serial)
            for example, slot in zip(kept, slots):
                ledger.add(example, slot)
        self._version += len(coming)

    def _find(self, item: Any, taken: set[int]) -> int:
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Mapping):
            phi = {name: value for name, value in features(item[0]).items() if value}
            return self._ledger.of_pair(phi, labels.binary(item[1]), taken)
        return self._ledger.of_id(identity(item))

    def _arrival(self, example: Example) -> Arrival:
        right = self.lam if self.lam_right is None else self.lam_right
        below, above = self.lam * example.w, right * example.w
        if not (0.0 < below < math.inf and 0.0 < above < math.inf):
            raise ValueError(f"the example weight w={example.w!r} takes lam out of the range of floats")
        return Arrival(example.x, 1.0 if example.y else -1.0, below, above)

    def _get_state(self) -> dict[str, Any]:
        examples = self._ledger.examples()
        return {
            "version": self._version,
            "x": [dict(example.x) for example in examples],
            "y": [example.y for example in examples],
            "w": np.array([example.w for example in examples], dtype=np.float64),
            "ids": [example.id for example in examples],
            "alpha": self._solver.problem.alpha[self._ledger.slots()],
        }

    def _set_state(self, values: dict[str, Any]) -> None:
        owner = type(self).__name__
        version = _validate.require_count(owner, "version", values["version"], least=0)
        xs, ys, ids = values["x"], values["y"], values["ids"]
        w, alpha = state.finite_vector(values["w"]), state.finite_vector(values["alpha"])
        if not len(xs) == len(ys) == len(ids) == len(w) == len(alpha):
            raise state.StateError("the numbers of examples, labels, weights, ids and multipliers differ")
        if self.max_size is not None and len(xs) > self.max_size:
            raise state.StateError(f"{len(xs)} examples are more than max_size={self.max_size}")
        examples = [self._example(x, y, weight, id) for x, y, weight, id in zip(xs, ys, w.tolist(), ids)]
        names = [example.id for example in examples if example.id is not None]
        if len(set(names)) != len(names):
            raise state.StateError("two examples have the same id")
        solver, ledger = self._new_solver(), Ledger()
        for example, slot in zip(examples, solver.load([self._arrival(example) for example in examples], alpha)):
            ledger.add(example, slot)
        self._solver, self._ledger, self._version = solver, ledger, version


def _plain(phi: Features, y: bool, w: float, id: Any) -> Example:
    # A copy, since the caller may change its dict afterwards; without zeros, which are absent features.
    x = {name: float(value) for name, value in phi.items() if value}
    return Example(x, y, w, None if id is None else identity(id))
