"""``ctxstream plan``: what a sweep would read and where it would cut, without a model."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxstream_dagster.cli.options import (
    PLANNING,
    BoundarySlack,
    Json,
    MaxTokens,
    OverlapChars,
    Paths,
    RecordDelim,
    SegmentBoundary,
    SegmentChars,
)
from ctxstream_dagster.planning.corpus import PackedCorpus, pack
from ctxstream_dagster.planning.line_ends import line_end_hint
from ctxstream_dagster.planning.options import ManifestOptions, written_delimiter
from ctxstream_dagster.reduction.coverage import counted

_SHOWN_SEGMENTS = 20
_SHOWN_SKIPPED = 20


def plan_command(
    paths: Paths,
    *,
    segment_chars: SegmentChars = PLANNING.segment_chars,
    overlap_chars: OverlapChars = PLANNING.overlap_chars,
    boundary: SegmentBoundary = PLANNING.boundary,
    boundary_slack: BoundarySlack = None,
    record_delim: RecordDelim = r"\n",
    max_tokens: MaxTokens = None,
    as_json: Json = False,
) -> None:
    """Show how a corpus would be cut, and what of it would be skipped. No model is called.

    ctxstream plan tickets.log "logs/**/*.log" --segment-chars 20000
    """
    options = ManifestOptions(
        segment_chars=segment_chars,
        overlap_chars=overlap_chars,
        boundary=boundary,
        boundary_slack=boundary_slack,
        record_delim=written_delimiter(record_delim),
        max_tokens=max_tokens,
    )
    with tempfile.TemporaryDirectory(prefix="ctxstream-") as directory:
        corpus = pack(paths, directory=Path(directory) / "plan", options=options)
    hint = line_end_hint(paths, delim=options.record_delim, way="--record-delim '\\r'")
    if as_json:
        document = {**plan_json(corpus), **({"hint": hint} if hint else {})}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        _print(corpus, hint=hint)


def plan_json(corpus: PackedCorpus) -> dict[str, object]:
    """Return the plan as the command line's JSON: offsets and lengths in characters of the packed text."""
    return {
        "corpus": {
            "bytes": sum(file.bytes for file in corpus.files),
            "chars": corpus.manifest.proof.chars,
            "files": len(corpus.files),
        },
        "segments": [
            {
                "index": segment.index,
                "key": segment.key,
                "offset": segment.offset,
                "length": segment.length,
                "overlap_prefix": segment.overlap_prefix,
            }
            for segment in corpus.manifest
        ],
        "skipped": [
            {"path": entry.path, "reason": entry.reason, **({"detail": entry.detail} if entry.detail else {})}
            for entry in corpus.skipped
        ],
    }


def _print(corpus: PackedCorpus, *, hint: str) -> None:
    console = Console(soft_wrap=True, highlight=False)
    table = Table("segment", "key", "from", "chars", "overlap", box=None, header_style="bold")
    for column in (0, 3, 4):
        table.columns[column].justify = "right"
    # Keys are for copying, and the end of a long path says more than its start.
    table.columns[1].no_wrap = True
    table.columns[2].overflow = "fold"
    for stored in list(corpus.stored.values())[:_SHOWN_SEGMENTS]:
        segment = stored.segment
        source = Text(f"{stored.spans[0].path}:{stored.spans[0].line}" if stored.spans else "")
        table.add_row(str(segment.index), segment.key, source, f"{segment.length:,}", f"{segment.overlap_prefix:,}")
    console.print(table)
    if len(corpus.manifest) > _SHOWN_SEGMENTS:
        console.print(f"… and {len(corpus.manifest) - _SHOWN_SEGMENTS:,} more; --json lists all.")
    for entry in corpus.skipped[:_SHOWN_SKIPPED]:
        console.print(
            f"skipped {entry.path}: {entry.reason}{f' ({entry.detail})' if entry.detail else ''}", markup=False
        )
    if len(corpus.skipped) > _SHOWN_SKIPPED:
        console.print(f"… and {len(corpus.skipped) - _SHOWN_SKIPPED:,} more skipped; --json lists all.")
    if hint:
        console.print(f"Hint: {hint}", markup=False)
    console.print(_summary(corpus), style="bold", markup=False)


def _summary(corpus: PackedCorpus) -> str:
    proof, segments = corpus.manifest.proof, len(corpus.manifest)
    parts = [
        counted(len(corpus.files), "file"),
        counted(proof.chars, "character"),
        f"{counted(segments, 'segment')} that {'tiles' if segments == 1 else 'tile'} them exactly",
    ]
    if proof.cut_records:
        parts.append(f"{counted(proof.cut_records, 'record')} longer than a segment and cut")
    if corpus.skipped:
        parts.append(f"{len(corpus.skipped):,} skipped")
    return ", ".join(parts) + "."
