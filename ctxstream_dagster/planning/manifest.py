"""The plan of a sweep: which windows of the packed text exist, decided by code before any model call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Boundary = Literal["nearest", "stable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One contiguous window of the packed text: one partition, the unit of bookkeeping, retry and lineage.

    Attributes:
        index: position in the plan, from 0.
        offset: where the window starts in the packed text, in characters, overlap included.
        length: characters in the window, overlap included.
        overlap_prefix: leading characters that belong to the segment before; shown, never counted.
        key: ``<slug>~<hash>`` of exactly the window's text; equal text gives equal keys but for an ordinal.
        carried: characters of the core's first record that lie in earlier segments; 0 unless a record longer
            than a segment was cut.
    """

    index: int
    offset: int
    length: int
    overlap_prefix: int = 0
    key: str = ""
    carried: int = 0

    @property
    def core_offset(self) -> int:
        """Where the part that this segment owns starts in the packed text, in characters."""
        return self.offset + self.overlap_prefix

    @property
    def end(self) -> int:
        """Where the window ends in the packed text, in characters, exclusive."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions:
    """How a corpus is cut.

    Attributes:
        segment_chars: most characters a window may hold, overlap included.
        overlap_chars: most characters of the previous segment shown in front, in whole records where one fits.
        boundary_slack: how far before the limit a record boundary is looked for, in characters.
        record_delim: what ends a record.
        boundary: ``nearest`` cuts at the last record boundary within the slack; ``stable`` at the one whose
            neighbouring record has the smallest hash, so that plans re-align after an edit.
        max_tokens: most tokens a window may hold by the upper estimate of `planning.tokens`; None for no limit.
    """

    segment_chars: int = 60_000
    overlap_chars: int = 400
    boundary_slack: int = 4_000
    record_delim: str = "\n"
    boundary: Boundary = "nearest"
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageProof:
    """That the cores tile the corpus: checked by `plan`, stored with the segments.

    Attributes:
        chars: characters of the packed text.
        owned_chars: sum of the cores' lengths; equal to `chars`, or `plan` raises `PlanError`.
        text_sha256: SHA-256 of the packed text in UTF-8.
        cut_records: records longer than a segment, which had to be cut.
    """

    chars: int
    owned_chars: int
    text_sha256: str
    cut_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Segments in order with the proof that they cover the text."""

    segments: tuple[Segment, ...]
    proof: CoverageProof

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.segments)

    def __len__(self) -> int:
        return len(self.segments)

    def __getitem__(self, index: int) -> Segment:
        return self.segments[index]


def plan(text: str, options: ManifestOptions | None = None) -> Manifest:
    """Cut `text` into segments whose cores tile it exactly. Deterministic; no model, no clock."""
    raise NotImplementedError


def segment_text(text: str, segment: Segment) -> str:
    """Return exactly what the model may see of `text` in this segment, overlap included."""
    return text[segment.offset : segment.end]
