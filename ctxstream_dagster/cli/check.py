"""``ctxstream check``: are all sweeps declared rightly? Runs nothing, reads no corpus, asks no server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ctxstream_dagster.cli.options import Json
from ctxstream_dagster.errors import CorpusError, CtxstreamError, UsageError
from ctxstream_dagster.planning.discover import discover
from ctxstream_dagster.planning.line_ends import line_end_hint
from ctxstream_dagster.reduction.coverage import counted
from ctxstream_dagster.storage import write_bytes

if TYPE_CHECKING:
    from ctxstream_dagster.orchestration.home import Project

_MARKS = {"ok": "✓", "warning": "!", "error": "✕"}


def check_command(
    *,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the JSON schema of a defs.yaml there for your editor, and stop."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Validate every sweep under assets/sweeps without running one; exit status 2 when one is wrong.

    Each is checked by itself, so one mistake hides no other. A corpus that is not there (yet) is a warning.

    ctxstream check
    """
    # Imported here: every other command stays free of Dagster's start-up second.
    from ctxstream_dagster.orchestration.declaration import json_schema
    from ctxstream_dagster.orchestration.home import find_project

    if schema is not None:
        write_bytes(schema.absolute(), schema_bytes(json_schema()))
        typer.echo(json.dumps({"file": str(schema)}, ensure_ascii=False) if as_json else f"Wrote {schema}.")
        return
    project = find_project()
    found = _checked(project)
    wrong = [entry for entry in found if entry["state"] == "error"]
    warned = [entry for entry in found if entry["state"] == "warning"]
    if as_json:
        document = {"sweeps": found, "ok": not wrong, "warnings": len(warned)}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        if wrong:
            raise typer.Exit(2)
        return
    for entry in found:
        typer.echo(f"{_MARKS[entry['state']]} {entry['name']}")
        for line in [*entry["error"].splitlines(), *entry["remarks"]]:
            typer.echo(f"    {line}")
    if wrong:
        raise UsageError(f"{len(wrong)} of {len(found)} sweeps cannot be loaded; see above.")
    declared = f"{counted(len(found), 'sweep')} {'is' if len(found) == 1 else 'are'} declared rightly"
    typer.echo(f"{declared}, {len(warned)} with a warning." if warned else f"{declared}.")


def schema_bytes(schema: dict[str, Any]) -> bytes:
    """Return a JSON schema as the file that is written."""
    return (json.dumps(schema, ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def _checked(project: Project) -> list[dict[str, Any]]:
    """Return name, state, error and remarks of every sweep, then of the project as a whole when only that is wrong."""
    from ctxstream_dagster.orchestration.launch import load_project
    from ctxstream_dagster.orchestration.location import check_sweeps

    assets = project.definitions_file.parent
    found: list[dict[str, Any]] = []
    for name, error in check_sweeps(assets):
        remarks = [] if error else _remarks(assets / "sweeps" / name, project=project)
        found.append(_entry(name, error=_sentence(error), remarks=remarks))
    if not any(entry["error"] for entry in found):
        try:
            load_project(project).resolve_asset_graph()
        # A sweep in Python may raise anything; this is the place that says so in a line.
        except Exception as error:
            found.append(_entry("all together", error=_sentence(error), remarks=[]))
    return found


def _entry(name: str, *, error: str, remarks: list[str]) -> dict[str, Any]:
    state = "error" if error else "warning" if remarks else "ok"
    return {"name": name, "state": state, "error": error, "remarks": remarks}


def _sentence(error: Exception | None) -> str:
    if error is None or isinstance(error, CtxstreamError):
        return str(error or "")
    # Dagster wraps what a module raises; the first cause is what its writer must mend.
    while error.__cause__ is not None and isinstance(error.__cause__, Exception):
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def _remarks(folder: Path, *, project: Project) -> list[str]:
    """Return what is odd about the corpora that a folder's YAML files name: not there, or with old line ends."""
    import yaml

    remarks: list[str] = []
    for file in sorted(folder.rglob("defs.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            attributes = document.get("attributes", {})
            named = attributes.get("corpus", [])
            written = [path for path in ([named] if isinstance(named, str) else named) if "{{" not in path]
            paths = [project.root / Path(path).expanduser() for path in written]
            remarks += [f"Warning: {sentence}" for sentence in map(_missing, paths) if sentence]
            planning = attributes.get("planning")
            delim = planning.get("record_delim", "\n") if isinstance(planning, dict) else "\n"
            hint = line_end_hint(paths, delim=delim, way='planning.record_delim: "\\r"') if paths else ""
            remarks += [f"Warning: {hint}"] if hint else []
    return remarks


def _missing(path: Path) -> str:
    try:
        discover([path])
    except CorpusError as error:
        return str(error)
    return ""
