"""Python: relative dots from the file's own package, absolute names from the roots that packages hang under."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from ctxstream_dagster.planning.codegraph.imports import NAME_SEPARATOR
from ctxstream_dagster.planning.codegraph.resolvers.index import FileIndex, joined


class PythonResolver:
    """``import a.b`` and ``from .a import b``, where ``from a import b`` is the module ``a.b`` if there is one."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index
        modules = sorted(path for path in index.files if path.endswith((".py", ".pyi")))
        self._root_of: dict[str, str] = {}
        self._found: dict[tuple[str, str, str], list[str]] = {}
        # A scanned directory that is a package itself is imported by its own name.
        self._package = index.root if "__init__.py" in index.files else ""
        self._roots = sorted({self._root(posixpath.dirname(path)) for path in modules})

    def find(self, path: str, form: str, target: str) -> list[str]:
        module, _, name = target.partition(NAME_SEPARATOR)
        dots = len(module) - len(module.lstrip("."))
        directory = path.rpartition("/")[0]
        if not dots:
            asked = (self._root(directory), module, name)
            if asked not in self._found:
                self._found[asked] = self._absolute(*asked)
            return self._found[asked]
        for _ in range(dots - 1):
            directory = posixpath.dirname(directory)
        return self._at(joined(directory, module[dots:].replace(".", "/")), name)

    def is_local(self, form: str, target: str) -> bool:
        return target.startswith(".")

    def _root(self, directory: str) -> str:
        root = self._root_of.get(directory)
        if root is None:
            is_package = directory and f"{directory}/__init__.py" in self._index.files
            root = self._root(posixpath.dirname(directory)) if is_package else directory
            self._root_of[directory] = root
        return root

    def _absolute(self, own: str, module: str, name: str) -> list[str]:
        parts = module.split(".")
        if parts[0] == self._package:
            return self._longest("", parts[1:], name) or self._at("", "" if parts[1:] else name)
        likely = list(dict.fromkeys((own, "", "src")))
        for root in (*likely, *(root for root in self._roots if root not in likely)):
            top = joined(root, parts[0])
            if root not in likely and not self._at(top, ""):
                continue
            if found := self._longest(root, parts, name):
                return found
        return []

    def _longest(self, root: str, parts: Sequence[str], name: str) -> list[str]:
        """Return the module that most of a dotted name leads to below a root."""
        for length in range(len(parts), 0, -1):
            if found := self._at(joined(root, *parts[:length]), name if length == len(parts) else ""):
                return found
        return []

    def _at(self, base: str, name: str) -> list[str]:
        below = f"{base}/" if base else ""
        candidates = [f"{base}.py", f"{below}__init__.py", f"{base}.pyi", f"{below}__init__.pyi"]
        if name and name != "*":
            inside = below + name
            candidates = [f"{inside}.py", f"{inside}/__init__.py", f"{inside}.pyi", *candidates]
        return self._index.first_of(candidates)
