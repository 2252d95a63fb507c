"""What a file's import statements name, read from their text: one small reader per language.

The parser finds the statements, so comments and strings do not fool it; a regular expression reads each one, so a
grammar's next version does not break it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

RawImport = tuple[str, str]
"""(form, target): how it is written, which decides how it is looked up, and what it names."""

PACKAGE = "package"
"""The form of a declaration of the file's own package: no import, but what others are looked up by."""

NAME_SEPARATOR = "\0"
"""Between the module and the name in Python's ``from module import name``."""

_QUOTED = re.compile(r"""["'`]([^"'`\n]+)["'`]""")
_PYTHON_FROM = re.compile(r"from\s+([.\w\s]+?)\s+import\s+(.*)", re.S)
_PYTHON_NAMES = re.compile(r"(?:^|,)\s*(\w+|\*)")
_C_INCLUDE = re.compile(r'#\s*(?:include(?:_next)?|import)\s*([<"])([^>"\n]+)[>"]')
_JS_IMPORT = re.compile(r"""(?:from|import|require\()\s*["']([^"']+)["']""")
_JS_EXPORT = re.compile(r"""export\s+(?:type\s+)?(?:\*(?:\s*as\s+\S+)?|\{[^}]*\})\s*from\s*["']([^"']+)["']""")
_JS_CALL = re.compile(r"""(?:require|import|require\.resolve)\s*\(\s*["'`]([^"'`$]+)["'`]\s*[,)]""")
_RUST_MOD = re.compile(r"(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
_RUST_USE = re.compile(r"(?:pub(?:\([^)]*\))?\s+)?use\s+(.*?);", re.S)
_JVM = re.compile(r"(package|import)\s+(static\s+)?(.+?);?\s*$", re.S)
_PHP_USE = re.compile(r"use\s+(?:function\s+|const\s+)?(.*?);", re.S)
_PHP_NAMESPACE = re.compile(r"namespace\s+([\w\\]+)")
_RUBY = re.compile(r"""(require|require_relative|load|autoload)\s*\(?\s*(?::\w+\s*,\s*)?["']([^"'#]+)["']""")
_LUA = re.compile(r"""(require|dofile|loadfile)\s*\(?\s*["']([^"']+)["']""")
_BASH = re.compile(r"""(?:source|\.)\s+(?:"([^"]+)"|'([^']+)'|([^\s;&|]+))""")
_BASH_EXPANSION = re.compile(r"\$\([^()]*\)|`[^`]*`|\$\{[^}]*\}|\$\w+")
_PYTHON_TO_SPACES = str.maketrans("()\\", "   ")
_PYTHON_COMMENT = re.compile(r"#[^\n]*")
_LONGEST_STATEMENT_BYTES = 1 << 14


def raw_imports(node: Any, source: bytes, *, language: str) -> list[RawImport]:
    """Return what an import node of `tables.IMPORTS` names; empty when it is no import after all."""
    end = min(node.end_byte, node.start_byte + _LONGEST_STATEMENT_BYTES)
    text = source[node.start_byte : end].decode("utf-8", "replace")
    if language == "python" and "#" in text:
        text = _PYTHON_COMMENT.sub("", text)
    # Long runs of white space would make the expressions below try every way to divide them.
    return _READERS[language](" ".join(text.split()))


def _python(text: str) -> list[RawImport]:
    text = text.translate(_PYTHON_TO_SPACES)
    if found := _PYTHON_FROM.match(text):
        module = found[1].replace(" ", "")
        return [("from", f"{module}{NAME_SEPARATOR}{name}") for name in _PYTHON_NAMES.findall(found[2])]
    modules = text.removeprefix("import").split(",")
    return [("import", module.split()[0]) for module in modules if module.split()]


def _c(text: str) -> list[RawImport]:
    found = _C_INCLUDE.match(text)
    return [("angle" if found[1] == "<" else "quote", found[2])] if found else []


def _javascript(text: str) -> list[RawImport]:
    if text.startswith("export"):
        found = _JS_EXPORT.match(text)
    elif text.startswith("import") and not re.match(r"import\s*\(", text):
        found = _JS_IMPORT.search(text)
    else:
        found = _JS_CALL.match(text)
    return [("module", found[1])] if found else []


def _go(text: str) -> list[RawImport]:
    found = _QUOTED.search(text)
    return [("package-path", found[1])] if found else []


def _rust(text: str) -> list[RawImport]:
    if found := _RUST_MOD.match(text):
        return [("mod", found[1])]
    found = _RUST_USE.match(text)
    return [("use", path) for path in _expanded(re.sub(r"\s+as\s+\w+|\s", "", found[1]), "::")] if found else []


def _jvm(text: str) -> list[RawImport]:
    found = _JVM.match(text)
    if not found:
        return []
    if found[1] == "package":
        return [(PACKAGE, re.sub(r"\s", "", found[3].split("{")[0].split(":")[0]))]
    names = re.sub(r"\s+(as|=>)\s+\w+|\s", "", found[3]).replace("._", ".*").replace("{_}", "{*}")
    return [("type", name) for part in re.split(r",(?![^{]*})", names) for name in _expanded(part, ".")]


def _php(text: str) -> list[RawImport]:
    if found := _PHP_USE.match(text):
        parts = re.split(r",(?![^{]*})", found[1])
        bare = [re.sub(r"\s+as\s+\w+|\s|function |const ", "", part) for part in parts]
        return [("type", name.strip("\\")) for part in bare for name in _expanded(part, "\\")]
    if found := _PHP_NAMESPACE.match(text):
        return [(PACKAGE, found[1])]
    found = _QUOTED.search(text)
    return [("file", found[1].lstrip("/") if "__DIR__" in text else found[1])] if found else []


def _ruby(text: str) -> list[RawImport]:
    found = _RUBY.match(text)
    return [(found[1], found[2])] if found else []


def _lua(text: str) -> list[RawImport]:
    found = _LUA.match(text)
    return [(found[1], found[2])] if found else []


def _bash(text: str) -> list[RawImport]:
    found = _BASH.match(_BASH_EXPANSION.sub("$", text))
    if not found:
        return []
    path = (found[1] or found[2] or found[3]).removeprefix("$/")  # a directory that only a run would know
    return [] if "$" in path else [("file", path)]


def _none(_text: str) -> list[RawImport]:
    return []


_READERS: dict[str, Callable[[str], list[RawImport]]] = {
    "bash": _bash,
    "c": _c,
    "cpp": _c,
    "csharp": _none,  # `using` names namespaces, which any file may share
    "go": _go,
    "java": _jvm,
    "javascript": _javascript,
    "kotlin": _jvm,
    "lua": _lua,
    "php": _php,
    "python": _python,
    "ruby": _ruby,
    "rust": _rust,
    "scala": _jvm,
    "swift": _none,
    "tsx": _javascript,
    "typescript": _javascript,
}


def _expanded(path: str, separator: str) -> list[str]:
    """Return ``a::{b,c::{d,e}}`` as ``a::b``, ``a::c::d``, ``a::c::e``."""
    paths: list[str] = []
    waiting = [path]
    while waiting:
        current = waiting.pop()
        opening = current.find("{")
        if opening < 0 or not current.endswith("}"):
            paths.append(current)
            continue
        prefix = current[:opening]
        waiting += [prefix + part for part in reversed(_split_level(current[opening + 1 : -1])) if part]
    return [path.removesuffix(f"{separator}self") for path in paths]


def _split_level(text: str) -> list[str]:
    parts: list[str] = []
    depth = start = 0
    for position, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and not depth:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]
