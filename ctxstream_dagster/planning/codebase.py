"""Plans a codebase: files packed after what they include, cut between files and symbols (`planning.codebase_cuts`)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxstream_dagster.planning.codebase_cuts import Piece, Window, header_of, stretches_of
from ctxstream_dagster.planning.codebase_text import CodebaseReader, FileText
from ctxstream_dagster.planning.codegraph.order import FileOrder, order_files
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.values import CodeGraph
from ctxstream_dagster.planning.keys import KeyMaker
from ctxstream_dagster.planning.manifest import CoverageProof, Manifest, Segment, check_tiling
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.planning.planned import PlannedSegment, SourceFile
from ctxstream_dagster.planning.skipped import Skipped
from ctxstream_dagster.planning.symbol_units import SymbolUnits
from ctxstream_dagster.planning.units import Span, Unit
from ctxstream_dagster.storage import cache_home

_MOST_WORKERS = 8
"""Reading and linking, in one process, take about a twelfth of a scan; more parsers would wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCodebase:
    """A code base packed in memory.

    Attributes:
        text: the packed text: each file under a line with its path.
        manifest: segments and proof; no segment has an overlap.
        spans: for each segment, which file each stretch of it comes from.
        units: for each segment, its symbols with ``unit="symbol"``, else None (its lines are its units).
        files: in packed order.
        order: that order, with the cycles of includes and the edges it had to break.
    """

    text: str
    manifest: Manifest
    spans: tuple[tuple[Span, ...], ...]
    units: tuple[tuple[Unit, ...] | None, ...]
    files: tuple[SourceFile, ...]
    order: FileOrder


def plan_codebase(graph: CodeGraph, options: ManifestOptions | None = None) -> PlannedCodebase:
    """Pack and cut a scanned code base in memory; `planning.corpus.pack` does the same on disk, one segment at a time.

    A file follows the files it includes wherever the include graph is acyclic; no symbol that fits is cut. Raises
    `CorpusError` when a file changed since the scan, `PlanError` if the segments do not tile the text.
    """
    options = options or ManifestOptions()
    plan = CodebasePlan(graph, options)
    keys = KeyMaker()
    planned = list(plan)
    segments: list[Segment] = []
    offset = 0
    for index, window in enumerate(planned):
        division = window.division(delim=options.record_delim)
        key = keys.key(window.name, window.core.encode("utf-8"), division=division)
        segments.append(Segment(index=index, offset=offset, length=len(window.core), key=key, carried=window.carried))
        offset += len(window.core)
    text = "".join(window.core for window in planned)
    proof = CoverageProof(
        chars=plan.chars,
        owned_chars=check_tiling(segments, chars=plan.chars),
        text_sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(),
        cut_records=plan.cut_records,
    )
    return PlannedCodebase(
        text=text,
        manifest=Manifest(segments=tuple(segments), proof=proof),
        spans=tuple(window.spans for window in planned),
        units=tuple(window.units for window in planned),
        files=tuple(plan.files),
        order=plan.order,
    )


def scan_for_plan(root: Path, options: ManifestOptions, *, prefix: str = "") -> CodebasePlan:
    """Scan a directory as `ctxstream` does everywhere, with its cache and on up to 8 cores, and return its plan.

    `prefix` goes in front of every path. Raises `CorpusError` for a directory that cannot be read.
    """
    workers = min(os.cpu_count() or 1, _MOST_WORKERS)
    scan = ScanOptions(references=False, workers=workers, cache_dir=cache_home())
    return CodebasePlan(scan_repo(root, scan), options, prefix=prefix)


class CodebasePlan:
    """The `SegmentSource` of one code base: iterate once, then read the rest. Holds one segment and one file at a time.

    Attributes:
        order: files in packed order, cycles of includes, and the edges that the order had to break.
        files: what was packed, in that order, offsets from the start of this source's own text.
        skipped: what was not, from the graph.
        chars: characters of packed text, headers included.
        cut_records: symbols and lines longer than a segment.
    """

    def __init__(self, graph: CodeGraph, options: ManifestOptions | None = None, *, prefix: str = "") -> None:
        self._options = options or ManifestOptions()
        self._reader = CodebaseReader(graph, prefix=prefix)
        self._units = SymbolUnits() if self._options.unit == "symbol" else None
        self.order: FileOrder = order_files(len(graph.files), graph.edges.includes)
        self.files: list[SourceFile] = []
        self.skipped: Sequence[Skipped] = [
            Skipped(path=prefix + entry.path, reason=entry.reason, detail=entry.detail) for entry in graph.skipped
        ]
        self.chars = 0
        self.cut_records = 0
        self._line: tuple[FileText | None, int, int] = (None, 0, 1)

    def __iter__(self) -> Iterator[PlannedSegment]:
        window = Window(self._options)
        for number in self.order.files:
            file = self._reader.read(number)
            if not file.text:
                self._note(file, at=self.chars)
            for atom in window.atoms(file):
                self.cut_records += atom.cuts
                window.push(Piece(file, atom, window.tokens(file.text[atom.start : atom.end])))
                while window.is_overfull:
                    yield self._segment(window.pop_segment())
        if window.pieces:
            yield self._segment(window.pieces)

    def _segment(self, pieces: Sequence[Piece]) -> PlannedSegment:
        parts: list[str] = []
        spans: list[Span] = []
        units: list[Unit] = []
        length = 0
        for file, start, end in stretches_of(pieces):
            header = header_of(file, start)
            at = length + len(header)
            if start == 0:
                self._note(file, at=self.chars + at)
            spans.append(Span(path=file.path, start=at, length=end - start, line=self._line_at(file, start)))
            if self._units is not None:
                units += self._units.of_stretch(
                    file, start, end, at=at, segment_offset=self.chars, number=len(units) + 1
                )
            text = file.text[start:end] + (file.missing_end if end == len(file.text) else "")
            parts += (header, text)
            length = at + len(text)
        first, last = pieces[0], pieces[-1]
        line_start = first.file.text.rfind("\n", 0, first.atom.start) + 1
        planned = PlannedSegment(
            name=first.file.path,
            overlap="",
            core="".join(parts),
            spans=tuple(spans),
            carried=first.atom.start - line_start,
            carried_line=spans[0].line,
            open_end=last.atom.end < len(last.file.text) and last.file.text[last.atom.end - 1] != "\n",
            units=tuple(units) if self._units is not None else None,
        )
        self.chars += length
        return planned

    def _line_at(self, file: FileText, offset: int) -> int:
        """Return the line of a character of a file, counting on from the last one asked for."""
        known, before, line = self._line
        if known is not file or offset < before:
            before, line = 0, 1
        line += file.text.count("\n", before, offset)
        self._line = (file, offset, line)
        return line

    def _note(self, file: FileText, *, at: int) -> None:
        node = file.node
        self.files.append(
            SourceFile(path=file.path, bytes=node.bytes, chars=node.chars, offset=at, encoding=node.encoding)
        )
