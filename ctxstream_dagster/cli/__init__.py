"""The command line: ``ctxstream``. Exit status 0: done; 1: no trustworthy answer; 2: asked for what cannot be done."""

from __future__ import annotations

import io
import shutil
import sys
from typing import Annotated

import typer

from ctxstream_dagster import __version__
from ctxstream_dagster.cli.ask import ask_command
from ctxstream_dagster.cli.check import check_command
from ctxstream_dagster.cli.dev import dev_command
from ctxstream_dagster.cli.doctor import doctor_command
from ctxstream_dagster.cli.exits import EXIT_INTERRUPTED, EXIT_USAGE, EXIT_WITHHELD
from ctxstream_dagster.cli.gc import gc_command
from ctxstream_dagster.cli.graph import graph_command
from ctxstream_dagster.cli.init import init_command
from ctxstream_dagster.cli.plan import plan_command
from ctxstream_dagster.cli.report import report_command
from ctxstream_dagster.cli.serve_model import serve_model
from ctxstream_dagster.cli.sweep import sweep_command
from ctxstream_dagster.errors import CtxstreamError, UsageError

NARROW_COLUMNS = 80

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
app.command("report")(report_command)
app.command("init")(init_command)
app.command("check")(check_command)
app.command("graph")(graph_command)
app.command("dev")(dev_command)
app.command("doctor")(doctor_command)
app.command("gc")(gc_command)
app.command("serve-model")(serve_model)


def main() -> None:
    """Run the command line; every expected failure is one sentence on standard error, never a traceback."""
    # The framed help would cut option names off on a narrow terminal.
    app.rich_markup_mode = "rich" if shutil.get_terminal_size().columns >= NARROW_COLUMNS else None
    try:
        app(prog_name="ctxstream")
    except SystemExit as stop:
        # Typer turns Ctrl-C into this status without a word.
        if stop.code != EXIT_INTERRUPTED:
            raise
        _fail("Stopped. Finished replies are kept: the same command goes on from here.", EXIT_INTERRUPTED)
    except UsageError as error:
        _fail(str(error), EXIT_USAGE)
    except CtxstreamError as error:
        _fail(str(error), EXIT_WITHHELD)
    except OSError as error:
        # Storage raises errors of its own; this is the output. What is left of it must not be tried again at exit.
        sys.stdout = io.StringIO()
        _fail(f"Could not write the output: {error}. Free some space, or write it elsewhere.", EXIT_WITHHELD)


def _fail(sentence: str, status: int) -> None:
    print(f"Error: {sentence}", file=sys.stderr)  # noqa: T201 -- rich would wrap what people paste into searches
    sys.exit(status)
