"""The registry of models: one entry a model and flavour. Every property and check runs over these lists.

A model joins by its line in ALL; `tests/unit/test_cases.py` fails if a public learner is missing here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import pa_river
from tests import strategies


@dataclass(frozen=True)
class Case:
    """A model, the examples it eats, and where a rule of behaviour does not apply to it, with the reason."""

    name: str
    build: Callable[[], Any]
    x: st.SearchStrategy
    y: st.SearchStrategy
    #: rule of DESIGN 2.2 as the properties call it -> why it does not hold for this model
    exceptions: dict[str, str] = field(default_factory=dict)
    #: what `learn_one` takes after x: most models a label; a detector takes none
    supervised: bool = True
    #: a y that must be refused; None where every hashable is a label
    bad_y: tuple[Any, ...] = ()
    #: x with other values, names kept: the same shape of record with `value` in it
    poison: Callable[[Any, Any], Any] = lambda x, value: {**x, "poisoned": value}

    def __str__(self) -> str:
        return self.name

    @property
    def example(self) -> st.SearchStrategy:
        return st.tuples(self.x, self.y)

    @property
    def stream(self) -> st.SearchStrategy:
        return st.lists(self.example, max_size=12)

    def learn(self, model: Any, x: Any, y: Any, w: float = 1.0) -> None:
        model.learn_one(x, y, w) if self.supervised else model.learn_one(x, w=w)

    def step(self, model: Any, x: Any, y: Any, w: float = 1.0) -> Any:
        return model.step(x, y, w) if self.supervised else model.step(x, w=w)

    def answer(self, model: Any, x: Any) -> Any:
        """What `step` returns before it learns: the prediction, or a detector's score."""
        return model.predict_one(x) if self.supervised else model.score_one(x)

    def trained(self, stream: list[tuple[Any, Any]]) -> Any:
        model = self.build()
        for x, y in stream:
            self.learn(model, x, y)
        return model

    def with_x(self, x: st.SearchStrategy) -> Case:
        return Case(**{**self.__dict__, "x": x})


RULES = {"PA": pa_river.PA, "PA-I": lambda: pa_river.PA1(0.1), "PA-II": lambda: pa_river.PA2(0.5)}
NOT_BINARY = (2, 0.5, "1", "spam", None, float("nan"), [True])
NOT_A_TARGET = ("1", None, float("nan"), float("inf"), 10**400, [1.0], True)


def by_rule(
    name: str, build: Callable[..., Any], x: st.SearchStrategy, y: st.SearchStrategy, **more: Any
) -> list[Case]:
    """One case a step rule."""
    return [Case(f"{name} {rule}", lambda make=make: build(make()), x, y, **more) for rule, make in RULES.items()]


X = strategies.records()
BINARY = [
    *by_rule("PAClassifier", pa_river.PAClassifier, X, strategies.binary_labels, bad_y=NOT_BINARY),
    Case("PAClassifier without intercept", lambda: pa_river.PAClassifier(learn_intercept=False),
         X, strategies.binary_labels, bad_y=NOT_BINARY),
]
REGRESSION = [
    *by_rule("PARegressor", pa_river.PARegressor, X, strategies.targets, bad_y=NOT_A_TARGET),
    Case("PARegressor eps=0 without intercept", lambda: pa_river.PARegressor(learn_intercept=False, eps=0.0),
         X, strategies.targets, bad_y=NOT_A_TARGET),
]

MARGIN_DISTRIBUTION = [
    Case(f"ODMClassifier {name}", build, X, strategies.binary_labels, bad_y=NOT_BINARY, exceptions={
        "bit-equal": "the state holds examples and multipliers; factors are built anew, equal within 1e-8"})
    for name, build in {
        "rbf": lambda: pa_river.ODMClassifier(10.0),
        "linear window": lambda: pa_river.ODMClassifier(0.01, 0.2, pa_river.Linear(), lam_right=0.1, max_size=5),
    }.items()
]

#: Models that move by a step rule along one direction.
STEPS = [*BINARY, *REGRESSION]
#: Models whose weights are linear in feature names.
LINEAR = [*BINARY, *REGRESSION]
ALL = [*STEPS, *MARGIN_DISTRIBUTION]
#: Models with a River base class: `check_estimator` runs over them.
RIVER = ALL
#: Models with learn_many and predict_many.
BATCH = [*BINARY, *REGRESSION]
