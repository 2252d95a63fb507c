"""Which files a sweep reads: explicit paths and globs, in an order that no file system decides."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxstream_dagster.errors import CorpusError
from ctxstream_dagster.planning.skipped import Skipped

_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file or directory of the corpus.

    Attributes:
        path: where it is.
        name: as reported to people: as it was given, with forward slashes; bytes of a file name that are not
            UTF-8 as ``\\xNN``.
        is_directory: True for a codebase.
    """

    path: Path
    name: str
    is_directory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What the arguments name: sources in order, each once, and what a glob matched but cannot be read."""

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]


def discover(paths: Sequence[str | Path]) -> Discovery:
    """Return the files and directories that `paths` name.

    A path that exists is taken as it is, symbolic links followed, even when its name looks like a glob. Anything else
    with ``*``, ``?`` or ``[`` is a glob: ``**`` stands for any number of directories and follows no links, names with
    a leading dot match only a pattern with one, and matches come sorted by name. One file named twice, also through a
    link, is read once, at its first place. Raises `CorpusError` for a path that is not there, a broken link, a glob
    without a match, and a source inside another.
    """
    sources: dict[str, Source] = {}
    skipped: list[Skipped] = []
    if not paths:
        raise CorpusError("No path was given. Name a file, a glob or a directory.")
    for path in paths:
        matched = 0
        for found in _named(os.fspath(path)):
            matched += 1
            if isinstance(found, Skipped):
                skipped.append(found)
                continue
            sources.setdefault(os.path.realpath(found.path), found)
        if not matched:
            raise CorpusError(
                f"No file matches {_shown(os.fspath(path))!r}. Check the pattern and the working directory."
            )
    _refuse_nested(sources)
    return Discovery(sources=tuple(sources.values()), skipped=tuple(skipped))


def _refuse_nested(sources: Mapping[str, Source]) -> None:
    """Raise `CorpusError` when one source lies inside another, which would count it twice."""
    directories = {Path(real): source for real, source in sources.items() if source.is_directory}
    for real, source in sources.items():
        for parent in Path(real).parents if directories else ():
            if parent in directories:
                raise CorpusError(
                    f"{source.name} lies in {directories[parent].name}, which is named too, and would count twice. "
                    "Name one of them."
                )


def _named(path: str) -> Iterator[Source | Skipped]:
    if "\0" in path or not path:
        raise CorpusError(f"{path!r} is no path.")
    if os.path.lexists(path):
        try:
            is_directory = stat.S_ISDIR(Path(path).stat().st_mode)
        except OSError as error:
            raise CorpusError(
                f"{_shown(path)} is a link that leads nowhere ({error.strerror}). Mend the link or name its target."
            ) from error
        yield Source(path=Path(path), name=_shown(path), is_directory=is_directory)
    elif _MAGIC.search(path):
        yield from _glob(path)
    else:
        raise CorpusError(f"{_shown(path)} does not exist. Check the path and the working directory.")


def _glob(pattern: str) -> Iterator[Source | Skipped]:
    anchor, parts = _split(pattern)
    listed = "**" not in parts
    unreadable: list[Skipped] = []
    for path in sorted(set(_expand(anchor, parts, unreadable))):
        try:
            mode = Path(path).stat().st_mode
        except OSError as error:
            yield Skipped(path=_shown(path), reason="broken-link", detail=error.strerror or str(error))
            continue
        if not stat.S_ISDIR(mode):
            yield Source(path=Path(path), name=_shown(path))
        elif listed:
            detail = "matched by a glob, which takes files only; name the directory itself to sweep it as a codebase"
            yield Skipped(path=_shown(path), reason="directory", detail=detail)
    yield from unreadable


def _split(pattern: str) -> tuple[str, list[str]]:
    drive, rest = os.path.splitdrive(pattern)
    if os.altsep:
        rest = rest.replace(os.altsep, os.sep)
    root = os.sep if rest.startswith(os.sep) else ""
    names = [name for name in re.split(re.escape(os.sep), rest) if name]
    parts = [name for before, name in itertools.pairwise(["", *names]) if not before == name == "**"]
    return drive + root, [*parts, "*"] if parts[-1] == "**" else parts


def _expand(directory: str, parts: list[str], unreadable: list[Skipped]) -> Iterator[str]:
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _expand(directory, rest, unreadable)
        for entry in _entries(directory, unreadable):
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                yield from _expand(_join(directory, entry.name), parts, unreadable)
    elif not _MAGIC.search(part):
        path = _join(directory, part)
        if rest:
            yield from _expand(path, rest, unreadable)
        elif os.path.lexists(path):
            yield path
    else:
        matches = re.compile(fnmatch.translate(part)).match
        for entry in _entries(directory, unreadable):
            if matches(entry.name) and (part.startswith(".") or not entry.name.startswith(".")):
                path = _join(directory, entry.name)
                if not rest:
                    yield path
                elif _leads_to_directory(entry, path, unreadable):
                    yield from _expand(path, rest, unreadable)


def _leads_to_directory(entry: os.DirEntry[str], path: str, unreadable: list[Skipped]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        # A link in a circle, or into a directory that may not be entered.
        unreadable.append(Skipped(path=_shown(path), reason="unreadable", detail=error.strerror or str(error)))
        return False


def _entries(directory: str, unreadable: list[Skipped]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory or ".") as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        skipped = Skipped(path=_shown(directory), reason="unreadable", detail=error.strerror or str(error))
        if skipped not in unreadable:
            unreadable.append(skipped)
        return []


def _join(directory: str, name: str) -> str:
    # pathlib would drop the "./" that the person typed, and paths are reported as given.
    return os.path.join(directory, name)  # noqa: PTH118


def _shown(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace").replace(os.sep, "/")
