"""Units: the records inside one segment, each with a position that leads back to a line of the source."""

from __future__ import annotations

from dataclasses import dataclass

from ctxstream_dagster.planning.manifest import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of a segment's core that comes from one file.

    Attributes:
        path: the file, relative to the corpus root (as given, for single files), with forward slashes.
        start: where the stretch starts, in characters from the segment's start.
        length: characters in the stretch. What no span covers (a file's header) is no source text.
        line: line of the file at `start`, from 1.
    """

    path: str
    start: int
    length: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One record of the corpus: a line, what the delimiter separates, or a symbol.

    Attributes:
        number: position among the segment's own units, from 1; how a reply names it.
        offset: where the record starts, in characters from the segment's start; negative when the record began
            in an earlier segment. Segment offset + unit offset is the record's identity in the packed text.
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
