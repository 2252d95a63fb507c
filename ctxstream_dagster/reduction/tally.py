"""Sums per key: exact, and independent of the order in which segments arrive. The step models get wrong."""

# pyarrow's methods take untyped keyword arguments.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.reduction.records import VALUE_TYPE, deduplicate, records_table

TALLY_SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("value", VALUE_TYPE, nullable=False),
        pa.field("records", pa.int64(), nullable=False),
    ]
)
"""A sweep's tally: a row per key, ascending by value, then by key."""

_EXACT = Context(prec=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Value summed per key.

    Attributes:
        sorted: (key, value) pairs, ascending by value, then by key.
        total: sum of all values.
        parsed_records: records counted, each identity once.
        unparsed_lines: reply lines that were rejected.
        duplicates: records dropped because another segment had already given the same identity.
    """

    sorted: tuple[tuple[str, Decimal], ...]
    total: Decimal
    parsed_records: int
    unparsed_lines: int = 0
    duplicates: int = 0


def tally(results: Iterable[SegmentResult], *, labels: Sequence[str] = ()) -> Tally:
    """Sum values per key over the successful results; declared `labels` that never occur count as zero."""
    kept = list(results)
    records = records_table(kept)
    unique = deduplicate(records)
    return tally_of(
        tally_table(unique, labels=labels),
        unparsed_lines=sum(len(result.rejected) for result in kept if result.ok),
        duplicates=len(records) - len(unique),
    )


def tally_of(table: pa.Table, *, unparsed_lines: int, duplicates: int) -> Tally:
    """Return a table of `TALLY_SCHEMA` as values."""
    rows: list[dict[str, Any]] = table.to_pylist()
    pairs = tuple((str(row["key"]), _plain(row["value"])) for row in rows)
    return Tally(
        sorted=pairs,
        total=exact_sum(value for _, value in pairs),
        parsed_records=sum(int(row["records"]) for row in rows),
        unparsed_lines=unparsed_lines,
        duplicates=duplicates,
    )


def tally_table(unique: pa.Table, *, labels: Sequence[str] = ()) -> pa.Table:
    """Return the tally of already de-duplicated records as a table of `TALLY_SCHEMA`."""
    sums = unique.group_by("key", use_threads=False).aggregate([("value", "sum"), ("key", "count")])
    seen = sums["key"].to_pylist()
    unseen = [label for label in dict.fromkeys(labels) if label not in set(seen)]
    columns = [
        [*seen, *unseen],
        [*sums["value_sum"].to_pylist(), *(Decimal(0) for _ in unseen)],
        [*sums["key_count"].to_pylist(), *(0 for _ in unseen)],
    ]
    table = pa.table(dict(zip(TALLY_SCHEMA.names, columns, strict=True)), schema=TALLY_SCHEMA)
    return table.sort_by([("value", "ascending"), ("key", "ascending")])


def exact_sum(values: Iterable[Decimal]) -> Decimal:
    """Add without rounding: the default context would round past 28 digits."""
    total = Decimal(0)
    for value in values:
        total = _EXACT.add(total, value)
    return total


def _plain(value: Decimal) -> Decimal:
    """Drop the scale that the column type adds, so that 3.000000000 prints as 3."""
    return Decimal(int(value)) if value == int(value) else value.normalize(_EXACT)
