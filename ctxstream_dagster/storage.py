"""Files that are whole or not there: atomic writes, Parquet tables, and where a sweep keeps what.

Paths may be local or object-store URLs (universal_pathlib). Locally a write goes to a temporary file beside the
target, is flushed to the disk and renamed; object stores publish an object only when it is complete.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from ctxstream_dagster.errors import ConfigError, StorageError


def write_bytes(path: Path | UPath, data: bytes) -> None:
    """Write `data` to `path`, whole or not at all; raises `StorageError` naming the path and the system's reason."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(path, Path):
            _replace(path, data)
        else:
            path.write_bytes(data)
    except OSError as error:
        raise _storage_error("write", path, error) from error


def write_table(path: Path | UPath, table: pa.Table) -> None:
    """Write an Arrow table as one Parquet file, whole or not at all; raises `StorageError`."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    write_bytes(path, sink.getvalue())


def read_bytes(path: Path | UPath) -> bytes:
    """Return the bytes of `path`; raises `StorageError` when it is missing or unreadable."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise _storage_error("read", path, error) from error


def read_table(path: Path | UPath) -> pa.Table:
    """Return the Parquet file at `path` as an Arrow table; raises `StorageError` when it is not whole."""
    data = read_bytes(path)
    try:
        # pq.read_table starts thread pools; one process in ten then aborted at exit (measured with pyarrow 26.0.1).
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False, page_checksum_verification=True)
        return file.read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise StorageError(
            f"{path} is not a whole Parquet file ({error}). Delete it and run the sweep again."
        ) from error


def fsync_directory(path: Path) -> None:
    """Make a rename inside `path` survive a power cut; a no-op where directories cannot be opened."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class SweepStore:
    """Where one sweep keeps its plans, extractions and results.

    ```
    <home>/replies.sqlite                        every exact reply, by request hash, shared by all sweeps
    <home>/sweeps/<name>/plans/<plan id>/        packed corpus and manifest, immutable
    <home>/sweeps/<name>/current                 id of the plan in force
    <home>/sweeps/<name>/extraction/<version>/<segment key>.parquet
    <home>/sweeps/<name>/{tally,records}.parquet, answer.json
    ```

    Attributes:
        home: the data home, a local directory or an object-store URL.
        name: the sweep's name.
    """

    home: Path | UPath
    name: str

    @property
    def root(self) -> Path | UPath:
        """The sweep's own directory."""
        return self.home / "sweeps" / self.name

    @property
    def tally(self) -> Path | UPath:
        """The last good tally."""
        return self.root / "tally.parquet"

    @property
    def records(self) -> Path | UPath:
        """The de-duplicated records behind the last good tally."""
        return self.root / "records.parquet"

    @property
    def answer(self) -> Path | UPath:
        """The last good answer with its coverage."""
        return self.root / "answer.json"

    def plan_directory(self, plan_id: str) -> Path | UPath:
        """Where the plan `plan_id` lives."""
        return self.root / "plans" / plan_id

    def current_plan(self) -> Path | UPath | None:
        """Directory of the plan in force, or None before the first plan."""
        pointer = self.root / "current"
        if not pointer.exists():
            return None
        return self.plan_directory(read_bytes(pointer).decode("ascii").strip())

    def set_current_plan(self, plan_id: str) -> None:
        """Put `plan_id` in force."""
        write_bytes(self.root / "current", plan_id.encode("ascii") + b"\n")

    def extraction(self, version: str, key: str) -> Path | UPath:
        """The extraction file of one segment under one version of question, decoder and options."""
        return self.root / "extraction" / version / f"{key}.parquet"


def data_home(default: Path) -> Path | UPath:
    """Where state is kept: ``CTXSTREAM_HOME`` (a directory or an object-store URL), else `default`.

    Raises `ConfigError` when it is neither.
    """
    configured = os.environ.get("CTXSTREAM_HOME", "")
    try:
        if "://" in configured:
            return UPath(configured)
        return Path(configured or default).expanduser().absolute()
    except (ValueError, ImportError, RuntimeError) as error:
        raise ConfigError(
            f"CTXSTREAM_HOME is {configured!r}, which cannot be used: {error} Name a directory or an object store."
        ) from error


def cache_home() -> Path:
    """Where state is kept that belongs to no project: in ``XDG_CACHE_HOME``, else in ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ctxstream"


def replies_path(home: Path | UPath, *, local: Path) -> Path:
    """Where the reply store lives: in `home`, but beside it in `local` when `home` is an object store."""
    return (home if isinstance(home, Path) else local) / "replies.sqlite"


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    fsync_directory(path.parent)


def _storage_error(verb: str, path: Path | UPath, error: OSError) -> StorageError:
    reason = error.strerror or str(error)
    advice = "Free some space" if error.errno == errno.ENOSPC else "Check that the path exists and may be used"
    kept = "; nothing partial was kept" if verb == "write" else ""
    return StorageError(f"Could not {verb} {path}: {reason}. {advice}, then run again{kept}.")
