"""Passive-Aggressive online learning for River: the paper's learners, exact, atomic and storable."""

from __future__ import annotations

from pa_river._version import __version__
from pa_river.binary import PAClassifier
from pa_river.kernels import RBF, Kernel, Linear, Polynomial
from pa_river.odm import ODMClassifier
from pa_river.regression import PARegressor
from pa_river.state import StateError, dumps, loads
from pa_river.steps import PA, PA1, PA2, StepRule

__all__ = [
    "Kernel", "Linear", "ODMClassifier", "PA", "PA1", "PA2", "PAClassifier", "PARegressor", "Polynomial", "RBF",
    "StateError", "StepRule", "__version__", "dumps", "loads",
]
