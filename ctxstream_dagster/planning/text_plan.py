"""Plans text files by their records, one after the other, as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ctxstream_dagster.planning.cutter import Cut, Cutter
from ctxstream_dagster.planning.discover import Source
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.planning.planned import PlannedSegment, SourceFile
from ctxstream_dagster.planning.skipped import Skipped
from ctxstream_dagster.planning.textio import TextFile, Unreadable, open_text
from ctxstream_dagster.planning.units import Span


class TextPlan:
    """The `SegmentSource` of text files: iterate once, then read what was found.

    Attributes:
        files: with offsets from the start of this source's own text.
        skipped: files that are no text.
    """

    def __init__(self, sources: Sequence[Source], options: ManifestOptions) -> None:
        self._sources = sources
        self._cutter = Cutter(options)
        self.files: list[SourceFile] = []
        self.skipped: list[Skipped] = []

    @property
    def chars(self) -> int:
        """Characters of packed text, delimiters added between files included."""
        return self._cutter.chars

    @property
    def cut_records(self) -> int:
        """Records longer than a segment."""
        return self._cutter.cut_records

    def __iter__(self) -> Iterator[PlannedSegment]:
        for source in self._sources:
            text = open_text(source.path)
            if isinstance(text, Unreadable):
                self.skipped.append(Skipped(path=source.name, reason=text.reason, detail=text.detail))
                continue
            with text:
                yield from self._file(source, text)
        yield from map(self._planned, self._cutter.finish())

    def _file(self, source: Source, text: TextFile) -> Iterator[PlannedSegment]:
        number, chars = len(self.files), 0
        # Cuts need the file's name while it is still being read; where it lies and how long it is, is known after.
        entry = SourceFile(path=source.name, bytes=text.bytes, chars=0, offset=0, encoding=text.encoding)
        self.files.append(entry)
        for piece in text.pieces():
            chars += len(piece)
            yield from map(self._planned, self._cutter.feed(number, piece))
        offset = self._cutter.file_starts.get(number, self._cutter.chars)
        self.files[number] = replace(entry, chars=chars, offset=offset)

    def _planned(self, cut: Cut) -> PlannedSegment:
        spans = tuple(
            Span(
                path=self.files[stretch.file].path,
                start=stretch.start - cut.start,
                length=stretch.length,
                line=stretch.line,
            )
            for stretch in cut.stretches
        )
        return PlannedSegment(
            name=spans[0].path if spans else "",
            overlap=cut.overlap,
            core=cut.core,
            spans=spans,
            carried=cut.carried,
            carried_line=cut.carried_line,
            open_end=cut.open,
        )
