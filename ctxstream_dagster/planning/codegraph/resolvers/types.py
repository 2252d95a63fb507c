"""Java, Kotlin, Scala and PHP: imports name types, which are found by the package that their file declares."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping

from ctxstream_dagster.planning.codegraph.resolvers.index import FileIndex, as_object, as_strings, joined


class TypeIndex:
    """Which files declare a package, and which declare a type in it."""

    def __init__(self, packages: Mapping[str, str], types: Iterable[tuple[str, str, str]]) -> None:
        self._files: dict[str, list[str]] = defaultdict(list)
        self._types: dict[tuple[str, str], set[str]] = defaultdict(set)
        for path, package in sorted(packages.items()):
            self._files[package].append(path)
        for package, name, path in types:
            self._types[package, name].add(path)

    def files_of(self, package: str) -> list[str]:
        """Return the files that declare the package, sorted."""
        return self._files.get(package, [])

    def declaring(self, name: str, *, separator: str) -> list[str]:
        """Return the files that declare the longest prefix of a qualified name that is a type, sorted."""
        parts = name.split(separator)
        for length in range(len(parts) - 1, 0, -1):
            if found := self._types.get((separator.join(parts[:length]), parts[length])):
                return sorted(found)
        return []


class JvmResolver:
    """``import a.b.C``, ``import static a.b.C.d``, ``import a.b.*``."""

    def __init__(self, types: TypeIndex) -> None:
        self._types = types

    def find(self, path: str, form: str, target: str) -> list[str]:
        if not target.endswith(".*"):
            return self._types.declaring(target, separator=".")
        package = target.removesuffix(".*")
        others = [other for other in self._types.files_of(package) if other != path]
        return others or self._types.declaring(package, separator=".")

    def is_local(self, form: str, target: str) -> bool:
        package = target.rpartition(".")[0]
        return bool(self._types.files_of(package))


class PhpResolver:
    """``use A\\B``, by composer's PSR-4 roots or by declaration; ``require 'x.php'``."""

    def __init__(self, index: FileIndex, types: TypeIndex) -> None:
        self._index = index
        self._types = types
        roots: list[tuple[str, str]] = []
        for path in index.named("composer.json"):
            composer = index.json_object(path)
            for section in ("autoload", "autoload-dev"):
                for prefix, directories in as_object(as_object(composer.get(section)).get("psr-4")).items():
                    for directory in as_strings(directories):
                        roots.append((prefix.strip("\\"), joined(posixpath.dirname(path), directory)))
        self._roots = sorted(roots, key=lambda root: (-len(root[0]), root))

    def find(self, path: str, form: str, target: str) -> list[str]:
        if form == "file":
            return self._index.first_of([joined(posixpath.dirname(path), target)]) or self._index.by_suffix(
                path, target.lstrip("./")
            )
        for prefix, directory in self._roots:
            if target.startswith(f"{prefix}\\"):
                inside = target[len(prefix) + 1 :].replace("\\", "/")
                if found := self._index.first_of([joined(directory, f"{inside}.php")]):
                    return found
        return self._types.declaring(target, separator="\\")

    def is_local(self, form: str, target: str) -> bool:
        return form == "file" or any(target.startswith(f"{prefix}\\") for prefix, _ in self._roots if prefix)
