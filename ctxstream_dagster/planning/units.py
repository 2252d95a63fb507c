"""Units: the records inside one segment, each with a position that leads back to a line of the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxstream_dagster.planning.manifest import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of a segment's core that comes from one file.

    Attributes:
        path: the file, relative to the corpus root (as given, for single files), with forward slashes.
        start: where the stretch starts, in characters from the segment's start.
        length: characters in the stretch. What no span covers (a file's header, an added delimiter) is no source text.
        line: line of the file at `start`, from 1.
    """

    path: str
    start: int
    length: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One record of the corpus: a line, what the delimiter separates, or a symbol.

    A blank record (nothing but white space) is covered but is no unit: it holds nothing to label.

    Attributes:
        number: position among the segment's own units, from 1; how a reply names it.
        offset: where the record starts, in characters from the segment's start; when the record began in an earlier
            segment this points there, before the core, and is negative unless the overlap shows the start.
            Segment offset + unit offset is the record's identity in the packed text.
        text: the unit's text as the model sees it, without the delimiter (nor the CR of a CRLF).
        path: source file.
        line: first line of the unit in the file, from 1.
        name: qualified name of a symbol, empty for lines.
        head: False for the rest of a record that began in an earlier segment: shown, but its label was
            asked for where the record starts.
    """

    number: int
    offset: int
    text: str
    path: str
    line: int
    name: str = ""
    head: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentText:
    """A segment with everything extraction needs: its text, its source spans and its units.

    Attributes:
        segment: the plan's entry.
        overlap: the leading context that belongs to the segment before.
        core: the text this segment owns.
        spans: which file each stretch of the core comes from, in order.
        units: the core's records, in order.
    """

    segment: Segment
    overlap: str
    core: str
    spans: tuple[Span, ...]
    units: tuple[Unit, ...]


def record_units(
    core: str,
    *,
    segment: Segment,
    spans: Sequence[Span],
    delim: str,
    carried_line: int = 1,
    open_end: bool = False,
) -> tuple[Unit, ...]:
    """Split a segment's core into units: every non-blank record that starts in it, and the rest of a cut one.

    `carried_line` is the line at which the record that `segment.carried` speaks of starts; `open_end` says that the
    core's last record goes on in the next segment. Such a record is a unit even where this part of it is blank.
    """
    units: list[Unit] = []
    for span in spans:
        inside = span.start - segment.overlap_prefix
        text = core[inside : inside + span.length]
        carried = segment.carried if inside == 0 else 0
        goes_on = open_end and inside + span.length == len(core)
        line = span.line
        for start, record, ended in _records(text, delim=delim):
            rest = carried and start == 0
            shown = record.removesuffix("\r") if ended and delim == "\n" else record
            if shown.strip() or (goes_on and not ended and not rest):
                units.append(
                    Unit(
                        number=len(units) + 1,
                        offset=segment.overlap_prefix - carried if rest else span.start + start,
                        text=shown,
                        path=span.path,
                        line=carried_line if rest else line,
                        head=not rest,
                    )
                )
            line += 1 if delim == "\n" else text.count("\n", start, start + len(record) + len(delim))
    return tuple(units)


def _records(text: str, *, delim: str) -> Iterator[tuple[int, str, bool]]:
    start = 0
    parts = text.split(delim)
    for record in parts[:-1]:
        yield start, record, True
        start += len(record) + len(delim)
    if parts[-1]:
        yield start, parts[-1], False
