"""What an answer covers: stated with every answer, so that a part of the corpus is never silently missed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ctxstream_dagster.extraction.records import SegmentResult


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedSegment:
    """A segment without a trusted reply, and why."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the corpus an answer stands on.

    Attributes:
        segments: segments in the plan.
        failed: segments without a result, in plan order; missing ones have the reason ``not extracted yet``.
        units_seen: units of the segments that succeeded.
        rejected: reply lines that were no records.
        truncated: segments whose prompt was clipped, and so failed, or of which the server reported no token count to
            tell by.
        files: files in the corpus; files_skipped: paths left out with a reason.
        cut_records: records longer than a segment, which the model saw in pieces.
    """

    segments: int
    failed: tuple[FailedSegment, ...]
    units_seen: int
    rejected: int
    truncated: int
    files: int = 0
    files_skipped: int = 0
    cut_records: int = 0

    @property
    def segments_ok(self) -> int:
        """Segments with a result."""
        return self.segments - len(self.failed)

    @property
    def share(self) -> float:
        """Segments with a result over all segments, 1.0 for a complete sweep."""
        return self.segments_ok / self.segments if self.segments else 0.0

    def sentence(self) -> str:
        """State the coverage for a person."""
        parts = [f"{self.segments_ok} of {counted(self.segments, 'segment')} read, {counted(self.units_seen, 'unit')}"]
        if self.failed:
            named = ", ".join(item.key for item in self.failed[:5])
            parts.append(f"{len(self.failed)} failed: {named}{', …' if len(self.failed) > 5 else ''}")
        if self.rejected:
            parts.append(f"{counted(self.rejected, 'reply line')} rejected")
        if self.truncated:
            parts.append(f"{counted(self.truncated, 'segment')} perhaps clipped")
        if self.files_skipped:
            parts.append(f"{counted(self.files_skipped, 'path')} skipped")
        if self.cut_records:
            parts.append(f"{counted(self.cut_records, 'record')} longer than a segment, cut")
        return "; ".join(parts) + "."


def coverage(
    results: Iterable[SegmentResult],
    *,
    keys: Iterable[str],
    files: int = 0,
    files_skipped: int = 0,
    cut_records: int = 0,
) -> Coverage:
    """Compare results with the plan's `keys`; a key without a result is a failed segment."""
    found = {result.key: result for result in results}
    wanted = list(keys)
    good = [found[key] for key in wanted if key in found and found[key].ok]
    failed = [
        FailedSegment(key=key, reason=found[key].error if key in found else "not extracted yet")
        for key in wanted
        if key not in found or not found[key].ok
    ]
    return Coverage(
        segments=len(wanted),
        failed=tuple(failed),
        units_seen=sum(result.units for result in good),
        rejected=sum(len(result.rejected) for result in good),
        truncated=sum(found[key].truncated or "unknown" in found[key].guard for key in wanted if key in found),
        files=files,
        files_skipped=files_skipped,
        cut_records=cut_records,
    )


def counted(count: int, noun: str) -> str:
    """Return the number with its noun, in the singular for one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
