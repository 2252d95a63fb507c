"""What .gitignore files leave out, by git's rules: the deepest file that says anything decides."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pathspec

IGNORE_FILE = ".gitignore"


@dataclass(frozen=True, slots=True)
class _Patterns:
    """An ignore file's patterns, once to ask about files and once about directories.

    The library decides about files, where ``x/`` means "inside x" and yields to any pattern that names the file. Asked
    about the directory x itself, ``x/`` is a pattern like the others and the last one that matches decides.
    """

    files: pathspec.GitIgnoreSpec
    directories: pathspec.GitIgnoreSpec
    any_file: re.Pattern[str]
    any_directory: re.Pattern[str]

    @classmethod
    def of(cls, lines: list[str]) -> _Patterns:
        """Compile the lines of an ignore file."""
        files = pathspec.GitIgnoreSpec.from_lines(lines)
        directories = pathspec.GitIgnoreSpec.from_lines(re.sub(r"/[ \t]*$", "", line) for line in lines)
        return cls(files, directories, _any_of(files), _any_of(directories))

    def verdict(self, path: str) -> bool | None:
        """Return whether a path (a directory's ends with a slash) is left out, None where nothing is said of it."""
        if path.endswith("/"):
            bare = path[:-1]
            return self.directories.check_file(bare).include if self.any_directory.match(bare) else None
        return self.files.check_file(path).include if self.any_file.match(path) else None


@dataclass(frozen=True, slots=True)
class _Rules:
    """One ignore file: the directory it speaks of (with a final slash, or empty) and its patterns."""

    base: str
    patterns: _Patterns


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The ignore files in force in one directory, the deepest last. Paths are relative to the scanned root."""

    prefix: str = ""
    rules: tuple[_Rules, ...] = ()

    def below(self, directory: Path, path: str) -> IgnoreRules:
        """Return the rules in force in `directory`, whose path ends with a slash or is empty."""
        spec = _read(directory / IGNORE_FILE)
        return IgnoreRules(self.prefix, (*self.rules, _Rules(self.prefix + path, spec))) if spec else self

    def ignores(self, path: str) -> bool:
        """Return whether the file, or the directory with a final slash, is left out."""
        whole = self.prefix + path
        for rules in reversed(self.rules):
            verdict = rules.patterns.verdict(whole[len(rules.base) :])
            if verdict is not None:
                return verdict
        return False


NO_RULES = IgnoreRules()


def rules_above(root: Path) -> IgnoreRules:
    """Return the rules that a repository's upper directories and its ``info/exclude`` impose on `root`.

    Empty outside a repository, and where the rules leave out `root` itself: who names a directory wants it read. A
    person's own ``core.excludesFile`` is not read, for a plan must not depend on whose machine it runs on.
    """
    top = repository_of(root)
    if top is None:
        return NO_RULES
    inside = root.relative_to(top).as_posix()
    rules = IgnoreRules("" if inside == "." else f"{inside}/")
    exclude = _git_directory(top / ".git") / "info" / "exclude"
    if spec := _read(exclude):
        rules = IgnoreRules(rules.prefix, (_Rules("", spec),))
    parts = () if inside == "." else root.relative_to(top).parts
    for depth in range(len(parts)):
        base = "/".join(parts[:depth])
        if spec := _read(top.joinpath(*parts[:depth]) / IGNORE_FILE):
            rules = IgnoreRules(rules.prefix, (*rules.rules, _Rules(f"{base}/" if base else "", spec)))
    above = IgnoreRules("", rules.rules)
    ancestors = ["/".join(parts[: depth + 1]) + "/" for depth in range(len(parts))]
    return NO_RULES if any(above.ignores(ancestor) for ancestor in ancestors) else rules


def repository_of(root: Path) -> Path | None:
    """Return the top of the repository that the absolute path `root` lies in, or None."""
    return next((parent for parent in (root, *root.parents) if os.path.lexists(parent / ".git")), None)


def _git_directory(path: Path) -> Path:
    """Return the common git directory: in a linked work tree or a submodule ``.git`` is a file that points to it."""
    try:
        if path.is_dir():
            return path
        git = path.parent / path.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        common = git / "commondir"
        return git / common.read_text(encoding="utf-8").strip() if common.exists() else git
    except (OSError, UnicodeDecodeError):  # not git's file after all: then there are no extra rules
        return path


def _read(path: Path) -> _Patterns | None:
    try:
        if path.is_symlink():  # git does not follow it either
            return None
        data = path.read_bytes()
    except OSError:
        return None
    # File names reach us with the same escapes for bytes that are not UTF-8.
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    lines = [line for line in re.split(r"\r?\n", text) if line.strip() and not line.startswith("#")]
    return _Patterns.of(lines) if lines else None


def _any_of(spec: pathspec.GitIgnoreSpec) -> re.Pattern[str]:
    """Return one expression that matches wherever a pattern does: most paths match none, which this says quickly."""
    patterns = cast("list[Any]", spec.patterns)
    regexes: list[re.Pattern[str]] = [pattern.regex for pattern in patterns if pattern.include is not None]
    unnamed = [regex.pattern.replace("(?P<ps_d>", "(?:") for regex in regexes]
    return re.compile("|".join(f"(?:{expression})" for expression in unnamed) or r"(?!)")
