"""The paper's bounds on random and adversarial streams, written out here and not taken from the code."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pa_river import PA, PA1, PA2, RBF, Budget, PAClassifier, PARegressor, PAUniclass

NAMES = "abc"
C_VALUES = st.floats(0.01, 50.0)
values = st.floats(-5.0, 5.0).map(lambda value: round(value, 3))
records = st.fixed_dictionaries({name: values for name in NAMES})
comparators = st.fixed_dictionaries({name: values for name in [*NAMES, None]})
rules = st.one_of(st.builds(PA), st.builds(PA1, C_VALUES), st.builds(PA2, C_VALUES))
ROUNDS = 25


def dot(u, x):
    return u[None] + sum(u[name] * x.get(name, 0.0) for name in NAMES)


def square(u):
    return sum(value * value for value in u.values())


def multiplier(rule, loss, squared):
    """tau of the paper's figure 1."""
    if loss <= 0.0 or squared == 0.0:
        return 0.0
    if isinstance(rule, PA1):
        return min(rule.C, loss / squared)
    return loss / squared if isinstance(rule, PA) else loss / (squared + 0.5 / rule.C)


def hinge(score, y):
    return max(0.0, 1.0 - y * score)


def play(model, stream, loss, label=lambda y: y):
    """Run a stream; return (loss of the model, loss of tau, squared norm) a round. `stream` may look at the model."""
    rounds = []
    for x, y in stream:
        suffered = loss(model.decision_one(x), y)
        squared = 1.0 + sum(value * value for value in x.values())
        rounds.append((x, y, suffered, multiplier(model.rule, suffered, squared), squared))
        model.learn_one(x, label(y))
    return rounds


def random_stream(data, y):
    return data.draw(st.lists(st.tuples(records, y), max_size=ROUNDS))


def adversary(data, model):
    """Against the model: a record from a few that return, with the label that it gets most wrong."""
    few = data.draw(st.lists(records, min_size=1, max_size=3))
    for place in data.draw(st.lists(st.integers(0, len(few) - 1), max_size=ROUNDS)):
        yield few[place], -1.0 if model.decision_one(few[place]) > 0.0 else 1.0


def classified(data, rule, adversarial):
    model = PAClassifier(rule)
    stream = adversary(data, model) if adversarial else random_stream(data, st.sampled_from([1.0, -1.0]))
    return play(model, stream, hinge, lambda y: y > 0.0)


def at_most(value, limit, scale=0.0):
    assert value <= limit + 1e-7 * (1.0 + abs(limit) + scale)


@pytest.mark.parametrize("adversarial", [False, True], ids=["random", "adversarial"])
@given(data=st.data(), rule=rules, u=comparators)
def test_the_master_inequality_holds_for_classification(adversarial, data, rule, u):
    rounds = classified(data, rule, adversarial)
    left = sum(tau * (2.0 * loss - tau * n2 - 2.0 * hinge(dot(u, x), y)) for x, y, loss, tau, n2 in rounds)
    at_most(left, square(u), sum(2.0 * tau * hinge(dot(u, x), y) for x, y, _, tau, _ in rounds))


@pytest.mark.parametrize("adversarial", [False, True], ids=["random", "adversarial"])
@given(data=st.data(), rule=rules, u=comparators, eps=st.floats(0.0, 2.0))
def test_the_master_inequality_holds_for_regression(adversarial, data, rule, u, eps):
    def tube(score, y):
        return max(0.0, abs(score - y) - eps)

    model = PARegressor(rule, eps=eps)
    if adversarial:
        few = data.draw(st.lists(records, min_size=1, max_size=3))
        places = data.draw(st.lists(st.integers(0, len(few) - 1), max_size=ROUNDS))
        stream = ((few[place], -9.0 if model.decision_one(few[place]) > 0.0 else 9.0) for place in places)
    else:
        stream = random_stream(data, st.floats(-9.0, 9.0))
    rounds = play(model, stream, tube)
    theirs = [tube(dot(u, x), y) for x, y, *_ in rounds]
    left = sum(tau * (2.0 * loss - tau * n2 - 2.0 * other) for (_, _, loss, tau, n2), other in zip(rounds, theirs))
    at_most(left, square(u), sum(2.0 * tau * other for (*_, tau, _), other in zip(rounds, theirs)))
    radius = max((n2 for *_, n2 in rounds), default=1.0)
    suffered, other = sum(loss**2 for _, _, loss, _, _ in rounds), sum(loss**2 for loss in theirs)
    if isinstance(rule, PA2):
        at_most(suffered, (radius + 0.5 / rule.C) * (square(u) + 2.0 * rule.C * other))
    elif isinstance(rule, PA1):
        large = sum(loss >= 1.0 for _, _, loss, _, _ in rounds)
        at_most(large, max(radius, 1.0 / rule.C) * (square(u) + 2.0 * rule.C * sum(theirs)))
    elif not other:
        at_most(suffered, square(u) * radius)


