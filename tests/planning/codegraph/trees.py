"""Small trees of files for tests, written as a mapping of path to content."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.values import CodeGraph

IN_PROCESS = ScanOptions(workers=0)


def plant(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write the files below `root`, making directories; return `root`."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def includes(graph: CodeGraph) -> set[tuple[str, str]]:
    """Return the includes edges as pairs of paths."""
    return {(graph.files[a].path, graph.files[b].path) for a, b in graph.edges.includes}


def reasons(graph: CodeGraph) -> dict[str, str]:
    """Return the reason of each skipped path."""
    return {entry.path: entry.reason for entry in graph.skipped}


def scanned(root: Path, files: Mapping[str, str | bytes]) -> CodeGraph:
    """Plant and scan, in this process."""
    return scan_repo(plant(root, files), IN_PROCESS)


def unaccounted(root: Path, graph: CodeGraph) -> set[str]:
    """Return the files on disk that are neither in the graph nor skipped, alone or with a directory above them."""
    known = {file.path for file in graph.files} | {entry.path for entry in graph.skipped}
    directories = tuple(path for path in known if path.endswith("/"))
    missing: set[str] = set()
    for folder, _, names in os.walk(root):
        for name in names:
            path = (Path(folder) / name).relative_to(root).as_posix()
            shown = os.fsencode(path).decode("utf-8", "backslashreplace")
            if shown not in known and not shown.startswith(directories):
                missing.add(shown)
    return missing
