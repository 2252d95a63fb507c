"""What one file's source says by itself: a pure function, run in a worker process, cached by the content's hash."""

from __future__ import annotations

import marshal
import sys
from dataclasses import dataclass

from ctxstream_dagster.planning.codegraph.grammars import (
    ParseTimeout,
    grammar_stamp,
    load_grammar,
    missing_advice,
    parse,
)
from ctxstream_dagster.planning.codegraph.imports import RawImport
from ctxstream_dagster.planning.codegraph.macros import without_macros
from ctxstream_dagster.planning.codegraph.references import identifiers
from ctxstream_dagster.planning.codegraph.symbols import read_tree
from ctxstream_dagster.planning.codegraph.tables import TABLES_VERSION
from ctxstream_dagster.planning.codegraph.values import SymbolRow, pack_rows, unpack_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One file's part of the graph.

    Attributes:
        rows: packed symbol rows (`values.pack_rows`).
        count: how many symbols they are.
        imports: raw imports in document order.
        words: the file's distinct words, joined by spaces; empty unless references are asked for.
        reason, detail: why there are no symbols, as in `FileNode.reason`; empty when it was parsed.
    """

    rows: bytes = b""
    count: int = 0
    imports: tuple[RawImport, ...] = ()
    words: bytes = b""
    reason: str = ""
    detail: str = ""

    def symbol_rows(self) -> list[SymbolRow]:
        """Return the symbol rows unpacked."""
        return unpack_rows(self.rows)


def analyse(source: bytes, *, language: str, budget_s: float, references: bool = True) -> Analysis:
    """Parse UTF-8 `source` and return what it defines, imports and, with `references`, mentions.

    A failure is a reason, not an error.
    """
    grammar = load_grammar(language)
    if grammar is None:
        return Analysis(reason="grammar-unavailable", detail=missing_advice())
    try:
        tree = parse(grammar, source, budget_s=budget_s)
        if language in ("c", "cpp") and tree.root_node.has_error:
            plain = without_macros(source, language=language)
            tree = parse(grammar, plain, budget_s=budget_s) if plain != source else tree
    except ParseTimeout as error:
        return Analysis(reason="parse-timeout", detail=str(error))
    rows, imports = read_tree(tree, source, language=language)
    words = identifiers(source) if references else b""
    return Analysis(rows=pack_rows(rows), count=len(rows), imports=tuple(imports), words=words)


def analysis_version(language: str) -> str:
    """Return what besides the content decides an analysis: the grammar, the tables, the interpreter's format."""
    return f"{language}/{grammar_stamp(language)}/{TABLES_VERSION}/{sys.version_info[:2]}"


def to_bytes(analysis: Analysis) -> bytes:
    """Return an analysis as bytes, for the pipe and for the cache."""
    return marshal.dumps(
        (analysis.rows, analysis.count, analysis.imports, analysis.words, analysis.reason, analysis.detail), 2
    )


def from_bytes(data: bytes) -> Analysis:
    """Return the analysis that `to_bytes` wrote."""
    rows, count, imports, words, reason, detail = marshal.loads(data)
    return Analysis(rows=rows, count=count, imports=imports, words=words, reason=reason, detail=detail)
