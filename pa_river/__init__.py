"""Passive-Aggressive online learning for River: the paper's learners, exact, atomic and storable."""

from __future__ import annotations

from pa_river._compiled import NATIVE
from pa_river._version import __version__
from pa_river.baselines import MIRAClassifier, MulticlassPerceptron
from pa_river.binary import PAClassifier
from pa_river.cost_sensitive import PACostSensitive
from pa_river.joint import PAJoint
from pa_river.multiclass import PAMulticlass
from pa_river.multilabel import PAMultilabel
from pa_river.regression import PARegressor
from pa_river.state import StateError, dumps, loads
from pa_river.steps import PA, PA1, PA2, StepRule

__all__ = [
    "MIRAClassifier", "MulticlassPerceptron", "NATIVE", "PA", "PA1", "PA2", "PAClassifier", "PACostSensitive",
    "PAJoint", "PAMulticlass", "PAMultilabel", "PARegressor", "StateError", "StepRule", "__version__", "dumps",
    "loads",
]
