"""What a scan returns: files, symbols, edges and what was left out, compact enough for fifty thousand files."""

from __future__ import annotations

import marshal
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal, overload

from ctxstream_dagster.planning.skipped import Skipped

NodeKind = Literal["file", "function", "class", "struct", "other"]
EdgeKind = Literal["includes", "references"]

_NODE_KINDS: dict[str, NodeKind] = {
    "function": "function",
    "method": "function",
    "constructor": "function",
    "class": "class",
    "interface": "class",
    "trait": "class",
    "protocol": "class",
    "object": "class",
    "record": "class",
    "actor": "class",
    "struct": "struct",
    "union": "struct",
}

SymbolRow = tuple[str, str, int, int, int, int, int]
"""(kind, name, line, end line, offset, length, parent's position in the file or -1): one symbol as it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNode:
    """One file whose text takes part in a sweep.

    Attributes:
        id: position in `CodeGraph.files`.
        path: relative to the scanned root, forward slashes; bytes that are not UTF-8 as ``\\xNN``.
        language: one of `languages.LANGUAGES`, or ``text``.
        bytes: size on disk.
        chars: characters of its text (for a notebook: of its cells' source).
        encoding: as in `planning.corpus.SourceFile.encoding`.
        sha256: of the bytes on disk, hexadecimal.
        symbols: definitions found in it.
        reason: why it has no symbols although its language is known (``grammar-unavailable``, ``parse-timeout``,
            ``parser-crash``), else empty. Its text is planned all the same.
        derived: True when its text is not its bytes (a notebook's cells).
        generated: True when its first lines say that a tool wrote it.
        location: the path on disk relative to the root, where it differs from `path`.
    """

    id: int
    path: str
    language: str
    bytes: int
    chars: int
    encoding: str
    sha256: str
    symbols: int = 0
    reason: str = ""
    derived: bool = False
    generated: bool = False
    location: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolNode:
    """One definition.

    Attributes:
        id: position in `CodeGraph.symbols`.
        kind: what the language calls it: ``function``, ``method``, ``class``, ``trait``, ``macro``, ...
        name: as written; a method written outside its class keeps its qualifier.
        qualname: with the enclosing symbols' names, joined by dots.
        file: position in `CodeGraph.files`.
        line, end_line: first and last line in the file, from 1.
        offset, length: where it stands in the file's text, in characters, decorators and attached comments included.
        parent: id of the enclosing symbol, or -1.
    """

    id: int
    kind: str
    name: str
    qualname: str
    file: int
    line: int
    end_line: int
    offset: int
    length: int
    parent: int = -1

    @property
    def node_kind(self) -> NodeKind:
        """The kind in the five words of the specification."""
        return _NODE_KINDS.get(self.kind, "other")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """File `source` includes, or refers to a name that only stands in, file `target`.

    ``references`` edges match bare names and are a heuristic; ``includes`` edges are read from import statements.
    """

    source: int
    target: int
    kind: EdgeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportCount:
    """How a language's import statements resolved: to files here, to something outside, or not though they should."""

    language: str
    resolved: int
    external: int
    unresolved: int


@dataclass(frozen=True, slots=True)
class Symbols(Sequence[SymbolNode]):
    """All symbols in file order, kept as one packed block a file: a million definitions take tens of megabytes."""

    blocks: tuple[bytes, ...]
    counts: tuple[int, ...]
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", tuple(accumulate(self.counts, initial=0)))

    def of_file(self, file: int) -> tuple[SymbolNode, ...]:
        """Return the symbols of the file with that id, in the order in which they start."""
        nodes: list[SymbolNode] = []
        first = self._starts[file]
        for kind, name, line, end_line, offset, length, parent in unpack_rows(self.blocks[file]):
            above = nodes[parent] if parent >= 0 else None
            nodes.append(
                SymbolNode(
                    id=first + len(nodes),
                    kind=kind,
                    name=name,
                    qualname=f"{above.qualname}.{name}" if above else name,
                    file=file,
                    line=line,
                    end_line=end_line,
                    offset=offset,
                    length=length,
                    parent=above.id if above else -1,
                )
            )
        return tuple(nodes)

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[SymbolNode]:
        for file in range(len(self.blocks)):
            yield from self.of_file(file)

    @overload
    def __getitem__(self, index: int) -> SymbolNode: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[SymbolNode, ...]: ...
    def __getitem__(self, index: int | slice) -> SymbolNode | tuple[SymbolNode, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"symbol {index} of {len(self)}")
        file = bisect_right(self._starts, position) - 1
        return self.of_file(file)[position - self._starts[file]]


@dataclass(frozen=True, slots=True)
class Edges(Sequence[GraphEdge]):
    """All edges, includes before references, each kind sorted by source and target."""

    includes: tuple[tuple[int, int], ...]
    references: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.includes) + len(self.references)

    @overload
    def __getitem__(self, index: int) -> GraphEdge: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[GraphEdge, ...]: ...
    def __getitem__(self, index: int | slice) -> GraphEdge | tuple[GraphEdge, ...]:
        if isinstance(index, slice):
            return tuple(self[position] for position in range(len(self))[index])
        position = range(len(self))[index]
        included = len(self.includes)
        kind: EdgeKind = "includes" if position < included else "references"
        source, target = self.includes[position] if position < included else self.references[position - included]
        return GraphEdge(source=source, target=target, kind=kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeGraph:
    """A scanned directory.

    Every file below `root` is in `files`, in `skipped`, or below a directory in `skipped` (its path ends with ``/``).

    Attributes:
        root: the directory as it was given.
        files: sorted by path.
        symbols: in file order.
        edges: between files.
        skipped: sorted by path, each with a typed reason.
        imports: per language, sorted by it.
    """

    root: str
    files: tuple[FileNode, ...]
    symbols: Symbols
    edges: Edges
    skipped: tuple[Skipped, ...]
    imports: tuple[ImportCount, ...]


def pack_rows(rows: Sequence[SymbolRow]) -> bytes:
    """Return symbol rows as one block of bytes, equal for equal rows."""
    # Version 2 has no back references, whose presence depends on which strings the interpreter happens to share.
    return marshal.dumps(list(rows), 2) if rows else b""


def unpack_rows(block: bytes) -> list[SymbolRow]:
    """Return the rows of a block that `pack_rows` made."""
    return marshal.loads(block) if block else []
