"""What every test shares: property tests without a clock, and who may run beside whom."""

import pytest
from hypothesis import HealthCheck, settings

# A slow machine is no failure, so nothing is timed.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


# Before xdist's own hook, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a file's tests together, for its fixtures, and every Dagster stack on one worker: two starve each other."""
    for item in items:
        group = "stack" if item.get_closest_marker("stack") else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
