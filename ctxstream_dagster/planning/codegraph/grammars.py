"""Where parsers come from: a language's wheel, else one of two bundles, else nowhere; and a parse that always ends."""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

import tree_sitter

_OFFICIAL = {
    "bash": ("tree_sitter_bash", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "lua": ("tree_sitter_lua", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "python": ("tree_sitter_python", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "scala": ("tree_sitter_scala", "language"),
    "swift": ("tree_sitter_swift", "language"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
}
_LEGACY_NAMES = {"csharp": "c_sharp"}

IS_LEGACY_CORE = not hasattr(tree_sitter, "QueryCursor")
"""Whether the parser is so old that only `legacy_languages` works with it."""

_SLICE_BYTES = 1 << 16
_CALLS_PER_CLOCK = 32


class ParseTimeout(Exception):
    """Parsing one file used up its processor time; the file is planned as text."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """One language's parser tables.

    Attributes:
        language: our name of the language.
        provider: distribution that it came from, as ``name version``; part of every cache key.
        tables: what `tree_sitter.Parser` takes.
    """

    language: str
    provider: str
    tables: Any


Provider = Callable[[str], Grammar | None]


def official(language: str) -> Grammar | None:
    """Return the grammar of the language's own wheel, or None when it is not installed."""
    module_name, function = _OFFICIAL[language]
    module = _imported(module_name)
    if module is None or IS_LEGACY_CORE:
        return None  # a wheel hands out a capsule, which the legacy core cannot take
    capsule: object = getattr(module, function)()
    return Grammar(language, _stamp(module_name), tree_sitter.Language(capsule))


def language_pack(language: str) -> Grammar | None:
    """Return the grammar that tree-sitter-language-pack below 1.0 bundles.

    From 1.0 on its wheel holds no grammar: it fetches one at run time, which a scan must not do, so it is not used.
    """
    name = "tree_sitter_language_pack"
    module = _imported(name)
    if module is None or _stamp(name).split()[-1].split(".")[0] != "0":
        return None
    try:
        return Grammar(language, _stamp(name), module.get_language(language))
    except (LookupError, TypeError):  # it lacks the language; or the core is older than its grammars
        return None


def legacy_languages(language: str) -> Grammar | None:
    """Return the grammar of tree_sitter_languages, which needs tree-sitter 0.21 or older and Python 3.12 or older."""
    name = "tree_sitter_languages"
    module = _imported(name)
    if module is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            tables = module.get_language(_LEGACY_NAMES.get(language, language))
    except (AttributeError, TypeError, OSError):  # no such language (Swift); or the core is too new for it
        return None
    return Grammar(language, _stamp(name), tables)


PROVIDERS: tuple[Provider, ...] = (official, language_pack, legacy_languages)


@cache
def load_grammar(language: str) -> Grammar | None:
    """Return the grammar of one of `languages.LANGUAGES` from the first provider that has it, or None."""
    return next((found for provider in PROVIDERS if (found := provider(language))), None)


def grammar_stamp(language: str) -> str:
    """Return the installed versions that decide a language's trees, without loading a grammar: part of cache keys."""
    modules = ("tree_sitter", _OFFICIAL[language][0], "tree_sitter_language_pack", "tree_sitter_languages")
    return " ".join(_stamp(module) for module in modules)


def missing_advice() -> str:
    """Return what a person does about a language without a grammar."""
    if (found := _imported("tree_sitter_language_pack")) is not None and _stamp(found.__name__).split()[-1][0] != "0":
        return (
            "tree-sitter-language-pack 1.0 and newer bundle no grammars; "
            "reinstall ctxstream-dagster for the official wheels, or take tree-sitter-language-pack<1"
        )
    return "reinstall ctxstream-dagster: its grammar wheel is missing"


def parse(grammar: Grammar, source: bytes, *, budget_s: float) -> Any:
    """Return the syntax tree of UTF-8 `source`; raises `ParseTimeout` after `budget_s` seconds of processor time.

    Processor time, so that a busy machine reaches the same verdict. The legacy core knows no budget: there the
    worker's deadline is the only limit.
    """
    parser = _parser(grammar.language)
    if not hasattr(parser, "language"):
        return parser.parse(source)
    started, wall = time.process_time(), time.perf_counter()
    calls = 0

    def read(offset: int, _point: object) -> bytes:
        return source[offset : offset + _SLICE_BYTES]

    def over_budget(_offset: int, _has_error: bool) -> bool:
        nonlocal calls
        calls += 1
        # Processor time is never more than elapsed time, whose clock is many times cheaper to read.
        return (
            calls % _CALLS_PER_CLOCK == 0
            and time.perf_counter() - wall > budget_s
            and time.process_time() - started > budget_s
        )

    try:
        # The callback is heeded only when the source is read through a function.
        return parser.parse(read, progress_callback=over_budget)
    except ValueError as error:
        parser.reset()
        raise ParseTimeout(f"parsing took more than {budget_s:g} s of processor time") from error


@cache
def _parser(language: str) -> Any:
    grammar = load_grammar(language)
    assert grammar is not None
    parser = cast("Any", tree_sitter.Parser())
    if hasattr(parser, "language"):
        parser.language = grammar.tables
    else:
        parser.set_language(grammar.tables)
    return parser


@cache
def _imported(module_name: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ImportError:
        return None


@cache
def _stamp(module_name: str) -> str:
    name = module_name.replace("_", "-")
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} 0"
