"""What one segment's page tells: where the text is from, what was asked, what came back, and what it rests on.

Dagster adds no version tags to events an asset writes itself, so they are written here; with them every partition's
staleness is exact. Long values are cut and name the file that holds them whole: these rows live in Dagster's database.
"""

import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg
from upath import UPath

from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.planning.units import SegmentText
from ctxstream_dagster.report.escaping import markdown_text

DATA_VERSION = "dagster/data_version"
CODE_VERSION = "dagster/code_version"
_PREVIEW_CHARS = 240
# What a model writes within num_predict fits, so that the exact reply is on the page.
_REPLY_CHARS = 4_000
_TABLE_ROWS = 12
_KEY_CHARS = 120


def version_tags(data_version: str) -> dict[str, str]:
    """Return the tags of an event with a data version of its own."""
    return {DATA_VERSION: data_version, "dagster/data_version_is_user_provided": "true"}


def input_tags(upstream: dg.AssetKey, record: dg.EventLogRecord | None) -> dict[str, str]:
    """Return the tags that say which upstream event, of which version, an event was made from."""
    materialization = record.asset_materialization if record else None
    if record is None or materialization is None:
        return {}
    name = upstream.to_user_string()
    return {
        f"dagster/input_data_version/{name}": (materialization.tags or {}).get(DATA_VERSION, ""),
        f"dagster/input_event_pointer/{name}": str(record.storage_id),
    }


def latest_records(
    instance: dg.DagsterInstance, asset: dg.AssetKey, keys: list[str]
) -> Mapping[str, dg.EventLogRecord]:
    """Return the newest materialization of each of `keys`, in one query for each 500."""
    found: dict[str, dg.EventLogRecord] = {}
    for start in range(0, len(keys), 500):
        batch = keys[start : start + 500]
        cursor: str | None = None
        while True:
            page = instance.fetch_materializations(
                dg.AssetRecordsFilter(asset_key=asset, asset_partitions=batch), limit=1_000, cursor=cursor
            )
            for record in page.records:
                found.setdefault(record.partition_key or "", record)
            if not page.has_more:
                break
            cursor = page.cursor
    return found


def manifest_event(spec: SweepSpec, text: SegmentText, *, links: "SourceLinks") -> dg.AssetMaterialization:
    """Return the event that makes a planned segment known; its data version is the hash in its key."""
    segment = text.segment
    return dg.AssetMaterialization(
        spec.key("manifest"),
        partition=segment.key,
        metadata={
            "source": dg.MetadataValue.md(
                f"{source_lines(text, links=links)}: segment {segment.index}, {len(text.units)} units, "
                f"{segment.length:,} characters, {segment.overlap_prefix:,} of them context"
            ),
            "preview": dg.MetadataValue.md(_shown(text.core, limit=_PREVIEW_CHARS)),
        },
        tags=version_tags(segment.key.rpartition("~")[2]),
    )


def extraction_event(
    spec: SweepSpec,
    result: SegmentResult,
    text: SegmentText,
    *,
    version: str,
    num_ctx: int,
    file: Path | UPath,
    reused: bool,
    upstream: dg.EventLogRecord | None,
    links: "SourceLinks",
) -> dg.AssetMaterialization:
    """Return the event of one extracted segment.

    Args:
        spec: the sweep.
        result: what extraction found.
        text: the segment in the plan in force.
        version: `extraction_version` of question, options and model.
        num_ctx: the context asked for, in tokens.
        file: where the result is stored whole.
        reused: True when the stored result was taken and no call was made.
        upstream: the manifest's event of this segment.
        links: turns a file and line into a web address.
    """
    model = re.sub(r"[^A-Za-z0-9_-]+", "_", result.model) or "unknown"
    metadata: dict[str, Any] = {
        "source": dg.MetadataValue.md(source_lines(text, links=links)),
        "preview": dg.MetadataValue.md(_shown(text.core, limit=_PREVIEW_CHARS)),
        "question": dg.MetadataValue.md(_question(spec)),
        "reply": dg.MetadataValue.md(_shown(result.raw, limit=_REPLY_CHARS)),
        "records": dg.MetadataValue.md(_records_table(result)),
        "call": dg.MetadataValue.md(_call_table(result, num_ctx=num_ctx, file=file, reused=reused)),
        "dagster/row_count": len(result.records),
        "seconds": round(result.seconds, 3),
        f"ollama.{model}.prompt_tokens": result.prompt_tokens,
        f"ollama.{model}.output_tokens": result.output_tokens,
    }
    if result.rejected:
        metadata["rejected"] = len(result.rejected)
        metadata["rejected_lines"] = dg.MetadataValue.json([asdict(line) for line in result.rejected[:_TABLE_ROWS]])
    return dg.AssetMaterialization(
        spec.key("extraction"),
        partition=result.key,
        metadata=metadata,
        tags={
            **version_tags(result_version(result)),
            CODE_VERSION: version,
            **input_tags(spec.key("manifest"), upstream),
        },
    )


