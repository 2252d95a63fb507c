"""What every test shares: no settings of whoever runs them, no clock in property tests."""

import os
import signal

from hypothesis import HealthCheck, settings

# A test that starts processes hands its environment on; two of them would meet in one home.
for name in ("CTXSTREAM_HOME", "DAGSTER_HOME", "CTXSTREAM_MODEL", "OLLAMA_HOST", "OLLAMA_API_KEY"):
    os.environ.pop(name, None)

# A shell's background job ignores Ctrl-C, and so would every process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine is no failure, so nothing is timed.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
