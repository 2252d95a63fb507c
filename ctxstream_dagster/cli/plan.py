"""``ctxstream plan``: what a sweep would read and where it would cut, without a model."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxstream_dagster.planning.corpus import PackedCorpus, pack
from ctxstream_dagster.planning.options import Boundary, ManifestOptions, written_delimiter
from ctxstream_dagster.reduction.coverage import counted

_DEFAULTS = ManifestOptions()
_SHOWN_SEGMENTS = 20
_SHOWN_SKIPPED = 20


def plan_command(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, globs, or a directory of code.")],
    *,
    segment_chars: Annotated[
        int, typer.Option(help="Most characters of a segment, overlap included.")
    ] = _DEFAULTS.segment_chars,
    overlap_chars: Annotated[
        int, typer.Option(help="Most characters of the segment before shown in front, in whole records.")
    ] = _DEFAULTS.overlap_chars,
    boundary: Annotated[
        Boundary, typer.Option(help="Where a segment ends: at the last record, or so that plans survive edits.")
    ] = "nearest",
    boundary_slack: Annotated[
        int | None, typer.Option(help="How far before the limit a record's end is preferred; else 4000 or a quarter.")
    ] = None,
    record_delim: Annotated[
        str, typer.Option(help=r"What ends a record; \n, \r, \t, \\, \xNN and \uNNNN may be written so.")
    ] = r"\n",
    max_tokens: Annotated[
        int | None, typer.Option(help="Most tokens of a segment by the upper estimate; left out, no limit.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
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
    if as_json:
        typer.echo(json.dumps(plan_json(corpus), ensure_ascii=False, indent=2))
    else:
        _print(corpus)


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


def _print(corpus: PackedCorpus) -> None:
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
    console.print(_summary(corpus), style="bold", markup=False)


def _summary(corpus: PackedCorpus) -> str:
    proof = corpus.manifest.proof
    parts = [
        counted(len(corpus.files), "file"),
        counted(proof.chars, "character"),
        f"{counted(len(corpus.manifest), 'segment')} that tile them exactly",
    ]
    if proof.cut_records:
        parts.append(f"{counted(proof.cut_records, 'record')} longer than a segment and cut")
    if corpus.skipped:
        parts.append(f"{len(corpus.skipped):,} skipped")
    return ", ".join(parts) + "."
