"""The hash of every file's content, read anew only where the file system says that a file may have changed."""

from __future__ import annotations

import hashlib
import marshal
import os
import time
from collections.abc import Sequence
from pathlib import Path

from ctxstream_dagster.planning.codegraph.cache import Cache
from ctxstream_dagster.planning.codegraph.walk import FoundFile

_RACY_NS = 2_000_000_000
"""Two changes within the coarsest tick of a file system's clock (2 s) leave the same times behind."""


def file_hashes(directory: Path, found: Sequence[FoundFile], store: Cache) -> list[str]:
    """Return the SHA-256 of each file, hexadecimal; empty where it cannot be read.

    A file is not read again while its device, inode, size and both times are what they were, as in git's index. The
    second time, of the inode's change, moves with every write and cannot be set back. What changed just before it was
    read is not remembered: a second change in the same tick of the clock would not show.
    """
    directory_key = os.fsencode(os.path.abspath(directory))  # noqa: PTH100 - links must not be resolved
    known: dict[str, tuple[tuple[int, ...], str]] = marshal.loads(store.hashes(directory_key) or marshal.dumps({}))
    settled_ns = time.time_ns() - _RACY_NS
    hashes: list[str] = []
    settled: dict[str, tuple[tuple[int, ...], str]] = {}
    for file in found:
        stamp, sha256 = known.get(file.location, ((), ""))
        if stamp != file.stamp:
            sha256 = _sha256(directory, file.location)
        hashes.append(sha256)
        if sha256 and file.changed_ns < settled_ns:
            settled[file.location] = (file.stamp, sha256)
    if settled != known:
        store.keep_hashes(directory_key, marshal.dumps(settled, 2))
    return hashes


def read_bytes(root: Path | str, location: str) -> bytes:
    """Return a scanned file's bytes; raises `OSError`."""
    # Path objects and buffers would cost more than reading a small file does.
    with open(f"{root}/{location}", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def _sha256(directory: Path, location: str) -> str:
    try:
        return hashlib.sha256(read_bytes(directory, location)).hexdigest()
    except OSError:  # told when it is read
        return ""
