"""Where to cut: one pass over a stream of text that holds one window at a time, whatever the size of the corpus.

The cuts depend on the text and the options only, never on how the text arrives in pieces: a cut is decided when
everything it may depend on (one window and one delimiter beyond the last cut) is there.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ctxstream_dagster.planning.keys import division
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.planning.tokens import fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Source text inside a cut's core: `file` as given to `Cutter.feed`, start and length in packed characters."""

    file: int
    start: int
    length: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One window of the packed text.

    Attributes:
        start: where the window starts, overlap included, in packed characters.
        overlap, core: its text.
        carried: characters of the core's first record in front of the core; carried_line: the line it starts at.
        open: True when the core's last record goes on in the next cut.
        stretches: where the core comes from, in order.
    """

    start: int
    overlap: str
    core: str
    carried: int
    carried_line: int
    open: bool
    stretches: tuple[Stretch, ...]

    def division(self, *, delim: str) -> bytes:
        """Return what decides the units beside the text, for the segment's key."""
        return division(
            delim=delim,
            overlap_chars=len(self.overlap),
            carried=self.carried,
            open_end=self.open,
            stretches=((stretch.start - self.start, stretch.length) for stretch in self.stretches),
        )


@dataclass(slots=True)
class _Territory:
    """The part of the packed text that belongs to one file: its text, then maybe a delimiter that we added."""

    file: int
    start: int
    line: int
    text_end: int | None = None
    end: int | None = None


