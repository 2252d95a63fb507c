"""The text of a scanned code base, file by file, as it goes into the packed corpus."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ctxstream_dagster.errors import CorpusError
from ctxstream_dagster.planning.codegraph.content import source_text
from ctxstream_dagster.planning.codegraph.hashes import read_bytes
from ctxstream_dagster.planning.codegraph.values import CodeGraph, FileNode, SymbolNode
from ctxstream_dagster.planning.textio import Unreadable


@dataclass(frozen=True, slots=True, eq=False)
class FileText:
    """One file to pack.

    Attributes:
        node: its entry in the graph.
        path: as reported to people.
        text: what of it is packed, line ends as they are.
        symbols: its symbols, in the order in which they start.
    """

    node: FileNode
    path: str
    text: str
    symbols: tuple[SymbolNode, ...]

    @property
    def header(self) -> str:
        """The line in front of the file."""
        return f"==> {_one_line(self.path)} <==\n"

    @property
    def continued(self) -> str:
        """The line in front of what follows where a segment ended in the file; the same wherever that was."""
        return f"==> {_one_line(self.path)} (continued) <==\n"

    @property
    def missing_end(self) -> str:
        """The line end that is added where the file has none."""
        return "" if self.text.endswith("\n") else "\n"


class CodebaseReader:
    """Reads a graph's files again, and refuses one that changed since it was scanned."""

    def __init__(self, graph: CodeGraph, *, prefix: str = "") -> None:
        self._graph = graph
        self._prefix = prefix

    def read(self, file: int) -> FileText:
        """Return the file with that id; raises `CorpusError` when it changed or went away since the scan."""
        node = self._graph.files[file]
        path = self._prefix + node.path
        try:
            data = read_bytes(Path(self._graph.root), node.location or node.path)
        except OSError as error:
            raise CorpusError(f"{path} could not be read again ({error.strerror}). Plan again.") from error
        decoded = source_text(node.path, data)
        if isinstance(decoded, Unreadable) or hashlib.sha256(data).hexdigest() != node.sha256:
            raise CorpusError(f"{path} changed while the code base was planned. Plan again when nobody writes it.")
        return FileText(node, path, decoded[0], self._graph.symbols.of_file(file))


def _one_line(path: str) -> str:
    return path.replace("\r", "\\r").replace("\n", "\\n")
