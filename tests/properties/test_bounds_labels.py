"""The paper's bounds for the learners with many labels, on random streams and on streams that answer the learner.

Every one of them moves along a direction d_t with a step tau_t, so the master inequality (000 K2)

    sum tau_t (2 l_t - tau_t |d_t|^2 - 2 l*_t) <= |u|^2

holds for each comparator u, with l*_t its loss on the constraint that was picked, which its loss on the example bounds.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pa_river import (
    PA, PA1, PA2, MIRAClassifier, MulticlassPerceptron, PACostSensitive, PAJoint, PAMulticlass, PAMultilabel,
)
from pa_river.joint import per_label
from tests import strategies

LABELS = ("a", "b", "c")
NAMES = ("p", "q", "r")
COST = {"a": {"b": 4.0, "c": 1.0}, "b": {"a": 0.25, "c": 9.0}, "c": {"a": 2.0, "b": 0.0}}
LARGEST_MARGIN = 3.0

RULES = pytest.mark.parametrize("rule", [PA(), PA1(0.05), PA1(1.0), PA1(50.0), PA2(0.05), PA2(5.0)], ids=repr)
values = st.floats(-20.0, 20.0, allow_subnormal=False).map(lambda v: 0.0 if abs(v) < 1e-3 else v)
x_of = strategies.records(values, st.sampled_from(NAMES))
label = st.sampled_from(LABELS)
stream_of = st.lists(st.tuples(x_of, label), min_size=1, max_size=15)
#: a comparator: one prototype a label, intercept last
comparators = st.lists(st.lists(values, min_size=4, max_size=4), min_size=3, max_size=3)

SINGLE = {
    "PAMulticlass": lambda rule: PAMulticlass(rule, labels=LABELS),
    "PACostSensitive prediction": lambda rule: PACostSensitive(COST, rule),
    "PACostSensitive max_loss": lambda rule: PACostSensitive(COST, rule, update="max_loss"),
    "PAJoint": lambda rule: PAJoint(with_bias, LABELS, rule),
    "PAJoint with cost": lambda rule: PAJoint(with_bias, LABELS, rule, cost=COST),
}


def with_bias(x, y):
    return per_label({**x, "bias": 1.0}, y)


def u_score(u, x, y):
    *weights, bias = u[LABELS.index(y)]
    return bias + math.fsum(w * x.get(name, 0.0) for w, name in zip(weights, NAMES))


def u_along(u, violation):
    """The comparator's score of a direction: in slots, or in joint features."""
    total = 0.0
    for sign, phi, slot in violation.terms:
        if phi and isinstance(next(iter(phi)), tuple):
            total += sign * math.fsum(
                value * (u[LABELS.index(y)][3] if name == "bias" else u[LABELS.index(y)][NAMES.index(name)])
                for (y, name), value in phi.items())
        else:
            total += sign * u_score(u, phi, LABELS[slot])
    return total


def square(u):
    return math.fsum(w * w for row in u for w in row)


def master(model, stream, u, losses_of_u=None):
    """Feed the stream; return the left side of the inequality and the size of what was summed."""
    terms = []
    for x, y in stream:
        phi, normal = model._input(x), model._normalise_y(y)
        scores = model._scores(phi)
        found = model._violation(phi, normal, scores)
        if found is not None and found.norm > 0.0:
            length = (model.rule or PA1()).length(found.loss, found.norm)
            margin = found.loss + along(model, found)
            star = max(0.0, margin - u_along(u, found))
            if losses_of_u is not None:  # the loss of the example is no smaller than that of the pair
                assert star <= losses_of_u(x, y) + 1e-9 * (1.0 + abs(star))
            tau = length / found.norm
            terms += [2.0 * tau * found.loss, -length * length, -2.0 * tau * star]
        model.learn_one(x, y)
    return math.fsum(terms), math.fsum(map(abs, terms))


def along(model, violation):
    total = 0.0
    for sign, phi, slot in violation.terms:
        total += sign * (model._store.scores(phi, len(LABELS))[slot] if hasattr(model._store, "slots")
                         else model._store.score(phi))
    return total


@RULES
@pytest.mark.parametrize("name", SINGLE)
@given(stream=stream_of, u=comparators)
@settings(max_examples=25)
def test_the_master_inequality_holds_for_one_right_label(name, rule, stream, u):
    def worst(x, y):
        return max(max(0.0, LARGEST_MARGIN - u_score(u, x, y) + u_score(u, x, r)) for r in LABELS if r != y)

    left, size = master(SINGLE[name](rule), stream, u, worst)
    assert left <= square(u) + 1e-9 * (1.0 + size)


@RULES
@given(stream=st.lists(st.tuples(x_of, st.fixed_dictionaries({y: st.booleans() for y in LABELS})), max_size=15),
       u=comparators)
@settings(max_examples=25)
def test_the_master_inequality_holds_for_label_sets(rule, stream, u):
    def worst(x, y):
        relevant = [u_score(u, x, r) for r in LABELS if y[r]] or [0.0]
        irrelevant = [u_score(u, x, r) for r in LABELS if not y[r]] or [0.0]
        return max(0.0, 1.0 - min(relevant) + max(irrelevant))

    left, size = master(PAMultilabel(rule, labels=LABELS), stream, u, worst)
    assert left <= square(u) + 1e-9 * (1.0 + size)


