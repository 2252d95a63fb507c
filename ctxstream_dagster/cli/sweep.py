"""``ctxstream sweep``: runs a declared sweep through Dagster, recorded where the UI shows it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ctxstream_dagster.cli.exits import EXIT_USAGE, EXIT_WITHHELD
from ctxstream_dagster.cli.options import Json, SweepName
from ctxstream_dagster.cli.progress import SweepProgress
from ctxstream_dagster.cli.tables import print_tally
from ctxstream_dagster.reduction.answer import number

if TYPE_CHECKING:
    from ctxstream_dagster.orchestration.launch import Outcome


def sweep_command(
    name: SweepName,
    *,
    refresh: Annotated[bool, typer.Option("--refresh", help="Ask again even where a result is stored.")] = False,
    as_json: Json = False,
) -> None:
    """Run a declared sweep and print its answer; exit status 1 when it is withheld, 2 when nothing could be asked.

    Only segments that are new, changed or failed are sent. `ctxstream dev` shows the same runs, segment by segment.

    ctxstream sweep status_census
    """
    # Imported here: every other command stays free of Dagster's start-up second.
    from ctxstream_dagster.orchestration.home import find_project, open_instance
    from ctxstream_dagster.orchestration.launch import run_sweep
    from ctxstream_dagster.storage import SweepStore, read_bytes

    project = find_project()
    with open_instance(project) as instance:
        outcome = run_sweep(
            project,
            name,
            instance=instance,
            progress=lambda segments: SweepProgress(segments=segments),
            refresh=refresh,
        )
    last_good = SweepStore(project.data_home, name).answer
    stated = json.loads(read_bytes(last_good)) if last_good.exists() else None
    if as_json:
        document = {**(stated or {}), "withheld": outcome.withheld, "runs": outcome.run_ids, "sent": outcome.sent}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        _print(outcome, stated)
    if outcome.withheld:
        raise typer.Exit(EXIT_USAGE if outcome.refused else EXIT_WITHHELD)


def _print(outcome: Outcome, stated: dict[str, Any] | None) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{outcome.sent} of {outcome.segments} segments sent, {len(outcome.failed)} failed.")
    if outcome.withheld:
        console.print(outcome.withheld, markup=False)
        for key, reason in list(outcome.failed.items())[:10]:
            console.print(f"  {key}: {reason}", markup=False)
        if stated is not None:
            console.print(f"The last good answer was: {stated['answer']}", markup=False)
        return
    assert stated is not None, "a sweep that is not withheld has written its answer"
    values = ((row["key"], Decimal(str(row["value"]))) for row in stated["tally"])
    print_tally(console, ((key, number(value), float(value)) for key, value in values))
    console.print(stated["coverage"]["sentence"], markup=False)
    console.print(stated["answer"], style="bold", markup=False)
    if not stated["certain"]:
        console.print(f"Not certain: {stated['caveat']}.", markup=False)
