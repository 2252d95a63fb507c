"""A graph in words and in JSON: what was found, what was left out, how imports resolved, which cycles there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from ctxstream_dagster.planning.codegraph.order import FileOrder, order_files
from ctxstream_dagster.planning.codegraph.values import CodeGraph

_MOST_HUBS = 10
_MOST_CYCLES = 5
_MOST_BROKEN = 10
_MOST_CYCLE_FILES = 5


def graph_summary(graph: CodeGraph) -> str:
    """Return a summary for a person, ending with a line end; the same for the same tree, sorted throughout."""
    return "".join(f"{line}\n" for line in _lines(graph))


def graph_json(graph: CodeGraph) -> dict[str, Any]:
    """Return the graph as one JSON object.

    ``files`` in path order with all fields of `FileNode`; ``symbols`` with ``path`` and without ids; ``edges`` as
    ``[from path, to path, kind]``; ``skipped``; ``imports`` per language; ``order``: paths as packed; ``cycles``: lists
    of paths; ``broken``: the edges that the order does not honour.
    """
    order = order_files(len(graph.files), graph.edges.includes)
    paths = [file.path for file in graph.files]
    hidden = {"id", "file", "parent"}
    return {
        "root": graph.root,
        "files": [{name: value for name, value in asdict(file).items() if name != "id"} for file in graph.files],
        "symbols": [
            {"path": paths[symbol.file]} | {name: value for name, value in asdict(symbol).items() if name not in hidden}
            for symbol in graph.symbols
        ],
        "edges": [[paths[edge.source], paths[edge.target], edge.kind] for edge in graph.edges],
        "skipped": [asdict(entry) for entry in graph.skipped],
        "imports": [asdict(count) for count in graph.imports],
        "order": [paths[file] for file in order.files],
        "cycles": [[paths[file] for file in cycle] for cycle in order.cycles],
        "broken": [[paths[source], paths[target]] for source, target in order.broken],
    }


def _lines(graph: CodeGraph) -> Iterator[str]:
    order = order_files(len(graph.files), graph.edges.includes)
    size = sum(file.bytes for file in graph.files)
    yield f"{len(graph.files):,} files, {size:,} bytes, {len(graph.symbols):,} symbols"
    yield (f"{len(graph.edges.includes):,} includes, {len(graph.edges.references):,} references by name (a heuristic)")
    yield from _languages(graph)
    yield from _counts("symbols", (symbol.kind for symbol in graph.symbols))
    yield from _counts("skipped", (entry.reason for entry in graph.skipped))
    yield from _counts("without symbols", (file.reason for file in graph.files if file.reason))
    yield from _imports(graph)
    yield from _cycles(graph, order)
    yield from _hubs(graph)


def _languages(graph: CodeGraph) -> Iterator[str]:
    files = Counter(file.language for file in graph.files)
    for language, count in _most_common(files):
        own = [file for file in graph.files if file.language == language]
        symbols = sum(file.symbols for file in own)
        yield f"  {language}: {count:,} files, {sum(file.bytes for file in own):,} bytes, {symbols:,} symbols"


def _counts(title: str, names: Iterable[str]) -> Iterator[str]:
    counts = Counter(names)
    if counts:
        yield f"{title}: " + ", ".join(f"{count:,} {name}" for name, count in _most_common(counts))


def _imports(graph: CodeGraph) -> Iterator[str]:
    for count in graph.imports:
        yield (
            f"imports in {count.language}: {count.resolved:,} resolved, {count.external:,} external, "
            f"{count.unresolved:,} unresolved"
        )


def _cycles(graph: CodeGraph, order: FileOrder) -> Iterator[str]:
    if not order.cycles:
        return
    yield f"cycles of includes: {len(order.cycles):,}, broken edges: {len(order.broken):,}"
    for cycle in order.cycles[:_MOST_CYCLES]:
        shown = ", ".join(graph.files[file].path for file in cycle[:_MOST_CYCLE_FILES])
        more = f" and {len(cycle) - _MOST_CYCLE_FILES:,} more" if len(cycle) > _MOST_CYCLE_FILES else ""
        yield f"  {len(cycle):,} files: {shown}{more}"
    for source, target in order.broken[:_MOST_BROKEN]:
        yield f"  broken: {graph.files[source].path} includes {graph.files[target].path}, which comes later"
    if len(order.broken) > _MOST_BROKEN:
        yield f"  and {len(order.broken) - _MOST_BROKEN:,} more broken edges; --json lists all"


def _hubs(graph: CodeGraph) -> Iterator[str]:
    included = Counter(target for _, target in graph.edges.includes)
    hubs = sorted(included.items(), key=lambda hub: (-hub[1], hub[0]))[:_MOST_HUBS]
    if hubs:
        yield "most included:"
        for file, count in hubs:
            yield f"  {graph.files[file].path}: by {count:,}"


def _most_common(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
