"""``ctxstream gc``: removes what no plan in force needs any more, and nothing else."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ctxstream_dagster.cli.options import Json


def gc_command(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Sweeps; all when left out.")] = None,
    *,
    older_than_days: Annotated[
        float, typer.Option(min=0, help="Keep what was written in the last so many days: a revert then costs no call.")
    ] = 30,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Remove old plans, and extraction files of segments or questions that are no longer asked.

    The plan in force, the one of the last good answer, and their extractions stay. A sweep with a live run or backfill
    is left alone.

    ctxstream gc --dry-run
    """
    # Imported here: every other command stays free of Dagster's start-up second.
    from ctxstream_dagster.orchestration.garbage import collect
    from ctxstream_dagster.orchestration.home import find_project, open_instance

    project = find_project()
    with open_instance(project) as instance:
        outcome = collect(
            project, names or [], instance=instance, older_than_s=older_than_days * 86_400, dry_run=dry_run
        )
    if as_json:
        typer.echo(json.dumps({"bytes": outcome.bytes, "removed": outcome.removed, "left_alone": outcome.left_alone}))
        return
    verb = "Would remove" if dry_run else "Removed"
    for path in outcome.removed:
        typer.echo(f"{verb} {path}")
    for name, why in outcome.left_alone.items():
        typer.echo(f"Left {name} alone: {why}.")
    typer.echo(f"{verb} {len(outcome.removed)} files and plans, {outcome.bytes / 1e3:,.0f} kB.")
