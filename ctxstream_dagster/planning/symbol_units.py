"""Symbols as units: every function, and every type without functions of its own, once, with its file and line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ctxstream_dagster.planning.codebase_text import FileText
from ctxstream_dagster.planning.codegraph.tables import CLASS_KINDS
from ctxstream_dagster.planning.codegraph.values import SymbolNode
from ctxstream_dagster.planning.units import Unit

_OPENED = CLASS_KINDS | {"module", "namespace"}


def unit_symbols(symbols: Sequence[SymbolNode]) -> list[SymbolNode]:
    """Return the symbols that are units: types and scopes that hold symbols are opened, all else is a unit whole.

    So no two units overlap: a method counts once and not again in its class, a function once with those inside it.
    """
    parents = {symbol.parent for symbol in symbols}
    opened: set[int] = {-1}
    units: list[SymbolNode] = []
    for symbol in symbols:
        if symbol.parent not in opened:
            continue
        if symbol.id in parents and symbol.kind in _OPENED:
            opened.add(symbol.id)
        else:
            units.append(symbol)
    return units


class SymbolUnits:
    """Finds the units of each segment, in packed order; remembers where a symbol that is cut began."""

    def __init__(self) -> None:
        self._file: FileText | None = None
        self._symbols: list[SymbolNode] = []
        self._began: dict[int, int] = {}

    def of_stretch(
        self, file: FileText, start: int, end: int, *, at: int, segment_offset: int, number: int
    ) -> Iterator[Unit]:
        """Yield the units in the characters `start` to `end` of a file, which stand at `at` in their segment.

        `segment_offset` is the segment's place in the packed text, `number` the first unit's.
        """
        if file is not self._file:
            self._file, self._symbols, self._began = file, unit_symbols(file.symbols), {}
        # Units do not overlap, so of those that begin before the stretch only the last can reach into it.
        first = max(bisect_left(self._symbols, start, key=lambda symbol: symbol.offset) - 1, 0)
        for symbol in self._symbols[first:]:
            begins, ends = symbol.offset, symbol.offset + symbol.length
            if begins >= end:
                return
            if ends <= start:
                continue
            head = begins >= start
            place = at + begins - start
            if head:
                self._began[symbol.id] = segment_offset + place
            yield Unit(
                number=number,
                offset=place if head else self._began[symbol.id] - segment_offset,
                text=file.text[max(begins, start) : min(ends, end)],
                path=file.path,
                line=symbol.line,
                name=symbol.qualname,
                head=head,
            )
            number += 1
