"""Segment keys: names made of content, so that an unchanged segment keeps its name from plan to plan.

Content is the window's text and its division into units: equal text asked about by other units is another segment, or
a stored result would be read for units that it is not of.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from ctxstream_dagster.errors import CorpusError

LONGEST_SLUG_CHARS = 40
HASH_CHARS = 16

_KEY = re.compile(
    rf"(?P<slug>[a-z0-9_][a-z0-9_.-]{{0,{LONGEST_SLUG_CHARS - 1}}})~[0-9a-f]{{{HASH_CHARS}}}(~[1-9][0-9]{{0,8}})?"
)


def validate_key(key: str) -> str:
    """Return `key` when it is a segment key; raises `CorpusError` otherwise.

    Dagster accepts any partition key and storage makes a file name of it, so nothing else may pass:
    ``<slug>~<16 hex digits>[~<ordinal>]`` of ``[a-z0-9_.~-]``, without ``..`` and not starting with a dot or a dash.
    """
    match = _KEY.fullmatch(key)
    if match is None or ".." in key:
        raise CorpusError(
            f"{key!r} is no segment key (expected <name>~<{HASH_CHARS} hex digits>, of a-z 0-9 _ . ~ -). "
            "List the plan's keys with `ctxstream plan`."
        )
    return key


def slug(path: str) -> str:
    """Return a short readable name for `path`: its stem, lower-cased ASCII of ``[a-z0-9_.-]``, never empty."""
    stem = PurePosixPath(path).stem
    ascii_stem = unicodedata.normalize("NFKD", stem.casefold()).encode("ascii", "ignore").decode("ascii").lower()
    clean = re.sub(r"[^a-z0-9_.]+", "-", ascii_stem)
    clean = re.sub(r"\.{2,}", ".", clean)
    return clean[:LONGEST_SLUG_CHARS].strip(".-") or "text"


def division(
    *,
    delim: str,
    overlap_chars: int,
    carried: int,
    open_end: bool,
    stretches: Iterable[tuple[int, int]],
    units: Iterable[tuple[int, int]] | None = None,
) -> bytes:
    """Return what decides a window's units beside its text, for `KeyMaker.key`; nothing global, no path, no line.

    Args:
        delim: what ends a record.
        overlap_chars: length of the leading context.
        carried, open_end: how the first and the last record go on in the neighbouring windows.
        stretches: (start, length) of the source text within the window.
        units: (start, length) of the units, where the planner knows them.
    """
    rows = None if units is None else sorted(units)
    return json.dumps([delim, overlap_chars, carried, open_end, sorted(stretches), rows]).encode("ascii") + b"\n"


def content_hash(*parts: bytes, division: bytes) -> str:
    """Return the hash in the key of a window whose UTF-8 text is the joined `parts`."""
    digest = hashlib.sha256(division)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:HASH_CHARS]


class KeyMaker:
    """Makes the keys of one plan, in plan order; equal windows get ordinals ``~2``, ``~3``."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def key(self, name: str, *parts: bytes, division: bytes) -> str:
        """Return the key of a window whose UTF-8 text is the joined `parts`, named after the path `name`."""
        key = f"{slug(name)}~{content_hash(*parts, division=division)}"
        self._seen[key] += 1
        return key if self._seen[key] == 1 else f"{key}~{self._seen[key]}"
