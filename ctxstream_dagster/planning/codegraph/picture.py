"""The file graph as a picture: DOT text, and SVG where Graphviz is installed."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator

from ctxstream_dagster.errors import UsageError
from ctxstream_dagster.planning.codegraph.order import order_files
from ctxstream_dagster.planning.codegraph.values import CodeGraph

DEFAULT_MOST_FILES = 200
_COLOURS = {
    "c": "#8da0cb",
    "cpp": "#8da0cb",
    "go": "#80cdc1",
    "java": "#fdae61",
    "javascript": "#ffed6f",
    "kotlin": "#bc80bd",
    "php": "#b3b3e6",
    "python": "#a6cee3",
    "ruby": "#fb9a99",
    "rust": "#e5c494",
    "scala": "#f4a3a3",
    "swift": "#fdbf6f",
    "tsx": "#b3cde3",
    "typescript": "#b3cde3",
}
_OTHER_COLOUR = "#e0e0e0"
_DOT_TIMEOUT_S = 120


def graph_dot(graph: CodeGraph, *, most_files: int = DEFAULT_MOST_FILES) -> str:
    """Return the includes between files as DOT text, one cluster a directory, broken edges red and dashed.

    Of a larger graph the `most_files` files with the most edges are drawn, and the title says so.
    """
    return "".join(f"{line}\n" for line in _lines(graph, most_files))


def graph_svg(graph: CodeGraph, *, most_files: int = DEFAULT_MOST_FILES) -> bytes:
    """Return the picture as SVG; raises `UsageError` when Graphviz is missing or gives up."""
    source = graph_dot(graph, most_files=most_files).encode("utf-8", "replace")
    try:
        done = subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, timeout=_DOT_TIMEOUT_S, check=True)
    except FileNotFoundError as error:
        raise UsageError(
            "Graphviz is not installed, so there is no SVG. Install it (Debian: graphviz), or use --dot."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"Graphviz took more than {_DOT_TIMEOUT_S} s to lay the graph out. Use --dot.") from error
    except subprocess.CalledProcessError as error:
        detail = error.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(f"Graphviz failed: {detail[-1] if detail else 'no message'}. Use --dot.") from error
    return done.stdout


def _lines(graph: CodeGraph, most_files: int) -> Iterator[str]:
    degree: Counter[int] = Counter()
    for edge in graph.edges.includes:
        degree.update(edge)
    ranked = sorted(degree, key=lambda file: (-degree[file], file))
    drawn = sorted(ranked[:most_files])
    broken = set(order_files(len(graph.files), graph.edges.includes).broken)
    yield "digraph includes {"
    yield "  rankdir=LR; node [shape=box, style=filled, fontname=Helvetica, fontsize=10];"
    title = f"{len(drawn)} of {len(graph.files)} files: those with the most includes"
    yield f"  label={_quoted(title)}; labelloc=t; fontname=Helvetica;"
    directories: dict[str, list[int]] = {}
    for file in drawn:
        directories.setdefault(graph.files[file].path.rpartition("/")[0], []).append(file)
    for number, (directory, files) in enumerate(sorted(directories.items())):
        yield f"  subgraph cluster_{number} {{ label={_quoted(directory or '.')}; color=gray;"
        for file in files:
            node = graph.files[file]
            colour = _COLOURS.get(node.language, _OTHER_COLOUR)
            yield f'    f{file} [label={_quoted(node.path.rpartition("/")[2])}, fillcolor="{colour}"];'
        yield "  }"
    shown = set(drawn)
    for source, target in graph.edges.includes:
        if source in shown and target in shown:
            style = " [color=red, style=dashed]" if (source, target) in broken else ""
            yield f"  f{source} -> f{target}{style};"
    yield "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
