"""Seed 001: the PA-II problem as its notes print it, with loss <= xi^2, solved beside the paper's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evaluation.results import Experiment, Result, Row, new_figure, progress, table
from pa_river import PA1, PA2, StepRule

Floats = npt.NDArray[np.float64]
#: the slack that a problem allows the loss, from its variable xi
PROBLEMS: dict[str, Callable[[float], float]] = {"printed: loss <= xi^2": lambda xi: xi * xi,
                                                 "the paper's: loss <= xi": lambda xi: xi}
START, EXAMPLE = (0.3, -0.2), (1.0, 2.0)  # the example is negative: its loss is 1 + w . x = 0.9
STEPS = tuple(float(C) for C in np.geomspace(0.01, 10.0, 13))
NEAR = 1e-5


def solved(w: Floats, x: Floats, C: float, allowed: Callable[[float], float]) -> Floats:
    """Return argmin 1/2 |v - w|^2 + C xi^2 s.t. 1 + v . x <= allowed(xi), by a general solver (y = -1)."""
    from scipy.optimize import minimize

    def price(z: Floats) -> float:
        return float(0.5 * np.sum((z[:2] - w) ** 2) + C * z[2] ** 2)

    def room(z: Floats) -> float:
        return float(allowed(float(z[2])) - (1.0 + z[:2] @ x))

    found: Floats = minimize(price, np.array([*w, 2.0]), constraints={"type": "ineq", "fun": room}, tol=1e-14,
                             options={"maxiter": 1000}).x[:2]
    return found


def stepped(rule: StepRule, w: Floats, x: Floats) -> float:
    """Return the rule's closed form of tau for the negative example."""
    norm = float(np.linalg.norm(x))
    return rule.length(1.0 + float(w @ x), norm) / norm


def moved(w: Floats, x: Floats, C: float, allowed: Callable[[float], float]) -> float:
    """Return the solver's tau, the multiple of the example that it takes from w."""
    return float((w - solved(w, x, C, allowed)) @ x / (x @ x))


def misprint(data: Path) -> Result:
    """Both problems over a range of C, beside PA-I and PA-II."""
    w, x = np.array(START), np.array(EXAMPLE)
    taus: dict[str, list[float]] = {name: [] for name in (*PROBLEMS, "PA-I", "PA-II")}
    for C in progress(STEPS, "misprint", total=len(STEPS)):
        for name, allowed in PROBLEMS.items():
            taus[name].append(moved(w, x, C, allowed))
        taus["PA-I"].append(stepped(PA1(C), w, x))
        taus["PA-II"].append(stepped(PA2(C), w, x))
    printed, paper = (np.array(taus[name]) for name in PROBLEMS)
    gaps = {"PA-I": float(np.abs(printed - taus["PA-I"]).max()), "PA-II": float(np.abs(paper - taus["PA-II"]).max())}
    apart = float(np.abs(printed - taus["PA-II"]).max())
    rows = [
        Row("the printed problem (loss <= xi^2) solves to PA-I: largest difference of tau", "PA-II, says the text",
            f"{gaps['PA-I']:.1e}", gaps["PA-I"] < NEAR, "so the print is in error"),
        Row("and not to PA-II: largest difference of tau", "0, says the text", f"{apart:.3f}", apart > 0.01),
        Row("the paper's problem (loss <= xi) solves to PA-II: largest difference of tau", "0", f"{gaps['PA-II']:.1e}",
            gaps["PA-II"] < NEAR),
    ]
    figure, (axis,) = new_figure(width=6.5)
    for name, colour in (("PA-I", "#0072b2"), ("PA-II", "#009e73")):
        axis.plot(STEPS, taus[name], color=colour, label=f"{name}, closed form")
    for name, colour, mark in zip(PROBLEMS, ("#0072b2", "#009e73"), ("s", "o")):
        axis.plot(STEPS, taus[name], mark, color=colour, fillstyle="none", label=f"solver, {name}")
    axis.set(xscale="log", xlabel="C", ylabel="step tau")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
    text = f"""The lecture notes of seed 001 derive the updates by Lagrange multipliers and print the PA-II problem as

    min  1/2 |w - w_t|^2 + C xi^2    subject to    loss(w) <= xi^2

The paper has `loss(w) <= xi`. The difference is not a detail: with s = xi^2 the printed problem reads min 1/2 |w -
w_t|^2 + C s subject to loss <= s, s >= 0, and that is PA-I. A general solver (scipy's SLSQP) agrees. Here w_t =
({START[0]:g}, {START[1]:g}), x = ({EXAMPLE[0]:g}, {EXAMPLE[1]:g}), y = -1, so the loss is 0.9 and |x|^2 = 5; tau is
the multiple of x that is taken from w_t.

{table(["C", *taus], [[f"{C:.3g}", *(f"{taus[name][i]:.6f}" for name in taus)] for i, C in enumerate(STEPS)])}

PA-I: min(C, 0.9 / 5). PA-II: 0.9 / (5 + 1 / (2 C)). The derivation is in [maths.md](../maths.md)."""
    return Result("misprint", "Seed 001: the printed PA-II problem is PA-I", text, rows, {"misprint": figure})


EXPERIMENTS = [
    Experiment("misprint", "seed 001: the printed constraint of PA-II, solved beside the paper's", misprint),
]
