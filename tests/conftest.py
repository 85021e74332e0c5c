"""Settings of the whole suite: hypothesis profiles that do not depend on the machine's speed."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")
