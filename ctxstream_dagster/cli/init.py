"""``ctxstream init``: writes a commented sweep from three answers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ctxstream_dagster.cli.options import Cue, Examples, Extract, HowToAnswer, Json, written_example
from ctxstream_dagster.errors import ConfigError, CorpusError, UsageError
from ctxstream_dagster.planning.discover import discover
from ctxstream_dagster.reduction.answer import Answer
from ctxstream_dagster.storage import write_bytes

if TYPE_CHECKING:
    from ctxstream_dagster.orchestration.home import Project


def init_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The sweep's name: a-z, 0-9 and _.")],
    *,
    corpus: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="A file, a glob or a directory; may be repeated.")
    ] = None,
    extract: Extract = "",
    labels: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The closed set of labels; empty to let the model name keys.")
    ] = None,
    answer: HowToAnswer = Answer.LIST,
    cue: Cue = "",
    example: Examples = None,
    as_json: Json = False,
) -> None:
    """Write assets/sweeps/NAME/defs.yaml from three answers: which text, what to look for, which labels.

    Asks on a terminal for what is not given by options. A path is looked for where you are, then in the project, and
    written as seen from the project. Never overwrites a sweep.

    ctxstream init todo_owners --corpus "src/**/*.py" --extract "Who owns this TODO?" --labels ""
    """
    # Imported here: every other command stays free of Dagster's start-up second.
    from ctxstream_dagster.cli.check import schema_bytes
    from ctxstream_dagster.orchestration.declaration import json_schema, new_sweep, sweep_yaml
    from ctxstream_dagster.orchestration.home import find_project

    project = find_project()
    file = project.definitions_file.parent / "sweeps" / name / "defs.yaml"
    _refuse_existing(name, file)
    given = corpus or [_ask("Which text? A file, a glob or a directory")]
    paths = [_from_project(path, project=project) for path in given]
    extract = extract or _ask("What should the model look for, in plain words?")
    if labels is None:
        labels = _ask("Which labels, separated by commas? Empty: the model names keys", default="")
    examples = [written_example(written) for written in example or ()]
    attributes = new_sweep(
        corpus=paths, extract=extract, labels=labels, answer=answer.value, cue=cue, examples=examples
    )
    _validate(attributes, name=name, project=project)
    write_bytes(file, sweep_yaml(attributes).encode("utf-8"))
    write_bytes(project.definitions_file.parent / "sweep.schema.json", schema_bytes(json_schema()))
    remark = _missing(paths, project=project)
    if as_json:
        typer.echo(json.dumps({"file": str(file), "attributes": attributes, "remark": remark}, ensure_ascii=False))
        return
    typer.echo(f"Wrote {file}")
    if remark:
        typer.echo(f"Remark: {remark}")
    typer.echo(f"Next: ctxstream check, then ctxstream sweep {name}")


def _ask(question: str, *, default: str | None = None) -> str:
    if not sys.stdin.isatty():
        if default is not None:
            return default
        raise UsageError("There is no terminal to ask on: give --corpus, --extract and, for a closed set, --labels.")
    return str(typer.prompt(question, default=default, show_default=False)).strip()


def _refuse_existing(name: str, file: Path) -> None:
    from ctxstream_dagster.orchestration.component import SweepComponent
    from ctxstream_dagster.orchestration.yaml_errors import declared_names

    if file.parent.exists():
        raise UsageError(f"{file.parent} exists already; choose another name, or edit what is there.")
    for known, place in declared_names(file.parents[1], component=SweepComponent.__name__):
        if known == name:
            raise UsageError(f"A sweep named {name!r} is declared in {place}; choose another name.")


def _validate(attributes: dict[str, Any], *, name: str, project: Project) -> None:
    from pydantic import ValidationError

    from ctxstream_dagster.orchestration.component import SweepComponent

    try:
        SweepComponent(**attributes).spec(root=project.root, default_name=name)
    except ValidationError as error:
        raise ConfigError("; ".join(item["msg"] for item in error.errors())) from error


def _from_project(path: str, *, project: Project) -> str:
    """Return a path as a sweep reads it, from the project's root, when there is something at it where the user is."""
    here = Path.cwd()
    expanded = Path(path).expanduser()
    if here == project.root or expanded.is_absolute() or not _is_there(here / expanded):
        return path
    # Not `resolve`: a link is named as the user named it.
    absolute = Path(os.path.abspath(here / expanded))  # noqa: PTH100
    return absolute.relative_to(project.root).as_posix() if absolute.is_relative_to(project.root) else str(absolute)


def _is_there(path: Path) -> bool:
    try:
        discover([path])
    except CorpusError:
        return False
    return True


def _missing(paths: Sequence[str], *, project: Project) -> str:
    """Return a sentence when the corpus cannot be found from the project; else an empty one."""
    try:
        discover([project.root / Path(path).expanduser() for path in paths])
    except CorpusError as error:
        return f"there is no text yet: {error} Paths in a defs.yaml start from {project.root}."
    return ""