@given(data=st.data(), u=comparators)
def test_basic_pa_loses_at_most_the_separators_square_times_the_radius(data, u):
    # the labels are the comparator's own, and records within its margin are scaled out of it
    stream = []
    for x in data.draw(st.lists(records, max_size=ROUNDS)):
        assume(abs(dot(u, x)) > 1e-3)
        stream.append((x, math.copysign(1.0, dot(u, x))))
    least = min((abs(dot(u, x)) for x, _ in stream), default=1.0)
    u = {name: value / least for name, value in u.items()}
    rounds = play(PAClassifier(PA()), stream, hinge, lambda y: y > 0.0)
    radius = max((n2 for *_, n2 in rounds), default=1.0)
    at_most(sum(loss**2 for _, _, loss, _, _ in rounds), square(u) * radius)


@pytest.mark.parametrize("adversarial", [False, True], ids=["random", "adversarial"])
@given(data=st.data(), u=comparators)
def test_basic_pa_on_records_of_length_one_is_bounded_for_any_comparator(adversarial, data, u):
    model = PAClassifier(PA(), learn_intercept=False)
    u = {**u, None: 0.0}

    def normalised(stream):
        for x, y in stream:
            length = math.sqrt(sum(value * value for value in x.values()))
            if length > 0.1:
                yield {name: value / length for name, value in x.items()}, y

    stream = adversary(data, model) if adversarial else random_stream(data, st.sampled_from([1.0, -1.0]))
    losses, theirs = 0.0, 0.0
    for x, y in normalised(stream):
        losses, theirs = losses + hinge(model.decision_one(x), y) ** 2, theirs + hinge(dot(u, x), y) ** 2
        model.learn_one(x, y > 0.0)
    at_most(losses, (math.sqrt(square(u)) + 2.0 * math.sqrt(theirs)) ** 2)


@pytest.mark.parametrize("adversarial", [False, True], ids=["random", "adversarial"])
@given(data=st.data(), C=C_VALUES, u=comparators)
def test_pa1_mistakes_are_bounded(adversarial, data, C, u):
    rounds = classified(data, PA1(C), adversarial)
    mistakes = sum(loss >= 1.0 for _, _, loss, _, _ in rounds)
    radius = max((n2 for *_, n2 in rounds), default=1.0)
    at_most(mistakes, max(radius, 1.0 / C) * (square(u) + 2.0 * C * sum(hinge(dot(u, x), y) for x, y, *_ in rounds)))


@pytest.mark.parametrize("adversarial", [False, True], ids=["random", "adversarial"])
@given(data=st.data(), C=C_VALUES, u=comparators)
def test_pa2_squared_losses_are_bounded(adversarial, data, C, u):
    rounds = classified(data, PA2(C), adversarial)
    theirs = sum(hinge(dot(u, x), y) ** 2 for x, y, *_ in rounds)
    radius = max((n2 for *_, n2 in rounds), default=1.0)
    at_most(sum(loss**2 for _, _, loss, _, _ in rounds), (radius + 0.5 / C) * (square(u) + 2.0 * C * theirs))


