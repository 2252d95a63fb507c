"""From a planned corpus and its extractions to the answer: the whole reduction in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ctxstream_dagster.errors import StorageError
from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.planning.corpus import PackedCorpus
from ctxstream_dagster.reduction.answer import Answer, Statement, construct
from ctxstream_dagster.reduction.coverage import Coverage, FailedSegment, coverage
from ctxstream_dagster.reduction.records import deduplicate, place, records_table
from ctxstream_dagster.reduction.tally import Tally, tally_of, tally_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """Everything code concluded from one sweep.

    Attributes:
        records: de-duplicated records, `reduction.records.RECORDS_SCHEMA`.
        tally_table: `reduction.tally.TALLY_SCHEMA`.
        tally: the same as values.
        coverage: what it stands on.
        statement: the answer.
    """

    records: pa.Table
    tally_table: pa.Table
    tally: Tally
    coverage: Coverage
    statement: Statement


def reduce_sweep(
    corpus: PackedCorpus,
    results: Iterable[SegmentResult],
    *,
    how: Answer | str,
    labels: Sequence[str] = (),
    one_per_unit: bool = False,
) -> Reduction:
    """Place every result in the present plan, count each identity once, and build the answer.

    Results of segments that are no longer in the plan are ignored; segments without a result count as failed.
    """
    found = {result.key: result for result in results}
    placed = [
        place(found[text.segment.key], text) if found[text.segment.key].ok else found[text.segment.key]
        for text in corpus
        if text.segment.key in found
    ]
    records = records_table(placed)
    unique = deduplicate(records)
    table = tally_table(unique, labels=labels)
    covered = coverage(
        placed,
        keys=[segment.key for segment in corpus.manifest],
        files=len(corpus.files),
        files_skipped=len(corpus.skipped),
        cut_records=corpus.manifest.proof.cut_records,
    )
    sums = tally_of(table, unparsed_lines=covered.rejected, duplicates=len(records) - len(unique))
    return Reduction(
        records=unique,
        tally_table=table,
        tally=sums,
        coverage=covered,
        statement=construct(sums, how, coverage=covered, one_per_unit=one_per_unit),
    )


def reduction_json(reduction: Reduction) -> dict[str, Any]:
    """Return the reduction as `ctxstream ask --json` prints it and `answer.json` stores it."""
    covered = reduction.coverage
    return {
        "answer": str(reduction.statement),
        "certain": reduction.statement.certain,
        "caveat": reduction.statement.caveat,
        "how": reduction.statement.how.value,
        "keys": list(reduction.statement.keys),
        "value": json_number(reduction.statement.value),
        "margin": None if reduction.statement.margin is None else json_number(reduction.statement.margin),
        "tally": [{"key": key, "value": json_number(value)} for key, value in reduction.tally.sorted],
        "total": json_number(reduction.tally.total),
        "coverage": {
            "share": covered.share,
            "units": covered.units_seen,
            "files": covered.files,
            "files_skipped": covered.files_skipped,
            "truncated": covered.truncated,
            "cut_records": covered.cut_records,
            "duplicates": reduction.tally.duplicates,
            "failed": [{"key": item.key, "reason": item.reason} for item in covered.failed],
            "sentence": covered.sentence(),
        },
        "rejected": covered.rejected,
        "segments": {"ok": covered.segments_ok, "failed": len(covered.failed)},
    }


def stored_reduction(document: Mapping[str, Any], *, records: pa.Table, tally_table: pa.Table) -> Reduction:
    """Return the reduction whose tables and `reduction_json` were stored; raises `StorageError` for any other."""
    missing = {"answer", "certain", "how", "value", "margin", "tally", "coverage", "segments"} - set(document)
    if missing:
        raise StorageError(f"The stored answer lacks {', '.join(sorted(missing))}. Materialize the tally again.")
    covered, margin = document["coverage"], document["margin"]
    return Reduction(
        records=records,
        tally_table=tally_table,
        tally=Tally(
            sorted=tuple((row["key"], Decimal(str(row["value"]))) for row in document["tally"]),
            total=Decimal(str(document["total"])),
            parsed_records=len(records),
            unparsed_lines=document["rejected"],
            duplicates=covered["duplicates"],
        ),
        coverage=Coverage(
            segments=document["segments"]["ok"] + document["segments"]["failed"],
            failed=tuple(FailedSegment(**failed) for failed in covered["failed"]),
            units_seen=covered["units"],
            rejected=document["rejected"],
            truncated=covered["truncated"],
            files=covered["files"],
            files_skipped=covered["files_skipped"],
            cut_records=covered["cut_records"],
        ),
        statement=Statement(
            how=Answer(document["how"]),
            text=document["answer"],
            keys=tuple(document["keys"]),
            value=Decimal(str(document["value"])),
            margin=None if margin is None else Decimal(str(margin)),
            certain=document["certain"],
            caveat=document["caveat"],
        ),
    )


def json_number(value: Decimal) -> int | float | str:
    """Return a JSON value that keeps `value` exact: an integer, a float that round-trips, else its digits as text."""
    if value == int(value):
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)
