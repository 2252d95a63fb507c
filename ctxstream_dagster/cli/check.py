"""``ctxstream check``: are all sweeps declared rightly? Runs nothing, reads no corpus, asks no server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ctxstream_dagster.errors import CorpusError, CtxstreamError, UsageError
from ctxstream_dagster.planning.discover import discover
from ctxstream_dagster.storage import write_bytes

if TYPE_CHECKING:
    from ctxstream_dagster.orchestration.home import Project


def check_command(
    *,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the JSON schema of a defs.yaml there for your editor, and stop."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Validate every sweep under assets/sweeps without running one; exit status 2 when one is wrong.

    Each is checked by itself, so one mistake hides no other. A corpus that is not there yet is only a remark.

    ctxstream check
    """
    # Imported here: every other command stays free of Dagster's start-up second.
    from ctxstream_dagster.orchestration.declaration import json_schema
    from ctxstream_dagster.orchestration.home import find_project

    if schema is not None:
        write_bytes(schema.absolute(), schema_bytes(json_schema()))
        typer.echo(f"Wrote {schema}.")
        return
    project = find_project()
    found = _checked(project)
    wrong = [entry for entry in found if entry["error"]]
    if as_json:
        typer.echo(json.dumps({"sweeps": found, "ok": not wrong}, ensure_ascii=False, indent=2))
        if wrong:
            raise typer.Exit(2)
        return
    for entry in found:
        typer.echo(f"{'✕' if entry['error'] else '✓'} {entry['name']}")
        for line in [*entry["error"].splitlines(), *entry["remarks"]]:
            typer.echo(f"    {line}")
    if wrong:
        raise UsageError(f"{len(wrong)} of {len(found)} sweeps cannot be loaded; see above.")
    typer.echo(f"{len(found)} sweeps are declared rightly." if len(found) != 1 else "1 sweep is declared rightly.")


def schema_bytes(schema: dict[str, Any]) -> bytes:
    """Return a JSON schema as the file that is written."""
    return (json.dumps(schema, ensure_ascii=False, indent=2) + "\n").encode("utf-8")


def _checked(project: Project) -> list[dict[str, Any]]:
    """Return name, error and remarks of every sweep, then of the project as a whole when only that is wrong."""
    from ctxstream_dagster.orchestration.launch import load_project
    from ctxstream_dagster.orchestration.location import check_sweeps

    assets = project.definitions_file.parent
    found = [
        {
            "name": name,
            "error": _sentence(error),
            "remarks": [] if error else _missing_corpora(assets / "sweeps" / name, project=project),
        }
        for name, error in check_sweeps(assets)
    ]
    if not any(entry["error"] for entry in found):
        try:
            load_project(project).resolve_asset_graph()
        # A sweep in Python may raise anything; this is the place that says so in a line.
        except Exception as error:
            found.append({"name": "all together", "error": _sentence(error), "remarks": []})
    return found


def _sentence(error: Exception | None) -> str:
    if error is None or isinstance(error, CtxstreamError):
        return str(error or "")
    # Dagster wraps what a module raises; the first cause is what its writer must mend.
    while error.__cause__ is not None and isinstance(error.__cause__, Exception):
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def _missing_corpora(folder: Path, *, project: Project) -> list[str]:
    import yaml

    remarks: list[str] = []
    for file in sorted(folder.rglob("defs.yaml")):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            named = document.get("attributes", {}).get("corpus", [])
            for path in [named] if isinstance(named, str) else named:
                try:
                    if "{{" not in path:
                        discover([project.root / Path(path).expanduser()])
                except CorpusError as error:
                    remarks.append(f"Remark: {error}")
    return remarks
