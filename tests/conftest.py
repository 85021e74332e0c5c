"""Settings of the whole suite: hypothesis profiles that do not depend on the machine's speed."""

import re

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

#: A set of several items as `repr` shows it: `{`, no `:` of a dict, a comma, `}`.
_SET = re.compile(r"\{[^{}:]*,[^{}:]*\}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test whose name holds an address or a set: another name in each process, which parallel runs lose."""
    for item in items:
        if " at 0x" in item.nodeid or _SET.search(item.nodeid):
            raise pytest.UsageError(f"{item.nodeid}: give the parameter an id of its own")
