"""The registry of models: one entry a model and flavour. Every property and check runs over these lists.

A model joins by its line in ALL; `tests/unit/test_cases.py` fails if a public learner is missing here.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas
from hypothesis import strategies as st
from river import base

import pa_river
from pa_river import joint
from pa_river.uniclass import AnomalyDetector
from tests import strategies

RIVER_BASES = (base.Classifier, base.MultiLabelClassifier, base.Regressor, AnomalyDetector)


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
    #: parameters that bytes do not hold: `loads` gets them back
    not_stored: dict[str, Any] = field(default_factory=dict)
    #: two good y that differ
    two_y: tuple[Any, Any] = (True, False)

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


NOT_A_LABEL = (None, float("nan"), decimal.Decimal("nan"), complex("nan"), pandas.NA, pandas.NaT, ["spam"], ("a", None))


def unit_cost(y: Any, r: Any) -> float:
    return 1.0


X = strategies.records()
BINARY = [
    *by_rule("PAClassifier", pa_river.PAClassifier, X, strategies.binary_labels, bad_y=NOT_BINARY),
    Case("PAClassifier without intercept", lambda: pa_river.PAClassifier(learn_intercept=False),
         X, strategies.binary_labels, bad_y=NOT_BINARY),
]
REGRESSION = [
    *by_rule("PARegressor", pa_river.PARegressor, X, strategies.targets, bad_y=NOT_A_TARGET, two_y=(3.0, -3.0)),
    Case("PARegressor eps=0 without intercept", lambda: pa_river.PARegressor(learn_intercept=False, eps=0.0),
         X, strategies.targets, bad_y=NOT_A_TARGET, two_y=(3.0, -3.0)),
]

MARGIN_DISTRIBUTION = [
    Case(f"ODMClassifier {name}", build, X, strategies.binary_labels, bad_y=NOT_BINARY, exceptions={
        "bit-equal": "the state holds examples and multipliers; factors are built anew, equal within 1e-8"})
    for name, build in {
        "rbf": lambda: pa_river.ODMClassifier(10.0),
        "linear window": lambda: pa_river.ODMClassifier(0.01, 0.2, pa_river.Linear(), lam_right=0.1, max_size=5),
    }.items()
]

COSTS = {
    y: {r: abs(i - j) * (1.0 + (i < j)) for j, r in enumerate(strategies.LABELS) if r != y}
    for i, y in enumerate(strategies.LABELS)
}
#: Models that know the right one of many labels.
LABEL = [
    *by_rule("PAMulticlass", pa_river.PAMulticlass, X, strategies.labels, bad_y=NOT_A_LABEL),
    Case("PAMulticlass declared, without intercept",
         lambda: pa_river.PAMulticlass(learn_intercept=False, labels=("c", "spam")),
         X, strategies.labels, bad_y=NOT_A_LABEL),
    *by_rule("PACostSensitive", lambda rule: pa_river.PACostSensitive(unit_cost, rule), X, strategies.labels,
             bad_y=NOT_A_LABEL, not_stored={"cost": unit_cost},
             exceptions={"overflow": "passive once it is right, its weights stay too small for a score beyond floats"}),
    Case("PACostSensitive max_loss, mapping", lambda: pa_river.PACostSensitive(COSTS, update="max_loss"),
         X, strategies.labels, bad_y=(*NOT_A_LABEL, "a label without costs"), two_y=strategies.LABELS[:2],
         exceptions={"river": "the mapping has no costs for the labels of River's data sets"}),
    *[Case(f"MulticlassPerceptron {update}", lambda update=update: pa_river.MulticlassPerceptron(update=update),
           X, strategies.labels, bad_y=NOT_A_LABEL) for update in ("uniform", "max")],
    *[Case(f"MIRAClassifier C={C}", lambda C=C: pa_river.MIRAClassifier(C=C), X, strategies.labels, bad_y=NOT_A_LABEL)
      for C in (0.05, 100.0)],
]
MULTILABEL = by_rule("PAMultilabel", pa_river.PAMultilabel, X, strategies.label_sets,
                     bad_y=("spam", {"spam": 2}, {None: True}, ["spam"]),
                     two_y=({"spam": True, 3: False}, {"spam": False, 3: True}))
JOINT = by_rule("PAJoint", lambda rule: pa_river.PAJoint(joint.per_label, strategies.LABELS[:5], rule), X,
                st.sampled_from(strategies.LABELS[:5]), bad_y=(*NOT_A_LABEL, "no candidate"),
                two_y=strategies.LABELS[:2], not_stored={"phi": joint.per_label})
PROTOTYPES = [*LABEL, *MULTILABEL]

UNLIMITED = pa_river.Budget(math.inf)
BOUNDED = {"overflow": "k is at most 1, so no score is beyond floats"}
OF_LABELS = {"bad_y": NOT_A_LABEL}
OF_SETS = {"bad_y": MULTILABEL[0].bad_y, "two_y": MULTILABEL[0].two_y}
#: Models with one prototype a label, each also with a kernel: name -> how it is built, its y.
KERNEL_LABELS: dict[str, Any] = {
    "PAMulticlass": (pa_river.PAMulticlass, strategies.labels, OF_LABELS),
    "PAMultilabel": (pa_river.PAMultilabel, strategies.label_sets, OF_SETS),
    "PACostSensitive": (lambda **more: pa_river.PACostSensitive(unit_cost, **more), strategies.labels,
                        {**OF_LABELS, "not_stored": {"cost": unit_cost}}),
    "MulticlassPerceptron": (pa_river.MulticlassPerceptron, strategies.labels, OF_LABELS),
    "MIRAClassifier": (pa_river.MIRAClassifier, strategies.labels, OF_LABELS),
}
KERNEL = [
    *by_rule("PAClassifier RBF", lambda rule: pa_river.PAClassifier(rule, kernel=pa_river.RBF(0.1), budget=UNLIMITED),
             X, strategies.binary_labels, bad_y=NOT_BINARY, exceptions=BOUNDED),
    Case("PAClassifier polynomial without intercept",
         lambda: pa_river.PAClassifier(learn_intercept=False, kernel=pa_river.Polynomial(2), budget=UNLIMITED),
         X, strategies.binary_labels, bad_y=NOT_BINARY),
    Case("PARegressor linear kernel", lambda: pa_river.PARegressor(kernel=pa_river.Linear(), budget=UNLIMITED),
         X, strategies.targets, bad_y=NOT_A_TARGET, two_y=(3.0, -3.0)),
    *[Case(f"{name} RBF", lambda build=build: build(kernel=pa_river.RBF(0.1), budget=UNLIMITED),
           X, y, exceptions=BOUNDED, **more) for name, (build, y, more) in KERNEL_LABELS.items()],
]
BUDGET = [
    *[Case(f"PAClassifier budget {policy}",
           lambda policy=policy: pa_river.PAClassifier(kernel=pa_river.RBF(0.1), budget=pa_river.Budget(3, policy)),
           X, strategies.binary_labels, bad_y=NOT_BINARY, exceptions=BOUNDED)
      for policy in ("projection", "nearest", "smallest", "oldest")],
    Case("PARegressor budget", lambda: pa_river.PARegressor(kernel=pa_river.RBF(0.1), budget=pa_river.Budget(2)),
         X, strategies.targets, bad_y=NOT_A_TARGET, two_y=(3.0, -3.0), exceptions=BOUNDED),
    *[Case(f"{name} budget", lambda build=build: build(kernel=pa_river.RBF(0.1), budget=pa_river.Budget(2, "nearest")),
           X, y, exceptions=BOUNDED, **more) for name, (build, y, more) in KERNEL_LABELS.items()],
]
SECOND_BINARY = [
    Case("AROWClassifier", pa_river.AROWClassifier, X, strategies.binary_labels, bad_y=NOT_BINARY),
    *[Case(f"SCWClassifier {variant}",
           lambda variant=variant: pa_river.SCWClassifier(0.5, 0.8, variant, learn_intercept=variant == "I"),
           X, strategies.binary_labels, bad_y=NOT_BINARY) for variant in ("I", "II")],
]
SECOND_LABEL = [
    Case("AROWMulticlass", lambda: pa_river.AROWMulticlass(0.1), X, strategies.labels, bad_y=NOT_A_LABEL),
    *[Case(f"SCWMulticlass {variant}",
           lambda variant=variant: pa_river.SCWMulticlass(0.5, 0.8, variant, learn_intercept=variant == "I"),
           X, strategies.labels, bad_y=NOT_A_LABEL) for variant in ("I", "II")],
]
SECOND = [*SECOND_BINARY, *SECOND_LABEL]
CERTIFIED = [
    Case("Certified PAClassifier",
         lambda: pa_river.Certified(pa_river.PAClassifier(), {"a": 0.5, "b": -1.0, None: 0.1}),
         X, strategies.binary_labels, bad_y=NOT_BINARY),
    Case("Certified PAMulticlass", lambda: pa_river.Certified(pa_river.PAMulticlass(pa_river.PA())),
         X, strategies.labels, bad_y=NOT_A_LABEL),
    Case("Certified PAMultilabel", lambda: pa_river.Certified(pa_river.PAMultilabel()),
         X, strategies.label_sets, bad_y=MULTILABEL[0].bad_y, two_y=MULTILABEL[0].two_y),
    Case("Certified PARegressor", lambda: pa_river.Certified(pa_river.PARegressor(pa_river.PA2(0.5)), {"a": 2.0}),
         X, strategies.targets, bad_y=NOT_A_TARGET, two_y=(3.0, -3.0)),
    Case("Certified PAUniclass", lambda: pa_river.Certified(pa_river.PAUniclass(max_radius=9.0), {"a": 0.5, None: 2.0}),
         X, st.none(), supervised=False),
]
UNICLASS = [
    *by_rule("PAUniclass", lambda rule: pa_river.PAUniclass(rule, eps=0.5), X, st.none(), supervised=False),
    Case("PAUniclass learned radius", lambda: pa_river.PAUniclass(max_radius=50.0), X, st.none(), supervised=False),
    Case("PAUniclass kernel", lambda: pa_river.PAUniclass(max_radius=1.0, kernel=pa_river.RBF(0.1), budget=UNLIMITED),
         X, st.none(), supervised=False),
    Case("PAUniclass kernel budget",
         lambda: pa_river.PAUniclass(eps=0.3, kernel=pa_river.RBF(0.1), budget=pa_river.Budget(2)),
         X, st.none(), supervised=False),
]
#: Taggers: x is a list of three records, y of three tags, so that they fit however they are drawn.
OF_RECORDS = "draws x as one record; tests/properties/test_sequences.py draws sentences"
TAGGER = {
    "x": st.lists(X, min_size=3, max_size=3),
    "y": st.lists(st.sampled_from(["A", "B", 1, ("C", 2)]), min_size=3, max_size=3),
    "bad_y": ("ABC", None, ["A", "B"], ["A", "B", None], ["A", "B", ["C"]], ["A", "B", float("nan")]),
    "poison": lambda x, value: [*x[:2], {**x[2], "poisoned": value}],
    "exceptions": {"number types": OF_RECORDS, "scales": OF_RECORDS},
}
SEQUENCES = [
    *by_rule("PASequence", pa_river.PASequence, **TAGGER),
    Case("PASequence max_loss", lambda: pa_river.PASequence(pa_river.PA2(0.5), update="max_loss"), **TAGGER),
    Case("PASequence average", lambda: pa_river.PASequence(pa_river.PA(), average=True), **TAGGER),
]
AVERAGED_REGRESSOR = Case("AveragedRegressor", lambda: pa_river.Averaged(pa_river.PARegressor(pa_river.PA1(0.5))),
                          X, strategies.targets, bad_y=NOT_A_TARGET, two_y=(3.0, -3.0))
AVERAGED = [
    Case("AveragedClassifier of PAClassifier", lambda: pa_river.Averaged(pa_river.PAClassifier(pa_river.PA())),
         X, strategies.binary_labels, bad_y=NOT_BINARY),
    Case("AveragedClassifier of PAMulticlass", lambda: pa_river.Averaged(pa_river.PAMulticlass()),
         X, strategies.labels, bad_y=NOT_A_LABEL),
    Case("AveragedMultiLabelClassifier", lambda: pa_river.Averaged(pa_river.PAMultilabel()),
         X, strategies.label_sets, bad_y=("spam", {"spam": 2}, {None: True}, ["spam"]),
         two_y=({"spam": True, 3: False}, {"spam": False, 3: True})),
]

OBSERVED = {
    "zeros": "a scaler counts a value of 0 as it does any other",
    "scales": "a variance is a square: 1e200 has none, and is refused; 1e-200 has none to divide by",
}
SCALED = [
    *by_rule("ScaledPAClassifier", pa_river.ScaledPA, X, strategies.binary_labels, bad_y=NOT_BINARY,
             exceptions=OBSERVED),
    Case("ScaledPARegressor", lambda: pa_river.ScaledPA(pa_river.PA1(0.5), learn_intercept=False, eps=0.1),
         X, strategies.targets, bad_y=NOT_A_TARGET, two_y=(3.0, -3.0), exceptions=OBSERVED),
]

ALL = [
    *BINARY, *REGRESSION, *PROTOTYPES, *JOINT, *KERNEL, *BUDGET, *UNICLASS, *SECOND, *CERTIFIED, *AVERAGED,
    AVERAGED_REGRESSOR, *SEQUENCES, *MARGIN_DISTRIBUTION, *SCALED,
]
#: Models that move by a step rule along one direction of records; test_sequences.py has the properties of sentences.
STEPS = [case for case in ALL
         if hasattr(case.build(), "rule") and case not in (*BUDGET, *UNICLASS, *CERTIFIED, *SEQUENCES, *SCALED)]
#: Models whose weights are linear in feature names.
LINEAR = [*BINARY, *REGRESSION, *PROTOTYPES, *SECOND, *AVERAGED, AVERAGED_REGRESSOR]
#: Models with a River base class: `check_estimator` runs over them.
RIVER = [case for case in ALL if "river" not in case.exceptions and isinstance(case.build(), RIVER_BASES)]
#: Models with learn_many and predict_many over tables, sparse ones too; `ScaledPA`, to which what a sparse table leaves
#: out is no 0, has its own tests in tests/unit/test_scaled.py.
BATCH = [*BINARY, *REGRESSION, *PROTOTYPES, *KERNEL, *BUDGET, *SECOND, *AVERAGED[:2]]
#: Models on one flat store: those that the compiled core runs.
LINEAR_STORE = [*BINARY, *REGRESSION]
#: Models on one row of weights a name: those too.
ROW_STORE = PROTOTYPES
#: Every model of which the compiled core runs a part.
COMPILED = [*LINEAR_STORE, *ROW_STORE, *SCALED, *SECOND]