@given(data=st.data(), u=comparators)
def test_the_c_that_minimises_the_fourth_bound_reaches_its_closed_form(data, u):
    stream = random_stream(data, st.sampled_from([1.0, -1.0]))
    theirs = math.sqrt(sum(hinge(dot(u, x), y) ** 2 for x, y in stream))
    radius = math.sqrt(max((1.0 + sum(v * v for v in x.values()) for x, _ in stream), default=1.0))
    length = math.sqrt(square(u))
    assume(theirs > 1e-3 and length > 1e-3)
    C = length / (2.0 * radius * theirs)

    def bound(C):
        return (radius**2 + 0.5 / C) * (length**2 + 2.0 * C * theirs**2)

    closed = (radius * length + theirs) ** 2
    assert bound(C) == pytest.approx(closed, rel=1e-9)
    assert bound(0.9 * C) > closed < bound(1.1 * C)
    rounds = play(PAClassifier(PA2(C)), stream, hinge, lambda y: y > 0.0)
    at_most(sum(loss**2 for _, _, loss, _, _ in rounds), closed)


def far(data, model):
    """Records that keep away from the center: each on the other side of it."""
    for x in data.draw(st.lists(records, max_size=ROUNDS)):
        center = model.center
        yield {name: -3.0 * center.get(name, 0.0) + x[name] for name in NAMES}


@pytest.mark.parametrize("adversarial", [False, True], ids=["random", "adversarial"])
@pytest.mark.parametrize("learned", [False, True], ids=["fixed", "learned"])
@given(data=st.data(), rule=rules, u=records, bound=st.floats(0.1, 9.0), share=st.floats(0.0, 1.0))
def test_uniclass_keeps_what_the_paper_promises(adversarial, learned, data, rule, u, bound, share):
    model = PAUniclass(rule, max_radius=bound) if learned else PAUniclass(rule, eps=bound)
    radius = share * bound if learned else bound  # the competitor's
    lift = math.sqrt(bound**2 - radius**2) if learned else 0.0
    total = sum(value**2 for value in u.values()) + (radius**2 if learned else 0.0)
    stream = far(data, model) if adversarial else data.draw(st.lists(records, max_size=ROUNDS))
    left = slack = squares = losses = squares_of_u = large = 0.0
    before, coordinate = model.radius, bound if learned else 0.0
    assert before == (0.0 if learned else bound)
    for x in stream:
        center = model.center
        gap = math.hypot(*[x[name] - center.get(name, 0.0) for name in NAMES], coordinate)
        loss = max(0.0, gap - bound)
        other = max(0.0, math.hypot(*[x[name] - u[name] for name in NAMES], lift) - bound)
        tau = multiplier(rule, loss, 1.0)  # a direction of length 1
        left, slack = left + tau * (2.0 * loss - tau), slack + 2.0 * tau * other
        squares, losses, squares_of_u = squares + loss**2, losses + other, squares_of_u + other**2
        large += loss >= 1.0
        model.learn_one(x)
        if learned:
            coordinate *= 1.0 - tau / gap
            assert model.radius >= before
            assert 0.0 < model._lift <= bound
            assert model._lift == pytest.approx(coordinate, rel=1e-6, abs=1e-12)
            before = model.radius
    at_most(left, total + slack, slack)
    if isinstance(rule, PA1):
        at_most(large, max(1.0, 1.0 / rule.C) * (total + 2.0 * rule.C * losses))
    elif isinstance(rule, PA2):
        at_most(squares, (1.0 + 0.5 / rule.C) * (total + 2.0 * rule.C * squares_of_u))
    elif losses == 0.0:
        at_most(squares, total)


@given(data=st.data(), rule=rules)
def test_the_master_inequality_holds_in_the_space_of_a_kernel(data, rule):
    kernel = RBF(0.3)
    model = PAClassifier(rule, kernel=kernel, budget=Budget(math.inf))
    u = data.draw(st.lists(st.tuples(records, values), max_size=3))

    def score(x):
        return sum(c * (kernel(z, x) + 1.0) for z, c in u)

    total = sum(c * score(z) for z, c in u)
    left = slack = 0.0
    for x, y in adversary(data, model):
        loss, other = hinge(model.decision_one(x), y), hinge(score(x), y)
        tau = multiplier(rule, loss, 2.0)
        left, slack = left + tau * (2.0 * loss - 2.0 * tau), slack + 2.0 * tau * other
        model.learn_one(x, y > 0.0)
    at_most(left, total + slack, slack)
