"""Ruby, Lua and shell: paths in strings, from the file, from a library root, or by how they end."""

from __future__ import annotations

import posixpath

from ctxstream_dagster.planning.codegraph.resolvers.index import FileIndex, joined


class RubyResolver:
    """``require_relative 'x'``, ``require 'x'``, ``load``, ``autoload``."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index

    def find(self, path: str, form: str, target: str) -> list[str]:
        file = target if target.endswith(".rb") else f"{target}.rb"
        if form == "require_relative":
            return self._index.first_of([joined(posixpath.dirname(path), file)])
        return self._index.first_of([joined("lib", file)]) or self._index.by_suffix(path, file)

    def is_local(self, form: str, target: str) -> bool:
        return form == "require_relative"


class LuaResolver:
    """``require 'a.b'``, ``dofile('a/b.lua')``, ``loadfile``."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index

    def find(self, path: str, form: str, target: str) -> list[str]:
        base = target.replace(".", "/") if form == "require" else target
        for candidate in (f"{base}.lua", f"{base}/init.lua", base):
            found = self._index.first_of([candidate])
            if not found and candidate.endswith(".lua"):
                found = self._index.by_suffix(path, candidate)
            if found:
                return found
        return []

    def is_local(self, form: str, target: str) -> bool:
        return form != "require"


class ShellResolver:
    """``source x`` and ``. x``; a directory in a variable is left out of the path."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index

    def find(self, path: str, form: str, target: str) -> list[str]:
        found = self._index.first_of((joined(posixpath.dirname(path), target), joined(target)))
        return found or (self._index.by_suffix(path, target.lstrip("./")) if "/" in target else [])

    def is_local(self, form: str, target: str) -> bool:
        return not target.startswith(("/", "$", "~"))
