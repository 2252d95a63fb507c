"""Reads a reply as records: every line becomes a record or a rejected line with a typed reason, never a silent zero."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from ctxstream_dagster.errors import OutputLimit
from ctxstream_dagster.extraction.cleaning import bare, check_sane, reply_lines
from ctxstream_dagster.extraction.labels import decode_labels
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.records import Record, RejectedLine, RejectReason
from ctxstream_dagster.extraction.render import CANARY, NONE, instruction_lines
from ctxstream_dagster.extraction.values import numbers_in, read_value
from ctxstream_dagster.extraction.windows import Window
from ctxstream_dagster.planning.units import Unit

# A header that repeats the form of the lines is no record and no fault either.
_FORM_WORDS = frozenset(("key", "keys", "count", "counts", "value", "unit", "number", "line", "label", "record"))
_UNIT_NAME = re.compile(r"[\[(#]?\s*(\d{1,12})\s*[\]).:|]?")
_BULLET = re.compile(r"\A\s*[-*•]\s+(?=\S)")
_LONGEST_LINE = 2_000
_SHOWN = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What one reply says.

    Attributes:
        records: in the order of the reply.
        rejected: lines (units, in `labels`) that are no records, with their reasons.
        canary: whether the reply starts with the canary; None when none was asked for.
    """

    records: tuple[Record, ...]
    rejected: tuple[RejectedLine, ...] = ()
    canary: bool | None = None

    @property
    def rejected_share(self) -> float:
        """Rejected lines over all lines, 0.0 for a reply without any."""
        lines = len(self.records) + len(self.rejected)
        return len(self.rejected) / lines if lines else 0.0


def parse_records(raw: str) -> tuple[Record, ...]:
    """Return the records of `<key>\\t<count>` lines, without positions; other lines are left out.

    The specification's function, for a reply at hand. A sweep uses `decode`, which also keeps what it rejects.
    """
    lines = reply_lines(raw)
    read = {line: _count_line(line) for line in dict.fromkeys(lines)}
    found = (read[line] for line in lines)
    return tuple(Record(key=pair[0], value=pair[1]) for pair in found if isinstance(pair, tuple))


def decode(reply: str, window: Window, question: Question) -> Decoded:
    """Read a complete reply to the prompt of `window`.

    Takes linear time and raises nothing else, whatever the reply holds.

    Raises:
        OutputLimit: the reply is empty, or holds thinking alone.
        BadReply: the reply repeats itself.
    """
    if question.mode == "labels":
        records, rejected = decode_labels(reply, window, question)
        return Decoded(records=records, rejected=rejected)
    lines = reply_lines(reply)
    check_sane(lines)
    canary = None
    if question.canary:
        canary = bool(lines) and lines[0].strip() == CANARY
        lines = lines[1:] if canary else lines
    if not lines:
        raise OutputLimit(f"The reply is empty; a window without records is answered by {NONE}.", kind="empty")
    echoes = instruction_lines(question)
    facts = [line for line in lines if not _is_none(line) and line.strip() not in echoes and not _is_form(line)]
    nones = [line for line in lines if _is_none(line)]
    if not facts and not nones:
        raise OutputLimit(f"The reply only repeats the instructions: {lines[0][:60]!r}.", kind="echo")
    read = _read_counts if question.mode == "counts" else _read_units
    records, rejected = read(facts, window, question)
    if records:
        rejected += [_reject(line, "none-beside-records") for line in nones]
    return Decoded(records=_with_occurrences(records), rejected=tuple(rejected), canary=canary)


def _read_counts(lines: Sequence[str], window: Window, question: Question) -> tuple[list[Record], list[RejectedLine]]:
    first = window.units[0]
    paths = {unit.path for unit in window.units}
    # A count is of the text shown: the pieces of a record that had to be cut are counted each, at its own place.
    start = max(first.offset, len(window.segment.overlap))
    place = Record(key="", offset=start, path=first.path if len(paths) == 1 else "", line=first.line)
    declared = _declared(question)
    records: list[Record] = []
    rejected: list[RejectedLine] = []
    for line in lines:
        found = _count_line(line)
        if not isinstance(found, tuple):
            rejected.append(_reject(line, found))
            continue
        key = _known_key(found[0], declared, question)
        if key is None:
            rejected.append(_reject(line, "unknown-label"))
        else:
            records.append(replace(place, key=key, value=found[1]))
    return records, rejected


