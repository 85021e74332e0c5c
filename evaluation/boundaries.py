"""Seed 003's exercise: one tiny sequence with a reversed label, the boundary after each update, a feature rescaled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.results import Experiment, Result, Row, new_figure, table
from pa_river import PA, PA1, PAClassifier, StepRule


class Point(NamedTuple):
    """An example in the plane, the label it is given, and the label it should have."""

    a: float
    b: float
    given: bool
    right: bool


class Update(NamedTuple):
    """What one example did: the loss before, the weights after in the units of the unscaled features, the margin after.

    angle: of the weights, in degrees from the axis of a; the boundary is the line at a right angle to it.
    """

    loss: float
    a: float
    b: float
    margin: float
    angle: float


#: the text's two examples, then four more; the fourth has its label reversed
SEQUENCE = (Point(2.0, 1.0, True, True), Point(1.0, 1.0, True, True), Point(-1.0, 1.0, False, False),
            Point(1.5, -0.5, False, True), Point(-1.5, -1.0, False, False), Point(1.0, 2.0, True, True))
REVERSED = next(number for number, point in enumerate(SEQUENCE) if point.given != point.right)
C = 0.1
RULES: dict[str, StepRule] = {"PA": PA(), f"PA-I, C = {C:g}": PA1(C)}
COLOURS = dict(zip(RULES, ("#d55e00", "#0072b2")))
FACTOR = 10.0


def play(rule: StepRule, sequence: Sequence[Point], factor: float = 1.0) -> list[Update]:
    """Learn the sequence with feature b times `factor`; the weights come back in the units before that."""
    model, updates = PAClassifier(rule, learn_intercept=False), []
    for point in sequence:
        x, sign = {"a": point.a, "b": point.b * factor}, 1.0 if point.given else -1.0
        loss = max(0.0, 1.0 - sign * model.decision_one(x))
        model.learn_one(x, point.given)
        a, b = model.weights.get("a", 0.0), model.weights.get("b", 0.0) * factor
        updates.append(Update(loss, a, b, sign * model.decision_one(x), math.degrees(math.atan2(b, a))))
    return updates


def right(update: Update, sequence: Sequence[Point]) -> int:
    """Return how many points lie on the side of their right label."""
    return sum((update.a * point.a + update.b * point.b > 0.0) == point.right for point in sequence)


def turned(before: Update, after: Update) -> float:
    """Return by how many degrees the boundary turned."""
    return abs((after.angle - before.angle + 180.0) % 360.0 - 180.0)


def boundaries(data: Path) -> Result:
    """The exercise at the end of seed 003, calculated and drawn."""
    plain = {name: play(rule, SEQUENCE) for name, rule in RULES.items()}
    rescaled = {name: play(rule, SEQUENCE, FACTOR) for name, rule in RULES.items()}
    (hard, soft), (hard_scaled, soft_scaled) = plain.values(), rescaled.values()
    turns = [turned(updates[REVERSED - 1], updates[REVERSED]) for updates in (hard, soft)]
    moves = [turned(hard[-1], hard_scaled[-1]), turned(soft[-1], soft_scaled[-1])]
    worked = ((hard[0], 0.4, 0.2, 1.0), (hard[1], 0.6, 0.4, 1.0), (soft[0], 0.2, 0.1, 0.5))
    rows = [
        Row("the worked example: PA's first two updates, PA-I's first; weights, margin",
            "(0.4, 0.2), 1; (0.6, 0.4), 1; (0.2, 0.1), 0.5",
            "; ".join(f"({one.a:.1f}, {one.b:.1f}), {one.margin:g}" for one, *_ in worked),
            all(math.isclose(found, said, abs_tol=1e-12) for one, *figures in worked
                for found, said in zip((one.a, one.b, one.margin), figures))),
        Row("the loss of its second example", "0.4", f"{hard[1].loss:.1f}", math.isclose(hard[1].loss, 0.4)),
        Row("the reversed label turns PA's boundary further than PA-I's", "soft variants limit the response",
            f"{turns[0]:.0f} against {turns[1]:.0f} degrees", turns[0] > turns[1]),
        Row("soft variants do not repair the wrong label: after it, points on their right side",
            "they do not identify or repair incorrect labels",
            f"{right(hard[REVERSED], SEQUENCE)} (PA), {right(soft[REVERSED], SEQUENCE)} (PA-I) of {len(SEQUENCE)}"),
        Row(f"b times {FACTOR:g}: the last boundary is another one", "changes the outcome",
            f"turned by {moves[0]:.0f} (PA) and {moves[1]:.0f} degrees (PA-I)", min(moves) > 1.0),
    ]
    text = f"""The text ends with an exercise: calculate several PA and PA-I updates for one tiny sequence with a
