"""The command line: ``ctxstream``. Exit status 0: done; 1: no trustworthy answer; 2: asked for what cannot be done."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ctxstream_dagster import __version__
from ctxstream_dagster.cli.ask import ask_command
from ctxstream_dagster.cli.dev import dev_command
from ctxstream_dagster.cli.doctor import doctor_command
from ctxstream_dagster.cli.graph import graph_command
from ctxstream_dagster.cli.plan import plan_command
from ctxstream_dagster.cli.sweep import sweep_command
from ctxstream_dagster.errors import CtxstreamError, UsageError

EXIT_WITHHELD = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="ctxstream",
    help="Ask a counting question of a corpus far larger than the model's window. Code plans, checks and counts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


app.command("plan")(plan_command)
app.command("ask")(ask_command)
app.command("sweep")(sweep_command)
app.command("graph")(graph_command)
app.command("dev")(dev_command)
app.command("doctor")(doctor_command)


def main() -> None:
    """Run the command line; every expected failure is one sentence on standard error, never a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        _fail("Stopped. Finished replies are kept: the same command goes on from here.", EXIT_INTERRUPTED)
    except UsageError as error:
        _fail(str(error), EXIT_USAGE)
    except CtxstreamError as error:
        _fail(str(error), EXIT_WITHHELD)


def _fail(sentence: str, status: int) -> None:
    print(f"Error: {sentence}", file=sys.stderr)  # noqa: T201 -- rich would wrap what people paste into searches
    sys.exit(status)
