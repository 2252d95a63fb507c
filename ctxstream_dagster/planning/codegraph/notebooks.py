"""A Jupyter notebook as its cells' source, in the percent format that editors and jupytext read; outputs dropped."""

from __future__ import annotations

import json
from typing import Any, cast

from ctxstream_dagster.planning.codegraph.languages import LANGUAGES, TEXT

_ALIASES = {"c++": "cpp", "c#": "csharp", "sh": "bash"}
_HASH_COMMENTS = frozenset({"python", "ruby", "bash", "text"})
_COMMENTS = {"lua": "--"}


def cells_source(text: str) -> tuple[str, str] | None:
    """Return (source, language) of a notebook's JSON text, or None when it is no notebook of format 3 or 4.

    A code cell follows a line ``# %%``, others follow ``# %% [markdown]`` as comments.
    """
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    notebook = _object(value)
    sheets = notebook.get("worksheets")
    cells = notebook.get("cells")
    if not isinstance(cells, list) and isinstance(sheets, list):
        cells = [cell for sheet in cast("list[Any]", sheets) for cell in _list(_object(sheet).get("cells"))]
    if not isinstance(cells, list):
        return None
    language = _language(_object(notebook.get("metadata")))
    comment = "#" if language in _HASH_COMMENTS else _COMMENTS.get(language, "//")
    parts: list[str] = []
    for item in cast("list[Any]", cells):
        cell = _object(item)
        source = _source(cell.get("source", cell.get("input", "")))
        if cell.get("cell_type") == "code":
            parts.append(f"{comment} %%\n{source}\n")
        else:
            lines = "".join(f"{comment} {line}".rstrip() + "\n" for line in source.splitlines())
            parts.append(f"{comment} %% [markdown]\n{lines}")
    return "".join(parts), language


def _language(metadata: dict[str, Any]) -> str:
    name = _object(metadata.get("kernelspec")).get("language") or _object(metadata.get("language_info")).get("name")
    language = str(name or "python").lower()
    language = _ALIASES.get(language, language)
    return language if language in LANGUAGES else TEXT


def _source(value: Any) -> str:
    return value if isinstance(value, str) else "".join(str(line) for line in _list(value))


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
