"""A checkout of its own for every test: corpus, sweep, Dagster home and a scripted model server."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from ctxstream_dagster.orchestration.home import Project, ensure_home
from tests.fault_server import FaultServer
from tests.orchestration.checkout import Checkout
from tests.orchestration.stack import Stack

# Dagster's SQLite commits often; memory makes the tests five times as quick and checks the same things.
_MEMORY = Path("/dev/shm")


@contextlib.contextmanager
def temporary_place() -> Iterator[Path]:
    directory = tempfile.mkdtemp(prefix="ctxstream-", dir=_MEMORY if _MEMORY.is_dir() else None)
    yield Path(directory)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a directory in memory where there is one."""
    with temporary_place() as directory:
        yield directory


@pytest.fixture(scope="session")
def new_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an initialised, empty Dagster home to copy: creating the schema takes seconds."""
    root = tmp_path_factory.mktemp("template")
    Checkout.lay_out(root)
    with pytest.MonkeyPatch.context() as patch:
        # Set, not deleted: what `ensure_home` writes there is then taken back.
        patch.setenv("DAGSTER_HOME", str(root / ".dagster"))
        return ensure_home(Project(root))


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """Yield a scripted model server that answers every status line rightly."""
    with FaultServer() as running:
        yield running


@pytest.fixture
def checkout(place: Path, new_home: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """Return an empty checkout whose environment points to the scripted server."""
    for name in ("DAGSTER_HOME", "CTXSTREAM_HOME", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    monkeypatch.setenv("CTXSTREAM_MODEL", "scripted")
    Checkout.lay_out(place)
    shutil.copytree(new_home, place / ".dagster")
    return Checkout(place)


@pytest.fixture
def instance(checkout: Checkout) -> Iterator[dg.DagsterInstance]:
    """Yield the checkout's own Dagster instance."""
    ensure_home(checkout.project)
    with dg.DagsterInstance.from_config(str(checkout.project.dagster_home)) as opened:
        yield opened


@pytest.fixture(scope="module")
def busy_server() -> Iterator[FaultServer]:
    """Yield a scripted model server that a whole module shares."""
    with FaultServer() as running:
        yield running


@pytest.fixture(scope="module")
def deployment(new_home: Path, busy_server: FaultServer) -> Iterator[Stack]:
    """Yield a checkout with a Dagster deployment that is not started yet: declare sweeps first."""
    with temporary_place() as place:
        Checkout.lay_out(place)
        shutil.copytree(new_home, place / ".dagster")
        environment = {
            **{name: value for name, value in os.environ.items() if name != "CTXSTREAM_HOME"},
            "DAGSTER_HOME": str(place / ".dagster"),
            "OLLAMA_HOST": busy_server.url,
            "CTXSTREAM_MODEL": "scripted",
        }
        stack = Stack(Checkout(place), environment, backfill_interval_s=5)
        with pytest.MonkeyPatch.context() as patch:
            for name in ("DAGSTER_HOME", "OLLAMA_HOST", "CTXSTREAM_MODEL"):
                patch.setenv(name, environment[name])
            try:
                yield stack
            finally:
                stack.stop()
