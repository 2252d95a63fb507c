"""From a syntax tree to definitions and import statements: one walk over statements, no query language.

A walk reads the same tree through every provider and in the same order under every hash seed; queries do neither
(facts in docs/codebases.md). Offsets inside the parser are bytes; what leaves this module counts characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from ctxstream_dagster.planning.codegraph.grammars import Grammar, load_grammar
from ctxstream_dagster.planning.codegraph.imports import RawImport, raw_imports
from ctxstream_dagster.planning.codegraph.leading import leading_start
from ctxstream_dagster.planning.codegraph.names import kind_of, name_of
from ctxstream_dagster.planning.codegraph.tables import (
    CALL_STARTS,
    CALL_TYPES,
    CLASS_KINDS,
    ENTER,
    HINTS,
    IMPORTS,
    SYMBOLS,
    WRAPPERS,
)
from ctxstream_dagster.planning.codegraph.values import SymbolRow

_LEAVES = frozenset({"comment", "identifier", "line_comment", "block_comment", "number_literal", "string_literal"})
_ERROR_KIND = 0xFFFF
_DEEPEST = 64  # people nest a few; a hostile file nests a hundred thousand, and qualified names would fill the memory
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The node types that matter in one grammar, as what `key` gives for a node."""

    key: attrgetter[Any]
    visited: frozenset[Any]
    entered: frozenset[Any]
    passed: frozenset[Any]


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
    table, imports = SYMBOLS[language], IMPORTS[language]
    found: list[_Found] = []
    raw: list[RawImport] = []
    enclosing: list[int] = []
    for node, ancestors in walk(tree.root_node, source, language=language):
        kind = node.type
        if kind in imports and (kind not in CALL_TYPES or CALL_STARTS.match(source, node.start_byte)):
            raw += raw_imports(node, source, language=language)
        if kind in table and (symbol := kind_of(node, table[kind], language=language)):
            _define(node, ancestors, symbol, source=source, language=language, found=found, enclosing=enclosing)
    return _rows(found, source), raw


def walk(root: Any, source: bytes, *, language: str, whole: bool = False) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Yield each node whose type is in the tables, in document order, with its ancestors, the nearest last.

    `whole` visits every node instead of those that `tables.ENTER` and `tables.HINTS` lead to: to compare with.
    """
    kinds = _kinds(language)
    key, visited, entered, passed = kinds.key, kinds.visited, kinds.entered, kinds.passed
    hints = _hint_places(source, language)
    following = 0
    cursor = root.walk()
    ancestors: list[Any] = []
    while True:
        node = cursor.node
        kind = key(node)
        if kind not in passed:
            if kind in visited:
                yield node, ancestors
            if kind not in entered and not whole:
                start = node.start_byte
                while hints[following] < start:
                    following += 1
            if (
                whole or kind in entered or not ancestors or hints[following] < node.end_byte or node.has_error
            ) and cursor.goto_first_child():
                ancestors.append(node)
                continue
        while not cursor.goto_next_sibling():
            if not ancestors:
                return
            cursor.goto_parent()
            ancestors.pop()
            if not ancestors:
                return


def _hint_places(source: bytes, language: str) -> list[int]:
    """Return where hints begin, in order, closed by the end of the source."""
    places: list[int] = []
    for hint in HINTS[language]:
        if isinstance(hint, bytes):
            at = source.find(hint)
            while at >= 0:
                places.append(at)
                at = source.find(hint, at + 1)
        else:
            places += [found.start() for found in hint.finditer(source)]
    places.sort()
    places.append(len(source))
    return places


def _define(
    node: Any,
    ancestors: Sequence[Any],
    kind: str,
    *,
    source: bytes,
    language: str,
    found: list[_Found],
    enclosing: list[int],
) -> None:
    while enclosing and found[enclosing[-1]].end <= node.start_byte:
        enclosing.pop()
    name = name_of(node, source, language=language)
    if not name or len(enclosing) >= _DEEPEST:
        return
    outer = node
    for ancestor in reversed(ancestors):
        if ancestor.type not in WRAPPERS or ancestor.named_children[-1:] != [outer]:
            break
        outer = ancestor
    end = max(outer.end_byte, node.end_byte)
    if node.type in ("file_scoped_namespace_declaration", "namespace_definition") and _is_file_scope(node, language):
        end = len(source)
        _close_file_scope(found, enclosing, at=len(source[: outer.start_byte].rstrip()))
    while end > node.start_byte and source[end - 1 : end] in (b"\n", b"\r"):
        end -= 1  # C's macro definitions own their line's end
    parent = enclosing[-1] if enclosing else -1
    start = leading_start(source, outer.start_byte, language=language)
    if parent >= 0:
        start = max(start, found[parent].start)
    if kind == "function" and parent >= 0 and found[parent].kind in CLASS_KINDS:
        kind = "method"
    found.append(_Found(kind, name, start, end, parent))
    enclosing.append(len(found) - 1)


def _is_file_scope(node: Any, language: str) -> bool:
    return language in ("csharp", "php") and (
        node.type == "file_scoped_namespace_declaration" or node.child_by_field_name("body") is None
    )


def _close_file_scope(found: list[_Found], enclosing: list[int], *, at: int) -> None:
    # A second `namespace B;` ends the first.
    while enclosing:
        symbol = found[enclosing.pop()]
        symbol.end = min(symbol.end, at)


def _rows(found: Sequence[_Found], source: bytes) -> list[SymbolRow]:
    if not found:
        return []
    marks = sorted({mark for symbol in found for mark in (symbol.start, symbol.end)})
    lines: dict[int, int] = {}
    chars: dict[int, int] = {}
    is_ascii = source.isascii()
    before, line, char = 0, 1, 0
    for mark in marks:
        line += source.count(b"\n", before, mark)
        char += (mark - before) if is_ascii else len(source[before:mark].translate(None, _CONTINUATION_BYTES))
        lines[mark], chars[mark], before = line, char, mark
    return [
        (
            symbol.kind,
            symbol.name,
            lines[symbol.start],
            lines[symbol.end],
            chars[symbol.start],
            chars[symbol.end] - chars[symbol.start],
            symbol.parent,
        )
        for symbol in found
    ]


@cache
def _kinds(language: str) -> _Kinds:
    grammar = load_grammar(language)
    assert grammar is not None
    visited, entered = frozenset(SYMBOLS[language]) | IMPORTS[language], ENTER.get(language, frozenset())
    by_number = _numbers(grammar)
    if by_number is None:
        return _Kinds(attrgetter("type"), visited, entered, frozenset())
    named = {number: name for number, name in by_number.items() if name}
    return _Kinds(
        attrgetter("kind_id"),
        frozenset(number for number, name in named.items() if name in visited),
        frozenset(number for number, name in named.items() if name in entered),
        frozenset(number for number, name in by_number.items() if not name or name in _LEAVES),
    )


def _numbers(grammar: Grammar) -> dict[int, str] | None:
    """Return node types by number, punctuation as "", or None for the legacy core, where asking for them crashes."""
    tables = grammar.tables
    if not hasattr(tables, "node_kind_for_id"):
        return None
    numbers = {
        number: tables.node_kind_for_id(number) if tables.node_kind_is_named(number) else ""
        for number in range(tables.node_kind_count)
    }
    return numbers | {_ERROR_KIND: "ERROR"}
