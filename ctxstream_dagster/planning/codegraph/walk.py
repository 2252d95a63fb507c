"""Which files of a directory are read: every entry is found, every one left out is a value with a typed reason."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ctxstream_dagster.planning.codegraph.ignore import IGNORE_FILE, NO_RULES, IgnoreRules, repository_of, rules_above
from ctxstream_dagster.planning.skipped import Skipped

DEFAULT_EXCLUDE_DIRS = (
    ".git",
    ".hg",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "target",
    "vendor",
    "venv",
)
MAYBE_SOURCE_DIRS = frozenset({"build", "dist", "target", "vendor"})
"""Excluded directories that also name source: read where git tracks files in them, and where they are packages."""

_NEVER_SOURCE = frozenset({".git", ".hg", ".svn"})
_GIT_TIMEOUT_S = 60
_name = attrgetter("name")


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkOptions:
    """How a directory is walked; the fields of `scan.ScanOptions` that concern the walk, described there."""

    max_file_bytes: int = 2 * 1024 * 1024
    exclude_dirs: tuple[str, ...] = DEFAULT_EXCLUDE_DIRS
    follow_symlinks: bool = False
    respect_gitignore: bool = True
    keep_tracked: bool = True


class FoundFile(NamedTuple):
    """A regular file to read.

    Attributes:
        path: as it is reported to people.
        location: where it is on disk, relative to the root.
        size: in bytes.
        changed_ns: when it last changed, by either of its times, in nanoseconds since 1970.
        stamp: what tells this state of this file from every other, as far as the file system knows.
    """

    path: str
    location: str
    size: int
    changed_ns: int
    stamp: tuple[int, ...]


def walk_directory(root: Path, options: WalkOptions) -> tuple[list[FoundFile], list[Skipped]]:
    """Return the files to read and all that is left out, sorted by path; raises `OSError` for an unreadable `root`."""
    walker = _Walker(root, options)
    rules = rules_above(root.absolute()) if options.respect_gitignore else NO_RULES
    walker.walk("", rules, tracked_only=False)
    return sorted(walker.found), sorted(walker.skipped, key=lambda skipped: (skipped.path, skipped.reason))


def shown(path: str) -> str:
    """Return a path as it is reported: forward slashes, bytes that are not UTF-8 as ``\\xNN``."""
    if path.isascii() and os.sep == "/":
        return path
    return os.fsencode(path).decode("utf-8", "backslashreplace").replace(os.sep, "/")


class _Walker:
    def __init__(self, root: Path, options: WalkOptions) -> None:
        self._root = str(root)
        self._options = options
        self._excluded = frozenset(options.exclude_dirs)
        self._inside: set[tuple[int, int]] = set()
        self.found: list[FoundFile] = []
        self.skipped: list[Skipped] = []

    def walk(self, directory: str, rules: IgnoreRules, *, tracked_only: bool) -> None:
        """Take in what lies below `directory` (with a final slash, or empty)."""
        here = f"{self._root}/{directory}"
        try:
            with os.scandir(here) as entries:
                listed = sorted(entries, key=_name)
        except OSError as error:
            if not directory:
                raise
            self._skip(directory, "unreadable", error.strerror or str(error))
            return
        if self._options.respect_gitignore and IGNORE_FILE in map(_name, listed):
            rules = rules.below(Path(here), directory)
        for entry in listed:
            self._entry(entry, directory + entry.name, rules, tracked_only=tracked_only)

    def _entry(self, entry: os.DirEntry[str], path: str, rules: IgnoreRules, *, tracked_only: bool) -> None:
        try:
            if entry.is_symlink() and not self._options.follow_symlinks:
                self._skip(path, "symlink", "links are not followed")
            elif entry.is_dir():
                self._directory(entry, f"{path}/", rules, tracked_only=tracked_only)
            else:
                self._file(entry, path, rules, tracked_only=tracked_only)
        except OSError as error:
            reason = "broken-link" if entry.is_symlink() else "unreadable"
            self._skip(path, reason, error.strerror or str(error))

    def _directory(self, entry: os.DirEntry[str], path: str, rules: IgnoreRules, *, tracked_only: bool) -> None:
        name = entry.name
        if name in self._excluded and not (name in MAYBE_SOURCE_DIRS and self._is_package(path)):
            reason, detail = "excluded-dir", f"named {name}"
            keep = name in MAYBE_SOURCE_DIRS
        elif rules.ignores(path):
            reason, detail, keep = "ignored", "by .gitignore", True
        elif tracked_only:
            reason, detail, keep = "ignored", "nothing in it is tracked", True
        else:
            reason, detail, keep = "", "", False
        if reason and not (keep and self._holds_tracked(path)):
            self._skip(path, reason, detail)
            return
        if not entry.is_symlink():
            self.walk(path, rules, tracked_only=tracked_only or bool(reason))
            return
        status = entry.stat()
        identity = (status.st_dev, status.st_ino)
        if identity in self._inside or self._is_above(path, identity):
            self._skip(path.removesuffix("/"), "symlink", "leads to a directory that is read already")
            return
        self._inside.add(identity)
        self.walk(path, rules, tracked_only=tracked_only or bool(reason))

    def _file(self, entry: os.DirEntry[str], path: str, rules: IgnoreRules, *, tracked_only: bool) -> None:
        status = entry.stat()
        if entry.name in _NEVER_SOURCE:
            self._skip(path, "excluded-dir", "a pointer to a repository's own files")
        elif not stat.S_ISREG(status.st_mode):
            self._skip(path, "special-file", "neither a file nor a directory")
        elif (tracked_only or rules.ignores(path)) and not self._is_tracked(path):
            self._skip(path, "ignored", "not tracked in a directory left out" if tracked_only else "by .gitignore")
        elif status.st_size > self._options.max_file_bytes:
            self._skip(path, "too-large", f"{status.st_size} bytes; the limit is {self._options.max_file_bytes}")
        else:
            changed_ns = max(status.st_mtime_ns, status.st_ctime_ns)
            stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            self.found.append(FoundFile(shown(path), path, status.st_size, changed_ns, stamp))

    def _is_package(self, path: str) -> bool:
        return os.path.lexists(f"{self._root}/{path}__init__.py")

    def _is_above(self, path: str, identity: tuple[int, int]) -> bool:
        above = Path(self._root, path).parent
        while True:
            status = above.stat()
            if (status.st_dev, status.st_ino) == identity:
                return True
            if above == Path(self._root) or above == above.parent:
                return False
            above = above.parent

    def _is_tracked(self, path: str) -> bool:
        return self._options.keep_tracked and path in self._tracked

    def _holds_tracked(self, path: str) -> bool:
        return self._options.keep_tracked and path in self._tracked_directories

    def _skip(self, path: str, reason: str, detail: str) -> None:
        self.skipped.append(Skipped(path=shown(path), reason=reason, detail=detail))

    @cached_property
    def _tracked(self) -> frozenset[str]:
        return tracked_files(Path(self._root))

    @cached_property
    def _tracked_directories(self) -> frozenset[str]:
        return frozenset(
            path[: position + 1] for path in self._tracked for position, letter in enumerate(path) if letter == "/"
        )


def tracked_files(
    root: Path, *, run: Callable[..., subprocess.CompletedProcess[bytes]] = subprocess.run
) -> frozenset[str]:
    """Return the paths below `root`, relative to it, that git tracks; none where there is no git or no repository."""
    if repository_of(root.resolve()) is None:  # git, too, sees where a link leads
        return frozenset()
    # A repository's own settings may name programs to run; listing needs none of them.
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "ls-files", "-z", "--cached"]
    # In a hook, GIT_DIR and its like would lead to another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = run(command, cwd=root, env=environment, capture_output=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    if done.returncode != 0:
        return frozenset()
    return frozenset(os.fsdecode(path) for path in done.stdout.split(b"\0") if path)
