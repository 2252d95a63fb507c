"""Plans a codebase: files packed after what they include, cut between files and symbols, where edits leave the cuts.

Where a segment ends is chosen by the hash of a path or a symbol's name among the last places that fit, as
content-defined chunking does with bytes: sizes decide only which names stand for choice. So an edit re-cuts the
segment it falls in and, seldom, a few after it, until a choice comes out the same again. One file in 24, a landmark,
is taken from further back, so that this happens soon.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxstream_dagster.planning.codebase_text import CodebaseReader, FileText
from ctxstream_dagster.planning.codegraph.atoms import Atom, file_atoms
from ctxstream_dagster.planning.codegraph.order import FileOrder, order_files
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.values import CodeGraph
from ctxstream_dagster.planning.keys import KeyMaker
from ctxstream_dagster.planning.manifest import CoverageProof, Manifest, Segment, check_tiling
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.planning.planned import PlannedSegment, SourceFile
from ctxstream_dagster.planning.skipped import Skipped
from ctxstream_dagster.planning.symbol_units import SymbolUnits
from ctxstream_dagster.planning.tokens import estimate_upper
from ctxstream_dagster.planning.units import Span, Unit
from ctxstream_dagster.storage import cache_home

_LANDMARK, _FILE, _SYMBOL, _LINE = range(4)
_LEAST_FILL = {_LANDMARK: 0.66, _FILE: 0.83, _SYMBOL: 0.88, _LINE: 0.88}
"""How full a segment must be to end in front of a landmark, a file, a symbol, or a line of what had to be cut.

The lower, the more names stand for choice, the sooner cuts are where they were after an edit, and the emptier segments
are. Chosen on 15 code bases: with these the segments of each are filled to .85 or more on average; file cuts from .80
and landmarks from .60 left two below. Of 200 simulated edits on eight of them, nine in ten re-cut one segment (two in
two of them, four in one), as before.
"""

_FILES_PER_LANDMARK = 24
"""Rarer, and cuts drift longer after an edit; more often, and segments stay emptier (one file in 3: .80)."""

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
        window = _Window(self._options)
        for number in self.order.files:
            file = self._reader.read(number)
            if not file.text:
                self._note(file, at=self.chars)
            for atom in window.atoms(file):
                self.cut_records += atom.cuts
                window.push(_Piece(file, atom, window.tokens(file.text[atom.start : atom.end])))
                while window.is_overfull:
                    yield self._segment(window.pop_segment())
        if window.pieces:
            yield self._segment(window.pieces)

    def _segment(self, pieces: Sequence[_Piece]) -> PlannedSegment:
        parts: list[str] = []
        spans: list[Span] = []
        units: list[Unit] = []
        length = 0
        for file, start, end in _stretches(pieces):
            header = _header(file, start)
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


@dataclass(frozen=True, slots=True)
class _Piece:
    """An atom of a file, and the tokens it may cost."""

    file: FileText
    atom: Atom
    tokens: int

    @property
    def choice(self) -> tuple[int, bytes]:
        """How good a place for a cut its start is, the smaller the better: by kind of place, then by name."""
        is_file = self.atom.start == 0
        name = f"{self.file.path}\0{'' if is_file else self.atom.label}"
        mark = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        if is_file:
            return (_FILE if int.from_bytes(mark, "big") % _FILES_PER_LANDMARK else _LANDMARK), mark
        return (_LINE if self.atom.splits else _SYMBOL), mark


class _Window:
    """The pieces that wait to become the next segment, with what it costs to take each number of them."""

    def __init__(self, options: ManifestOptions) -> None:
        self._most_chars = options.segment_chars
        self._most_tokens = options.max_tokens
        slack = options.boundary_slack
        self._least_fill = (
            _LEAST_FILL if slack is None else dict.fromkeys(_LEAST_FILL, 1 - slack / options.segment_chars)
        )
        self._costs: list[tuple[int, int]] = []
        self.pieces: list[_Piece] = []

    @property
    def is_overfull(self) -> bool:
        """Whether the last piece does not fit any more."""
        return len(self.pieces) > 1 and self._fill(len(self.pieces)) > 1

    def atoms(self, file: FileText) -> Iterator[Atom]:
        """Yield a file's atoms, each of which fits into a segment of its own."""
        headers = file.header + file.continued
        spare_chars = len(file.continued) + 1
        spare_tokens = self.tokens(headers) + 2

        def fits(text: str) -> bool:
            if len(text) + spare_chars > self._most_chars:
                return False
            return self._most_tokens is None or self.tokens(text) + spare_tokens <= self._most_tokens

        longest_chars = int(self._most_chars * (1 - self._least_fill[_SYMBOL]))
        return file_atoms(file.text, file.symbols, fits=fits, longest_chars=longest_chars)

    def tokens(self, text: str) -> int:
        """Return the tokens a text may cost, 0 where no token limit is set."""
        return 0 if self._most_tokens is None else estimate_upper(text)

    def push(self, piece: _Piece) -> None:
        """Add a piece behind the others."""
        chars, tokens = self._costs[-1] if self._costs else (0, 0)
        if not self.pieces or self.pieces[-1].file is not piece.file:
            header = _header(piece.file, piece.atom.start)
            chars += len(header)
            tokens += self.tokens(header)
        chars += piece.atom.end - piece.atom.start
        if piece.atom.end == len(piece.file.text):
            chars += len(piece.file.missing_end)
        self.pieces.append(piece)
        # A token may span the border of two pieces and cost one more on each side of it.
        self._costs.append((chars, tokens + piece.tokens + 1))

    def pop_segment(self) -> list[_Piece]:
        """Take the pieces of the next segment out of the window; the last one always stays."""
        last = len(self.pieces) - 1
        cut, best = last, None
        for count in range(last, 0, -1):
            fill = self._fill(count)
            if fill < self._least_fill[_LANDMARK]:
                break
            choice = self.pieces[count].choice
            if fill >= self._least_fill[choice[0]] and (best is None or choice < best):
                cut, best = count, choice
        taken, left = self.pieces[:cut], self.pieces[cut:]
        self.pieces, self._costs = [], []
        for piece in left:
            self.push(piece)
        return taken

    def _fill(self, count: int) -> float:
        chars, tokens = self._costs[count - 1]
        fill = chars / self._most_chars
        return fill if self._most_tokens is None else max(fill, tokens / self._most_tokens)


def _header(file: FileText, start: int) -> str:
    if start == 0:
        return file.header
    # In the middle of a line a header would be read as part of it.
    return file.continued if file.text[start - 1] == "\n" else ""


def _stretches(pieces: Sequence[_Piece]) -> Iterator[tuple[FileText, int, int]]:
    """Yield (file, start, end) for each run of one file's pieces."""
    start = 0
    for position, piece in enumerate(pieces):
        if position + 1 == len(pieces) or pieces[position + 1].file is not piece.file:
            yield piece.file, pieces[start].atom.start, piece.atom.end
            start = position + 1
