"""How the documentation shows a value of the code: its fields as rows, its types in plain words."""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ctxstream_dagster.orchestration.declaration import attributes

_WORDS: dict[object, str] = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    Path: "path",
    dict: "mapping",
}


def rows_of(value: type) -> list[tuple[str, str, str, str]]:
    """One row a field of a dataclass: name, kind, default, and what its docstring's ``Attributes`` say.

    Raises `LookupError` for a field that the docstring does not explain.
    """
    hints, meanings = get_type_hints(value), attributes(value)
    rows = []
    for field in fields(value):
        if not field.init:
            continue
        if field.default is not MISSING:
            default = default_of(field.default)
        else:
            default = "required" if field.default_factory is MISSING else default_of(field.default_factory())
        if field.name not in meanings:
            raise LookupError(f"The docstring of {value.__name__} does not explain {field.name!r}.")
        rows.append((f"`{field.name}`", kind_of(hints[field.name]), default, meanings[field.name]))
    return rows


def first_line(value: object) -> str:
    """Return the first sentence of a docstring."""
    return inspect.cleandoc(value.__doc__ or "").split("\n")[0].replace("``", "`")


def kind_of(hint: Any) -> str:
    """Say in plain words what values a type allows."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(kind_of(item) for item in arguments if item is not type(None)))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ", ".join(f"`{choice.value}`" for choice in hint)
    if origin in (tuple, list):
        return f"list of {kind_of(arguments[0])}"
    if is_dataclass(hint):
        return f"`{getattr(hint, '__name__', hint)}`"
    return _WORDS.get(origin or hint, "mapping" if origin else str(getattr(hint, "__name__", hint)))


def default_of(value: object) -> str:
    """Return a default as a reader would write it; empty for nothing."""
    if value is None or value in ("", (), [], {}):
        return ""
    if is_dataclass(value):
        return "its own defaults"
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value)
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f"`{value if value.isprintable() else value.encode('unicode_escape').decode('ascii')}`"
    return f"`{value}`"


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table; line breaks and bars inside cells are made harmless."""
    lines = [header, tuple("---" for _ in header), *rows]
    cells = [[" ".join(str(cell).split()).replace("|", "\\|") for cell in row] for row in lines]
    text = "".join(f"| {' | '.join(row)} |\n" for row in cells)
    # Four columns are too many for a narrow screen; docs/stylesheets/tables.css folds those inside the div.
    kind = "options" if "default" in header else "options names"
    return text if len(header) < 4 else f'<div class="{kind}" markdown>\n\n{text}\n</div>\n'
