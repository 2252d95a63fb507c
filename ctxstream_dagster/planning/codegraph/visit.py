"""The nodes of a syntax tree that may define or import something, found without visiting the rest of the tree.

No query language: a walk reads the same tree through every provider and in the same order under every hash seed;
queries do neither, and take quadratic time on deep trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from ctxstream_dagster.planning.codegraph.grammars import IS_LEGACY_CORE, Grammar, load_grammar
from ctxstream_dagster.planning.codegraph.names import KindOf, NameOf, kind_reader, name_reader
from ctxstream_dagster.planning.codegraph.tables import CALL_TYPES, ENTER, HINTS, IMPORTS, SYMBOLS

_LEAVES = frozenset({"comment", "identifier", "line_comment", "block_comment", "number_literal", "string_literal"})
_ERROR_KIND = 0xFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What a node of one type may be: a definition, an import, or either.

    Attributes:
        type: the node type.
        kind_of, name_of: how a definition's kind and name are read; None for what is only an import.
        is_import: whether its text is read by `imports.raw_imports`.
        is_call: whether only a text that starts like an import is.
    """

    type: str
    kind_of: KindOf | None
    name_of: NameOf | None
    is_import: bool
    is_call: bool


@dataclass(frozen=True, slots=True)
class _Kinds:
    """The node types that matter in one grammar, as what `key` gives for a node."""

    key: attrgetter[Any]
    rules: dict[Any, Rule]
    entered: frozenset[Any]
    passed: frozenset[Any]


def walk(root: Any, source: bytes, *, language: str, whole: bool = False) -> Iterator[tuple[Any, Rule, Sequence[Any]]]:
    """Yield each node whose type is in the tables, in document order, with its rule and its ancestors, nearest last.

    All children of a node of `tables.ENTER` are visited, of others those that hold a match of `tables.HINTS`. `whole`
    visits every node instead: to compare with.
    """
    kinds = _kinds(language)
    key, rules, entered, passed = kinds.key, kinds.rules, kinds.entered, kinds.passed
    hints = _hint_places(source, language)
    following = 0
    cursor = root.walk()
    whole = whole or IS_LEGACY_CORE  # it jumps to the child before, and would do so for ever
    has_error = root.has_error
    node = root
    ancestors: list[Any] = []
    visits_all: list[bool] = []
    while True:
        kind = key(node)
        if kind not in passed:
            if kind in rules:
                yield node, rules[kind], ancestors
            every = whole or kind in entered or (has_error and node.has_error)
            if every:
                goes_in = cursor.goto_first_child()
            else:
                start = node.start_byte
                while hints[following] < start:
                    following += 1
                goes_in = (
                    hints[following] < node.end_byte and cursor.goto_first_child_for_byte(hints[following]) is not None
                )
            if goes_in:
                ancestors.append(node)
                visits_all.append(every)
                node = cursor.node
                continue
        while ancestors:
            if visits_all[-1]:
                if cursor.goto_next_sibling():
                    break
                cursor.goto_parent()
            else:
                end = node.end_byte
                while hints[following] < end:
                    following += 1
                cursor.goto_parent()
                # From the parent again: the children between hold no hint, and there may be thousands.
                if (
                    hints[following] < ancestors[-1].end_byte
                    and cursor.goto_first_child_for_byte(hints[following]) is not None
                ):
                    break
            node = ancestors.pop()
            visits_all.pop()
        else:
            return
        node = cursor.node


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


@cache
def _kinds(language: str) -> _Kinds:
    grammar = load_grammar(language)
    assert grammar is not None
    symbols, imports = SYMBOLS[language], IMPORTS[language]
    rules = {
        node_type: Rule(
            type=node_type,
            kind_of=kind_reader(node_type, symbols[node_type], language=language) if node_type in symbols else None,
            name_of=name_reader(node_type, language=language) if node_type in symbols else None,
            is_import=node_type in imports,
            is_call=node_type in CALL_TYPES,
        )
        for node_type in symbols.keys() | imports
    }
    entered = ENTER.get(language, frozenset())
    by_number = _numbers(grammar)
    if by_number is None:
        return _Kinds(attrgetter("type"), dict(rules), entered, frozenset())
    named = {number: name for number, name in by_number.items() if name}
    return _Kinds(
        attrgetter("kind_id"),
        {number: rules[name] for number, name in named.items() if name in rules},
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
