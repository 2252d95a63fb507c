"""``ctxstream dev``: the Dagster UI and its daemon over this project's sweeps."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer


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
    ensure_home(project)
    typer.echo(f"The Dagster UI: http://{host}:{port}  (Ctrl-C stops it; nothing is lost)")
    sys.stdout.flush()
    command = [sys.executable, "-m", "dagster", "dev", "--workspace", str(project.root / "workspace.yaml")]
    # Replaced, not spawned: Ctrl-C and kill reach Dagster itself.
    os.execv(sys.executable, [*command, "--host", host, "--port", str(port)])