reversed label, plot the decision boundary after each, and test what rescaling a feature changes. The sequence opens
with the text's own two examples; example {REVERSED + 1} has its label reversed. No intercept, so every boundary
passes through the origin.

{_told(plain)}

**The reversed label.** Basic PA must give it a margin of 1, whatever that costs, and turns by {turns[0]:.0f} degrees;
PA-I may not move further than C times the length of the example, and turns by {turns[1]:.0f}. Neither knows that the
label is wrong. Two good examples later {right(hard[-1], SEQUENCE)} of the {len(SEQUENCE)} points lie on the side of
their right label for PA and {right(soft[-1], SEQUENCE)} for PA-I.

**Feature b times {FACTOR:g}.** Same points, other unit: below, weights are given for the old unit, so that boundaries
can be compared.

{_told(rescaled)}

A step is along the example, so the larger feature takes nearly all of the move: the boundary lies along the axis of a
from the first example on, and six examples do not bring a in ({right(hard_scaled[-1], SEQUENCE)} of {len(SEQUENCE)}
points are on their right side at the end). The cap of PA-I, tau <= C, never holds here, since tau = loss / |x|^2 is
now small: both rules draw the same line, and the same C protects from nothing. Hence
`StandardScaler() | PAClassifier(...)`, and C chosen after scaling.

In the plots, filled points are positive as given and hollow ones negative; the ring marks the example just learned,
the cross the one whose label is reversed. The short line on a boundary points to its positive side."""
    return Result("boundaries", "Seed 003: the exercise, one update at a time", text, rows,
                  {"boundaries": _drawn(plain, "b"),
                   "boundaries-rescaled": _drawn(rescaled, f"b (learned times {FACTOR:g})")})


def _told(found: dict[str, list[Update]]) -> str:
    lines = []
    for number, point in enumerate(SEQUENCE):
        label = "+" if point.given else "-"
        cells = [f"{number + 1}", f"({point.a:g}, {point.b:g}) {label}" + (" reversed" * (number == REVERSED))]
        for updates in found.values():
            one = updates[number]
            cells += [f"{one.loss:.3f}", f"({one.a:.3f}, {one.b:.3f})", f"{one.margin:.3f}",
                      f"{right(one, SEQUENCE)} of {len(SEQUENCE)}"]
        lines.append(cells)
    heads = [f"{name}: {what}" for name in found for what in ("loss", "weights after", "margin after", "right side")]
    return table(["", "example", *heads], lines)


def _drawn(found: dict[str, list[Update]], how: str) -> Any:
    figure, axes = new_figure(width=2.5 * len(SEQUENCE), height=3.0, columns=len(SEQUENCE))
    for number, axis in enumerate(axes):
        for name, updates, width in zip(found, found.values(), (4.0, 1.5)):  # so that equal lines are both seen
            one = updates[number]
            length = math.hypot(one.a, one.b)
            if length > 0.0:
                up = (one.a / length, one.b / length)
                axis.plot([-4.0 * up[1], 4.0 * up[1]], [4.0 * up[0], -4.0 * up[0]], color=COLOURS[name], label=name,
                          linewidth=width)
                # both short lines start at the origin: the boundaries meet there
                axis.plot([0.0, 0.5 * up[0]], [0.0, 0.5 * up[1]], color=COLOURS[name], linewidth=width + 1.0)
        for place, point in enumerate(SEQUENCE[:number + 1]):
            axis.plot([point.a], [point.b], "o", color="black", fillstyle="full" if point.given else "none",
                      markersize=6)
            if place == REVERSED:
                axis.plot([point.a], [point.b], "x", color="#cc0000", markersize=11)
        axis.plot([SEQUENCE[number].a], [SEQUENCE[number].b], "o", color="#777777", fillstyle="none", markersize=14)
        axis.set(xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), title=f"after example {number + 1}" + (
            "\n(label reversed)" if number == REVERSED else "\n"), xlabel="a", aspect="equal")
        axis.title.set_fontsize(9)
        axis.grid(alpha=0.3)
        if number:
            axis.set_yticklabels([])
    axes[0].set(ylabel=how)
    axes[0].legend(fontsize=7, loc="lower left")
    return figure


EXPERIMENTS = [
    Experiment("boundaries", "seed 003: a reversed label, the boundary after each update, rescaling", boundaries),
]
