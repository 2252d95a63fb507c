"""A plan on disk: segments stream in while the packed text is written, and come back one by one.

The seam between planners and storage: whoever cuts a corpus, by records (`planning.text_plan`) or by symbols
(`planning.codebase`), is a `SegmentSource` of `PlannedSegment`s and never touches keys, byte offsets or files.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
from upath import UPath

from ctxstream_dagster.errors import ConfigError, PlanError, StorageError
from ctxstream_dagster.planning.keys import KeyMaker
from ctxstream_dagster.planning.manifest import CoverageProof, Manifest, ManifestOptions, Segment, check_tiling
from ctxstream_dagster.planning.plan_tables import (
    FILES_SCHEMA,
    SEGMENTS_SCHEMA,
    SKIPPED_SCHEMA,
    segment_row,
    stored_segment,
)
from ctxstream_dagster.planning.planned import PlannedSegment, SourceFile, StoredPlan, StoredSegment
from ctxstream_dagster.planning.skipped import Skipped
from ctxstream_dagster.storage import fsync_directory, read_bytes, read_table, write_bytes, write_table

FORMAT = 1
_MOST_RACES = 100


class PlanWriter:
    """Writes one plan into `directory`, whole or not at all; a context manager.

    Everything goes to a hidden directory beside it, which `finish` renames. Leaving the context without `finish`
    removes what was written. Memory: one segment's text, plus a row per segment.
    """

    def __init__(self, directory: Path | UPath, *, delim: str) -> None:
        self._directory = directory
        self._delim = delim
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
            # Closing may fail on the full disk that is already being reported, and what it would write goes next.
            with contextlib.suppress(OSError):
                self._packed.close()
        shutil.rmtree(self._staging, ignore_errors=True)

    def add(self, planned: PlannedSegment) -> Segment:
        """Append one segment; raises `StorageError` when the disk does not take it."""
        assert self._packed is not None, "add() is for use inside the context"
        overlap, core = (part.encode("utf-8") for part in (planned.overlap, planned.core))
        segment = Segment(
            index=len(self._stored),
            offset=self._chars - len(planned.overlap),
            length=len(planned.overlap) + len(planned.core),
            overlap_prefix=len(planned.overlap),
            key=self._keys.key(planned.name, overlap, core, division=planned.division(delim=self._delim)),
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
        rows = [segment_row(stored) for stored in plan.stored]
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
    data = read_bytes(directory / "plan.json")
    try:
        summary = json.loads(data)
        if summary["format"] != FORMAT:
            raise ValueError(f"its format is {summary['format']}, this version reads {FORMAT}")
        proof = CoverageProof(**summary["proof"])
        stored = tuple(stored_segment(row) for row in read_table(directory / "segments.parquet").to_pylist())
        segments = tuple(entry.segment for entry in stored)
        check_tiling(segments, chars=proof.chars)
        if (directory / "packed.txt").stat().st_size != summary["totals"]["packed_bytes"]:
            raise ValueError("packed.txt has not the size that was written")
        options = ManifestOptions.from_mapping(summary["options"])
    except (OSError, ValueError, LookupError, TypeError, ConfigError, PlanError) as error:
        raise StorageError(f"The plan in {directory} is not whole ({error}). Plan the corpus again.") from error
    return StoredPlan(
        manifest=Manifest(segments=segments, proof=proof),
        options=options,
        files=tuple(SourceFile(**row) for row in read_table(directory / "files.parquet").to_pylist()),
        skipped=tuple(Skipped(**row) for row in read_table(directory / "skipped.parquet").to_pylist()),
        stored=stored,
    )


def is_whole(directory: Path | UPath) -> bool:
    """Whether a plan can be read and its text is, to the byte, what was planned."""
    try:
        plan = read_plan(directory)
        with (directory / "packed.txt").open("rb") as packed:
            digest = hashlib.sha256()
            while data := packed.read(1 << 20):
                digest.update(data)
    except (StorageError, OSError):
        return False
    return digest.hexdigest() == plan.manifest.proof.text_sha256


def _staging(directory: Path | UPath) -> Path:
    name = f".{directory.name[:80]}.{secrets.token_hex(6)}.tmp"
    return directory.with_name(name) if isinstance(directory, Path) else Path(tempfile.gettempdir()) / name


def _publish(staging: Path, directory: Path | UPath) -> None:
    if not isinstance(directory, Path):
        _upload(staging, directory)
        return
    fsync_directory(staging)
    replaced = directory.with_name(f"{staging.name}.old")
    for _ in range(_MOST_RACES):
        with contextlib.suppress(FileNotFoundError):
            directory.rename(replaced)
        try:
            staging.rename(directory)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            # Another process put its own plan there since; the last one stays.
            continue
        finally:
            shutil.rmtree(replaced, ignore_errors=True)
        fsync_directory(directory.parent)
        return
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _upload(staging: Path, directory: UPath) -> None:
    # A plan without plan.json is not whole and is not read: it goes first and comes last.
    (directory / "plan.json").unlink(missing_ok=True)
    for file in sorted(staging.iterdir(), key=lambda file: file.name == "plan.json"):
        with file.open("rb") as source, (directory / file.name).open("wb") as target:
            shutil.copyfileobj(source, target)


def _not_written(directory: Path | UPath, error: OSError) -> StorageError:
    return StorageError(
        f"Could not write the plan to {directory}: {error.strerror or error}. "
        "Free some space or choose another place, then run again; nothing partial was kept."
    )