@RULES
@pytest.mark.parametrize("name", SINGLE)
@given(xs=st.lists(x_of, min_size=1, max_size=20), u=comparators)
@settings(max_examples=15)
def test_the_master_inequality_holds_on_a_stream_that_contradicts_every_prediction(name, rule, xs, u):
    model, twin, stream = SINGLE[name](rule), SINGLE[name](rule), []
    for x in xs:  # the adversary: always the label that scores least
        scores = twin.decision_one(x)
        stream.append((x, min(LABELS, key=scores.__getitem__)))
        twin.learn_one(*stream[-1])
    left, size = master(model, stream, u)
    assert left <= square(u) + 1e-9 * (1.0 + size)


@pytest.mark.parametrize("build", [lambda: MIRAClassifier(C=0.2), lambda: MIRAClassifier(C=1e6), MulticlassPerceptron,
                                   lambda: MulticlassPerceptron(update="max")],
                         ids=["MIRA C=0.2", "MIRA C=1e6", "uniform", "max"])
@given(stream=stream_of, u=comparators)
@settings(max_examples=40)
def test_the_baselines_obey_it_with_a_multiplier_a_rival(build, stream, u):
    # w gains sum alpha_r d_r, d_r = phi(x, y) - phi(x, r): 2 sum alpha_r (d_r . u - d_r . w) - |sum alpha_r d_r|^2
    model = build()
    for y in LABELS:  # every label has a slot from here on
        model.learn_one({}, y)
    start, gains, size = flat(model), [], 1.0
    for x, y in stream:
        phi, before, scores = {**x, None: 1.0}, flat(model), model.decision_one(x)
        model.learn_one(x, y)
        after = flat(model)
        norm2 = math.fsum(v * v for v in phi.values())
        alpha = {r: math.fsum((before[r].get(n, 0.0) - after[r].get(n, 0.0)) * v for n, v in phi.items()) / norm2
                 for r in LABELS if r != y}
        terms = [2.0 * a * ((u_score(u, x, y) - u_score(u, x, r)) - (scores[y] - scores[r])) for r, a in alpha.items()]
        terms.append(-norm2 * (sum(alpha.values()) ** 2 + math.fsum(a * a for a in alpha.values())))
        gains += terms
        size += math.fsum(map(abs, terms))
    distance = math.fsum((weight - start[y].get(name, 0.0)) ** 2
                         for y, row in zip(LABELS, u) for name, weight in zip([*NAMES, None], row))
    assert math.fsum(gains) <= distance + 1e-9 * size


def flat(model):
    return {y: {**model.weights[y], None: model.intercept[y]} for y in LABELS}


def cost(y, r):
    return 0.0 if y == r else COST[y][r]


def ml_loss(u, x, y):
    return max(max(0.0, math.sqrt(cost(y, r)) - u_score(u, x, y) + u_score(u, x, r)) for r in LABELS if r != y)


@pytest.mark.parametrize("C", [3.0, 10.0, 100.0])  # at least the root of the largest cost
@given(stream=stream_of, u=comparators, scale=st.floats(0.01, 1.0))
@settings(max_examples=60)
def test_the_sum_of_costs_is_bounded(C, stream, u, scale):
    # 000 K7: sum of costs <= max(1, R^2) (|u|^2 + 2 C sum loss_u) for PA-I, max-loss, C >= max sqrt(cost)
    stream = [({name: value * scale for name, value in x.items()}, y) for x, y in stream]
    model, paid, radius = PACostSensitive(COST, PA1(C), update="max_loss"), 0.0, 0.0
    for x, y in stream:
        paid += cost(y, model.predict_one(x))
        radius = max(radius, 2.0 * (1.0 + sum(v * v for v in x.values())))  # |d|^2, intercept included
        model.learn_one(x, y)
    bound = max(1.0, radius) * (square(u) + 2.0 * C * math.fsum(ml_loss(u, x, y) for x, y in stream))
    assert paid <= bound * (1.0 + 1e-9) + 1e-9


@pytest.mark.parametrize("C", [3.0, 30.0])
@given(xs=st.lists(x_of, min_size=1, max_size=25), u=comparators)
@settings(max_examples=40)
def test_the_sum_of_costs_is_bounded_against_an_adversary(C, xs, u):
    model, paid, radius, losses = PACostSensitive(COST, PA1(C), update="max_loss"), 0.0, 0.0, []
    for x in xs:  # the dearest truth for what the model says
        said = model.predict_one(x)
        y = max(LABELS, key=lambda truth: cost(truth, said))
        paid += cost(y, said)
        radius = max(radius, 2.0 * (1.0 + sum(v * v for v in x.values())))
        losses.append(ml_loss(u, x, y))
        model.learn_one(x, y)
    bound = max(1.0, radius) * (square(u) + 2.0 * C * math.fsum(losses))
    assert paid <= bound * (1.0 + 1e-9) + 1e-9


def test_the_bound_on_costs_is_no_empty_promise():
    """A stream and a comparator on which the bound is within a factor of 40 of what is paid."""
    stream = [({NAMES[i % 3]: 1.0}, LABELS[i % 3]) for i in range(9)]
    model, paid = PACostSensitive(COST, PA1(3.0), learn_intercept=False, update="max_loss"), 0.0
    for x, y in stream:
        paid += cost(y, model.predict_one(x))
        model.learn_one(x, y)
    u = [[3.0 if i == j else 0.0 for j in range(3)] + [0.0] for i in range(3)]
    assert sum(ml_loss(u, x, y) for x, y in stream) == 0.0
    assert 0.0 < paid <= 2.0 * square(u) <= 40.0 * paid
