"""Notices files whose lines end as on old Macs, by a carriage return only: to every other reader they are one line."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from ctxstream_dagster.errors import CorpusError
from ctxstream_dagster.planning.discover import discover
from ctxstream_dagster.planning.textio import without_waiting

_HEAD_BYTES = 65_536
_MOST_FILES = 200


def line_end_hint(paths: Sequence[str | Path], *, delim: str, way: str) -> str:
    """Return a sentence when text files of the corpus end their lines by a carriage return only; else an empty one.

    Reads the first 64 KB of at most 200 files; what cannot be read is for others to report.

    Args:
        paths: the corpus.
        delim: what ends a record; the hint is given only where that is a line feed.
        way: how the caller's reader changes the delimiter.
    """
    if delim != "\n":
        return ""
    try:
        sources = discover(paths).sources
    except CorpusError:
        return ""
    texts = islice((source for source in sources if source.path.is_file()), _MOST_FILES)
    found = [source.name for source in texts if _ends_by_carriage_return(source.path)]
    if not found:
        return ""
    more = "" if len(found) == 1 else " and 1 more file" if len(found) == 2 else f" and {len(found) - 1} more files"
    return f"The lines of {found[0]}{more} end by a carriage return only, so each file is one record: use {way}."


def _ends_by_carriage_return(path: Path) -> bool:
    try:
        with io.FileIO(path, opener=without_waiting) as file:
            head = file.read(_HEAD_BYTES) or b""
    except OSError:
        return False
    return b"\r" in head and b"\n" not in head and b"\0" not in head
