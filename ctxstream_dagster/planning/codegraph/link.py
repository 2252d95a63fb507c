"""From files read one by one to the graph: ids, edges and counts; and the whole graph as bytes, for the cache."""

from __future__ import annotations

import marshal
import os
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

from ctxstream_dagster.planning.codegraph.content import Content
from ctxstream_dagster.planning.codegraph.languages import TEXT
from ctxstream_dagster.planning.codegraph.references import defined_names, reference_edges
from ctxstream_dagster.planning.codegraph.resolve import ParsedFile, resolve_imports
from ctxstream_dagster.planning.codegraph.values import CodeGraph, Edges, FileNode, ImportCount, Symbols
from ctxstream_dagster.planning.codegraph.walk import FoundFile
from ctxstream_dagster.planning.skipped import Skipped

_FILE_FIELDS = [field.name for field in fields(FileNode)]
_SKIPPED_FIELDS = [field.name for field in fields(Skipped)]
_COUNT_FIELDS = [field.name for field in fields(ImportCount)]


def link_graph(
    root: str, found: Sequence[FoundFile], contents: Sequence[tuple[Content, str]], *, skipped: Sequence[Skipped]
) -> CodeGraph:
    """Return the graph of files sorted by path and what each says, with its hash; those not read join `skipped`."""
    pairs = [(file, content, sha256) for file, (content, sha256) in zip(found, contents, strict=True)]
    left_out = [
        Skipped(path=file.path, reason=content.skip, detail=content.detail)
        for file, content, _ in pairs
        if content.skip
    ]
    read = [pair for pair in pairs if not pair[1].skip]
    files = tuple(_node(number, *pair) for number, pair in enumerate(read))
    analyses = [content.analysis for _, content, _ in read]
    location = {file.path: file.location or file.path for file in files}

    def read_text(path: str) -> str:
        try:
            return (Path(root) / location[path]).read_text(encoding="utf-8", errors="replace")
        except OSError:  # it went away since it was hashed; its modules then count as external
            return ""

    parsed = [
        ParsedFile(path=file.path, language=file.language, imports=analysis.imports, rows=analysis.symbol_rows)
        for file, analysis in zip(files, analyses, strict=True)
        if file.language != TEXT and not file.reason
    ]
    includes, counts = resolve_imports(
        parsed, root=root_name(root), paths=[file.path for file in files], read_text=read_text
    )
    words = [analysis.words for analysis in analyses]
    references = (
        reference_edges([defined_names(analysis.symbol_rows()) for analysis in analyses], words) if any(words) else ()
    )
    return CodeGraph(
        root=root,
        files=files,
        symbols=Symbols(tuple(analysis.rows for analysis in analyses), tuple(analysis.count for analysis in analyses)),
        edges=Edges(includes, references),
        skipped=_sorted([*skipped, *left_out]),
        imports=counts,
    )


def root_name(root: str | Path) -> str:
    """Return the name of the scanned directory, by which a package that it is imports itself."""
    return os.path.basename(os.path.abspath(root))  # noqa: PTH100, PTH119 - links must not be resolved, dots must


def _node(number: int, file: FoundFile, content: Content, sha256: str) -> FileNode:
    return FileNode(
        id=number,
        path=file.path,
        language=content.language,
        bytes=file.size,
        chars=content.chars,
        encoding=content.encoding,
        sha256=sha256,
        symbols=content.analysis.count,
        reason=content.analysis.reason,
        derived=content.derived,
        generated=content.generated,
        location=file.location if file.location != file.path else "",
    )


def pack_graph(graph: CodeGraph, *, walked: Sequence[Skipped]) -> bytes:
    """Return everything of a graph but its root and what the walk left out (`walked`), as bytes."""
    by_walk = set(walked)
    return marshal.dumps(
        (
            [tuple(getattr(file, name) for name in _FILE_FIELDS) for file in graph.files],
            graph.symbols.blocks,
            graph.symbols.counts,
            graph.edges.includes,
            graph.edges.references,
            [astuple(skipped) for skipped in graph.skipped if skipped not in by_walk],
            [astuple(count) for count in graph.imports],
        ),
        2,
    )


def unpack_graph(data: bytes, *, root: str, skipped: Sequence[Skipped]) -> CodeGraph:
    """Return the graph that `pack_graph` wrote, for `root` and what this walk left out."""
    files, blocks, counts, includes, references, left_out, imports = marshal.loads(data)
    return CodeGraph(
        root=root,
        files=tuple(FileNode(**dict(zip(_FILE_FIELDS, values, strict=True))) for values in files),
        symbols=Symbols(blocks, counts),
        edges=Edges(includes, references),
        skipped=_sorted(
            [*skipped, *(Skipped(**dict(zip(_SKIPPED_FIELDS, values, strict=True))) for values in left_out)]
        ),
        imports=tuple(ImportCount(**dict(zip(_COUNT_FIELDS, values, strict=True))) for values in imports),
    )


def _sorted(skipped: Sequence[Skipped]) -> tuple[Skipped, ...]:
    return tuple(sorted(skipped, key=lambda entry: (entry.path, entry.reason, entry.detail)))
