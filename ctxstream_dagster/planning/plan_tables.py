"""The plan's Parquet tables: their schemas (docs/schemas.md) and how a segment becomes a row and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pyarrow as pa

from ctxstream_dagster.planning.manifest import Segment
from ctxstream_dagster.planning.planned import StoredSegment
from ctxstream_dagster.planning.units import Span, Unit

SPAN_TYPE = pa.struct([("path", pa.string()), ("start", pa.int64()), ("length", pa.int64()), ("line", pa.int64())])
UNIT_TYPE = pa.struct(
    [
        ("number", pa.int64()),
        ("offset", pa.int64()),
        ("text", pa.string()),
        ("path", pa.string()),
        ("line", pa.int64()),
        ("name", pa.string()),
        ("head", pa.bool_()),
    ]
)
SEGMENTS_SCHEMA = pa.schema(
    [
        ("index", pa.int64()),
        ("key", pa.string()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("overlap_prefix", pa.int64()),
        ("carried", pa.int64()),
        ("byte_offset", pa.int64()),
        ("byte_length", pa.int64()),
        ("carried_line", pa.int64()),
        ("open_end", pa.bool_()),
        ("spans", pa.list_(SPAN_TYPE)),
        ("units", pa.list_(UNIT_TYPE)),
    ]
)
FILES_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("chars", pa.int64()),
        ("offset", pa.int64()),
        ("encoding", pa.string()),
    ]
)
SKIPPED_SCHEMA = pa.schema([("path", pa.string()), ("reason", pa.string()), ("detail", pa.string())])


def segment_row(stored: StoredSegment) -> dict[str, Any]:
    """Return one row of `SEGMENTS_SCHEMA`."""
    return {
        **asdict(stored.segment),
        "byte_offset": stored.byte_offset,
        "byte_length": stored.byte_length,
        "carried_line": stored.carried_line,
        "open_end": stored.open_end,
        "spans": [asdict(span) for span in stored.spans],
        "units": None if stored.units is None else [asdict(unit) for unit in stored.units],
    }


def stored_segment(row: dict[str, Any]) -> StoredSegment:
    """Return what `segment_row` made a row of."""
    spans = tuple(Span(**span) for span in row.pop("spans"))
    units = row.pop("units")
    rest = {name: row.pop(name) for name in ("byte_offset", "byte_length", "carried_line", "open_end")}
    return StoredSegment(
        segment=Segment(**row),
        spans=spans,
        units=None if units is None else tuple(Unit(**unit) for unit in units),
        **rest,
    )
