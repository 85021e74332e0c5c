"""Step rules: how far along the unit direction a violated constraint moves the weights.

The only formulas in which PA, PA-I and PA-II differ. A length along the unit direction, not the paper's `tau`,
because `tau = length / norm` leaves the floats at features of 1e-200 where the step itself does not.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, overload

from river import base

from pa_river import _validate, state


class StepRule(base.Base, abc.ABC):
    """How far to move, given by how much the constraint is broken and how long its direction is."""

    @abc.abstractmethod
    def length(self, loss: float, norm: float, weight: float = 1.0) -> float:
        """Return the length of the step along the unit direction.

        Parameters
        ----------
        loss
            By how much the constraint is broken, > 0.
        norm
            Euclidean length of the direction, >= 0. A direction of length 0 moves nothing.
        weight
            The example's importance, > 0: it scales `C`, never the step after the cap.

        """


@state.storable
class PA(StepRule):
    """Basic Passive-Aggressive step: exactly onto the constraint, whatever it takes.

    Notes
    -----
    tau = loss / norm^2. An example's weight has nothing to scale here and is ignored.
    Source: Crammer et al., JMLR 7, 2006, section 3, equation (4).

    Examples
    --------
    >>> PA().length(loss=1.0, norm=2.0)
    0.5

    """

    def length(self, loss: float, norm: float, weight: float = 1.0) -> float:
        return loss / norm if norm > 0.0 else 0.0


@state.storable
class PA1(StepRule):
    """PA-I: step onto the constraint, but never further than C times the example's weight.

    Parameters
    ----------
    C
        Aggressiveness, finite and > 0: the largest `tau`, in weight per unit of feature.

    Notes
    -----
    tau = min(C w, loss / norm^2). Source: Crammer et al., JMLR 7, 2006, section 3, figure 1.

    Examples
    --------
    >>> PA1(C=0.1).length(loss=1.0, norm=2.0)
    0.2
    >>> PA1(C=-1.0)
    Traceback (most recent call last):
    ...
    ValueError: PA1(C=...) must be a finite number > 0, got -1.0

    """

    C = _validate.Positive()

    def __init__(self, C: float = 1.0):
        self.C = C

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"C"}

    def length(self, loss: float, norm: float, weight: float = 1.0) -> float:
        if norm <= 0.0:
            return 0.0
        most, length = self.C * weight * norm, loss / norm
        return length if length < most else most


@state.storable
class PA2(StepRule):
    """PA-II: the slack costs quadratically, so the step is softened instead of capped.

    Parameters
    ----------
    C
        Aggressiveness, finite and > 0.

    Notes
    -----
    tau = loss / (norm^2 + 1 / (2 C w)). Source: Crammer et al., JMLR 7, 2006, section 3, figure 1.

    Examples
    --------
    >>> PA2(C=0.5).length(loss=1.0, norm=2.0)  # tau = 1 / (4 + 1) = 0.2
    0.4

    """

    C = _validate.Positive()

    def __init__(self, C: float = 1.0):
        self.C = C

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"C"}

    def length(self, loss: float, norm: float, weight: float = 1.0) -> float:
        return loss / (norm + 0.5 / self.C / weight / norm) if norm > 0.0 else 0.0


def require(owner: str, rule: Any) -> StepRule | None:
    """`rule`; `ValueError` unless it is a step rule or None."""
    _validate.require_instance(owner, "rule", rule, StepRule, "PA(), PA1(C) or PA2(C)")
    return rule  # type: ignore[no-any-return]


class Chosen:
    """The parameter `rule` of a learner, checked whenever it is set: when built, and by `mutate` later."""

    def __set__(self, instance: object, rule: Any) -> None:
        instance.__dict__["rule"] = require(type(instance).__name__, rule)

    if TYPE_CHECKING:  # without a __get__ of its own, the rule is read from the instance at no cost
        @overload
        def __get__(self, instance: None, owner: type) -> Chosen: ...

        @overload
        def __get__(self, instance: object, owner: type) -> StepRule | None: ...

        def __get__(self, instance: object | None, owner: type) -> StepRule | None | Chosen: ...


#: What `rule=None` means everywhere. Rules hold no learned state, so one object serves all models.
DEFAULT = PA1(1.0)
