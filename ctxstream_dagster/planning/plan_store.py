"""A plan on disk: segments stream in while the packed text is written, and come back one by one.

The seam between planners and storage: whoever cuts a corpus, by records (`planning.text_plan`) or by symbols
(`planning.codebase`), is a `SegmentSource` of `PlannedSegment`s and never touches keys, byte offsets or files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
from upath import UPath

from ctxstream_dagster.errors import PlanError, StorageError
from ctxstream_dagster.planning.keys import KeyMaker
from ctxstream_dagster.planning.manifest import CoverageProof, Manifest, ManifestOptions, Segment, check_tiling
from ctxstream_dagster.planning.skipped import Skipped
from ctxstream_dagster.planning.units import Span, Unit
from ctxstream_dagster.storage import fsync_directory, read_bytes, read_table, write_bytes, write_table

FORMAT = 1

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of the corpus and where it lies in the packed text.

    Attributes:
        path: as reported to people, forward slashes.
        bytes: size on disk.
        chars: characters in the packed text, without the delimiter added when the file does not end with one.
        offset: where its text starts in the packed text, in characters.
        encoding: ``utf-8``, ``utf-8-sig``, ``utf-16-le``, ``utf-16-be`` or ``cp1252``.
    """

    path: str
    bytes: int
    chars: int
    offset: int
    encoding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSegment:
    """One window as a planner hands it over.

    Attributes:
        name: path of the file that the key's readable half is made of.
        overlap: text shown in front; the end of what was handed over before.
        core: the text this segment owns. The cores, joined, are the packed text.
        spans: which file each stretch of the core comes from; the rest of the core (headers) is no source text.
        carried: characters of the core's first record that lie in earlier segments.
        carried_line: the line of the file where that record starts.
        open_end: True when the core's last record goes on in the next segment.
        units: the units, for planners that know them (symbols); None: records by the delimiter, found on reading.
    """

    name: str
    overlap: str
    core: str
    spans: tuple[Span, ...]
    carried: int = 0
    carried_line: int = 1
    open_end: bool = False
    units: tuple[Unit, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """Where one segment lies in ``packed.txt``, and what its units are made from."""

    segment: Segment
    byte_offset: int
    byte_length: int
    spans: tuple[Span, ...]
    carried_line: int
    open_end: bool
    units: tuple[Unit, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """A whole plan, without its text."""

    manifest: Manifest
    options: ManifestOptions
    files: tuple[SourceFile, ...]
    skipped: tuple[Skipped, ...]
    stored: tuple[StoredSegment, ...] = field(repr=False)


class SegmentSource(Protocol):
    """Whoever plans a part of the corpus. Iterate it once and to the end, then read the rest.

    Attributes:
        files: in packed order, offsets in characters from the start of this source's own text.
        skipped: what it left out.
        chars: characters of text handed over, by its own count.
        cut_records: records or symbols longer than a segment, which had to be cut.
    """

    @property
    def files(self) -> Sequence[SourceFile]: ...
    @property
    def skipped(self) -> Sequence[Skipped]: ...
    @property
    def chars(self) -> int: ...
    @property
    def cut_records(self) -> int: ...
    def __iter__(self) -> Iterator[PlannedSegment]: ...


class PlanWriter:
    """Writes one plan into `directory`, whole or not at all; a context manager.

    Everything goes to a hidden directory beside it, which `finish` renames. Leaving the context without `finish`
    removes what was written. Memory: one segment's text, plus a row per segment.
    """

    def __init__(self, directory: Path | UPath) -> None:
        self._directory = directory
        self._staging = _staging(directory)
        self._packed: BinaryIO | None = None
        self._keys = KeyMaker()
        self._sha = hashlib.sha256()
        self._bytes = 0
        self._chars = 0
        self._stored: list[StoredSegment] = []

    def __enter__(self) -> PlanWriter:
        try:
            self._staging.mkdir(parents=True)
            self._packed = (self._staging / "packed.txt").open("xb")
        except OSError as error:
            raise _not_written(self._directory, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._packed is not None:
            self._packed.close()
        shutil.rmtree(self._staging, ignore_errors=True)

    @property
    def chars(self) -> int:
        """Characters of packed text so far."""
        return self._chars

    def add(self, planned: PlannedSegment) -> Segment:
        """Append one segment; raises `StorageError` when the disk does not take it."""
        assert self._packed is not None, "add() is for use inside the context"
        overlap, core = (part.encode("utf-8") for part in (planned.overlap, planned.core))
        segment = Segment(
            index=len(self._stored),
            offset=self._chars - len(planned.overlap),
            length=len(planned.overlap) + len(planned.core),
            overlap_prefix=len(planned.overlap),
            key=self._keys.key(planned.name, overlap, core),
            carried=planned.carried,
        )
        self._stored.append(
            StoredSegment(
                segment=segment,
                byte_offset=self._bytes - len(overlap),
                byte_length=len(overlap) + len(core),
                spans=planned.spans,
                carried_line=planned.carried_line,
                open_end=planned.open_end,
                units=planned.units,
            )
        )
        try:
            self._packed.write(core)
        except OSError as error:
            raise _not_written(self._directory, error) from error
        self._sha.update(core)
        self._bytes += len(core)
        self._chars += len(planned.core)
        return segment

    def finish(
        self,
        *,
        options: ManifestOptions,
        files: Sequence[SourceFile],
        skipped: Sequence[Skipped],
        chars: int,
        cut_records: int,
    ) -> StoredPlan:
        """Check that the cores tile the `chars` characters that were read, and put the plan in place.

        Raises `PlanError` when they do not, `StorageError` when the disk does not take it.
        """
        segments = tuple(stored.segment for stored in self._stored)
        proof = CoverageProof(
            chars=chars,
            owned_chars=check_tiling(segments, chars=chars),
            text_sha256=self._sha.hexdigest(),
            cut_records=cut_records,
        )
        plan = StoredPlan(
            manifest=Manifest(segments=segments, proof=proof),
            options=options,
            files=tuple(files),
            skipped=tuple(skipped),
            stored=tuple(self._stored),
        )
        self._write_tables(plan)
        try:
            _publish(self._staging, self._directory)
        except OSError as error:
            raise _not_written(self._directory, error) from error
        return plan

    def _write_tables(self, plan: StoredPlan) -> None:
        assert self._packed is not None
        try:
            self._packed.flush()
            os.fsync(self._packed.fileno())
            self._packed.close()
        except OSError as error:
            raise _not_written(self._directory, error) from error
        rows = [_segment_row(stored) for stored in plan.stored]
        write_table(self._staging / "segments.parquet", pa.Table.from_pylist(rows, schema=SEGMENTS_SCHEMA))
        for name, values, schema in (("files", plan.files, FILES_SCHEMA), ("skipped", plan.skipped, SKIPPED_SCHEMA)):
            table = pa.Table.from_pylist([asdict(value) for value in values], schema=schema)
            write_table(self._staging / f"{name}.parquet", table)
        summary = {
            "format": FORMAT,
            "options": asdict(plan.options),
            "proof": asdict(plan.manifest.proof),
            "totals": {
                "segments": len(plan.manifest),
                "files": len(plan.files),
                "skipped": len(plan.skipped),
                "bytes": sum(file.bytes for file in plan.files),
                "packed_bytes": self._bytes,
            },
        }
        data = json.dumps(summary, indent=2, sort_keys=True, ensure_ascii=True) + "\n"
        write_bytes(self._staging / "plan.json", data.encode("ascii"))


def read_plan(directory: Path | UPath) -> StoredPlan:
    """Read what `PlanWriter` wrote, without the text; raises `StorageError` when it is not whole."""
    summary = json.loads(read_bytes(directory / "plan.json"))
    if summary.get("format") != FORMAT:
        raise StorageError(
            f"{directory} holds a plan of format {summary.get('format')!r}, this version reads {FORMAT}. "
            "Plan the corpus again."
        )
    stored = tuple(_stored_segment(row) for row in read_table(directory / "segments.parquet").to_pylist())
    proof = CoverageProof(**summary["proof"])
    segments = tuple(entry.segment for entry in stored)
    try:
        check_tiling(segments, chars=proof.chars)
        whole = (directory / "packed.txt").stat().st_size == summary["totals"]["packed_bytes"]
    except (PlanError, OSError) as error:
        raise StorageError(f"The plan in {directory} is not whole ({error}). Plan the corpus again.") from error
    if not whole:
        raise StorageError(f"{directory / 'packed.txt'} has not the size that was written. Plan the corpus again.")
    return StoredPlan(
        manifest=Manifest(segments=segments, proof=proof),
        options=ManifestOptions.from_mapping(summary["options"]),
        files=tuple(SourceFile(**row) for row in read_table(directory / "files.parquet").to_pylist()),
        skipped=tuple(Skipped(**row) for row in read_table(directory / "skipped.parquet").to_pylist()),
        stored=stored,
    )


def _segment_row(stored: StoredSegment) -> dict[str, Any]:
    return {
        **asdict(stored.segment),
        "byte_offset": stored.byte_offset,
        "byte_length": stored.byte_length,
        "carried_line": stored.carried_line,
        "open_end": stored.open_end,
        "spans": [asdict(span) for span in stored.spans],
        "units": None if stored.units is None else [asdict(unit) for unit in stored.units],
    }


def _stored_segment(row: dict[str, Any]) -> StoredSegment:
    spans = tuple(Span(**span) for span in row.pop("spans"))
    units = row.pop("units")
    rest = {name: row.pop(name) for name in ("byte_offset", "byte_length", "carried_line", "open_end")}
    return StoredSegment(
        segment=Segment(**row),
        spans=spans,
        units=None if units is None else tuple(Unit(**unit) for unit in units),
        **rest,
    )


def _staging(directory: Path | UPath) -> Path:
    name = f".{directory.name[:80]}.{secrets.token_hex(6)}.tmp"
    if isinstance(directory, Path):
        return directory.with_name(name)
    return Path(os.environ.get("TMPDIR", "/tmp")) / name


def _publish(staging: Path, directory: Path | UPath) -> None:
    if not isinstance(directory, Path):
        # plan.json goes last: a plan without it is not whole, and is not read.
        for file in sorted(staging.iterdir(), key=lambda file: file.name == "plan.json"):
            with file.open("rb") as source, (directory / file.name).open("wb") as target:
                shutil.copyfileobj(source, target)
        return
    fsync_directory(staging)
    replaced = directory.with_name(f"{staging.name}.old")
    with contextlib.suppress(FileNotFoundError):
        directory.rename(replaced)
    staging.rename(directory)
    fsync_directory(directory.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _not_written(directory: Path | UPath, error: OSError) -> StorageError:
    return StorageError(
        f"Could not write the plan to {directory}: {error.strerror or error}. "
        "Free some space or choose another place, then run again; nothing partial was kept."
    )
