"""C and C++: the includer's directory, the usual include roots, then the nearest path that ends the same way."""

from __future__ import annotations

from ctxstream_dagster.planning.codegraph.resolvers.index import FileIndex, joined

_ROOTS = ("", "include", "src")


class CResolver:
    """``#include "x"`` and ``#include <x>``."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index

    def find(self, path: str, form: str, target: str) -> list[str]:
        roots = (path.rpartition("/")[0], *_ROOTS) if form == "quote" else _ROOTS
        found = self._index.first_of(joined(root, target) for root in roots)
        if found or (form == "angle" and "/" not in target):
            return found
        return self._index.by_suffix(path, joined(target).lstrip("./"))

    def is_local(self, form: str, target: str) -> bool:
        return form == "quote"
