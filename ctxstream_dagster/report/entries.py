"""What the evidence page lists: every counted record, rejected line, failed segment and skipped path as one entry."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum

from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.planning.corpus import PackedCorpus
from ctxstream_dagster.planning.units import SegmentText, Unit
from ctxstream_dagster.reduction.sweep import Reduction

RECORDS_LISTED = 40_000
OTHERS_LISTED = 5_000
_NOTE_CHARS = 600


class Status(IntEnum):
    """What became of a thing; the page filters by it."""

    COUNTED = 0
    UNGROUNDED = 1
    MODEL_COUNTED = 2
    REJECTED = 3
    FAILED = 4
    SKIPPED = 5


@dataclass(slots=True, kw_only=True)
class Entry:
    """One line of the page's list.

    `UNGROUNDED` is counted too: its key does not stand, letter for letter, in its unit. So is `MODEL_COUNTED`, of the
    mode `counts`: the model added up by itself, and the entry leads to the whole text that it was shown.

    Attributes:
        status: what became of it.
        key: what was counted; empty for all but records.
        value: of a record.
        path, line: where it is; line 0 when unknown.
        segment: position in the plan, -1 for a skipped path.
        note: of a rejected line its text and reason, of a failed segment or skipped path the reason.
        start: where its unit (or window) starts in the segment's core, in characters; -1 when it has no source text.
        length: the characters of that unit or window.
    """

    status: Status
    key: str = ""
    value: Decimal = Decimal(1)
    path: str = ""
    line: int = 0
    segment: int = -1
    note: str = ""
    start: int = -1
    length: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The entries in corpus order, and how many of each status were left out to keep the page small."""

    entries: tuple[Entry, ...]
    left_out: Mapping[Status, int]


def list_entries(corpus: PackedCorpus, *, results: Mapping[str, SegmentResult], reduction: Reduction) -> Listing:
    """Return the entries of a sweep; reads the corpus once. Raises `StorageError`.

    Args:
        corpus: the plan that was reduced.
        results: extractions by segment key, for the rejected lines.
        reduction: what was counted.
    """
    left_out: Counter[Status] = Counter()
    by_segment = _records(reduction, left_out)
    failed = {item.key: item.reason for item in reduction.coverage.failed}
    rejected_left = failed_left = OTHERS_LISTED
    entries: list[Entry] = []
    for text in corpus:
        key = text.segment.key
        if key in failed:
            if failed_left:
                entries.append(_failed(text, reason=failed[key]))
            failed_left, left_out[Status.FAILED] = _take(failed_left, left_out[Status.FAILED])
            continue
        entries += _placed(text, by_segment.get(key, ()), result=results.get(key))
        for entry in _rejected(text, results.get(key)):
            if rejected_left:
                entries.append(entry)
            rejected_left, left_out[Status.REJECTED] = _take(rejected_left, left_out[Status.REJECTED])
    left_out[Status.SKIPPED] = max(0, len(corpus.skipped) - OTHERS_LISTED)
    for skipped in corpus.skipped[:OTHERS_LISTED]:
        note = f"{skipped.reason}: {skipped.detail}" if skipped.detail else skipped.reason
        entries.append(Entry(status=Status.SKIPPED, path=skipped.path, note=note[:_NOTE_CHARS]))
    return Listing(entries=tuple(entries), left_out={status: count for status, count in left_out.items() if count})


def _records(reduction: Reduction, left_out: Counter[Status]) -> dict[str, list[tuple[str, int, Decimal]]]:
    """Return (key, absolute offset, value) of the records to list by segment; of too many, each key's first ones."""
    columns = [reduction.records[name].to_pylist() for name in ("segment", "key", "offset", "value")]
    quota = _quota(Counter(map(str, columns[1])), limit=RECORDS_LISTED)
    taken: Counter[str] = Counter()
    found: dict[str, list[tuple[str, int, Decimal]]] = {}
    for segment, key, offset, value in zip(*columns, strict=True):
        taken[key] += 1
        if taken[key] > quota:
            left_out[Status.COUNTED] += 1
        else:
            found.setdefault(segment, []).append((key, offset, value))
    return found


def _quota(counts: Mapping[str, int], *, limit: int) -> int:
    """Return how many records of one key may be listed so that all together stay within `limit`; at least 1."""
    least, most = 1, max([limit, 1])
    while least < most:
        middle = (least + most + 1) // 2
        if sum(min(count, middle) for count in counts.values()) <= limit:
            least = middle
        else:
            most = middle - 1
    return least


def _placed(
    text: SegmentText, records: Sequence[tuple[str, int, Decimal]], *, result: SegmentResult | None
) -> Iterator[Entry]:
    if not records:
        return
    units = {text.segment.offset + unit.offset: unit for unit in text.units}
    windows = _counted_windows(text, result)
    folded: dict[int, str] = {}
    for key, offset, value in records:
        if offset in windows:
            yield replace(windows[offset], key=key, value=value)
            continue
        unit = units.get(offset)
        if unit is None:
            yield _of_segment(text, Entry(status=Status.UNGROUNDED, key=key, value=value))
            continue
        if offset not in folded:
            folded[offset] = _fold(unit.text)
        status = Status.COUNTED if _fold(key) in folded[offset] else Status.UNGROUNDED
        yield _of_unit(text, unit, Entry(status=status, key=key, value=value))


def _counted_windows(text: SegmentText, result: SegmentResult | None) -> dict[int, Entry]:
    """Return the windows in which the model counted by itself, by absolute offset; none in the other modes."""
    if result is None or all(record.unit for record in result.records):
        return {}
    units = {unit.number: unit for unit in text.units}
    overlap = text.segment.overlap_prefix
    found: dict[int, Entry] = {}
    for reply in result.replies:
        first, last = units[reply.first_unit], units[reply.last_unit]
        start, end = max(first.offset, overlap), last.offset + len(last.text)
        entry = Entry(status=Status.MODEL_COUNTED, path=first.path, line=first.line, segment=text.segment.index)
        entry.start, entry.length = start - overlap, end - start
        found[text.segment.offset + start] = entry
    return found


def _rejected(text: SegmentText, result: SegmentResult | None) -> Iterator[Entry]:
    units = {unit.number: unit for unit in text.units} if result and result.rejected else {}
    for line in result.rejected if result else ():
        entry = Entry(status=Status.REJECTED, note=f"{line.reason}: {line.text}"[:_NOTE_CHARS])
        unit = units.get(line.unit)
        yield _of_unit(text, unit, entry) if unit else _of_segment(text, entry)


def _failed(text: SegmentText, *, reason: str) -> Entry:
    return _of_segment(text, Entry(status=Status.FAILED, note=reason[:_NOTE_CHARS]))


def _of_unit(text: SegmentText, unit: Unit, entry: Entry) -> Entry:
    entry.path, entry.line, entry.segment = unit.path, unit.line, text.segment.index
    # A record that began in an earlier segment is shown from where this segment goes on with it.
    entry.start = max(unit.offset - text.segment.overlap_prefix, 0)
    entry.length = len(unit.text)
    return entry


def _of_segment(text: SegmentText, entry: Entry) -> Entry:
    entry.segment = text.segment.index
    if text.spans:
        span = text.spans[0]
        entry.path, entry.line, entry.start = span.path, span.line, span.start - text.segment.overlap_prefix
    return entry


def _fold(text: str) -> str:
    return text.casefold() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


def _take(left: int, dropped: int) -> tuple[int, int]:
    return (left - 1, dropped) if left else (0, dropped + 1)
