"""The Dagster lines of ``ctxstream doctor``."""

from __future__ import annotations

from collections.abc import Iterator

from ctxstream_dagster.cli.finding import Finding
from ctxstream_dagster.errors import ConfigError


def dagster_findings() -> Iterator[Finding]:
    """Yield what `orchestration.health` found of the project around the working directory."""
    # Imported here: every other command stays free of Dagster's start-up second.
    from ctxstream_dagster.orchestration.health import examine
    from ctxstream_dagster.orchestration.home import find_project

    try:
        project = find_project()
    except ConfigError as error:
        yield Finding(check="sweeps", state="warning", found=str(error))
        return
    for condition in examine(project):
        yield Finding(check=condition.subject, state=condition.state, found=condition.found, change=condition.change)
