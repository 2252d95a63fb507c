"""The scripted server for every test of the client, and retries that do not wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import stamina

from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from tests.fault_server import FaultServer


@pytest.fixture(scope="session")
def shared_server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def server(shared_server: FaultServer) -> FaultServer:
    # A call that the test before left behind is not this test's.
    shared_server.wait_idle()
    shared_server.reset()
    return shared_server


@pytest.fixture
def backend(server: FaultServer) -> OllamaBackend:
    return OllamaBackend(OllamaOptions(url=server.url, model="scripted"))


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=6, cap=True):
        yield
