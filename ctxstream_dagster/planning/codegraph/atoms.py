"""A file as the pieces that no cut goes through: symbols that fit, the text between, lines where nothing else does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ctxstream_dagster.planning.codegraph.values import SymbolNode

_SCOPES = frozenset({"module", "namespace"})
"""Symbols that only give names a home; one often spans its whole file, so they are opened even when they fit."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A stretch of a file's text, in characters.

    Attributes:
        start, end: where it lies; it starts and ends at a line's start, unless one line is too long.
        label: what a boundary in front of it is recognised by from plan to plan: the symbol's name, or the first line.
        splits: True when it starts inside a symbol or a line that had to be cut.
        cuts: True for the first piece of such a symbol or line.
    """

    start: int
    end: int
    label: str
    splits: bool = False
    cuts: bool = False


def file_atoms(
    text: str, symbols: Sequence[SymbolNode], *, fits: Callable[[str], bool], longest_chars: int
) -> Iterator[Atom]:
    """Yield the atoms that tile `text`. What `fits` refuses is opened at the symbols inside, then cut at line ends.

    A text of up to `longest_chars` characters without a symbol stays whole where it fits; a longer one may be cut at
    its blank lines, and a paragraph that is longer still at any line.
    """
    return _File(text, symbols, fits=fits, longest_chars=longest_chars).atoms()


class _File:
    def __init__(
        self, text: str, symbols: Sequence[SymbolNode], *, fits: Callable[[str], bool], longest_chars: int
    ) -> None:
        self._text = text
        self._fits = fits
        self._longest_chars = longest_chars
        self._children: dict[int, list[SymbolNode]] = defaultdict(list)
        for symbol in symbols:
            self._children[symbol.parent].append(symbol)

    def atoms(self) -> Iterator[Atom]:
        """Yield the atoms of the whole file."""
        if self._text:
            yield from self._inside(0, len(self._text), -1)

    def _inside(self, start: int, end: int, parent: int) -> Iterator[Atom]:
        at = start
        for first, last, members in self._groups(start, end, parent):
            yield from self._between(at, first)
            yield from self._symbol(first, last, members)
            at = last
        yield from self._between(at, end)

    def _groups(self, start: int, end: int, parent: int) -> Iterator[tuple[int, int, list[SymbolNode]]]:
        """Yield the symbols below `parent` as whole lines, those that share a line together."""
        members: list[SymbolNode] = []
        first = last = start
        for symbol in self._children.get(parent, ()):
            begins = max(self._text.rfind("\n", 0, symbol.offset) + 1, start)
            newline = self._text.find("\n", max(symbol.offset, symbol.offset + symbol.length - 1))
            ends = end if newline < 0 else min(newline + 1, end)
            if members and begins < last:
                members.append(symbol)
                last = max(last, ends)
                continue
            if members:
                yield first, last, members
            members, first, last = [symbol], begins, max(begins, ends)
        if members:
            yield first, last, members

    def _symbol(self, start: int, end: int, members: Sequence[SymbolNode]) -> Iterator[Atom]:
        symbol = members[0]
        is_opened = len(members) == 1 and symbol.id in self._children
        if self._fits(self._text[start:end]) and not (is_opened and symbol.kind in _SCOPES):
            yield Atom(start, end, symbol.qualname)
        elif is_opened:
            yield from self._inside(start, end, symbol.id)
        else:
            yield from self._by_lines(start, end, symbol.qualname, is_symbol=True)

    def _between(self, start: int, end: int) -> Iterator[Atom]:
        if start >= end:
            return
        if end - start <= self._longest_chars and self._fits(self._text[start:end]):
            yield Atom(start, end, self._first_line(start, end))
            return
        at = start
        while at < end:
            blank = self._text.find("\n\n", at, end)
            stop = end
            if blank >= 0:
                stop = blank + 2
                while stop < end and self._text[stop] == "\n":
                    stop += 1
            if stop - at <= self._longest_chars and self._fits(self._text[at:stop]):
                yield Atom(at, stop, self._first_line(at, stop))
            else:
                yield from self._by_lines(at, stop, "", is_symbol=False)
            at = stop

    def _by_lines(self, start: int, end: int, label: str, *, is_symbol: bool) -> Iterator[Atom]:
        """Yield the lines of a stretch that does not fit, each an atom; one that does not fit itself in halves."""
        at = start
        while at < end:
            newline = self._text.find("\n", at, end)
            stop = end if newline < 0 else newline + 1
            mark = f"{label}\0{self._first_line(at, stop)}"
            if self._fits(self._text[at:stop]):
                yield Atom(at, stop, mark, splits=is_symbol and at > start, cuts=is_symbol and at == start)
            else:
                yield from self._halves(at, stop, mark, splits=is_symbol and at > start, cuts=True)
            at = stop

    def _halves(self, start: int, end: int, label: str, *, splits: bool, cuts: bool) -> Iterator[Atom]:
        if end - start > 1 and not self._fits(self._text[start:end]):
            middle = (start + end) // 2
            yield from self._halves(start, middle, label, splits=splits, cuts=cuts)
            yield from self._halves(middle, end, label, splits=True, cuts=False)
        else:
            yield Atom(start, end, label, splits=splits, cuts=cuts)

    def _first_line(self, start: int, end: int) -> str:
        newline = self._text.find("\n", start, end)
        return self._text[start : end if newline < 0 else newline].strip()
