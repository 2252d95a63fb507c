"""From a syntax tree to definitions and import statements.

Offsets inside the parser are bytes; what leaves this module counts characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ctxstream_dagster.planning.codegraph.imports import RawImport, raw_imports
from ctxstream_dagster.planning.codegraph.leading import leading_start
from ctxstream_dagster.planning.codegraph.tables import CALL_STARTS, CLASS_KINDS, WRAPPERS
from ctxstream_dagster.planning.codegraph.values import SymbolRow
from ctxstream_dagster.planning.codegraph.visit import Rule, walk

_DEEPEST = 64  # people nest a few; a hostile file nests a hundred thousand, and qualified names would fill the memory
_FILE_SCOPES = frozenset({"file_scoped_namespace_declaration", "namespace_definition"})
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


@dataclass(slots=True)
class _Found:
    """A definition in bytes while its file is read: what it is, where it starts and ends, who encloses it."""

    kind: str
    name: str
    start: int
    end: int
    parent: int


def read_tree(tree: Any, source: bytes, *, language: str) -> tuple[list[SymbolRow], list[RawImport]]:
    """Return the definitions, in the order in which they start, and the raw imports of a parsed file."""
    definitions = _Definitions(source, language)
    imports: list[RawImport] = []
    for node, rule, ancestors in walk(tree.root_node, source, language=language):
        if rule.is_import and (not rule.is_call or CALL_STARTS.match(source, node.start_byte)):
            imports += raw_imports(node, source, language=language)
        if rule.name_of is not None:
            definitions.add(node, rule, ancestors)
    return _rows(definitions.found, source), imports


class _Definitions:
    """The definitions of one file as the walk meets them, outer ones first."""

    def __init__(self, source: bytes, language: str) -> None:
        self._source = source
        self._language = language
        self._enclosing: list[int] = []
        self.found: list[_Found] = []

    def add(self, node: Any, rule: Rule, ancestors: Sequence[Any]) -> None:
        """Take in what a node defines, if it does."""
        assert rule.kind_of is not None
        assert rule.name_of is not None
        kind = rule.kind_of(node)
        if kind is None:
            return
        source, found, enclosing = self._source, self.found, self._enclosing
        begins = node.start_byte
        while enclosing and found[enclosing[-1]].end <= begins:
            enclosing.pop()
        if len(enclosing) >= _DEEPEST:
            return
        name = rule.name_of(node, source)
        if not name:
            return
        outer = node
        for ancestor in reversed(ancestors):
            if ancestor.type not in WRAPPERS or ancestor.named_child(ancestor.named_child_count - 1) != outer:
                break
            outer = ancestor
        start, end = outer.start_byte, outer.end_byte
        if rule.type in _FILE_SCOPES and self._is_file_scope(node, rule.type):
            end = len(source)
            self._close_file_scope(start)
        while end > begins and source[end - 1] in b"\r\n":
            end -= 1  # C's macro definitions own their line's end
        start = leading_start(source, start, language=self._language)
        parent = -1
        if enclosing:
            parent = enclosing[-1]
            start = max(start, found[parent].start)
            if kind == "function" and found[parent].kind in CLASS_KINDS:
                kind = "method"
        enclosing.append(len(found))
        found.append(_Found(kind, name, start, end, parent))

    def _is_file_scope(self, node: Any, node_type: str) -> bool:
        return self._language in ("csharp", "php") and (
            node_type == "file_scoped_namespace_declaration" or node.child_by_field_name("body") is None
        )

    def _close_file_scope(self, at: int) -> None:
        # A second `namespace B;` ends the first.
        while at and self._source[at - 1] in b" \t\r\n":
            at -= 1
        while self._enclosing:
            symbol = self.found[self._enclosing.pop()]
            symbol.end = min(symbol.end, at)


def _rows(found: Sequence[_Found], source: bytes) -> list[SymbolRow]:
    marks = sorted({mark for symbol in found for mark in (symbol.start, symbol.end)})
    lines: dict[int, int] = {}
    line, before = 1, 0
    for mark in marks:
        line += source.count(b"\n", before, mark)
        lines[mark] = line
        before = mark
    chars = marks if source.isascii() else _chars_at(marks, source)
    at = dict(zip(marks, chars, strict=True))
    return [
        (
            symbol.kind,
            symbol.name,
            lines[symbol.start],
            lines[symbol.end],
            at[symbol.start],
            at[symbol.end] - at[symbol.start],
            symbol.parent,
        )
        for symbol in found
    ]


def _chars_at(marks: Sequence[int], source: bytes) -> list[int]:
    """Return how many characters precede each of these sorted places in UTF-8."""
    chars: list[int] = []
    count = before = 0
    for mark in marks:
        count += len(source[before:mark].translate(None, _CONTINUATION_BYTES))
        chars.append(count)
        before = mark
    return chars
