"""The packed corpus: every file decoded into one snapshot, so that a sweep reads what was planned, not what changed since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxstream_dagster.planning.manifest import Manifest, ManifestOptions
from ctxstream_dagster.planning.units import SegmentText


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of the corpus and where it lies in the packed text.

    Attributes:
        path: as reported to people, forward slashes.
        bytes: size on disk.
        chars: characters in the packed text, without the delimiter added when the file does not end with one.
        offset: where its text starts in the packed text, in characters.
        encoding: ``utf-8``, ``utf-8-sig``, ``utf-16-le``, ``utf-16-be`` or ``cp1252``.
    """

    path: str
    bytes: int
    chars: int
    offset: int
    encoding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file or directory that is not part of the packed text, with a typed reason."""

    path: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedCorpus:
    """A planned corpus on disk; immutable once written.

    The directory holds ``packed.txt`` (UTF-8), ``segments.parquet``, ``files.parquet``, ``skipped.parquet`` and
    ``plan.json`` (options, proof, totals); schemas in docs/schemas.md.
    """

    directory: Path
    manifest: Manifest
    options: ManifestOptions
    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]

    @classmethod
    def open(cls, directory: Path) -> PackedCorpus:
        """Read a corpus that `pack` wrote; raises `StorageError` when it is not whole."""
        raise NotImplementedError

    def read(self, key: str) -> SegmentText:
        """Return one segment with its text and units; raises `CorpusError` for an unknown key."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[SegmentText]:
        """Yield every segment in plan order without holding the packed text in memory."""
        raise NotImplementedError


def pack(paths: Sequence[str | Path], *, directory: Path, options: ManifestOptions | None = None) -> PackedCorpus:
    """Decode, pack and plan the files, globs (and later directories) of `paths` into `directory`, whole or not at all."""
    raise NotImplementedError
