"""What a definition is called: where each grammar keeps the name, and the forms that no grammar marks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_IDENTIFIERS = frozenset(
    [
        "identifier",
        "type_identifier",
        "simple_identifier",
        "field_identifier",
        "property_identifier",
        "constant",
        "name",
        "word",
        "bound_identifier",
    ]
)
_DECLARED = frozenset(
    [
        "identifier",
        "field_identifier",
        "type_identifier",
        "qualified_identifier",
        "destructor_name",
        "operator_name",
        "operator_cast",
        "template_function",
    ]
)
_FIXED = {
    "companion_object": "Companion",
    "deinit_declaration": "deinit",
    "indexer_declaration": "this[]",
    "init_declaration": "init",
    "secondary_constructor": "constructor",
    "subscript_declaration": "subscript",
}
_FUNCTION_LITERALS = frozenset(
    # The last one is Lua's.
    ["arrow_function", "function", "function_expression", "generator_function", "function_definition"]
)
_OPERATOR = re.compile(r"\boperator\b")
_TYPE_SPECS = {"struct_type": "struct", "interface_type": "interface"}

KindOf = Callable[[Any], str | None]
"""From a node to its symbol kind, None when it defines nothing after all."""

NameOf = Callable[[Any, bytes], str | None]
"""From a node and the source to the name as written, white space squeezed, None when it has none."""


def kind_reader(node_type: str, spec: str, *, language: str) -> KindOf:
    """Return how the kind of a node of this type is told, `spec` being its entry in `tables.SYMBOLS`."""
    kind, _, field = spec.partition(":")
    if field == "body":
        return lambda node: kind if node.child_by_field_name("body") is not None else None
    if field in ("value", "right"):
        return lambda node: kind if _is_function(node, field, language=language) else None
    if field == "interface":
        return lambda node: kind if node.parent.parent.type == "type_spec" else None
    if node_type == "class_declaration" and language in ("swift", "kotlin"):
        return _declared_kind
    if node_type == "type_spec":
        return lambda node: _specified_kind(node, kind)
    if node_type == "function_definition" and language == "cpp":
        return lambda node: "class" if _is_class_behind_a_macro(node) else kind
    return lambda _node: kind


def name_reader(node_type: str, *, language: str) -> NameOf:
    """Return how the name of a definition of this node type is read."""
    if node_type in _FIXED:
        return lambda node, source: _fixed(node, source, node_type)
    if language in ("c", "cpp") and node_type in ("function_definition", "type_definition"):
        return _declarator
    if language == "lua" and node_type in ("assignment_statement", "variable_declaration"):
        return _variable_in_lua
    if language == "go" and node_type == "method_declaration":
        return _go_method
    if language == "cpp":
        return lambda node, source: without_template_arguments(_plain(node, source) or "") or None
    return _UNUSUAL.get(node_type, _plain)


def without_template_arguments(name: str) -> str:
    """Return a C++ name without ``<...>``: a specialisation defines the template's name. Operators keep their own."""
    if "<" not in name:
        return name
    operator = _OPERATOR.search(name)
    head, tail = (name[: operator.start()], name[operator.start() :]) if operator else (name, "")
    kept: list[str] = []
    depth = 0
    for letter in head:
        depth += (letter == "<") - (letter == ">")
        if not depth and letter != ">":
            kept.append(letter)
    return "".join(kept).strip() + tail


def _plain(node: Any, source: bytes) -> str | None:
    for field in ("name", "key", "property"):
        name = node.child_by_field_name(field)
        if name is not None:
            break
    else:
        name = _first(node, _IDENTIFIERS)  # Kotlin's grammar names no fields
    return None if name is None else _text(name, source).strip("\"'") or None


def _fixed(node: Any, source: bytes, node_type: str) -> str:
    name = node.child_by_field_name("name") if node_type == "companion_object" else None
    return _FIXED[node_type] if name is None else _text(name, source)


def _declarator(node: Any, source: bytes) -> str | None:
    found = node.child_by_field_name("declarator")
    while found is not None:
        if found.type in _DECLARED:
            return without_template_arguments(_text(found, source))
        found = found.child_by_field_name("declarator") or next(
            (
                child
                for child in found.named_children
                if "declarator" in child.type
                or child.type.endswith("identifier")
                or child.type in ("operator_name", "destructor_name", "operator_cast")
            ),
            None,
        )
    return None


def _implementation(node: Any, source: bytes) -> str:
    trait = node.child_by_field_name("trait")
    owner = node.child_by_field_name("type")
    return (f"{_text(trait, source)} for " if trait is not None else "") + (
        _text(owner, source) if owner is not None else "?"
    )


def _operator(node: Any, source: bytes) -> str:
    operator = node.child_by_field_name("operator")
    return "operator " + (_text(operator, source) if operator is not None else "?")


def _assigned(node: Any, source: bytes) -> str:
    return _text(node.child_by_field_name("left"), source)


def _singleton_method(node: Any, source: bytes) -> str | None:
    receiver, name = node.child_by_field_name("object"), _plain(node, source)
    return f"{_text(receiver, source)}.{name}" if receiver is not None and name else name


_UNUSUAL: dict[str, NameOf] = {
    "assignment_expression": _assigned,
    "impl_item": _implementation,
    "operator_declaration": _operator,
    "singleton_method": _singleton_method,
}


def _go_method(node: Any, source: bytes) -> str | None:
    receiver, name = node.child_by_field_name("receiver"), _plain(node, source)
    parameter = _first(receiver, frozenset({"parameter_declaration"})) if receiver is not None else None
    owner = parameter.child_by_field_name("type") if parameter is not None else None
    return f"{_text(owner, source).lstrip('*').split('[')[0]}.{name}" if owner is not None and name else name


def _is_function(node: Any, field: str, *, language: str) -> bool:
    value = node.child_by_field_name(field)
    if value is None and language == "lua":
        value = _assigned_in_lua(node)
    return value is not None and value.type in _FUNCTION_LITERALS


def _declared_kind(node: Any) -> str:
    declared = node.child_by_field_name("declaration_kind")
    if declared is not None:
        return str(declared.type)
    return "interface" if _first(node, frozenset({"interface"}), named=False) is not None else "class"


def _specified_kind(node: Any, kind: str) -> str:
    declared = node.child_by_field_name("type")
    return _TYPE_SPECS.get(declared.type, kind) if declared is not None else kind


def _assigned_in_lua(node: Any) -> Any:
    if node.type != "assignment_statement":
        return None
    values = _first(node, frozenset({"expression_list"}))
    return values.named_children[0] if values is not None and values.named_children else None


def _variable_in_lua(node: Any, source: bytes) -> str | None:
    variables = _first(node, frozenset({"variable_list"})) or node
    return _text(variables.named_children[0], source) if variables.named_children else None


def _is_class_behind_a_macro(node: Any) -> bool:
    # `class EXPORT_MACRO Name { ... }` is read as a function `Name` that returns `class EXPORT_MACRO`.
    declared = node.child_by_field_name("type")
    name = node.child_by_field_name("declarator")
    return (
        declared is not None
        and name is not None
        and declared.type in ("class_specifier", "struct_specifier")
        and name.type == "identifier"
        and _first(node, frozenset({"compound_statement"})) is not None
    )


def _first(node: Any, types: frozenset[str], *, named: bool = True) -> Any:
    return next((child for child in (node.named_children if named else node.children) if child.type in types), None)


def _text(node: Any, source: bytes) -> str:
    written = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
    return written if written.isidentifier() else " ".join(written.split())
