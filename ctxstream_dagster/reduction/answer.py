"""The answer, chosen explicitly and built by code after the sweep; never improvised by a model."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from ctxstream_dagster.reduction.coverage import Coverage, counted
from ctxstream_dagster.reduction.tally import Tally


class Answer(Enum):
    """What to say of a tally."""

    LEAST = "least"
    MOST = "most"
    TOTAL = "total"
    LIST = "list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """An answer with what it rests on.

    Attributes:
        how: the kind of answer.
        text: one line for a person, beginning with the label given to `construct`.
        keys: the keys answered, more than one when they tie; all keys for LIST, none for TOTAL.
        value: their value, or the total.
        margin: distance to the next different value for LEAST and MOST; None when there is none.
        certain: False when failed segments, rejected lines or cut records could change the answer.
        caveat: why it is not certain; empty when it is.
    """

    how: Answer
    text: str
    keys: tuple[str, ...]
    value: Decimal
    margin: Decimal | None = None
    certain: bool = True
    caveat: str = ""

    def __str__(self) -> str:
        return self.text


def construct(
    tally: Tally,
    how: Answer | str,
    *,
    label: str = "Answer",
    coverage: Coverage | None = None,
    one_per_unit: bool = False,
) -> Statement:
    """Build the answer from a tally.

    Args:
        tally: the sums.
        how: LEAST, MOST, TOTAL or LIST, or its name in lower case.
        label: what the line begins with.
        coverage: when given, the answer says whether what was not read could overturn it.
        one_per_unit: True when every unit gives exactly one record of value 1 (`labels`), which bounds the unread mass
            by the number of rejected units; otherwise any gap makes the answer uncertain.

    Raises:
        ValueError: `how` is no answer.
    """
    kind = Answer(how)
    if kind is Answer.TOTAL:
        keys, value, margin = (), tally.total, None
    elif kind is Answer.LIST:
        keys, value, margin = tuple(key for key, _ in tally.sorted), tally.total, None
    else:
        keys, value, margin = _extreme(tally, kind)
    # One more record breaks a tie, however far away the next value is.
    caveat = _caveat(margin if len(keys) == 1 else None, coverage=coverage, one_per_unit=one_per_unit)
    return Statement(
        how=kind,
        text=f"{label}: {_words(tally, kind, keys=keys, value=value, margin=margin)}",
        keys=keys,
        value=value,
        margin=margin,
        certain=not caveat,
        caveat=caveat,
    )


def number(value: Decimal) -> str:
    """Print an exact value without a needless exponent or trailing zeros."""
    return f"{value:,f}"


def _extreme(tally: Tally, how: Answer) -> tuple[tuple[str, ...], Decimal, Decimal | None]:
    if not tally.sorted:
        return (), Decimal(0), None
    value = tally.sorted[0 if how is Answer.LEAST else -1][1]
    others = [other for _, other in tally.sorted if other != value]
    margin = min(abs(other - value) for other in others) if others else None
    return tuple(key for key, other in tally.sorted if other == value), value, margin


def _words(tally: Tally, how: Answer, *, keys: tuple[str, ...], value: Decimal, margin: Decimal | None) -> str:
    if how is Answer.TOTAL:
        return number(value)
    if not tally.sorted:
        return "no records"
    if how is Answer.LIST:
        return ", ".join(f"{key} {number(count)}" for key, count in tally.sorted)
    tie = f" (tie of {len(keys)} at {number(value)}" if len(keys) > 1 else f" ({number(value)}"
    lead = f"; {number(margin)} {'below' if how is Answer.LEAST else 'above'} the next)" if margin is not None else ")"
    return ", ".join(keys) + tie + lead


def _caveat(margin: Decimal | None, *, coverage: Coverage | None, one_per_unit: bool) -> str:
    if coverage is None:
        return ""
    if coverage.failed:
        verb = "is" if len(coverage.failed) == 1 else "are"
        return f"{len(coverage.failed)} of {coverage.segments} segments {verb} not counted and could change the answer"
    # A rejected unit would have added one; a label read off a record's beginning may also stand for the wrong key.
    unsure = coverage.rejected + 2 * coverage.cut_records
    if not unsure or (one_per_unit and margin is not None and unsure < margin):
        return ""
    if coverage.cut_records:
        return (
            f"{counted(coverage.cut_records, 'record')} longer than a segment, read in pieces, could change the answer"
        )
    return f"{counted(coverage.rejected, 'rejected line')} could change the answer"
