"""The scanned paths in the forms in which import statements ask for them."""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

# What is never closed ends with the text, or each opening would be tried against all of the rest.
_JSON_TOKEN = re.compile(r'"(?:\\.|[^"\\])*(?:"|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.S)


class Resolver(Protocol):
    """Looks up the import statements of one family of languages."""

    def find(self, path: str, form: str, target: str) -> list[str]:
        """Return the scanned files that the import in file `path` names, none when it names something outside."""
        ...

    def is_local(self, form: str, target: str) -> bool:
        """Return whether the import is written as one of the code base's own, so that finding nothing is a miss."""
        ...


class FileIndex:
    """All scanned paths, by name and by directory.

    Attributes:
        root: the scanned directory's name.
        files: every path.
        directories: every directory that holds a file, directly or not.
    """

    def __init__(self, paths: Iterable[str], *, root: str = "", read_text: Callable[[str], str]) -> None:
        self.root = root
        self.files = frozenset(paths)
        self.directories: set[str] = {""}
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._by_directory: dict[str, list[str]] = defaultdict(list)
        self._read_text = read_text
        for path in sorted(self.files):
            directory, name = posixpath.split(path)
            self._by_name[name].append(path)
            self._by_directory[directory].append(path)
            while directory not in self.directories:
                self.directories.add(directory)
                directory = posixpath.dirname(directory)

    def named(self, name: str) -> list[str]:
        """Return the paths with that file name, sorted."""
        return self._by_name.get(name, [])

    def directly_in(self, directory: str) -> list[str]:
        """Return the paths of the files in a directory, sorted."""
        return self._by_directory.get(directory, [])

    def first_of(self, candidates: Iterable[str]) -> list[str]:
        """Return the first candidate that is a scanned file, as a list of one, or none."""
        found = next((path for path in candidates if path in self.files), None)
        return [] if found is None else [found]

    def by_suffix(self, path: str, suffix: str) -> list[str]:
        """Return the file whose path ends with `suffix`, the one nearest to `path` where there are several."""
        ends = "/" + suffix
        found = [other for other in self.named(posixpath.basename(suffix)) if other == suffix or other.endswith(ends)]
        return [min(found, key=lambda other: _distance(path, other))] if found else []

    def text(self, path: str) -> str:
        """Return the text of a scanned configuration file, empty when it cannot be read."""
        return self._read_text(path)

    def json_object(self, path: str) -> dict[str, Any]:
        """Return a configuration file's JSON object, comments and trailing commas allowed; empty when it is none."""
        without_comments = _JSON_TOKEN.sub(lambda found: found[0] if found[0][0] == '"' else " ", self.text(path))
        try:
            value: Any = json.loads(re.sub(r",(\s*[}\]])", r"\1", without_comments))
        except (ValueError, RecursionError):  # its own tools would not read it either
            return {}
        return as_object(value)


def as_object(value: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_strings(value: Any) -> list[str]:
    """Return a JSON string or list of strings as a list; other values are left out."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str)]


def joined(*parts: str) -> str:
    """Return the parts as one normal path; the root is the empty path."""
    path = "/".join(part for part in parts if part)
    if "/." not in path and "//" not in path and not path.startswith(".") and not path.endswith("/"):
        return path  # nothing to normalise: by far the most
    path = posixpath.normpath(path)
    return "" if path == "." else path


def _distance(path: str, other: str) -> tuple[int, int, str]:
    ours, theirs = path.split("/"), other.split("/")
    shared = 0
    while shared < min(len(ours), len(theirs)) - 1 and ours[shared] == theirs[shared]:
        shared += 1
    return -shared, len(theirs), other
