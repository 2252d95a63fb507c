"""What every test shares: no settings of whoever runs them, no clock in property tests, who may run beside whom."""

import os

import pytest
from hypothesis import HealthCheck, settings

# A test that starts processes hands its environment on; two of them would meet in one home.
for name in ("CTXSTREAM_HOME", "DAGSTER_HOME", "CTXSTREAM_MODEL", "OLLAMA_HOST", "OLLAMA_API_KEY"):
    os.environ.pop(name, None)

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
