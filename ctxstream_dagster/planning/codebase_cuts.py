"""Where the segments of a code base end: between files and symbols, chosen by name, so that edits leave the cuts.

Where a segment ends is chosen by the hash of a path or a symbol's name among the last places that fit, as
content-defined chunking does with bytes: sizes decide only which names stand for choice. So an edit re-cuts the
segment it falls in and, seldom, a few after it, until a choice comes out the same again. One file in 24, a landmark,
is taken from further back, so that this happens soon.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxstream_dagster.planning.codebase_text import FileText
from ctxstream_dagster.planning.codegraph.atoms import Atom, file_atoms
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.planning.tokens import estimate_upper

_LANDMARK, _FILE, _SYMBOL, _LINE = range(4)
_LEAST_FILL = {_LANDMARK: 0.66, _FILE: 0.83, _SYMBOL: 0.88, _LINE: 0.88}
"""How full a segment must be to end in front of a landmark, a file, a symbol, or a line of what had to be cut.

The lower, the more names stand for choice, the sooner cuts are where they were after an edit, and the emptier segments
are. Chosen on 15 code bases: with these the segments of each are filled to .85 or more on average, with file cuts from
.80 and landmarks from .60 two were below. How many segments an edit re-cuts is in docs/codebases.md.
"""

_FILES_PER_LANDMARK = 24
"""Rarer, and cuts drift longer after an edit; more often, and segments stay emptier (one file in 3: .80)."""


@dataclass(frozen=True, slots=True)
class Piece:
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


class Window:
    """The pieces that wait to become the next segment, with what it costs to take each number of them."""

    def __init__(self, options: ManifestOptions) -> None:
        self._most_chars = options.segment_chars
        self._most_tokens = options.max_tokens
        slack = options.boundary_slack
        self._least_fill = (
            _LEAST_FILL if slack is None else dict.fromkeys(_LEAST_FILL, 1 - slack / options.segment_chars)
        )
        self._costs: list[tuple[int, int]] = []
        self.pieces: list[Piece] = []

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

    def push(self, piece: Piece) -> None:
        """Add a piece behind the others."""
        chars, tokens = self._costs[-1] if self._costs else (0, 0)
        if not self.pieces or self.pieces[-1].file is not piece.file:
            header = header_of(piece.file, piece.atom.start)
            chars += len(header)
            tokens += self.tokens(header)
        chars += piece.atom.end - piece.atom.start
        if piece.atom.end == len(piece.file.text):
            chars += len(piece.file.missing_end)
        self.pieces.append(piece)
        # A token may span the border of two pieces and cost one more on each side of it.
        self._costs.append((chars, tokens + piece.tokens + 1))

    def pop_segment(self) -> list[Piece]:
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


def header_of(file: FileText, start: int) -> str:
    """Return the line in front of what a segment holds of a file from the character `start` on."""
    if start == 0:
        return file.header
    # In the middle of a line a header would be read as part of it.
    return file.continued if file.text[start - 1] == "\n" else ""


def stretches_of(pieces: Sequence[Piece]) -> Iterator[tuple[FileText, int, int]]:
    """Yield (file, start, end) for each run of one file's pieces."""
    start = 0
    for position, piece in enumerate(pieces):
        if position + 1 == len(pieces) or pieces[position + 1].file is not piece.file:
            yield piece.file, pieces[start].atom.start, piece.atom.end
            start = position + 1
