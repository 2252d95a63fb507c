"""Which language a file is in: by name, by extension, by its first line; a header by what it holds."""

from __future__ import annotations

import re

LANGUAGES = (
    "bash",
    "c",
    "cpp",
    "csharp",
    "go",
    "java",
    "javascript",
    "kotlin",
    "lua",
    "php",
    "python",
    "ruby",
    "rust",
    "scala",
    "swift",
    "tsx",
    "typescript",
)
TEXT = "text"

_EXTENSIONS = {
    "bash": ".sh .bash .ksh",
    "c": ".c .h",
    "cpp": ".cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .ipp .tpp .inl .ino .cu .cuh",
    "csharp": ".cs .csx",
    "go": ".go",
    "java": ".java",
    "javascript": ".js .mjs .cjs .jsx",
    "kotlin": ".kt .kts",
    "lua": ".lua .rockspec",
    "php": ".php .phtml .php5 .php7",
    "python": ".py .pyi .pyw",
    "ruby": ".rb .rake .gemspec .ru",
    "rust": ".rs",
    "scala": ".scala .sc .sbt",
    "swift": ".swift",
    "tsx": ".tsx",
    "typescript": ".ts .mts .cts",
}
_NAMES = {
    "bash": ".bashrc .bash_profile .bash_aliases .profile PKGBUILD",
    "python": "SConstruct SConscript wscript",
    "ruby": "Rakefile Gemfile Guardfile Podfile Vagrantfile Fastfile Brewfile",
}
_INTERPRETERS = {
    "bash": "sh bash dash ksh zsh",
    "javascript": "node nodejs bun",
    "lua": "lua luajit",
    "php": "php",
    "python": "python pypy",
    "ruby": "ruby jruby",
    "typescript": "deno ts-node tsx",
}


def _inverted(table: dict[str, str]) -> dict[str, str]:
    return {word: language for language, words in table.items() for word in words.split()}


_BY_EXTENSION = _inverted(_EXTENSIONS)
_BY_NAME = _inverted(_NAMES)
_BY_INTERPRETER = _inverted(_INTERPRETERS)

_SHEBANG = re.compile(rb"#![ \t]*(?:\S*/)?(?:env(?:[ \t]+-\S+|[ \t]+\w+=\S*)*[ \t]+(?:\S*/)?)?([A-Za-z_-]+)")
_CPLUSPLUS = re.compile(
    rb"^[ \t]*(?:class[ \t]+\w|namespace\b|template[ \t]*<|public:|private:|protected:|using[ \t]+\w+|constexpr\b)",
    re.M,
)
_CPLUSPLUS_WORDS = (b"class", b"namespace", b"template", b"public:", b"private:", b"protected:", b"using", b"constexpr")
_GENERATED = re.compile(rb"^[ \t]*(?://|#|/\*|\*|--|;|<!--)[ \t]*Code generated .{0,200}DO NOT EDIT", re.M)
_GENERATED_HEAD_BYTES = 2_000
_MINIFIABLE = frozenset({".js", ".mjs", ".cjs", ".css"})
_LONG_AVERAGE_BYTES = 200
_LONG_LINE_BYTES = 5_000


def language_of(path: str, source: bytes) -> str:
    """Return the language of a file by its path and its UTF-8 text; ``text`` when it is none of `LANGUAGES`."""
    name = path.rpartition("/")[2]
    found = _BY_NAME.get(name) or _BY_EXTENSION.get(_extension(name))
    if found == "c" and name.endswith((".h", ".H")) and _is_cplusplus(source):
        return "cpp"
    if found == "typescript" and source.startswith(b"<?xml"):  # Qt's translation files
        return TEXT
    if found:
        return found
    if source.startswith(b"#!") and (shebang := _SHEBANG.match(source[:200])):
        return _BY_INTERPRETER.get(shebang[1].decode("ascii").lower().rstrip("-"), TEXT)
    return TEXT


def _is_cplusplus(source: bytes) -> bool:
    # Most headers of C hold none of these words, and looking for one is quicker than matching lines.
    return any(word in source for word in _CPLUSPLUS_WORDS) and _CPLUSPLUS.search(source) is not None


def is_generated(source: bytes) -> bool:
    """Return whether the first lines say that a tool wrote the file (``Code generated ... DO NOT EDIT``)."""
    head = source[:_GENERATED_HEAD_BYTES]
    return b"DO NOT EDIT" in head and _GENERATED.search(head) is not None


def is_minified(path: str, source: bytes) -> bool:
    """Return whether a script or style sheet was squeezed by a machine: nobody reads it, and it reads as one line.

    Its lines average over 200 bytes, or one over 5,000 bytes makes up more than half of it.
    """
    if _extension(path) not in _MINIFIABLE or len(source) <= _LONG_AVERAGE_BYTES:
        return False
    if len(source) / (source.count(b"\n") + 1) > _LONG_AVERAGE_BYTES:
        return True
    middle = len(source) // 2  # lies in a line that makes up more than half
    ends = source.find(b"\n", middle)
    longest = (ends if ends >= 0 else len(source)) - (source.rfind(b"\n", 0, middle) + 1)
    return longest > _LONG_LINE_BYTES and longest > len(source) / 2


def _extension(name: str) -> str:
    dot = name.rfind(".")
    return name[dot:].lower() if dot >= 0 else ""