class Cutter:
    """Cuts text that arrives in pieces; `feed` and `finish` yield the cuts that became certain.

    A file's end is a record boundary. Where a file does not end with the delimiter and another follows, the
    delimiter is added. An overlap never reaches into another file nor behind the segment before.
    """

    def __init__(self, options: ManifestOptions) -> None:
        self._options = options
        self._delim = options.record_delim
        # Only a delimiter whose end is also its beginning ("\n\n", "abab") can be found at two overlapping places.
        self._bordered = any(self._delim.startswith(self._delim[n:]) for n in range(1, len(self._delim)))
        self._buffer = ""
        self._base = 0
        self._pending: list[str] = []
        self._total = 0
        self._tail = ""
        self._final = False
        self._core = 0
        self._before = 0
        self._before_is_record = True
        self._carried = 0
        self._carried_line = 1
        self._territories: deque[_Territory] = deque()
        self.file_starts: dict[int, int] = {}
        self.cut_records = 0

    @property
    def chars(self) -> int:
        """Characters of packed text so far, added delimiters included."""
        return self._total

    def feed(self, file: int, text: str) -> Iterator[Cut]:
        """Take the next piece of `file` (any number that tells files apart; a file's pieces come in a row)."""
        if not text:
            return
        if not self._territories or self._territories[-1].file != file:
            self._open_file(file)
        self._append(text)
        self._tail = (self._tail + text)[-len(self._delim) :]
        yield from self._certain_cuts()

    def finish(self) -> Iterator[Cut]:
        """Yield the remaining cuts; nothing may be fed afterwards."""
        self._final = True
        if self._territories:
            self._territories[-1].text_end = self._territories[-1].end = self._total
        yield from self._certain_cuts()

    def _open_file(self, file: int) -> None:
        if self._territories:
            last = self._territories[-1]
            last.text_end = self._total
            if self._tail != self._delim:
                self._append(self._delim)
            last.end = self._total
        self._tail = ""
        self._territories.append(_Territory(file=file, start=self._total, line=1))
        self.file_starts[file] = self._total

    def _append(self, text: str) -> None:
        self._pending.append(text)
        self._total += len(text)

    def _certain_cuts(self) -> Iterator[Cut]:
        horizon = self._options.segment_chars + len(self._delim) + 1
        if not self._final and self._total < self._core + horizon:
            return
        self._buffer = "".join([self._buffer, *self._pending]) if self._buffer else "".join(self._pending)
        self._pending.clear()
        while self._core < self._total and (self._final or self._total >= self._core + horizon):
            yield self._next_cut()
        keep = self._before - self._base
        self._buffer = self._buffer[keep:]
        self._base += keep

    def _next_cut(self) -> Cut:
        core = self._core
        while self._territories[0].end is not None and self._territories[0].end <= core:
            self._territories.popleft()
        start = self._overlap_start()
        limit = self._limit(start)
        end = self._boundary(limit)
        if end is None and start < core:
            bare_limit = self._limit(core)
            end = self._boundary(bare_limit)
            # The overlap gives way to a record that fits only without it, and to progress inside a long record.
            if end is not None or 2 * (limit - core) < bare_limit - core:
                start, limit = core, bare_limit
        is_open = False
        if end is None:
            end, is_open = self._inside_record(limit)
        cut = Cut(
            start=start,
            overlap=self._text(start, core),
            core=self._text(core, end),
            carried=self._carried,
            carried_line=self._carried_line if self._carried else self._territories[0].line,
            open=is_open,
            stretches=tuple(self._stretches(end)),
        )
        self._advance(cut, end)
        return cut

    def _advance(self, cut: Cut, end: int) -> None:
        self._before, self._before_is_record = self._core, not self._carried
        if cut.open:
            self.cut_records += not self._carried
            self._carried += end - self._core
            self._carried_line = cut.carried_line
        else:
            self._carried = 0
        self._core = end

    def _stretches(self, end: int) -> Iterator[Stretch]:
        for territory in self._territories:
            if territory.start >= end:
                break
            first = max(territory.start, self._core)
            last = end if territory.text_end is None else min(territory.text_end, end)
            if first < last:
                yield Stretch(file=territory.file, start=first, length=last - first, line=territory.line)
                territory.line += self._buffer.count("\n", first - self._base, last - self._base)

    def _limit(self, start: int) -> int:
        limit = min(start + self._options.segment_chars, self._total)
        if self._options.max_tokens is not None:
            fitting = fit(self._buffer, start - self._base, limit - self._base, max_tokens=self._options.max_tokens)
            limit = fitting + self._base
        # A single character is always taken, or a budget too small for it would never end.
        return max(limit, self._core + 1) if start == self._core else limit

    def _overlap_start(self) -> int:
        territory = self._territories[0]
        floor = max(self._before, territory.start, self._core - self._options.overlap_limit_chars)
        if floor >= self._core or floor == territory.start or (floor == self._before and self._before_is_record):
            return min(floor, self._core)
        if self._bordered:
            record = max(self._before, territory.start)
            for part in self._text(record, self._core).split(self._delim)[:-1]:
                record += len(part) + len(self._delim)
                if floor <= record < self._core:
                    return record
            return floor
        found = self._find(max(territory.start, self._before, floor - len(self._delim)), self._core)
        if found is not None and found + len(self._delim) < self._core:
            return found + len(self._delim)
        return floor

    def _boundary(self, limit: int) -> int | None:
        if self._final and limit >= self._total:
            return self._total
        if self._options.boundary == "stable":
            stable = self._stable_boundary(max(self._core + 1, limit - self._options.slack_chars), limit)
            if stable is not None:
                return stable
        return self._last_boundary(limit)

    def _last_boundary(self, limit: int) -> int | None:
        for territory in reversed(self._territories):
            if territory.start >= limit:
                continue
            if territory.end is not None and self._core < territory.end <= limit:
                return territory.end
            first = max(territory.start, self._core)
            last = limit if territory.text_end is None else min(limit, territory.text_end)
            boundary = self._last_delim_end(first, last)
            if boundary is not None:
                return boundary
            return territory.start if territory.start > self._core else None
        return None

    def _last_delim_end(self, first: int, last: int) -> int | None:
        if self._bordered:
            parts = self._text(first, last).split(self._delim)
            return None if len(parts) == 1 else last - len(parts[-1])
        found = self._buffer.rfind(self._delim, first - self._base, last - self._base)
        return None if found < 0 else found + len(self._delim) + self._base

    def _stable_boundary(self, zone: int, limit: int) -> int | None:
        best: tuple[bytes, int] | None = None
        for boundary, record in self._records_ending_in(zone, limit):
            mark = hashlib.blake2b(record.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            if best is None or mark <= best[0]:
                best = (mark, boundary)
        return None if best is None else best[1]

    def _records_ending_in(self, zone: int, limit: int) -> Iterator[tuple[int, str]]:
        for territory in self._territories:
            if territory.start >= limit:
                return
            if territory.end is not None and territory.end < zone:
                continue
            first = max(territory.start, self._core)
            last = limit if territory.text_end is None else min(limit, territory.text_end)
            if not self._bordered and zone - 1 > first:
                first = self._last_delim_end(first, min(zone - 1, last)) or first
            records = self._text(first, last).split(self._delim)
            for record in records[:-1]:
                first += len(record) + len(self._delim)
                if first >= zone:
                    yield first, record
            if territory.end is not None and max(zone, first + 1) <= territory.end <= limit:
                yield territory.end, records[-1]

    def _inside_record(self, limit: int) -> tuple[int, bool]:
        """Return where to cut a record that does not fit, and whether it goes on; a delimiter stays whole."""
        for territory in self._territories:
            if territory.text_end is not None and territory.end is not None:
                if territory.text_end < limit < territory.end:
                    return (territory.text_end, True) if territory.text_end > self._core else (territory.end, False)
                if territory.end <= limit:
                    continue
            size = len(self._delim)
            end = self._total if territory.text_end is None else territory.text_end
            found = self._find(max(self._core, territory.start, limit - size + 1), min(limit + size - 1, end))
            if found is not None and found < limit:
                return (found, True) if found > self._core else (found + size, False)
            break
        if self._delim == "\n" and limit - 1 > self._core and self._text(limit - 1, limit + 1) == "\r\n":
            limit -= 1
        return limit, True

    def _find(self, first: int, last: int) -> int | None:
        found = self._buffer.find(self._delim, first - self._base, last - self._base)
        return None if found < 0 else found + self._base

    def _text(self, first: int, last: int) -> str:
        return self._buffer[first - self._base : last - self._base]
