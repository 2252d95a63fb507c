"""Cuts a segment into the windows that one call each answers: bookkeeping and attention have different sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.planning.tokens import estimate_upper
from ctxstream_dagster.planning.units import SegmentText, Unit

# What a unit costs beyond its text: its number and the gutter (about four tokens), and a line end.
_UNIT_TOKENS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The units one call is asked about.

    Attributes:
        segment: the segment the units belong to.
        units: what is asked, in order, never empty.
        context: text in front that belongs to the segment before; shown, never counted.
        depth: how often this window was split off a larger one.
    """

    segment: SegmentText
    units: tuple[Unit, ...]
    context: str = ""
    depth: int = 0

    @property
    def text(self) -> str:
        """The window's text as it stands in the corpus, delimiters included."""
        owned = self.segment.units
        last = self.units[-1].number
        origin = len(self.segment.overlap)
        start = max(self.units[0].offset - origin, 0)
        end = owned[last].offset - origin if last < len(owned) else len(self.segment.core)
        return self.segment.core[start:end]

    @property
    def chars(self) -> int:
        """Characters of the units' text."""
        return sum(len(unit.text) for unit in self.units)

    @property
    def place(self) -> str:
        """Where the window lies, for messages: file and lines."""
        first, last = self.units[0], self.units[-1]
        name = first.path or "the corpus"
        if last.path != first.path:
            return f"{name}:{first.line} to {last.path}:{last.line}"
        return f"{name}:{first.line}" if last.line == first.line else f"{name}:{first.line}-{last.line}"


def windows(segment: SegmentText, question: Question, *, budget_tokens: int | None = None) -> Iterator[Window]:
    """Yield the windows of a segment in order; together they ask every unit exactly once.

    In `labels` the rest of a record that began in an earlier segment is not asked: its label was asked where it starts.

    Args:
        segment: the segment with its units.
        question: decides how many units a window holds.
        budget_tokens: most tokens the units of a window may take by the upper estimate; None for no limit. A single
            unit beyond it still makes a window: whether it fits is the server's to say.
    """
    asked = [unit for unit in segment.units if unit.head or question.mode != "labels"]
    limit = question.window_units or len(asked)
    context = segment.overlap if question.mode != "labels" else ""
    budget = None if budget_tokens is None else budget_tokens - (estimate_upper(context) if context else 0)
    taken: list[Unit] = []
    tokens = 0
    for unit in asked:
        cost = 0 if budget is None or limit == 1 else estimate_upper(unit.text) + _UNIT_TOKENS
        if taken and (len(taken) >= limit or (budget is not None and tokens + cost > budget)):
            yield Window(segment=segment, units=tuple(taken), context=context)
            taken, tokens, context, budget = [], 0, "", budget_tokens
        taken.append(unit)
        tokens += cost
    if taken:
        yield Window(segment=segment, units=tuple(taken), context=context)


def split(window: Window) -> tuple[Window, Window]:
    """Halve a window between two units; raises `ValueError` when it holds a single one."""
    if len(window.units) < 2:
        raise ValueError("a window of one unit cannot be split")
    middle = len(window.units) // 2
    return (
        replace(window, units=window.units[:middle], depth=window.depth + 1),
        replace(window, units=window.units[middle:], context="", depth=window.depth + 1),
    )
