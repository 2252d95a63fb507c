"""Records of many segments as one Arrow table, each counted once.

A segment's own results are relative to its start, so that an unchanged segment keeps its results when text before it
changes. Here they are placed in the corpus as it is planned now, and de-duplicated by identity: the absolute offset of
the record's unit, its key, and its occurrence among that unit's records of the same key.
"""

# pyarrow's methods take untyped keyword arguments.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ctxstream_dagster.errors import StorageError
from ctxstream_dagster.extraction.records import Record, RejectedLine, Reply, SegmentResult
from ctxstream_dagster.planning.units import SegmentText

VALUE_TYPE = pa.decimal128(38, 9)

SEGMENT_SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("value", VALUE_TYPE, nullable=False),
        pa.field("unit", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("occurrence", pa.int32(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One segment's extraction file: a row per record, offsets from the segment's start."""

RECORDS_SCHEMA = pa.schema(
    [
        pa.field("segment", pa.string(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("occurrence", pa.int32(), nullable=False),
        pa.field("value", VALUE_TYPE, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""A sweep's records: a row per counted record, offset of its unit in the packed text, source file and line from 1."""

IDENTITY = ("offset", "key", "occurrence")
_METADATA_KEY = b"ctxstream"


def result_to_table(result: SegmentResult) -> pa.Table:
    """Return a result as a table of `SEGMENT_SCHEMA`; all but the records is JSON in the schema's metadata."""
    columns = [[getattr(record, name) for record in result.records] for name in SEGMENT_SCHEMA.names]
    rest = {field.name: getattr(result, field.name) for field in fields(result) if field.name != "records"}
    rest["rejected"] = [asdict(line) for line in result.rejected]
    rest["replies"] = [asdict(reply) for reply in result.replies]
    rest["attempts"] = dict(result.attempts)
    metadata = {_METADATA_KEY: json.dumps(rest, ensure_ascii=False).encode("utf-8", "surrogatepass")}
    return pa.table(
        dict(zip(SEGMENT_SCHEMA.names, columns, strict=True)), schema=SEGMENT_SCHEMA.with_metadata(metadata)
    )


def table_to_result(table: pa.Table) -> SegmentResult:
    """Return the result that `result_to_table` stored; raises `StorageError` for any other table."""
    metadata = (table.schema.metadata or {}).get(_METADATA_KEY)
    if metadata is None:
        raise StorageError("This Parquet file is no extraction file. Delete it and run its segment again.")
    try:
        rest: dict[str, Any] = json.loads(metadata.decode("utf-8", "surrogatepass"))
        rest["rejected"] = tuple(RejectedLine(**line) for line in rest["rejected"])
        rest["replies"] = tuple(Reply(**reply) for reply in rest["replies"])
        return SegmentResult(**rest, records=tuple(Record(**row) for row in table.to_pylist()))
    except (ValueError, LookupError, TypeError) as error:
        raise StorageError(f"This file is of another version, or damaged ({error}). Run its segment again.") from error


def place(result: SegmentResult, text: SegmentText) -> SegmentResult:
    """Return `result` with every record at its unit's present file, line and offset in the present plan.

    A record of `counts`, which names no unit, keeps its offset and takes the line of the unit there; where its window
    spanned several files it stays without a path.
    """
    units = {unit.number: unit for unit in text.units}
    starting = {max(unit.offset, text.segment.overlap_prefix): unit for unit in text.units}

    def placed(record: Record) -> Record:
        if record.unit:
            unit = units[record.unit]
            return replace(record, offset=unit.offset, path=unit.path, line=unit.line)
        unit = starting[record.offset]
        return replace(record, path=unit.path if record.path else "", line=unit.line)

    records = tuple(map(placed, result.records))
    return replace(result, index=text.segment.index, offset=text.segment.offset, records=records)


def records_table(results: Iterable[SegmentResult]) -> pa.Table:
    """Return the records of all successful results as one table of `RECORDS_SCHEMA`, with duplicates."""
    batches = [_absolute(result) for result in results if result.ok and result.records]
    return pa.Table.from_batches(batches, schema=RECORDS_SCHEMA)


def deduplicate(table: pa.Table) -> pa.Table:
    """Keep one record of every identity, in corpus order; equal lines at different offsets stay apart.

    Where two segments disagree on the value of one identity, the smaller is kept, so that arrival order never matters.
    """
    ordered = table.sort_by([(name, "ascending") for name in (*IDENTITY, "value", "segment")])
    numbered = ordered.append_column("row", pa.array(range(len(ordered)), pa.int64()))
    first = numbered.group_by(list(IDENTITY), use_threads=False).aggregate([("row", "min")])
    return ordered.take(first["row_min"].combine_chunks().sort())


def _absolute(result: SegmentResult) -> pa.RecordBatch:
    rows = result.records
    return pa.RecordBatch.from_arrays(
        [
            pa.array([result.key] * len(rows), pa.string()),
            pc.add(pa.array([row.offset for row in rows], pa.int64()), result.offset),
            pa.array([row.key for row in rows], pa.string()),
            pa.array([row.occurrence for row in rows], pa.int32()),
            pa.array([Decimal(row.value) for row in rows], VALUE_TYPE),
            pa.array([row.path for row in rows], pa.string()),
            pa.array([row.line for row in rows], pa.int64()),
        ],
        schema=RECORDS_SCHEMA,
    )