def _read_units(lines: Sequence[str], window: Window, question: Question) -> tuple[list[Record], list[RejectedLine]]:
    units = {unit.number: unit for unit in window.units}
    given: Counter[int] = Counter()
    stands = _Standing(units, question)
    declared = _declared(question)
    records: list[Record] = []
    rejected: list[RejectedLine] = []
    for line in lines:
        found = _unit_line(line, units, declared, question)
        if not isinstance(found, Record):
            rejected.append(found)
            continue
        given[found.unit] += 1
        if question.max_records_per_unit is not None and given[found.unit] > question.max_records_per_unit:
            rejected.append(_reject(line, "unit-twice", unit=found.unit))
            continue
        if question.grounding == "verbatim" and not stands.once_more(found):
            rejected.append(_reject(line, "not-in-unit", unit=found.unit))
            continue
        records.append(found)
    return records, rejected


class _Standing:
    """How often a key may still be reported of a unit: as often as it stands in the unit's text."""

    def __init__(self, units: Mapping[int, Unit], question: Question) -> None:
        self._texts = {number: question.same_key(unit.text) for number, unit in units.items()}
        self._left: dict[tuple[int, str], int] = {}
        self._question = question

    def once_more(self, record: Record) -> bool:
        at = (record.unit, record.key)
        if at not in self._left:
            self._left[at] = self._texts[record.unit].count(self._question.same_key(record.key))
        self._left[at] -= 1
        return self._left[at] >= 0


def _count_line(line: str) -> tuple[str, Decimal] | RejectReason:
    if len(line) > _LONGEST_LINE:
        return "prose"
    fields = _fields(line)
    if len(fields) == 1:
        return "no-tab"
    if not fields[0]:
        return "empty-key"
    filled = [field for field in fields if field]
    if len(filled) < 2:
        return "bad-value"
    if len(filled) > 2:
        return "extra-tab"
    value = read_value(filled[1], count=True)
    return value if isinstance(value, str) else (filled[0], value)


def _unit_line(
    line: str, units: Mapping[int, Unit], declared: Mapping[str, str], question: Question
) -> Record | RejectedLine:
    if len(line) > _LONGEST_LINE:
        return _reject(line, "prose")
    fields = _fields(line)
    if len(fields) == 1:
        return _reject(line, "no-tab")
    named = _UNIT_NAME.fullmatch(fields[0])
    unit = units.get(int(named.group(1))) if named else None
    if unit is None:
        return _reject(line, "unknown-unit")
    if not fields[1]:
        return _reject(line, "empty-key", unit=unit.number)
    while not fields[-1]:
        fields.pop()
    if len(fields) > (3 if question.values else 2):
        return _reject(line, "extra-tab", unit=unit.number)
    key = _known_key(fields[1], declared, question)
    if key is None:
        return _reject(line, "unknown-label", unit=unit.number)
    value: Decimal | RejectReason = Decimal(1)
    if len(fields) == 3:
        value = read_value(fields[2], count=False)
        if question.grounding == "verbatim" and not isinstance(value, str) and value not in numbers_in(unit.text):
            value = "not-in-unit"
    if isinstance(value, str):
        return _reject(line, value, unit=unit.number)
    return Record(key=key, value=value, unit=unit.number, offset=unit.offset, path=unit.path, line=unit.line)


def _fields(line: str) -> list[str]:
    return [bare(field) for field in _BULLET.sub("", line, count=1).split("\t")]


def _declared(question: Question) -> Mapping[str, str]:
    return {question.same_key(label): label for label in question.labels}


def _known_key(key: str, declared: Mapping[str, str], question: Question) -> str | None:
    same = question.same_key(key)
    return declared.get(same) if declared else same


def _with_occurrences(records: Sequence[Record]) -> tuple[Record, ...]:
    seen: Counter[tuple[int, int, str]] = Counter()
    numbered: list[Record] = []
    for record in records:
        identity = (record.unit, record.offset, record.key)
        numbered.append(replace(record, occurrence=seen[identity]) if seen[identity] else record)
        seen[identity] += 1
    return tuple(numbered)


def _is_none(line: str) -> bool:
    return bare(line).rstrip(".!").casefold() == NONE.casefold()


def _is_form(line: str) -> bool:
    if len(line) > 80:
        return False
    words = {bare(field).strip("<>[]{}").casefold() for field in re.split(r"[\t|,;]", line)}
    return len(words) > 1 and words <= _FORM_WORDS


def _reject(line: str, reason: RejectReason, *, unit: int = 0) -> RejectedLine:
    return RejectedLine(text=line[:_SHOWN], reason=reason, unit=unit)