def result_version(result: SegmentResult) -> str:
    """Hash what a segment contributes to the tally: its records and rejected lines, not how long they took."""
    content = [
        [(row.unit, row.key, str(row.value), row.occurrence) for row in result.records],
        [asdict(line) for line in result.rejected],
    ]
    return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode("ascii")).hexdigest()[:16]


class SourceLinks:
    """Web addresses of source lines, for files of a repository whose `origin` is on a web host; none for others."""

    def __init__(self, spec: SweepSpec) -> None:
        root = spec.root
        # A codebase's paths are relative to its own directory.
        self._places = [root.resolve(), *(Path(path).resolve() for path in spec.corpus_paths() if Path(path).is_dir())]
        self._base = ""
        remote = _git(root, "remote", "get-url", "origin")
        commit = _git(root, "rev-parse", "HEAD")
        found = re.fullmatch(r"(?:https?://(?:[^@/]*@)?|(?:ssh://)?git@)([^/:]+)[/:](.+?)(?:\.git)?/?", remote)
        if found and commit:
            self._base = f"https://{found[1]}/{found[2]}/blob/{commit}"
        self._top = Path(_git(root, "rev-parse", "--show-toplevel") or root).resolve()

    def link(self, path: str, *, first: int, last: int) -> str:
        """Return ``path:first-last`` as Markdown, linked where the repository has a remote."""
        files = [(place / path).resolve() for place in self._places]
        file = next((file for file in files if file.is_file()), files[0])
        root = self._places[0]
        shown = file.relative_to(root).as_posix() if file.is_relative_to(root) else path
        words = f"{shown}:{first}-{last}"
        if not self._base or not file.is_relative_to(self._top):
            return f"`{words}`"
        return f"[{words}]({self._base}/{file.relative_to(self._top).as_posix()}#L{first}-L{last})"


def source_lines(text: SegmentText, *, links: SourceLinks) -> str:
    """Name the files and lines a segment owns, at most five files, as Markdown."""
    parts: list[str] = []
    for span in text.spans[:5]:
        start = span.start - text.segment.overlap_prefix
        lines = text.core.count("\n", start, start + span.length)
        parts.append(links.link(span.path, first=span.line, last=span.line + max(lines - 1, 0)))
    more = len(text.spans) - 5
    return ", ".join(parts) + (f" and {more} more files" if more > 0 else "")


def _question(spec: SweepSpec) -> str:
    labels = f"\n\nLabels: {', '.join(f'`{label}`' for label in spec.question.labels)}" if spec.question.labels else ""
    return f"{spec.question.extract[:600]}\n\nMode: `{spec.question.mode}`{labels}"


def _records_table(result: SegmentResult) -> str:
    # Markdown: Dagster's own table value repeats its schema in every event.
    rows = [
        f"| {row.unit} | {markdown_text(row.key, limit=_KEY_CHARS)} | {row.value:f} | {row.line} |"
        for row in result.records[:_TABLE_ROWS]
    ]
    more = len(result.records) - _TABLE_ROWS
    return "\n".join(("| unit | key | value | line |", "|---:|---|---:|---:|", *rows)) + (
        f"\n\n… {more:,} more in the file" if more > 0 else ""
    )


def _call_table(result: SegmentResult, *, num_ctx: int, file: Path | UPath, reused: bool) -> str:
    """Return what is known of the calls; one value, because each metadata entry costs Dagster's database 130 bytes."""
    failed = ", ".join(f"{count} x {kind}" for kind, count in sorted(result.attempts.items())) or "none failed"
    cached = f", {result.cached_tokens:,} from the server's cache" if result.cached_tokens else ""
    facts = {
        "model": f"{result.model} {result.model_digest[:12]}, server {result.server_version}",
        "calls": f"{result.calls}, {failed}, {result.splits} splits",
        "tokens": f"{result.prompt_tokens + result.output_tokens:,} of num_ctx {num_ctx:,} a call{cached}",
        "queue wait": f"{result.queue_wait_s:.2f} s",
        "guard": result.guard,
        "reused": "yes, no call was made" if reused else "no",
        "file": f"{file.name} in extraction/{file.parent.name}",
    }
    return "\n".join(("| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items())))


def _shown(text: str, *, limit: int) -> str:
    """Return the start of a text as Markdown whose lines break: one that does not would cut off every other value."""
    lines = (text[:limit].removesuffix("\n")).split("\n")
    shown = ("\N{NO-BREAK SPACE}" * (len(line) - len(line.lstrip(" "))) + markdown_text(line.strip()) for line in lines)
    more = f"\n\n*… {len(text) - limit:,} more characters*" if len(text) > limit else ""
    return "  \n".join(shown) + more


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
