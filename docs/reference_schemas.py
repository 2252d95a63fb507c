"""The tables and documents that a sweep writes, with the meaning of every column; from the schemas in the code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields

import pyarrow as pa
from reference_tables import table

from ctxstream_dagster.extraction import store
from ctxstream_dagster.extraction.records import Record, SegmentResult
from ctxstream_dagster.orchestration.declaration import attributes
from ctxstream_dagster.planning.manifest import CoverageProof, Segment
from ctxstream_dagster.planning.plan_tables import FILES_SCHEMA, SEGMENTS_SCHEMA, SKIPPED_SCHEMA
from ctxstream_dagster.planning.planned import PlannedSegment, SourceFile
from ctxstream_dagster.planning.skipped import Skipped
from ctxstream_dagster.planning.units import Span, Unit
from ctxstream_dagster.reduction.records import RECORDS_SCHEMA, SEGMENT_SCHEMA
from ctxstream_dagster.reduction.tally import TALLY_SCHEMA

_TALLY = {
    "key": "What is counted; a declared label that never occurs is there with 0.",
    "value": "Sum of the values of its records, exact.",
    "records": "How many records the sum is made of.",
}
_RECORDS = {
    **attributes(Record),
    "segment": "Key of the segment that the record was read in.",
    "offset": "Start of its unit in the packed text, in characters.",
}
_SEGMENTS = {
    **attributes(PlannedSegment),
    **attributes(Segment),
    "byte_offset": "Where the window starts in `packed.txt`, in bytes.",
    "byte_length": "Bytes of the window in `packed.txt`.",
    "spans": "Which file each stretch of the core comes from.",
    "units": "Its units, where the planner knows them (symbols); null: the records that the delimiter separates.",
}
_REPLIES = {
    "request_sha256": "Hash of all that decides the reply: model digest, settings, messages, forced form.",
    "reply": "Exactly what the model returned; only whole, decodable replies are kept.",
    "prompt_tokens": "As the server reported; null when it did not.",
    "output_tokens": "As the server reported; null when it did not.",
    "created": "When it was stored, UTC.",
}


def schemas() -> str:
    """Return one section a file; raises `LookupError` for a column without a meaning."""
    sections = (
        ("`tally.parquet`", "The last good tally, ascending by value, then by key.", TALLY_SCHEMA, _TALLY),
        (
            "`records.parquet`",
            "Every counted record behind that tally, once, in corpus order.",
            RECORDS_SCHEMA,
            _RECORDS,
        ),
        (
            "`extraction/<version>/<segment key>.parquet`",
            "One segment's records, offsets from the segment's start. The rest of what is known of the segment is JSON "
            "in the schema's metadata, under `ctxstream`.",
            SEGMENT_SCHEMA,
            attributes(Record),
        ),
        ("`plans/<id>/segments.parquet`", "The plan: one row a segment.", SEGMENTS_SCHEMA, _SEGMENTS),
        (
            "`plans/<id>/files.parquet`",
            "What the packed text is made of.",
            FILES_SCHEMA,
            attributes(SourceFile),
        ),
        ("`plans/<id>/skipped.parquet`", "What was left out, and why.", SKIPPED_SCHEMA, attributes(Skipped)),
    )
    parts: list[str] = []
    for name, purpose, schema, meanings in sections:
        parts.append(f"## {name}\n\n{purpose}\n\n{_columns(schema, meanings)}")
        if schema is SEGMENT_SCHEMA:
            rest = [field.name for field in fields(SegmentResult) if field.name != "records"]
            parts.append(f"In the metadata:\n\n{_fields(rest, attributes(SegmentResult))}")
        if schema is SEGMENTS_SCHEMA:
            parts.append(f"A span:\n\n{_columns(_rows('spans'), attributes(Span))}")
            parts.append(f"A unit:\n\n{_columns(_rows('units'), attributes(Unit))}")
    parts.append(
        "## `plans/<id>/plan.json`\n\n`format` (the version of this layout), `options` (see "
        "[planning](sweep-options.md#planning)), `totals` (segments, files, skipped, bytes, packed_bytes) and `proof`:"
        f"\n\n{_fields([field.name for field in fields(CoverageProof)], attributes(CoverageProof))}"
    )
    columns = re.findall(r"^ {4}(\w+) ", store._SCHEMA, re.MULTILINE)
    parts.append(f"## `replies.sqlite`\n\nOne table, `replies`, shared by all sweeps:\n\n{_fields(columns, _REPLIES)}")
    return "\n".join(parts)


def _columns(schema: pa.Schema, meanings: Mapping[str, str]) -> str:
    rows = [(f"`{column.name}`", _type(column.type), _meaning(column.name, meanings)) for column in schema]
    return table(("column", "type", "meaning"), rows)


def _rows(column: str) -> pa.Schema:
    return pa.schema(list(SEGMENTS_SCHEMA.field(column).type.value_type))


def _fields(names: Sequence[str], meanings: Mapping[str, str]) -> str:
    return table(("field", "meaning"), [(f"`{name}`", _meaning(name, meanings)) for name in names])


def _meaning(name: str, meanings: Mapping[str, str]) -> str:
    if name not in meanings:
        raise LookupError(f"Nothing explains {name!r}: write it into the docstring, or into docs/reference_schemas.py.")
    return meanings[name]


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return "list of struct"
    return "`bool`" if pa.types.is_boolean(kind) else f"`{kind}`"
