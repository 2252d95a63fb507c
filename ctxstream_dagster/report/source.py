"""The source text on the evidence page: all of it where it is small, else each unit with a little around it."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ctxstream_dagster.planning.corpus import PackedCorpus
from ctxstream_dagster.planning.units import SegmentText, Span
from ctxstream_dagster.report.entries import Entry

_WIDE = re.compile("[\U00010000-\U0010ffff]")


@dataclass(slots=True, kw_only=True)
class Chunk:
    """A stretch of one file.

    Attributes:
        path: the file.
        line: line of the file at the chunk's start, from 1.
        parts: the text, in pieces.
        length: its characters.
        end_line: line of the file at its end.
        places: by entry, where its unit starts in this chunk and how long it is, in characters.
    """

    path: str
    line: int
    parts: list[str] = field(default_factory=list[str])
    length: int = 0
    end_line: int = 0
    places: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])

    def append(self, text: str) -> None:
        """Go on with `text`."""
        self.parts.append(text)
        self.length += len(text)
        self.end_line += text.count("\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Text for the page; offsets and lengths in UTF-16 code units, which is how a browser counts.

    Attributes:
        chunks: (path, line, text) each.
        places: by entry (chunk, start, length), or None for an entry without source text.
        whole: whether the whole corpus is there.
    """

    chunks: tuple[tuple[str, int, str], ...]
    places: tuple[tuple[int, int, int] | None, ...]
    whole: bool


def source_text(corpus: PackedCorpus, entries: Sequence[Entry], *, budget_chars: int) -> Source:
    """Return the text to show `entries` in; reads the corpus once. Raises `StorageError`.

    A corpus of up to `budget_chars` characters comes whole. Of a larger one comes each entry's unit, and as much around
    it as the budget gives each entry, at least 80 characters; longer units are cut.
    """
    whole = corpus.manifest.proof.chars <= budget_chars
    wanted = sum(entry.start >= 0 for entry in entries)
    room = max(80, budget_chars // max(wanted, 1))
    numbered = [(number, entry) for number, entry in enumerate(entries) if entry.start >= 0]
    by_segment = {
        segment: list(group) for segment, group in itertools.groupby(numbered, key=lambda pair: pair[1].segment)
    }
    chunks: list[Chunk] = []
    for text in corpus:
        here = by_segment.get(text.segment.index, [])
        if not whole and not here:
            continue
        for span in text.spans:
            start = span.start - text.segment.overlap_prefix
            inside = [pair for pair in here if start <= pair[1].start < start + span.length]
            if whole:
                _whole(chunks, text=text, span=span, entries=inside)
            else:
                _excerpts(chunks, text=text, span=span, entries=inside, room=room)
    return _finish(chunks, count=len(entries), whole=whole)


def _whole(chunks: list[Chunk], *, text: SegmentText, span: Span, entries: Iterable[tuple[int, Entry]]) -> None:
    start = span.start - text.segment.overlap_prefix
    if not chunks or chunks[-1].path != span.path or chunks[-1].end_line != span.line:
        chunks.append(Chunk(path=span.path, line=span.line, end_line=span.line))
    chunk = chunks[-1]
    chunk.places += [(number, chunk.length + entry.start - start, entry.length) for number, entry in entries]
    chunk.append(text.core[start : start + span.length])


def _excerpts(
    chunks: list[Chunk], *, text: SegmentText, span: Span, entries: Sequence[tuple[int, Entry]], room: int
) -> None:
    start = span.start - text.segment.overlap_prefix
    piece = text.core[start : start + span.length]
    line, counted = span.line, 0
    for first, last, inside in _stretches(piece, start=start, entries=entries, room=room):
        line, counted = line + piece.count("\n", counted, first), first
        chunk = Chunk(path=span.path, line=line, end_line=line)
        chunk.places = [
            (number, entry.start - start - first, min(entry.length, last - (entry.start - start)))
            for number, entry in inside
        ]
        chunk.append(piece[first:last])
        chunks.append(chunk)


def _stretches(
    piece: str, *, start: int, entries: Sequence[tuple[int, Entry]], room: int
) -> Iterator[tuple[int, int, list[tuple[int, Entry]]]]:
    """Yield (first, last, entries) of the stretches of `piece` to keep; neighbours that touch are one."""
    first = last = -1
    inside: list[tuple[int, Entry]] = []
    for number, entry in sorted(entries, key=lambda pair: pair[1].start):
        unit = entry.start - start
        shown = min(entry.length or room, room)
        around = (room - shown) // 2
        least = max(0, unit - around)
        # Whole lines around it, as far as they fit.
        begin = 0 if least == 0 else piece.find("\n", least, unit) + 1 or unit
        end = piece.rfind("\n", unit + shown, unit + shown + around) + 1 or min(unit + shown, len(piece))
        if begin <= last:
            last = max(last, end)
        else:
            if inside:
                yield first, last, inside
            first, last, inside = begin, end, []
        inside.append((number, entry))
    if inside:
        yield first, last, inside


def _finish(chunks: Sequence[Chunk], *, count: int, whole: bool) -> Source:
    places: list[tuple[int, int, int] | None] = [None] * count
    finished: list[tuple[str, int, str]] = []
    for index, chunk in enumerate(chunks):
        text = "".join(chunk.parts)
        wide = [found.start() for found in _WIDE.finditer(text)]
        for number, start, length in chunk.places:
            before, until = bisect.bisect_left(wide, start), bisect.bisect_left(wide, start + length)
            places[number] = (index, start + before, length + until - before)
        finished.append((chunk.path, chunk.line, text))
    return Source(chunks=tuple(finished), places=tuple(places), whole=whole)
