"""The command line as a person calls it: arguments in; exit status, standard output and standard error out."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from ctxstream_dagster.cli import main
from tests.fault_server import FaultServer


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


class Cli(Protocol):
    def __call__(self, *arguments: str | Path) -> Done: ...


@pytest.fixture
def ctxstream(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """Call the command line in this process, its state in a directory of its own."""
    monkeypatch.setenv("CTXSTREAM_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["ctxstream", *map(str, arguments)])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
        captured = capsys.readouterr()
        return Done(status=status, out=captured.out, err=captured.err)

    return call


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running
