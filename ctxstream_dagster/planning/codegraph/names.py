"""What a definition is called: where each grammar keeps the name, and the forms that no grammar marks."""

from __future__ import annotations

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
_TYPE_SPECS = {"struct_type": "struct", "interface_type": "interface"}


def kind_of(node: Any, spec: str, *, language: str) -> str | None:
    """Return the symbol kind of a node whose type is in `tables.SYMBOLS`, or None when it defines nothing after all."""
    kind, _, field = spec.partition(":")
    if field == "body" and node.child_by_field_name("body") is None:
        return None
    if field in ("value", "right"):
        value = node.child_by_field_name(field)
        if value is None and language == "lua":
            value = _assigned_in_lua(node)
        if value is None or value.type not in _FUNCTION_LITERALS:
            return None
    if node.type == "class_declaration" and language in ("swift", "kotlin"):
        declared = node.child_by_field_name("declaration_kind")
        if declared is not None:
            return str(declared.type)
        return "interface" if _first(node, frozenset({"interface"}), named=False) is not None else "class"
    if node.type == "type_spec":
        declared = node.child_by_field_name("type")
        return _TYPE_SPECS.get(declared.type, kind) if declared is not None else kind
    if node.type == "function_definition" and language == "cpp" and _is_class_behind_a_macro(node):
        return "class"
    return kind


def name_of(node: Any, source: bytes, *, language: str) -> str | None:
    """Return the name of a definition as written, white space squeezed; None when it has none."""
    kind = node.type
    if kind in _FIXED:
        name = node.child_by_field_name("name") if kind == "companion_object" else None
        return _FIXED[kind] if name is None else _text(name, source)
    if language in ("c", "cpp") and kind in ("function_definition", "type_definition"):
        return _declarator(node, source)
    if kind == "impl_item":
        return _implementation(node, source)
    if kind == "operator_declaration":
        operator = node.child_by_field_name("operator")
        return "operator " + (_text(operator, source) if operator is not None else "?")
    if kind == "assignment_expression":
        return _text(node.child_by_field_name("left"), source)
    if language == "lua" and kind in ("assignment_statement", "variable_declaration"):
        return _variable_in_lua(node, source)
    name = _name_node(node)
    if name is None:
        return None
    written = _text(name, source)
    if language == "go" and kind == "method_declaration":
        written = _go_receiver(node, source) + written
    elif kind == "singleton_method":
        receiver = node.child_by_field_name("object")
        written = (f"{_text(receiver, source)}." if receiver is not None else "") + written
    elif language == "cpp":
        written = without_template_arguments(written)
    return written.strip("\"'") or None


def without_template_arguments(name: str) -> str:
    """Return a C++ name without ``<...>``: a specialisation defines the template's name. Operators keep their own."""
    if "<" not in name:
        return name
    head, operator, tail = name.partition("operator")
    kept: list[str] = []
    depth = 0
    for letter in head:
        depth += (letter == "<") - (letter == ">")
        if not depth and letter != ">":
            kept.append(letter)
    return "".join(kept).strip() + operator + tail


def _name_node(node: Any) -> Any:
    for field in ("name", "key", "property"):
        found = node.child_by_field_name(field)
        if found is not None:
            return found
    return _first(node, _IDENTIFIERS)  # Kotlin's grammar names no fields


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


def _go_receiver(node: Any, source: bytes) -> str:
    receiver = node.child_by_field_name("receiver")
    parameter = _first(receiver, frozenset({"parameter_declaration"})) if receiver is not None else None
    owner = parameter.child_by_field_name("type") if parameter is not None else None
    return f"{_text(owner, source).lstrip('*').split('[')[0]}." if owner is not None else ""


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
