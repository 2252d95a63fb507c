"""Writes the parts of the documentation that the code decides: commands, settings and file schemas.

A page holds ``<!-- generated: NAME -->`` … ``<!-- end of generated -->``; what stands between is replaced. Run it after
a change of an option or a schema; `make check` runs it with ``--check`` and fails when a page is out of date.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from reference_schemas import schemas
from reference_tables import default_of, first_line, kind_of, rows_of, table

DOCS = Path(__file__).resolve().parent
_BLOCK = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)


def main() -> int:
    """Rewrite the pages, or with ``--check`` say which are out of date; returns the exit status."""
    check = "--check" in sys.argv[1:]
    stale = [page for page in sorted(DOCS.glob("*.md")) if _renew(page, write=not check)]
    for page in stale if check else ():
        print(f"docs/{page.name} is out of date: run `python docs/reference.py`.", file=sys.stderr)
    return 1 if check and stale else 0


def renewed(text: str) -> str:
    """Return a page with its generated parts as the code is now; raises `KeyError` for an unknown part."""
    parts = {
        "commands": commands,
        "settings": settings,
        "names": names,
        "python-settings": python_settings,
        "examples": examples,
        "downstream": downstream,
        "schemas": schemas,
    }
    return _BLOCK.sub(lambda found: f"{found[1]}\n{parts[found[2]]().strip()}\n\n{found[3]}", text)


def _renew(page: Path, *, write: bool) -> bool:
    before = page.read_text(encoding="utf-8")
    after = renewed(before)
    if write and after != before:
        page.write_text(after, encoding="utf-8")
    return after != before


def commands() -> str:
    """Every command with its arguments and options, from the functions that the command line is made of."""
    from ctxstream_dagster.cli import app

    return "\n".join(line for name, function in all_commands(app) for line in _command(name, function))


def all_commands(app: typer.Typer, *, prefix: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the name and the function of every command, those of groups with the group's name in front."""
    for info in app.registered_commands:
        if info.callback is not None and not info.hidden:
            yield prefix + (info.name or info.callback.__name__.replace("_", "-")), info.callback
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from all_commands(group.typer_instance, prefix=f"{prefix}{group.name} ")


def parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Any, Any]]:
    """Yield every parameter of a command with its type and its typer.Argument or typer.Option."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        hint, *notes = get_args(hints[name]) if get_origin(hints[name]) is Annotated else (hints[name],)
        for note in notes:
            if hasattr(note, "param_decls"):
                yield parameter, hint, note


def option_names(parameter: inspect.Parameter, hint: Any, option: Any) -> list[str]:
    """Return the names by which an option is given, as typer makes them."""
    # Inside Annotated the first name stands where a default would.
    given = [option.default, *(option.param_decls or ())]
    declared = [name for names in given if isinstance(names, str) for name in names.split("/") if name.startswith("-")]
    plain = f"--{parameter.name.replace('_', '-')}"
    return declared or ([plain, plain.replace("--", "--no-", 1)] if hint is bool else [plain])


def _command(name: str, function: Callable[..., Any]) -> Iterator[str]:
    paragraphs = inspect.cleandoc(function.__doc__ or "").replace("\b\n", "").split("\n\n")
    examples = [text for text in paragraphs if text.startswith("ctxstream ")]
    yield f"## {name}\n"
    yield "\n\n".join(" ".join(text.split()) for text in paragraphs if text not in examples) + "\n"
    if examples:
        lines = [f"$ {line.strip()}" for text in examples for line in text.splitlines()]
        yield "```console\n" + "\n".join(lines) + "\n```\n"
    arguments, options = [], []
    for parameter, hint, note in parameters(function):
        if isinstance(note, typer.models.OptionInfo):
            if not note.hidden:
                options.append(_option(parameter, hint, note))
        else:
            arguments.append((f"`{note.metavar or parameter.name.upper()}`", note.help or ""))
    if arguments:
        yield table(("argument", "meaning"), arguments)
    if options:
        yield table(("option", "value", "default", "meaning"), options)


def _option(parameter: inspect.Parameter, hint: Any, option: Any) -> tuple[str, ...]:
    value = "" if hint is bool else f"`{option.metavar}`" if option.metavar else kind_of(hint)
    if option.min is not None and option.max is not None:
        value += f", {option.min:g} to {option.max:g}"
    required = parameter.default is inspect.Parameter.empty
    default = "required" if required else "" if parameter.default is False else default_of(parameter.default)
    variable = f" Environment: `{option.envvar}`." if option.envvar else ""
    names = ", ".join(f"`{name}`" for name in option_names(parameter, hint, option))
    return names, value, default, (option.help or "").replace("\\", "\\\\") + variable


def settings() -> str:
    """Every field of a ``defs.yaml``: the sweep's own, then each section's."""
    from ctxstream_dagster.orchestration.component import SweepComponent

    rows = []
    hints = get_type_hints(SweepComponent)
    for name, field in SweepComponent.model_fields.items():
        default = "required" if field.is_required() else default_of(field.default)
        rows.append((f"`{name}`", kind_of(hints[name]), default, field.description or ""))
    header = ("field", "value", "default", "meaning")
    parts = ["## The sweep\n", table(header, rows)]
    for section, value in yaml_sections().items():
        parts += [f"## {section}\n", re.sub(r"\bNone\b", "`null`", table(header, rows_of(value)))]
    return "\n".join(parts)


def yaml_sections() -> dict[str, type]:
    """The sections of a ``defs.yaml`` and the value that each fills."""
    from ctxstream_dagster.extraction.options import OllamaOptions
    from ctxstream_dagster.extraction.question import Example, Question
    from ctxstream_dagster.orchestration.spec import Schedule
    from ctxstream_dagster.planning.options import ManifestOptions

    return {
        "question": Question,
        "question.examples": Example,
        "planning": ManifestOptions,
        "ollama": OllamaOptions,
        "schedule": Schedule,
    }


def names() -> str:
    """Every name at the package's top: what it is, and the first line of its docstring."""
    import ctxstream_dagster

    rows = []
    for name in ctxstream_dagster.__all__:
        value = getattr(ctxstream_dagster, name)
        kind = "type" if isinstance(value, type) else "function"
        rows.append((f"`{name}`", kind, f"`{value.__module__.partition('.')[2]}`", first_line(value)))
    return table(("name", "is a", "in", "purpose"), rows)


def python_settings() -> str:
    """The settings that only Python code can give."""
    from ctxstream_dagster.extraction.retry import RetryOptions
    from ctxstream_dagster.extraction.stream import PipelineOptions
    from ctxstream_dagster.planning.codegraph.scan import ScanOptions

    header = ("field", "value", "default", "meaning")
    values = (ScanOptions, PipelineOptions, RetryOptions)
    parts = [f"### {value.__name__}\n\n{first_line(value)}\n\n{table(header, rows_of(value))}" for value in values]
    return "\n".join(parts)


def examples() -> str:
    """The declared sweeps of this checkout, as their files are."""
    parts = []
    for file in sorted((DOCS.parent / "assets" / "sweeps").glob("*/defs.yaml")):
        parts.append(f"### {file.parent.name}\n\n```yaml\n{file.read_text(encoding='utf-8').strip()}\n```\n")
    return "\n".join(parts)


def downstream() -> str:
    """Return the assets that use a sweep's results, as their files are."""
    files = sorted((DOCS.parent / "assets" / "sweeps").glob("*.py"))
    return "\n".join(f"```python\n{file.read_text(encoding='utf-8').strip()}\n```\n" for file in files)


if __name__ == "__main__":
    sys.exit(main())
