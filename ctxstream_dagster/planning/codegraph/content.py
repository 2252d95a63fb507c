"""One file's bytes as source: its text, its language, or why it is not read. A function of the bytes and the name."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from dataclasses import dataclass, field

from ctxstream_dagster.planning.codegraph.analysis import Analysis, from_bytes, to_bytes
from ctxstream_dagster.planning.codegraph.languages import TEXT, is_generated, is_minified, language_of
from ctxstream_dagster.planning.codegraph.notebooks import cells_source
from ctxstream_dagster.planning.textio import Unreadable, decode_bytes

_NOTEBOOK = ".ipynb"

Parse = Callable[[bytes, str], Analysis]
"""Analyse UTF-8 source in a language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a file's content says of it.

    Attributes:
        language, encoding, chars, derived, generated: as in `values.FileNode`.
        analysis: empty for text.
        skip, detail: why the file is not read, as in `Skipped.reason` and `Skipped.detail`; empty when it is.
    """

    language: str = TEXT
    encoding: str = ""
    chars: int = 0
    derived: bool = False
    generated: bool = False
    skip: str = ""
    detail: str = ""
    analysis: Analysis = field(default_factory=Analysis)


def source_text(name: str, data: bytes) -> tuple[str, str, str | None] | Unreadable:
    """Return (text, encoding, language) of a file; a language for a notebook only, whose text is its cells'."""
    decoded = decode_bytes(data)
    if isinstance(decoded, Unreadable):
        return decoded
    text, encoding = decoded
    if name.endswith(_NOTEBOOK) and (cells := cells_source(text)):
        return cells[0], encoding, cells[1]
    return text, encoding, None


def read_content(name: str, data: bytes, *, parse: Parse) -> Content:
    """Return what a file's bytes say; `parse` is asked about source in a known language."""
    if data.isascii() and b"\0" not in data and not name.endswith(_NOTEBOOK):
        # Most source: its text need not be made to know how long it is.
        source, encoding, chars, cell_language = data, "utf-8", len(data), None
    else:
        read = source_text(name, data)
        if isinstance(read, Unreadable):
            return Content(skip=read.reason, detail=read.detail)
        text, encoding, cell_language = read
        source = data if encoding == "utf-8" and cell_language is None else text.encode("utf-8", "replace")
        chars = len(text)
    if is_minified(name, source):
        return Content(skip="minified", detail="lines that no person wrote")
    language = cell_language or language_of(name, source)
    return Content(
        language=language,
        encoding=encoding,
        chars=chars,
        derived=cell_language is not None,
        generated=is_generated(source),
        analysis=Analysis() if language == TEXT else parse(source, language),
    )


def pack_content(content: Content) -> bytes:
    """Return a content as bytes, for the cache."""
    fields = (content.language, content.encoding, content.chars, content.derived, content.generated, content.skip)
    return marshal.dumps((*fields, content.detail, to_bytes(content.analysis)), 2)


def unpack_content(data: bytes) -> Content:
    """Return the content that `pack_content` wrote."""
    language, encoding, chars, derived, generated, skip, detail, analysis = marshal.loads(data)
    return Content(
        language=language,
        encoding=encoding,
        chars=chars,
        derived=derived,
        generated=generated,
        skip=skip,
        detail=detail,
        analysis=from_bytes(analysis),
    )
