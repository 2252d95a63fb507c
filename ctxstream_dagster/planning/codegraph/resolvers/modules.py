"""Go and Rust: modules that a manifest file names, laid out by directory."""

from __future__ import annotations

import posixpath
import re

from ctxstream_dagster.planning.codegraph.resolvers.index import FileIndex, joined

_GO_MODULE = re.compile(r"^module\s+(\S+)", re.M)
_CARGO_NAME = re.compile(r'^\[package\][^\[]*?^name\s*=\s*"([^"]+)"', re.M | re.S)


class GoResolver:
    """``import "module/dir"``: every file of the directory that is no test."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index
        modules = {
            found[1]: posixpath.dirname(path)
            for path in index.named("go.mod")
            if (found := _GO_MODULE.search(index.text(path)))
        }
        self._modules = sorted(modules.items(), key=lambda module: (-len(module[0]), module))

    def find(self, path: str, form: str, target: str) -> list[str]:
        for module, directory in self._modules:
            if target == module or target.startswith(f"{module}/"):
                inside = joined(directory, target[len(module) + 1 :])
                files = self._index.directly_in(inside)
                return [file for file in files if file.endswith(".go") and not file.endswith("_test.go")]
        return []

    def is_local(self, form: str, target: str) -> bool:
        return any(target == module or target.startswith(f"{module}/") for module, _ in self._modules)


class RustResolver:
    """``mod x;``, and ``use`` of ``crate``, ``self``, ``super``, a child module, or another crate of the workspace."""

    def __init__(self, index: FileIndex) -> None:
        self._index = index
        self._crates = {
            found[1].replace("-", "_"): joined(posixpath.dirname(path), "src")
            for path in index.named("Cargo.toml")
            if (found := _CARGO_NAME.search(index.text(path)))
        }

    def find(self, path: str, form: str, target: str) -> list[str]:
        directory, name = posixpath.split(path)
        stem = name.removesuffix(".rs")
        here = directory if stem in ("mod", "lib", "main") else joined(directory, stem)
        if form == "mod":
            return self._module(joined(here, target))
        first, *rest = target.split("::")
        if first == "crate":
            base = self._crate_root(directory)
        elif first == "self":
            base = here
        elif first == "super":
            base = posixpath.dirname(here)
            while rest and rest[0] == "super":
                base, rest = posixpath.dirname(base), rest[1:]
        elif self._module(joined(here, first)):
            base, rest = here, [first, *rest]
        elif first in self._crates:
            base = self._crates[first]
        else:
            return []
        return self._longest(base, rest, path)

    def is_local(self, form: str, target: str) -> bool:
        return form == "mod" or target.split("::")[0] in ("crate", "self", "super", *self._crates)

    def _longest(self, base: str, parts: list[str], path: str) -> list[str]:
        for length in range(len(parts), 0, -1):
            found = self._module(joined(base, *parts[:length]))
            if found and found != [path]:
                return found
        ends = self._index.first_of(joined(base, name) for name in ("lib.rs", "main.rs", "mod.rs"))
        ends = ends or self._index.first_of([f"{base}.rs"])
        return ends if ends != [path] else []

    def _module(self, base: str) -> list[str]:
        return self._index.first_of((f"{base}.rs", joined(base, "mod.rs")))

    def _crate_root(self, directory: str) -> str:
        above: str = directory
        while True:
            if self._index.first_of(joined(above, name) for name in ("lib.rs", "main.rs")):
                return above
            if not above:
                return directory
            above = posixpath.dirname(above)
