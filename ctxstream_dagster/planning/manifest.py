"""The plan of a sweep: which windows of the packed text exist, decided by code before any model call."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ctxstream_dagster.errors import PlanError
from ctxstream_dagster.planning.cutter import Cutter
from ctxstream_dagster.planning.keys import KeyMaker
from ctxstream_dagster.planning.options import Boundary, ManifestOptions

__all__ = [
    "Boundary",
    "CoverageProof",
    "Manifest",
    "ManifestOptions",
    "Segment",
    "check_tiling",
    "plan",
    "segment_text",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One contiguous window of the packed text: one partition, the unit of bookkeeping, retry and lineage.

    Attributes:
        index: position in the plan, from 0.
        offset: where the window starts in the packed text, in characters, overlap included.
        length: characters in the window, overlap included.
        overlap_prefix: leading characters that belong to the segment before; shown, never counted.
        key: ``<slug>~<hash>`` of the window's text and its division into units; equal ones differ by an ordinal.
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


def plan(text: str, options: ManifestOptions | None = None, *, name: str = "text") -> Manifest:
    """Cut `text` into segments whose cores tile it exactly. Deterministic; no model, no clock.

    An empty text gives no segments. `name` (a path) gives the keys their readable half. The text counts as one file:
    `planning.corpus.pack` plans several, and from disk. Raises `PlanError` if the cores do not tile `text`.
    """
    options = options or ManifestOptions()
    cutter = Cutter(options)
    keys = KeyMaker()
    segments: list[Segment] = []
    for cuts in (cutter.feed(0, text), cutter.finish()):
        for cut in cuts:
            overlap, core = (part.encode("utf-8", "surrogatepass") for part in (cut.overlap, cut.core))
            segments.append(
                Segment(
                    index=len(segments),
                    offset=cut.start,
                    length=len(cut.overlap) + len(cut.core),
                    overlap_prefix=len(cut.overlap),
                    key=keys.key(name, overlap, core, division=cut.division(delim=options.record_delim)),
                    carried=cut.carried,
                )
            )
    proof = CoverageProof(
        chars=len(text),
        owned_chars=check_tiling(segments, chars=len(text)),
        text_sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        cut_records=cutter.cut_records,
    )
    return Manifest(segments=tuple(segments), proof=proof)


def check_tiling(segments: Iterable[Segment], *, chars: int) -> int:
    """Return the characters owned by the cores; raises `PlanError` unless they tile `chars` characters exactly once."""
    owned = 0
    for segment in segments:
        if segment.core_offset != owned or segment.length <= segment.overlap_prefix or segment.offset < 0:
            raise PlanError(
                f"Segment {segment.index} ({segment.key}) owns characters from {segment.core_offset}, but the segments "
                f"before it end at {owned}. This is a defect of the planner: please report it with the options used."
            )
        owned += segment.length - segment.overlap_prefix
    if owned != chars:
        raise PlanError(
            f"The segments own {owned} of {chars} characters. "
            "This is a defect of the planner: please report it with the options used."
        )
    return owned


def segment_text(text: str, segment: Segment) -> str:
    """Return exactly what the model may see of `text` in this segment, overlap included."""
    return text[segment.offset : segment.end]
