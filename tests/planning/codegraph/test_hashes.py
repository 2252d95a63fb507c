"""Files are not read again while the file system says that nothing changed, and never trusted a moment too long."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ctxstream_dagster.planning.codegraph import hashes
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from tests.planning.codegraph.trees import IN_PROCESS, plant, reasons

FILES: dict[str, str | bytes] = {"a.py": "def one(): pass\n", "logo.png": b"\x89PNG\0" * 1000, "notes.md": "words\n"}


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the clock that judges how long ago a file changed be ahead."""
    clock = SimpleNamespace(time_ns=lambda: time.time_ns() + int(seconds * 1e9))
    monkeypatch.setattr(hashes, "time", clock)


def refuse(*arguments: object) -> bytes:
    raise AssertionError(f"read again: {arguments}")


def test_a_tree_that_rested_is_not_read_again_binary_files_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, options = plant(tmp_path / "code", FILES), ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    later(monkeypatch, 10)
    first = scan_repo(code, options)
    monkeypatch.setattr(hashes, "read_bytes", refuse)
    assert scan_repo(code, options) == first
    assert reasons(first) == {"logo.png": "binary"}


def test_one_changed_file_is_the_only_one_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, options = plant(tmp_path / "code", FILES), ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    later(monkeypatch, 10)
    scan_repo(code, options)
    plant(code, {"a.py": "def two(): pass\n"})
    read: list[str] = []
    real = hashes.read_bytes
    monkeypatch.setattr(hashes, "read_bytes", lambda root, location: read.append(location) or real(root, location))
    assert scan_repo(code, options) == scan_repo(code, IN_PROCESS)
    assert read == ["a.py"]


@pytest.mark.parametrize("ahead_s", [0, 10])
def test_a_change_in_place_of_the_same_size_with_its_old_time_put_back_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: float
) -> None:
    code, options = plant(tmp_path / "code", FILES), ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    file = code / "a.py"
    long_ago = time.time() - 1_000_000
    os.utime(file, (long_ago, long_ago))
    later(monkeypatch, ahead_s)
    scan_repo(code, options)
    # With the clock ahead the file is trusted and only the inode's time tells; a tick of that clock must pass.
    time.sleep(0.05 if ahead_s else 0)
    with file.open("r+b") as opened:
        opened.write(b"def two(): pass\n")
    os.utime(file, (long_ago, long_ago))
    graph = scan_repo(code, options)
    assert [symbol.name for symbol in graph.symbols] == ["two"]
    assert graph == scan_repo(code, IN_PROCESS)


def test_what_just_changed_is_read_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, options = plant(tmp_path / "code", FILES), ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    scan_repo(code, options)
    read: list[str] = []
    real = hashes.read_bytes
    monkeypatch.setattr(hashes, "read_bytes", lambda root, location: read.append(location) or real(root, location))
    scan_repo(code, options)
    assert sorted(read) == sorted(FILES)


def test_another_file_moved_to_its_place_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, options = plant(tmp_path / "code", FILES), ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    plant(tmp_path, {"other.py": "def two(): pass\n"})
    times = (code / "a.py").stat()
    os.utime(tmp_path / "other.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    later(monkeypatch, 10)
    scan_repo(code, options)
    (tmp_path / "other.py").replace(code / "a.py")
    assert [symbol.name for symbol in scan_repo(code, options).symbols] == ["two"]


def test_two_directories_of_one_cache_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    later(monkeypatch, 10)
    roots = [plant(tmp_path / name, {"a.py": f"def {name}(): pass\n"}) for name in ("one", "two")]
    for _ in range(2):
        assert [symbol.name for root in roots for symbol in scan_repo(root, options).symbols] == ["one", "two"]
    monkeypatch.chdir(roots[1])
    assert [symbol.name for symbol in scan_repo(".", options).symbols] == ["two"]


def test_without_references_everything_else_is_the_same(tmp_path: Path) -> None:
    code = plant(tmp_path / "code", {"a.py": "def unusual(): pass\n", "b.py": "import a\n\na.unusual()\n"})
    cache = tmp_path / "cache"
    found: dict[bool, tuple[int, int]] = {}
    for _ in range(2):
        for wanted in (False, True):
            graph = scan_repo(code, ScanOptions(workers=0, references=wanted, cache_dir=cache))
            found[wanted] = (len(graph.edges.includes), len(graph.edges.references))
        assert found == {False: (1, 0), True: (1, 1)}
    in_worker = scan_repo(code, ScanOptions(workers=1, references=False))
    assert in_worker == scan_repo(code, ScanOptions(workers=0, references=False))
    assert in_worker.symbols == scan_repo(code, IN_PROCESS).symbols
