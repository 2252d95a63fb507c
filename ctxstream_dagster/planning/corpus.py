"""The packed corpus: every file decoded into one snapshot, so that a sweep reads what was planned and nothing later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from upath import UPath

from ctxstream_dagster.errors import CorpusError, StorageError
from ctxstream_dagster.planning.cutter import Cut, Cutter
from ctxstream_dagster.planning.discover import Source, discover
from ctxstream_dagster.planning.manifest import Manifest, ManifestOptions
from ctxstream_dagster.planning.plan_store import (
    PlannedSegment,
    PlanWriter,
    SourceFile,
    StoredPlan,
    StoredSegment,
    read_plan,
)
from ctxstream_dagster.planning.skipped import Skipped
from ctxstream_dagster.planning.textio import Unreadable, open_text
from ctxstream_dagster.planning.units import SegmentText, Span, record_units

__all__ = ["PackedCorpus", "Skipped", "SourceFile", "pack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedCorpus:
    """A planned corpus on disk; immutable once written.

    The directory holds ``packed.txt`` (UTF-8), ``segments.parquet``, ``files.parquet``, ``skipped.parquet`` and
    ``plan.json`` (options, proof, totals); schemas in docs/schemas.md.

    Attributes:
        directory: where it lies.
        manifest: segments and proof.
        options: how it was cut.
        files: what it was made of, in packed order.
        skipped: what is not part of it, and why.
        stored: by key, in plan order, where each segment lies and what its units are made from.
    """

    directory: Path | UPath
    manifest: Manifest
    options: ManifestOptions
    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]
    stored: Mapping[str, StoredSegment] = field(repr=False, compare=False)

    @classmethod
    def open(cls, directory: Path | UPath) -> PackedCorpus:
        """Read a corpus that `pack` wrote; raises `StorageError` when it is not whole."""
        return _corpus(directory, read_plan(directory))

    def read(self, key: str) -> SegmentText:
        """Return one segment with its text and units; raises `CorpusError` for an unknown key, `StorageError`."""
        stored = self.stored.get(key)
        if stored is None:
            raise CorpusError(
                f"The plan in {self.directory} has no segment {key!r}. Plan the corpus again, or list its keys with "
                "`ctxstream plan`."
            )
        return next(self._texts([stored]))

    def __iter__(self) -> Iterator[SegmentText]:
        """Yield every segment in plan order without holding the packed text in memory; raises `StorageError`."""
        return self._texts(self.stored.values())

    def _texts(self, wanted: Iterable[StoredSegment]) -> Iterator[SegmentText]:
        try:
            with (self.directory / "packed.txt").open("rb") as packed:
                for stored in wanted:
                    packed.seek(stored.byte_offset)
                    data = packed.read(stored.byte_length)
                    yield _segment_text(data.decode("utf-8"), stored, delim=self.options.record_delim)
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(
                f"Could not read {self.directory / 'packed.txt'}: {error}. Plan the corpus again."
            ) from error


def pack(
    paths: Sequence[str | Path], *, directory: Path | UPath, options: ManifestOptions | None = None
) -> PackedCorpus:
    """Decode, pack and plan the files, globs (and later directories) of `paths` into `directory`, whole or not at all.

    Files come in argument order, a glob's sorted, each once. The packed text is their text joined; where one does not
    end with the delimiter and another follows, the delimiter is added. A plan that stood in `directory` is replaced.
    Raises `CorpusError` for what `discover` refuses and for a corpus without a character, `StorageError`.
    """
    options = options or ManifestOptions()
    found = discover(paths)
    for source in found.sources:
        if source.is_directory:
            raise CorpusError(f"{source.name} is a directory: directories come through planning.codebase.")
    with PlanWriter(directory) as writer:
        text_plan = _TextPlan(found.sources, options)
        for planned in text_plan:
            writer.add(planned)
        skipped = (*found.skipped, *text_plan.skipped)
        if not writer.chars:
            raise CorpusError(_nothing_to_read(text_plan.files, skipped))
        plan = writer.finish(
            options=options,
            files=text_plan.files,
            skipped=skipped,
            chars=text_plan.cutter.chars,
            cut_records=text_plan.cutter.cut_records,
        )
    return _corpus(directory, plan)


def _corpus(directory: Path | UPath, plan: StoredPlan) -> PackedCorpus:
    return PackedCorpus(
        directory=directory,
        manifest=plan.manifest,
        options=plan.options,
        files=plan.files,
        skipped=plan.skipped,
        stored={stored.segment.key: stored for stored in plan.stored},
    )


class _TextPlan:
    """Plans text files one after the other; `files` and `skipped` are complete when the iteration is."""

    def __init__(self, sources: Sequence[Source], options: ManifestOptions) -> None:
        self._sources = sources
        self.cutter = Cutter(options)
        self.files: list[SourceFile] = []
        self.skipped: list[Skipped] = []

    def __iter__(self) -> Iterator[PlannedSegment]:
        for source in self._sources:
            text = open_text(source.path)
            if isinstance(text, Unreadable):
                self.skipped.append(Skipped(path=source.name, reason=text.reason, detail=text.detail))
                continue
            number, chars = len(self.files), 0
            # The name is needed by cuts that come while the file is still being read; its length is known after.
            self.files.append(SourceFile(path=source.name, bytes=text.bytes, chars=0, offset=0, encoding=text.encoding))
            with text:
                for piece in text.pieces():
                    chars += len(piece)
                    yield from map(self._planned, self.cutter.feed(number, piece))
            self.files[number] = SourceFile(
                path=source.name,
                bytes=text.bytes,
                chars=chars,
                offset=self.cutter.file_starts.get(number, self.cutter.chars),
                encoding=text.encoding,
            )
        yield from map(self._planned, self.cutter.finish())

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


def _segment_text(text: str, stored: StoredSegment, *, delim: str) -> SegmentText:
    overlap = text[: stored.segment.overlap_prefix]
    core = text[stored.segment.overlap_prefix :]
    units = stored.units
    if units is None:
        units = record_units(
            core,
            segment=stored.segment,
            spans=stored.spans,
            delim=delim,
            carried_line=stored.carried_line,
            open_end=stored.open_end,
        )
    return SegmentText(segment=stored.segment, overlap=overlap, core=core, spans=stored.spans, units=units)


def _nothing_to_read(files: Sequence[SourceFile], skipped: Sequence[Skipped]) -> str:
    reasons = [f"{entry.path} ({entry.reason}{': ' + entry.detail if entry.detail else ''})" for entry in skipped]
    parts = [f"{file.path} (empty)" for file in files] + reasons
    shown = "; ".join(parts[:5]) + (f"; and {len(parts) - 5} more" if len(parts) > 5 else "")
    return f"The corpus is empty: {shown}. Name at least one file with text in it."
