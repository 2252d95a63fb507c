"""`ctxstream dev` before it becomes Dagster: what it refuses."""

import os
import socket
import sys
import warnings
from pathlib import Path

import pytest
from dagster_shared.utils.warnings import supersession_warning

from tests.cli.conftest import Cli
from tests.orchestration.checkout import Checkout


def test_a_taken_port_is_a_sentence_and_status_2(ctxstream: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = ctxstream("dev", "--port", str(taken.getsockname()[1]))
    assert done.status == 2
    assert "choose another --port" in done.err


def test_it_becomes_dagster_without_warnings_about_what_the_project_decided(
    ctxstream: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "checkout"
    root.mkdir()
    Checkout.lay_out(root)
    monkeypatch.chdir(root)
    monkeypatch.setenv("DAGSTER_HOME", "")
    became: list[tuple[list[str], Path, str]] = []
    monkeypatch.setattr(os, "execv", lambda _, words: became.append((words, Path.cwd(), os.environ["CTXSTREAM_HOME"])))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("ctxstream_dagster.cli.dev._check_free", lambda *_: None)
    home = Path(os.path.relpath(tmp_path / "state"))
    monkeypatch.setenv("CTXSTREAM_HOME", str(home))
    # A relative one must survive the change of directory.
    assert ctxstream("dev").status == 0
    [(words, directory, state)] = became
    # Dagster warns where a dagster.yaml lies beside another home.
    assert directory == root / ".dagster"
    assert Path(state).is_absolute()
    assert Path(state).resolve() == tmp_path / "state"
    assert words[0] == sys.executable
    action, message = words[words.index("-W") + 1].split(":", 1)
    assert action == "ignore"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        supersession_warning("Function `dev_command`")
    assert str(caught[0].message).startswith(message)
