"""What is a definition and what is an import, language by language, as data.

`SYMBOLS`: node type -> ``kind`` or ``kind:field``. With the field ``body`` the node counts only when it has one; with
``value`` or ``right`` only when that field is a function literal.
`IMPORTS`: node types whose text is read by `imports.raw_imports`.
`ENTER`: node types whose children are all visited; statements and blocks. The inside of a child that is none of them is
visited only when `HINTS` finds in its text what every definition or import there would hold. So expressions, most of a
tree, are not walked, and nothing is lost: benchmarks/accuracy_codegraph.py compares with a walk of the whole tree.
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
    " declaration_list compound_statement if_statement else_clause for_statement while_statement do_statement"
    " switch_statement case_statement labeled_statement function_definition declaration type_definition"
    " field_declaration_list field_declaration struct_specifier union_specifier enum_specifier ERROR"
)
_JS_ENTER = _words(
    "program statement_block class_body class_declaration class function_declaration generator_function_declaration"
    " method_definition if_statement else_clause for_statement for_in_statement while_statement do_statement"
    " try_statement catch_clause finally_clause switch_statement switch_body switch_case switch_default"
    " labeled_statement export_statement object ERROR"
)
_TS_ENTER = _JS_ENTER | _words(
    "abstract_class_declaration interface_declaration interface_body object_type internal_module module"
    " ambient_declaration"
)
ENTER: dict[str, frozenset[str]] = {
    "bash": _words(
        "program function_definition compound_statement subshell if_statement elif_clause else_clause for_statement"
        " c_style_for_statement while_statement do_group case_statement case_item list pipeline negated_command"
        " redirected_statement ERROR"
    ),
    "c": _C_ENTER,
    "cpp": _C_ENTER
    | _words(
        "namespace_definition class_specifier template_declaration try_statement catch_clause for_range_loop"
        " template_instantiation friend_declaration"
    ),
    "csharp": _words(
        "compilation_unit namespace_declaration file_scoped_namespace_declaration declaration_list class_declaration"
        " struct_declaration interface_declaration record_declaration record_struct_declaration method_declaration"
        " constructor_declaration property_declaration accessor_list accessor_declaration block if_statement"
        " for_statement foreach_statement while_statement do_statement try_statement catch_clause finally_clause"
        " using_statement lock_statement switch_statement switch_body switch_section global_statement preproc_if"
        " preproc_else preproc_elif preproc_region local_function_statement ERROR"
    ),
    "go": _words(
        "source_file import_declaration import_spec_list type_declaration function_declaration method_declaration"
        " block statement_list if_statement for_statement expression_switch_statement type_switch_statement"
        " select_statement expression_case type_case default_case communication_case labeled_statement ERROR"
    ),
    "java": _words(
        "program class_declaration class_body interface_declaration interface_body enum_declaration enum_body"
        " enum_body_declarations enum_constant record_declaration annotation_type_declaration annotation_type_body"
        " method_declaration constructor_declaration compact_constructor_declaration constructor_body block"
        " static_initializer if_statement for_statement enhanced_for_statement while_statement do_statement"
        " try_statement try_with_resources_statement catch_clause finally_clause synchronized_statement"
        " labeled_statement switch_block switch_block_statement_group switch_rule ERROR"
    ),
    "javascript": _JS_ENTER,
    "kotlin": _words(
        "source_file import_list class_declaration object_declaration companion_object class_body enum_class_body"
        " enum_entry class_member_declarations function_declaration function_body block statements"
        " control_structure_body anonymous_initializer property_declaration getter setter secondary_constructor ERROR"
    ),
    "lua": _words(
        "chunk block function_declaration local_function_definition_statement function_definition_statement"
        " if_statement elseif_statement else_statement for_statement for_numeric_statement for_generic_statement"
        " while_statement repeat_statement do_statement ERROR"
    ),
    "php": _words(
        "program namespace_definition compound_statement class_declaration interface_declaration trait_declaration"
        " enum_declaration declaration_list enum_declaration_list method_declaration function_definition if_statement"
        " else_clause else_if_clause foreach_statement for_statement while_statement do_statement try_statement"
        " catch_clause finally_clause switch_statement switch_block case_statement default_statement colon_block ERROR"
    ),
    "python": _words(
        "module block if_statement elif_clause else_clause for_statement while_statement try_statement except_clause"
        " except_group_clause finally_clause with_statement match_statement case_clause class_definition"
        " function_definition decorated_definition ERROR"
    ),
    "ruby": _words(
        "program module class singleton_class body_statement method singleton_method begin begin_block ensure rescue"
        " if unless else elsif then do while until case when ERROR"
    ),
    "rust": _words(
        "source_file declaration_list mod_item impl_item trait_item function_item block foreign_mod_item ERROR"
    ),
    "scala": _words(
        "compilation_unit package_clause package_object class_definition object_definition trait_definition"
        " enum_definition template_body enum_body with_template_body function_definition block indented_block"
        " extension_definition given_definition ERROR"
    ),
    "swift": _words(
        "source_file class_declaration class_body enum_class_body protocol_declaration protocol_body"
        " function_declaration function_body init_declaration deinit_declaration subscript_declaration statements"
        " if_statement guard_statement for_statement while_statement do_statement computed_property"
        " property_declaration ERROR"
    ),
    "tsx": _TS_ENTER,
    "typescript": _TS_ENTER,
}

_JS_HINT = re.compile(rb"function|=>|\bclass\b|\brequire\b|\bimport\b|\)[ \t\r\n]*\{")
_TS_HINT = re.compile(
    rb"function|=>|\bclass\b|\brequire\b|\bimport\b|\)[ \t\r\n]*[:{]|\b(?:interface|enum|type|namespace|module)\b"
)
HINTS: dict[str, re.Pattern[bytes] | None] = {
    "bash": re.compile(rb"\bsource\b|\.[ \t]|\(\)|\bfunction\b"),
    "c": re.compile(rb"\{"),
    "cpp": re.compile(rb"\{"),
    "csharp": re.compile(rb"\{"),
    "go": re.compile(rb"\btype\b|\bfunc\b"),
    "java": re.compile(rb"\{"),
    "javascript": _JS_HINT,
    "kotlin": re.compile(rb"\b(?:fun|class|object|interface|typealias|constructor|import|package)\b"),
    "lua": re.compile(rb"\b(?:function|require|dofile|loadfile)\b"),
    "php": re.compile(rb"\{|\b(?:require|include|use|namespace)"),
    "python": None,
    "ruby": re.compile(rb"\b(?:def|class|module|require|require_relative|load|autoload)\b"),
    "rust": re.compile(rb"\b(?:fn|struct|enum|union|trait|impl|mod|macro_rules|const|static|type|use)\b"),
    "scala": re.compile(rb"\b(?:def|class|object|trait|enum|type|given|import|package)\b"),
    "swift": re.compile(
        rb"\b(?:class|struct|enum|actor|extension|protocol|func|init|deinit|subscript|typealias|import)\b"
    ),
    "tsx": _TS_HINT,
    "typescript": _TS_HINT,
}

CLASS_KINDS = _words("class struct interface trait impl enum record union protocol object type extension actor")
"""Kinds whose functions are methods."""

WRAPPERS = _words(
    "decorated_definition export_statement template_declaration lexical_declaration variable_declaration"
    " expression_statement ambient_declaration type_declaration local_declaration"
)
"""A definition's span grows to the wrapper whose last child it is."""

LEADING = _words("attribute_item inner_attribute_item comment line_comment block_comment multiline_comment decorator")
"""Siblings directly above a definition that belong to it: attributes and comments with no blank line between."""

TABLES_VERSION = "1"
"""Part of every cache key: raise it when a change here or in symbols, names or imports changes what is found."""
