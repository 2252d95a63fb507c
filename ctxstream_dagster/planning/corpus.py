"""The packed corpus: every file decoded into one snapshot, so that a sweep reads what was planned and nothing later."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from upath import UPath

from ctxstream_dagster.errors import CorpusError, StorageError
from ctxstream_dagster.planning.discover import Source, discover
from ctxstream_dagster.planning.manifest import Manifest, ManifestOptions
from ctxstream_dagster.planning.plan_store import PlanWriter, read_plan
from ctxstream_dagster.planning.planned import SegmentSource, SourceFile, StoredPlan, StoredSegment
from ctxstream_dagster.planning.skipped import Skipped
from ctxstream_dagster.planning.text_plan import TextPlan
from ctxstream_dagster.planning.units import SegmentText, record_units

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
                    if not stored.is_text(data, delim=self.options.record_delim):
                        raise StorageError(
                            f"{packed.name} was changed from outside: {stored.segment.key} is not the text that was "
                            "planned. Plan the corpus again."
                        )
                    yield _segment_text(data.decode("utf-8"), stored, delim=self.options.record_delim)
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(
                f"Could not read {self.directory / 'packed.txt'}: {error}. Plan the corpus again."
            ) from error


def pack(
    paths: Sequence[str | Path], *, directory: Path | UPath, options: ManifestOptions | None = None
) -> PackedCorpus:
    """Decode, pack and plan the files, globs and directories of `paths` into `directory`, whole or not at all.

    Files come in argument order, a glob's sorted, each once. The packed text is their text joined; where one does not
    end with the delimiter and another follows, the delimiter is added. A plan that stood in `directory` is replaced.
    Raises `CorpusError` for what `discover` refuses and for a corpus without a character, `StorageError`.
    """
    options = options or ManifestOptions()
    found = discover(paths)
    files: list[SourceFile] = []
    skipped = list(found.skipped)
    chars = cut_records = 0
    with PlanWriter(directory, delim=options.record_delim) as writer:
        for source in _segment_sources(found.sources, options):
            for planned in source:
                writer.add(planned)
            files += (replace(file, offset=file.offset + chars) for file in source.files)
            skipped += source.skipped
            chars += source.chars
            cut_records += source.cut_records
        if not chars:
            raise CorpusError(_nothing_to_read(files, skipped))
        plan = writer.finish(options=options, files=files, skipped=skipped, chars=chars, cut_records=cut_records)
    return _corpus(directory, plan)


def _segment_sources(sources: Sequence[Source], options: ManifestOptions) -> Iterator[SegmentSource]:
    """Yield who plans what: neighbouring files together, each directory as a codebase of its own."""
    for is_directory, group in itertools.groupby(sources, key=lambda source: source.is_directory):
        neighbours = list(group)
        if not is_directory:
            yield TextPlan(neighbours, options)
            continue
        # Parsers and the graph library load only where there is code to read.
        from ctxstream_dagster.planning.codebase import scan_for_plan

        for source in neighbours:
            # Alone, a codebase's paths are relative to it; beside others they say which one they are of.
            yield scan_for_plan(source.path, options, prefix="" if len(sources) == 1 else f"{source.name.rstrip('/')}/")


def _corpus(directory: Path | UPath, plan: StoredPlan) -> PackedCorpus:
    return PackedCorpus(
        directory=directory,
        manifest=plan.manifest,
        options=plan.options,
        files=plan.files,
        skipped=plan.skipped,
        stored={stored.segment.key: stored for stored in plan.stored},
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
    return f"The corpus is empty: {shown or 'no file found'}. Name at least one file with text in it."
