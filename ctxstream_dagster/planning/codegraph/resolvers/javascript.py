"""JavaScript and TypeScript: relative paths, tsconfig's paths, and the workspace's own package names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ctxstream_dagster.planning.codegraph.resolvers.index import FileIndex, as_object, as_strings, joined

_EXTENSIONS = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".vue", ".svelte")
_INDEXES = ("index.ts", "index.tsx", "index.d.ts", "index.js", "index.jsx", "index.mjs", "index.cjs")
_COMPILED = re.compile(r"(.*)\.([mc]?)jsx?$")


@dataclass(frozen=True, slots=True)
class _Aliases:
    """One tsconfig's ``baseUrl`` and ``paths``."""

    base: str
    has_base: bool
    paths: tuple[tuple[str, tuple[str, ...]], ...]

    def candidates(self, target: str) -> Iterator[str]:
        for pattern, replacements in self.paths:
            before, star, after = pattern.partition("*")
            fits = target.startswith(before) and target.endswith(after) and len(target) >= len(before) + len(after)
            if (star and fits) or target == pattern:
                middle = target[len(before) : len(target) - len(after)] if star else ""
                yield from (joined(self.base, replacement.replace("*", middle)) for replacement in replacements)
        if self.has_base:
            yield joined(self.base, target)


class JavaScriptResolver:
    """``import ... from 'x'``, ``export ... from 'x'``, ``require('x')`` and ``import('x')``."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index
        self._aliases = {
            posixpath.dirname(path): aliases
            for name in ("jsconfig.json", "tsconfig.json")
            for path in index.named(name)
            if (aliases := self._read_aliases(path))
        }
        self._packages: dict[str, tuple[str, list[str]]] = {}
        for path in index.named("package.json"):
            package = index.json_object(path)
            if isinstance(name := package.get("name"), str):
                entries = [
                    entry for key in ("source", "module", "main", "types") for entry in as_strings(package.get(key))
                ]
                self._packages.setdefault(name, (posixpath.dirname(path), entries))

    def find(self, path: str, form: str, target: str) -> list[str]:
        if target.startswith("."):
            return self._at(joined(posixpath.dirname(path), target))
        directory = posixpath.dirname(path)
        while True:
            if aliases := self._aliases.get(directory):
                for candidate in aliases.candidates(target):
                    if found := self._at(candidate):
                        return found
            if not directory:
                return self._in_workspace(target)
            directory = posixpath.dirname(directory)

    def is_local(self, form: str, target: str) -> bool:
        return target.startswith(".")

    def _in_workspace(self, target: str) -> list[str]:
        parts = target.split("/")
        scoped = 2 if target.startswith("@") else 1
        package = self._packages.get("/".join(parts[:scoped]))
        if not package:
            return []
        directory, entries = package
        inside = "/".join(parts[scoped:])
        for candidate in [inside, f"src/{inside}"] if inside else [*entries, "src/index", "index"]:
            if found := self._at(joined(directory, candidate)):
                return found
        return []

    def _at(self, base: str) -> list[str]:
        if base in self._index.files:
            return [base]
        compiled = _COMPILED.match(base)
        stems = [base, compiled[1]] if compiled else [base]  # TypeScript imports the name of what it will compile to
        return self._index.first_of(
            [
                *(stem + extension for stem in stems for extension in _EXTENSIONS),
                *(joined(base, name) for name in _INDEXES),
            ]
        )

    def _read_aliases(self, path: str) -> _Aliases | None:
        options = as_object(self._index.json_object(path).get("compilerOptions"))
        base = options.get("baseUrl")
        paths = as_object(options.get("paths"))
        if not isinstance(base, str) and not paths:
            return None
        return _Aliases(
            joined(posixpath.dirname(path), base if isinstance(base, str) else "."),
            isinstance(base, str),
            tuple((pattern, tuple(as_strings(to))) for pattern, to in paths.items()),
        )
