"""``ctxstream dev``: the Dagster UI and its daemon over this project's sweeps."""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Annotated

import typer

from ctxstream_dagster.errors import UsageError


def dev_command(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 3000,
) -> None:
    """Open the Dagster UI with its daemon, until Ctrl-C.

    State is kept in .dagster inside the project (DAGSTER_HOME elsewhere), so the next start shows the same runs.

    ctxstream dev --port 3000
    """
    from ctxstream_dagster.orchestration.home import ensure_home, find_project

    project = find_project()
    _check_free(host, port)
    home = ensure_home(project)
    typer.echo(f"The Dagster UI: http://{host}:{port}  (Ctrl-C stops it; nothing is lost)")
    sys.stdout.flush()
    # What replaces `dagster dev` wants a project laid out its own way.
    quiet = ["-W", "ignore:Function `dev_command` is superseded"]
    command = [sys.executable, *quiet, "-m", "dagster", "dev", "--workspace", str(project.root / "workspace.yaml")]
    if os.environ.get("CTXSTREAM_HOME"):
        os.environ["CTXSTREAM_HOME"] = str(project.data_home)
    # Beside the checkout's own dagster.yaml, of which the home has a copy, Dagster would warn that it is not used.
    os.chdir(home)
    # A shell script starts background commands with Ctrl-C ignored, and Dagster would hand that on to all it starts.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Replaced, not spawned: Ctrl-C and kill reach Dagster itself.
    os.execv(sys.executable, [*command, "--host", host, "--port", str(port)])


def _check_free(host: str, port: int) -> None:
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise UsageError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. Perhaps the UI runs there already; "
            "else choose another --port."
        ) from error
