"""What passes between those who plan a corpus and those who store and read the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ctxstream_dagster.planning.keys import content_hash, division
from ctxstream_dagster.planning.manifest import Manifest, ManifestOptions, Segment
from ctxstream_dagster.planning.skipped import Skipped
from ctxstream_dagster.planning.units import Span, Unit


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
class PlannedSegment:
    """One window as a planner hands it over.

    Attributes:
        name: path of the file that the key's readable half is made of.
        overlap: text shown in front; the end of what was handed over before.
        core: the text this segment owns. The cores, joined, are the packed text.
        spans: which file each stretch of the core comes from; the rest of the core (headers) is no source text.
        carried: characters of the core's first record that lie in earlier segments.
        carried_line: the line of the file where that record starts.
        open_end: True when the core's last record goes on in the next segment.
        units: the units, for planners that know them (symbols); None: records by the delimiter, found on reading.
    """

    name: str
    overlap: str
    core: str
    spans: tuple[Span, ...]
    carried: int = 0
    carried_line: int = 1
    open_end: bool = False
    units: tuple[Unit, ...] | None = None

    def division(self, *, delim: str) -> bytes:
        """Return what decides the units beside the text, for the segment's key."""
        return _division(self, delim=delim, overlap_chars=len(self.overlap), carried=self.carried)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """Where one segment lies in ``packed.txt``, and what its units are made from."""

    segment: Segment
    byte_offset: int
    byte_length: int
    spans: tuple[Span, ...]
    carried_line: int
    open_end: bool
    units: tuple[Unit, ...] | None

    def is_text(self, data: bytes, *, delim: str) -> bool:
        """Whether `data` is the UTF-8 text that the segment's key was made of."""
        return self.segment.key.split("~")[1] == content_hash(
            data,
            division=_division(
                self, delim=delim, overlap_chars=self.segment.overlap_prefix, carried=self.segment.carried
            ),
        )


def _division(window: PlannedSegment | StoredSegment, *, delim: str, overlap_chars: int, carried: int) -> bytes:
    return division(
        delim=delim,
        overlap_chars=overlap_chars,
        carried=carried,
        open_end=window.open_end,
        stretches=((span.start, span.length) for span in window.spans),
        units=None if window.units is None else ((unit.offset, len(unit.text)) for unit in window.units),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """A whole plan, without its text."""

    manifest: Manifest
    options: ManifestOptions
    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]
    stored: tuple[StoredSegment, ...] = field(repr=False)


class SegmentSource(Protocol):
    """Whoever plans a part of the corpus. Iterate it once and to the end, then read the rest.

    Attributes:
        files: in packed order, offsets in characters from the start of this source's own text.
        skipped: what it left out.
        chars: characters of text handed over, by its own count.
        cut_records: records or symbols longer than a segment, which had to be cut.
    """

    @property
    def files(self) -> Sequence[SourceFile]: ...
    @property
    def skipped(self) -> Sequence[Skipped]: ...
    @property
    def chars(self) -> int: ...
    @property
    def cut_records(self) -> int: ...
    def __iter__(self) -> Iterator[PlannedSegment]: ...
