"""The optimal margin distribution machine, exact while examples come and leave."""

from __future__ import annotations

from pa_river.odm.model import ODMClassifier
from pa_river.odm.problem import Certificate

__all__ = ["Certificate", "ODMClassifier"]
