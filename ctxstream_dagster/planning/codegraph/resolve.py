"""From raw imports to edges between files, with a count of what resolved, per language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ctxstream_dagster.planning.codegraph.imports import PACKAGE, RawImport
from ctxstream_dagster.planning.codegraph.resolvers.cfamily import CResolver
from ctxstream_dagster.planning.codegraph.resolvers.index import FileIndex, Resolver
from ctxstream_dagster.planning.codegraph.resolvers.javascript import JavaScriptResolver
from ctxstream_dagster.planning.codegraph.resolvers.modules import GoResolver, RustResolver
from ctxstream_dagster.planning.codegraph.resolvers.python import PythonResolver
from ctxstream_dagster.planning.codegraph.resolvers.scripts import LuaResolver, RubyResolver, ShellResolver
from ctxstream_dagster.planning.codegraph.resolvers.types import JvmResolver, PhpResolver, TypeIndex
from ctxstream_dagster.planning.codegraph.values import ImportCount, SymbolRow

_BY_PACKAGE = frozenset({"java", "kotlin", "php", "scala"})
_SCOPES = frozenset({"namespace"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFile:
    """What resolving needs to know of one file: its path, language, raw imports and symbol rows."""

    path: str
    language: str
    imports: Sequence[RawImport]
    rows: Callable[[], Sequence[SymbolRow]]


def resolve_imports(
    parsed: Sequence[ParsedFile], *, root: str, paths: Sequence[str], read_text: Callable[[str], str]
) -> tuple[tuple[tuple[int, int], ...], tuple[ImportCount, ...]]:
    """Return includes edges as sorted pairs of positions in `paths`, and the counts per language.

    `root` is the scanned directory's name, `paths` are all scanned files, `read_text` gives the text of one
    (``go.mod``, ``tsconfig.json`` and their like).
    """
    resolvers = _resolvers(parsed, FileIndex(paths, root=root, read_text=read_text))
    position = {path: number for number, path in enumerate(paths)}
    edges: set[tuple[int, int]] = set()
    counts: Counter[tuple[str, str]] = Counter()
    for file in parsed:
        resolver = resolvers.get(file.language)
        if resolver is None:
            continue
        source = position[file.path]
        for form, target in dict.fromkeys(file.imports):
            if form == PACKAGE:
                continue
            found = resolver.find(file.path, form, target)
            verdict = "resolved" if found else "unresolved" if resolver.is_local(form, target) else "external"
            counts[file.language, verdict] += 1
            edges.update((source, position[other]) for other in found if other != file.path)
    languages = sorted({language for language, _ in counts})
    return tuple(sorted(edges)), tuple(
        ImportCount(
            language=language,
            resolved=counts[language, "resolved"],
            external=counts[language, "external"],
            unresolved=counts[language, "unresolved"],
        )
        for language in languages
    )


def _resolvers(parsed: Sequence[ParsedFile], index: FileIndex) -> dict[str, Resolver]:
    packages = {file.path: package for file in parsed if (package := _package(file)) is not None}
    types = TypeIndex(packages, _declared_types(parsed, packages))
    c, javascript, jvm = CResolver(index), JavaScriptResolver(index), JvmResolver(types)
    return {
        "bash": ShellResolver(index),
        "c": c,
        "cpp": c,
        "go": GoResolver(index),
        "java": jvm,
        "javascript": javascript,
        "kotlin": jvm,
        "lua": LuaResolver(index),
        "php": PhpResolver(index, types),
        "python": PythonResolver(index),
        "ruby": RubyResolver(index),
        "rust": RustResolver(index),
        "scala": jvm,
        "tsx": javascript,
        "typescript": javascript,
    }


def _package(file: ParsedFile) -> str | None:
    if file.language not in _BY_PACKAGE:
        return None
    declared = [target for form, target in file.imports if form == PACKAGE]
    # Scala may nest `package a` and `package b`, which makes a.b.
    return ".".join(declared) if file.language == "scala" else next(iter(declared), "")


def _declared_types(parsed: Sequence[ParsedFile], packages: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for file in parsed:
        if (package := packages.get(file.path)) is None:
            continue
        rows = file.rows()
        for kind, name, *_, parent in rows:
            if kind not in _SCOPES and (parent == -1 or rows[parent][0] in _SCOPES):
                yield package, name, file.path
