"""What is a definition and what is an import, language by language, as data.

`SYMBOLS`: node type -> ``kind`` or ``kind:field``. With the field ``body`` the node counts only when it has one; with
``value`` or ``right`` only when that field is a function literal; with ``interface`` only in an interface with a name.
`IMPORTS`: node types whose text is read by `imports.raw_imports`.
A walk goes into a node when its type is in `ENTER`, where definitions without a keyword may stand (a C function, a
Java method), or when a match of one of `HINTS` lies inside it: what every other definition and import holds. Bodies and
expressions, most of a tree, hold none, and nothing is lost by leaving them out: benchmarks/accuracy_codegraph.py
compares with a walk of the whole tree.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_C = {
    "function_definition": "function",
    "struct_specifier": "struct:body",
    "union_specifier": "union:body",
    "enum_specifier": "enum:body",
    "type_definition": "type",
    "preproc_function_def": "macro",
}
_JS = {
    "class": "class",
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "method_definition": "method",
    "variable_declarator": "function:value",
    "field_definition": "method:value",
    "public_field_definition": "method:value",
    "assignment_expression": "function:right",
    "pair": "method:value",
}
_TS = _JS | {
    "interface_declaration": "interface",
    "enum_declaration": "enum",
    "type_alias_declaration": "type",
    "internal_module": "namespace",
    "module": "namespace",
    "abstract_method_signature": "method",
    "method_signature": "method",
    "function_signature": "function",
}

SYMBOLS: dict[str, dict[str, str]] = {
    "bash": {"function_definition": "function"},
    "c": _C,
    "cpp": _C
    | {
        "class_specifier": "class:body",
        "namespace_definition": "namespace",
        "alias_declaration": "type",
        "concept_definition": "concept",
    },
    "csharp": {
        "namespace_declaration": "namespace",
        "file_scoped_namespace_declaration": "namespace",
        "class_declaration": "class",
        "struct_declaration": "struct",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "record",
        "record_struct_declaration": "record",
        "method_declaration": "method",
        "constructor_declaration": "constructor",
        "destructor_declaration": "method",
        "operator_declaration": "method",
        "property_declaration": "property",
        "indexer_declaration": "property",
        "delegate_declaration": "type",
        "local_function_statement": "function",
    },
    "go": {
        "function_declaration": "function",
        "method_declaration": "method",
        "type_spec": "type",
        "type_alias": "type",
        "method_elem": "method:interface",
        "method_spec": "method:interface",
    },
    "java": {
        "class_declaration": "class",
        "interface_declaration": "interface",
        "enum_declaration": "enum",
        "record_declaration": "record",
        "annotation_type_declaration": "interface",
        "method_declaration": "method",
        "constructor_declaration": "constructor",
        "compact_constructor_declaration": "constructor",
    },
    "javascript": _JS,
    "kotlin": {
        "class_declaration": "class",
        "object_declaration": "object",
        "companion_object": "object",
        "function_declaration": "function",
        "secondary_constructor": "constructor",
        "type_alias": "type",
    },
    "lua": {
        "function_declaration": "function",
        "function_definition_statement": "function",
        "local_function_definition_statement": "function",
        "assignment_statement": "function:right",
        "variable_declaration": "function:right",
        "field": "function:value",
    },
    "php": {
        "namespace_definition": "namespace",
        "class_declaration": "class",
        "interface_declaration": "interface",
        "trait_declaration": "trait",
        "enum_declaration": "enum",
        "function_definition": "function",
        "method_declaration": "method",
    },
    "python": {"class_definition": "class", "function_definition": "function"},
    "ruby": {"module": "module", "class": "class", "method": "method", "singleton_method": "method"},
    "rust": {
        "function_item": "function",
        "function_signature_item": "function",
        "struct_item": "struct",
        "enum_item": "enum",
        "union_item": "union",
        "trait_item": "trait",
        "impl_item": "impl",
        "mod_item": "module:body",
        "macro_definition": "macro",
        "const_item": "constant",
        "static_item": "constant",
        "type_item": "type",
    },
    "scala": {
        "class_definition": "class",
        "object_definition": "object",
        "trait_definition": "trait",
        "enum_definition": "enum",
        "function_definition": "function",
        "function_declaration": "function",
        "type_definition": "type",
        "given_definition": "given",
    },
    "swift": {
        "class_declaration": "class",
        "protocol_declaration": "protocol",
        "function_declaration": "function",
        "protocol_function_declaration": "method",
        "init_declaration": "constructor",
        "deinit_declaration": "method",
        "subscript_declaration": "method",
        "typealias_declaration": "type",
    },
    "tsx": _TS,
    "typescript": _TS,
}

_JS_IMPORTS = _words("import_statement export_statement call_expression")
IMPORTS: dict[str, frozenset[str]] = {
    "bash": _words("command"),
    "c": _words("preproc_include"),
    "cpp": _words("preproc_include"),
    "csharp": _words("using_directive"),
    "go": _words("import_spec"),
    "java": _words("import_declaration package_declaration"),
    "javascript": _JS_IMPORTS,
    "kotlin": _words("import import_header package_header"),
    "lua": _words("function_call"),
    "php": _words(
        "namespace_use_declaration namespace_definition require_expression require_once_expression"
        " include_expression include_once_expression"
    ),
    "python": _words("import_statement import_from_statement"),
    "ruby": _words("call"),
    "rust": _words("mod_item use_declaration"),
    "scala": _words("import_declaration package_clause"),
    "swift": _words("import_declaration"),
    "tsx": _JS_IMPORTS,
    "typescript": _JS_IMPORTS,
}
CALL_TYPES = _words("call_expression call function_call command")
"""Import nodes that are calls: only those whose text starts like an import are read further."""
CALL_STARTS = re.compile(rb"(?:require|require_relative|load|autoload|dofile|loadfile|source|\.|import)\b|\.\s")

_C_ENTER = _words(
    "translation_unit preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification"
    " declaration_list declaration type_definition function_definition field_declaration_list field_declaration"
    " struct_specifier union_specifier enum_specifier ERROR"
)
_JS_ENTER = _words("program export_statement class_declaration class class_body ERROR")
_TS_ENTER = _JS_ENTER | _words(
    "abstract_class_declaration interface_declaration interface_body internal_module module ambient_declaration"
)
ENTER: dict[str, frozenset[str]] = {
    "c": _C_ENTER,
    "cpp": _C_ENTER | _words("namespace_definition class_specifier template_declaration friend_declaration"),
    "csharp": _words(
        "compilation_unit namespace_declaration file_scoped_namespace_declaration declaration_list class_declaration"
        " struct_declaration interface_declaration record_declaration record_struct_declaration method_declaration"
        " constructor_declaration property_declaration accessor_list accessor_declaration block if_statement"
        " for_statement foreach_statement while_statement do_statement try_statement catch_clause finally_clause"
        " using_statement lock_statement switch_statement switch_body switch_section global_statement preproc_if"
        " preproc_else preproc_elif preproc_region local_function_statement ERROR"
    ),
    "go": _words("source_file import_declaration import_spec_list type_declaration type_spec interface_type ERROR"),
    "java": _words(
        "program class_declaration class_body interface_declaration interface_body enum_declaration enum_body"
        " enum_body_declarations record_declaration annotation_type_declaration annotation_type_body ERROR"
    ),
    "javascript": _JS_ENTER,
    "tsx": _TS_ENTER,
    "typescript": _TS_ENTER,
}


Hint = bytes | re.Pattern[bytes]


def _literals(text: str) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in text.split())


def _patterns(text: str) -> tuple[re.Pattern[bytes], ...]:
    # Each starts with a literal, which is found many times faster than an alternative of several, and looks a bounded
    # way ahead, for a hostile file repeats the start without the end.
    return tuple(re.compile(word.encode()) for word in text.split())


_JS_HINTS: tuple[Hint, ...] = (*_literals("function class => require import"), *_patterns(r"\)\s*\{ get\s set\s"))
_TS_HINTS = (*_JS_HINTS, *_literals("interface enum namespace module"), *_patterns(r"type\s \)\s*:"))
HINTS: dict[str, tuple[Hint, ...]] = {
    "bash": (*_literals("source function"), *_patterns(r"\.\s \(\s*\)")),
    "c": (
        *_literals("typedef"),
        *_patterns(
            r"struct[^;(){}=,]{0,500}\{ union[^;(){}=,]{0,500}\{ enum[^;(){}=,]{0,500}\{ #\s*include #\s*define"
        ),
    ),
    "cpp": (
        *_literals("typedef using"),
        *_patterns(
            r"struct[^;(){}=]{0,500}\{ union[^;(){}=]{0,500}\{ enum[^;(){}=]{0,500}\{ class[^;(){}=]{0,500}\{"
            r" #\s*include #\s*define"
        ),
    ),
    "csharp": _literals("{"),
    "go": _literals("type func import"),
    "java": _literals("class interface enum record public protected private static void @Override"),
    "javascript": _JS_HINTS,
    "kotlin": (*_literals("class object interface typealias constructor import package"), *_patterns(r"fun\b")),
    "lua": _literals("function require dofile loadfile"),
    "php": (
        *_literals("class interface trait enum namespace require include"),
        *_patterns(r"function\s{1,50}&?\s{0,50}\w use\s"),
    ),
    "python": _literals("def class import"),
    "ruby": (*_literals("def class module require autoload"), *_patterns(r"load\b")),
    "rust": (
        *_literals("struct enum union trait impl macro_rules const static"),
        *_patterns(r"fn\s mod\s type\s use\s"),
    ),
    "scala": (*_literals("class object trait enum given import package"), *_patterns(r"def\b type\s")),
    "swift": _literals("class struct enum actor extension protocol func init subscript typealias import"),
    "tsx": _TS_HINTS,
    "typescript": _TS_HINTS,
}

CLASS_KINDS = _words("class struct interface trait impl enum record union protocol object type extension actor")
"""Kinds whose functions are methods."""

WRAPPERS = _words(
    "decorated_definition export_statement template_declaration lexical_declaration variable_declaration"
    " expression_statement ambient_declaration type_declaration local_declaration"
)
"""A definition's span grows to the wrapper whose last child it is."""

TABLES_VERSION = "7"
"""Part of every cache key: raise it when a change here, in symbols, names, imports or macros changes what is found."""
