"""Passive-Aggressive online learning for River: the paper's learners, exact, atomic and storable."""

from __future__ import annotations

from pa_river._compiled import NATIVE
from pa_river._version import __version__
from pa_river.averaged import Averaged, AveragedClassifier, AveragedMultiLabelClassifier, AveragedRegressor
from pa_river.baselines import MIRAClassifier, MulticlassPerceptron
from pa_river.binary import PAClassifier
from pa_river.budget import Budget
from pa_river.certified import (
    Certified, CertifiedClassifier, CertifiedDetector, CertifiedMultiLabelClassifier, CertifiedRegressor,
)
from pa_river.cost_sensitive import PACostSensitive
from pa_river.joint import PAJoint
from pa_river.kernels import RBF, Kernel, Linear, Polynomial
from pa_river.merging import merge
from pa_river.multiclass import PAMulticlass
from pa_river.multilabel import PAMultilabel
from pa_river.odm import ODMClassifier
from pa_river.regression import PARegressor
from pa_river.scaled import ScaledPA, ScaledPAClassifier, ScaledPARegressor
from pa_river.second_order import AROWClassifier, AROWMulticlass, SCWClassifier, SCWMulticlass
from pa_river.sentences import Sentences
from pa_river.sequence import PASequence
from pa_river.state import StateError, dumps, loads
from pa_river.steps import PA, PA1, PA2, StepRule
from pa_river.uniclass import PAUniclass

__all__ = [
    "AROWClassifier", "AROWMulticlass", "Averaged", "AveragedClassifier", "AveragedMultiLabelClassifier",
    "AveragedRegressor", "Budget", "Certified", "CertifiedClassifier", "CertifiedDetector",
    "CertifiedMultiLabelClassifier", "CertifiedRegressor", "Kernel", "Linear", "MIRAClassifier",
    "MulticlassPerceptron", "NATIVE", "ODMClassifier", "PA", "PA1", "PA2", "PAClassifier", "PACostSensitive",
    "PAJoint", "PAMulticlass", "PAMultilabel", "PARegressor", "PASequence", "PAUniclass", "Polynomial", "RBF",
    "SCWClassifier", "SCWMulticlass", "ScaledPA", "ScaledPAClassifier", "ScaledPARegressor", "Sentences",
    "StateError", "StepRule", "__version__", "dumps", "loads", "merge",
]
