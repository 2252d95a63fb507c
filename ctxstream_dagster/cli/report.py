"""``ctxstream report``: the evidence page of a sweep, made from what is stored; calls no model."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ctxstream_dagster.cli.options import Json, SweepName
from ctxstream_dagster.errors import ConfigError, UsageError, nearest_name
from ctxstream_dagster.planning.corpus import PackedCorpus
from ctxstream_dagster.reduction.answer import Answer
from ctxstream_dagster.reduction.sweep import reduce_sweep
from ctxstream_dagster.report.evidence import Evidence, evidence_page
from ctxstream_dagster.storage import SweepStore, write_bytes

if TYPE_CHECKING:
    from ctxstream_dagster.orchestration.home import Project


def report_command(
    name: SweepName,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it; left out, evidence.html beside the tally.")
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    latest: Annotated[
        bool, typer.Option("--latest", help="Show what is extracted now, even where its tally is withheld.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a sweep's evidence page: every counted record in its source, what was rejected, failed and skipped.

    One HTML file that needs no network. It shows the last good tally, or what was extracted so far when there is none.

    ctxstream report status_census --open
    """
    # Imported here: every other command stays free of Dagster's start-up second.
    from ctxstream_dagster.orchestration.home import find_project

    project = find_project()
    store = SweepStore(project.data_home, name)
    evidence = _so_far(project, store) if latest or not store.tally.exists() else _last_good(project, store)
    page = evidence_page(evidence)
    file = (out or _beside_the_tally(store)).absolute()
    write_bytes(file, page)
    if as_json:
        answer = None if evidence.withheld else str(evidence.reduction.statement)
        document = {"file": str(file), "bytes": len(page), "answer": answer, "withheld": evidence.withheld}
        typer.echo(json.dumps({**document, "remarks": list(evidence.remarks)}, ensure_ascii=False, indent=2))
    else:
        for line in [evidence.withheld or str(evidence.reduction.statement), *evidence.remarks]:
            typer.echo(line)
        typer.echo(f"Evidence: {file} ({len(page) / 1e3:,.0f} kB)")
    if open_it and not webbrowser.open(file.as_uri()):
        # The page is what was asked for, and it is there.
        typer.echo(f"No browser could be started here. The page is complete: open {file} in one.", err=True)


def _last_good(project: Project, store: SweepStore) -> Evidence:
    from ctxstream_dagster.orchestration.results import Inputs, last_good, stored_result

    reduction, facts = last_good(store)
    corpus = PackedCorpus.open(store.plan_directory(facts["plan"]))
    found = {key: stored_result(store, version=facts["version"], key=key) for key in corpus.stored}
    results = {key: result for key, result in found.items() if result is not None}
    remarks: list[str] = []
    if store.current_plan() != corpus.directory:
        remarks.append(f"The corpus was planned again since this tally: `ctxstream sweep {store.name}` renews it.")
    elif Inputs(corpus=corpus, version=facts["version"], results=results).fingerprint() != facts["inputs"]:
        remarks.append(f"Segments were extracted again since this tally: `ctxstream sweep {store.name}` renews it.")
    return Evidence(
        sweep=store.name,
        corpus=corpus,
        results=results,
        reduction=reduction,
        question=facts.get("question", ""),
        remarks=tuple(remarks),
        root=str(project.root),
    )


def _so_far(project: Project, store: SweepStore) -> Evidence:
    from ctxstream_dagster.orchestration.launch import code_version, load_project, sweep_names
    from ctxstream_dagster.orchestration.results import stored_result

    definitions = load_project(project)
    names = sweep_names(definitions)
    if store.name not in names:
        raise ConfigError(
            f"There is no sweep {store.name!r}{nearest_name(store.name, names)}. "
            f"Declared: {', '.join(names) or 'none'}."
        )
    directory = store.current_plan()
    version = code_version(definitions, store.name, "extraction")
    corpus = PackedCorpus.open(directory) if directory else None
    found = {key: stored_result(store, version=version, key=key) for key in corpus.stored} if corpus else {}
    results = {key: result for key, result in found.items() if result is not None}
    if corpus is None or not results:
        raise UsageError(f"The sweep {store.name!r} has not run yet. Run `ctxstream sweep {store.name}` first.")
    reduction = reduce_sweep(corpus, results.values(), how=Answer.LIST)
    covered = reduction.coverage
    return Evidence(
        sweep=store.name,
        corpus=corpus,
        results=results,
        reduction=reduction,
        withheld=f"{covered.segments_ok:,} of {covered.segments:,} segments are read so far",
        root=str(project.root),
    )


def _beside_the_tally(store: SweepStore) -> Path:
    return store.root / "evidence.html" if isinstance(store.root, Path) else Path(f"{store.name}-evidence.html")
