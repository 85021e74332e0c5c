"""The registry of models is complete."""

from __future__ import annotations

import random

import pytest
from river import base, checks, datasets

import pa_river
from tests import cases


def _public_learners() -> set[str]:
    named = {name: getattr(pa_river, name) for name in pa_river.__all__}
    return {name for name, cls in named.items() if isinstance(cls, type) and hasattr(cls, "learn_one")}


def test_every_public_learner_is_in_the_registry():
    registered = [type(case.build()) for case in cases.ALL]
    assert {cls.__name__ for cls in registered} <= _public_learners()
    # a base that is public too, as Averaged, stands there by what it makes
    assert _public_learners() <= {kin.__name__ for cls in registered for kin in cls.__mro__}


class LabelSets:
    """In the place of River's only multilabel data set, which would be downloaded: two label sets of a packaged one."""

    def take(self, n):
        for x, y in datasets.ImageSegments().take(n):
            yield x, {"sky": y == "sky", "grass": y == "grass", "bright": x["intensity-mean"] > 40.0}


class Frauds:
    """In the place of River's data set of anomalies, also a download: a cloud of records, one in ten far outside."""

    def take(self, n):
        rng = random.Random(7)
        for number in range(min(n, 300)):
            odd = number > 20 and number % 10 == 0
            yield {f"V{place}": rng.gauss(3.0 if odd else 0.5, 0.3) for place in range(5)}, odd


@pytest.mark.parametrize("case", cases.RIVER, ids=str)
def test_rivers_own_checks_pass(case, monkeypatch):
    monkeypatch.setattr(datasets, "Music", LabelSets)
    monkeypatch.setattr(datasets, "CreditCard", Frauds)
    model = case.build()
    assert isinstance(model, base.Estimator)
    # the reason of each skip stands where the model declares it
    skips = model._unit_test_skips()
    for check in checks.yield_checks(model):
        if check.__name__ not in skips:
            check(model.clone())


@pytest.mark.parametrize("case", cases.ALL, ids=str)
def test_every_exception_to_a_rule_has_a_reason(case):
    assert all(reason.strip() for reason in case.exceptions.values())
