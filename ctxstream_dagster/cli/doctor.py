"""``ctxstream doctor``: would a sweep run here, and what is to be changed so that it does?"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxstream_dagster.cli.dagster_checks import dagster_findings
from ctxstream_dagster.cli.finding import Finding
from ctxstream_dagster.cli.options import OLLAMA, Json, Model, Url
from ctxstream_dagster.embedded.server import VERSION as EMBEDDED_VERSION
from ctxstream_dagster.errors import BackendError, PreflightError
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.preflight import CHECKS
from ctxstream_dagster.extraction.probe import measure

EXIT_WOULD_NOT_RUN = 1
_MARKS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "problem": "[red]problem[/]", "skipped": "skipped"}


def doctor_command(
    *,
    url: Url = "",
    model: Model = OLLAMA.model,
    num_ctx: Annotated[int, typer.Option(help="Context a sweep would ask for, in tokens.")] = OLLAMA.num_ctx,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Calls a sweep would keep in flight.")] = 2,
    as_json: Json = False,
) -> None:
    """Check server, version, model, context, slots, speed and the Dagster home; exit status 1 if a sweep would not run.

    ctxstream doctor --url 127.0.0.1:11434 --model gemma4:e4b
    """
    findings = list(_server_findings(OllamaOptions(url=url, model=model, num_ctx=num_ctx), concurrency=concurrency))
    findings += dagster_findings()
    would_run = all(finding.state != "problem" for finding in findings)
    if as_json:
        checks = [dataclasses.asdict(finding) for finding in findings]
        typer.echo(json.dumps({"would_run": would_run, "checks": checks}, ensure_ascii=False, indent=2))
    else:
        _print(findings, would_run=would_run)
    if not would_run:
        raise typer.Exit(EXIT_WOULD_NOT_RUN)


def _server_findings(options: OllamaOptions, *, concurrency: int) -> Iterator[Finding]:
    passed: list[Finding] = []
    backend = OllamaBackend(options)
    try:
        facts = backend.facts(passed=lambda check, found: passed.append(Finding(check=check, state="ok", found=found)))
    except PreflightError as error:
        yield from passed
        failed, *later = CHECKS[len(passed) :]
        sentence, _, change = str(error).partition(". ")
        yield Finding(check=failed, state="problem", found=sentence.rstrip("."), change=change)
        for check in (*later, "speed", "slots"):
            yield Finding(check=check, state="skipped", found="")
        return
    yield from passed
    try:
        measured = measure(backend, concurrency=concurrency)
    except BackendError as error:
        yield Finding(check="speed", state="problem", found=str(error), change="Read the server's log.")
        yield Finding(check="slots", state="skipped", found="")
        return
    rate = f", {measured.tokens / measured.call_s:,.0f} tokens/s" if measured.tokens else ""
    yield Finding(check="speed", state="ok", found=f"{measured.call_s:.2f} s for a call of one unit{rate}")
    found = f"{measured.at_once} of {measured.concurrency} calls ran at once"
    if measured.at_once < measured.concurrency:
        raised = f"Set OLLAMA_NUM_PARALLEL={concurrency} for the server"
        if facts.version == EMBEDDED_VERSION:
            raised = f"Start it with `ctxstream serve-model --parallel {concurrency}`"
        change = f"{raised}, or keep at most {measured.at_once} in flight (--concurrency, in_flight)."
        yield Finding(check="slots", state="warning", found=found, change=change)
    else:
        yield Finding(check="slots", state="ok", found=found)


def _print(findings: list[Finding], *, would_run: bool) -> None:
    console = Console(highlight=False, soft_wrap=not Console().is_terminal)
    table = Table("check", "", "found", "what to change", box=None, header_style="bold")
    for finding in findings:
        if finding.state == "skipped":
            continue
        table.add_row(finding.check, _MARKS[finding.state], Text(finding.found), Text(finding.change))
    console.print(table)
    console.print("A sweep would run." if would_run else "A sweep would not run yet.", style="bold")
