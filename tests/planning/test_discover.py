"""Which files a sweep reads, and in which order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxstream_dagster.errors import CorpusError
from ctxstream_dagster.planning import discover as discover_module
from ctxstream_dagster.planning.discover import discover


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("b.log", "a.log", "c.txt", "sub/d.log", "sub/deep/e.log", ".hidden.log", ".dot/f.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*paths: str | Path) -> list[str]:
    return [source.name for source in discover(paths).sources]


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["b.log", "a.log"], ["b.log", "a.log"]),
        (["*.log"], ["a.log", "b.log"]),
        (["./*.log"], ["./a.log", "./b.log"]),
        (["**/*.log"], ["a.log", "b.log", "sub/d.log", "sub/deep/e.log"]),
        (["**/**/*.log"], ["a.log", "b.log", "sub/d.log", "sub/deep/e.log"]),
        (["sub/**"], ["sub/d.log", "sub/deep/e.log"]),
        (["sub/**/*.log"], ["sub/d.log", "sub/deep/e.log"]),
        (["**/deep/*.log"], ["sub/deep/e.log"]),
        (["s*/d.*"], ["sub/d.log"]),
        (["[ab].log"], ["a.log", "b.log"]),
        (["?.txt"], ["c.txt"]),
        ([".*.log"], [".hidden.log"]),
        ([".dot/*"], [".dot/f.log"]),
        (["b.log", "*.log"], ["b.log", "a.log"]),
        (["a.log", "./a.log", "sub/../a.log"], ["a.log"]),
    ],
)
def test_what_paths_and_globs_name(tree: Path, paths: list[str], expected: list[str]) -> None:
    assert names(*paths) == expected


def test_the_order_is_not_the_directory_s(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight = names("**/*.log")
    real = os.scandir

    class Reversed:
        def __init__(self, directory: str) -> None:
            self._entries = real(directory)

        def __enter__(self) -> list[os.DirEntry[str]]:
            return sorted(self._entries, key=lambda entry: entry.name, reverse=True)

        def __exit__(self, *_: object) -> None:
            self._entries.close()

    monkeypatch.setattr(discover_module.os, "scandir", Reversed)
    assert names("**/*.log") == straight


def test_a_name_that_looks_like_a_glob_is_taken_as_it_is(tree: Path) -> None:
    (tree / "log[1].txt").write_text("x")
    assert names("log[1].txt") == ["log[1].txt"]


def test_a_directory_is_a_source_and_a_glob_s_directory_is_skipped(tree: Path) -> None:
    [source] = discover(["sub"]).sources
    assert source.is_directory
    found = discover(["s*", "*.txt"])
    assert [entry.reason for entry in found.skipped] == ["directory"]
    assert [source.name for source in found.sources] == ["c.txt"]


@pytest.mark.parametrize(
    "paths", [["sub", "sub/d.log"], ["sub/deep/e.log", "sub"], ["sub", "sub/deep"], ["s*/*.log", "sub"]]
)
def test_a_source_inside_another_is_refused(tree: Path, paths: list[str]) -> None:
    with pytest.raises(CorpusError, match=r"lies in sub, which is named too, and would count twice"):
        discover(paths)


def test_links_are_followed_when_named_and_counted_once(tree: Path) -> None:
    (tree / "current.log").symlink_to("a.log")
    assert names("current.log") == ["current.log"]
    assert names("*.log") == ["a.log", "b.log"]


def test_a_loop_of_directories_ends(tree: Path) -> None:
    (tree / "sub" / "loop").symlink_to(tree)
    assert names("**/*.log") == ["a.log", "b.log", "sub/d.log", "sub/deep/e.log"]


def test_broken_and_looping_links_are_skipped_in_a_glob(tree: Path) -> None:
    (tree / "gone.log").symlink_to("nowhere")
    (tree / "self.log").symlink_to("self.log")
    found = discover(["*.log"])
    assert [(entry.path, entry.reason) for entry in found.skipped] == [
        ("gone.log", "broken-link"),
        ("self.log", "broken-link"),
    ]
    assert [source.name for source in found.sources] == ["a.log", "b.log"]


@pytest.mark.parametrize("name", ["gone.log", "self.log"])
def test_a_named_link_that_leads_nowhere_is_refused(tree: Path, name: str) -> None:
    (tree / "gone.log").symlink_to("nowhere")
    (tree / "self.log").symlink_to("self.log")
    with pytest.raises(CorpusError, match=f"{name} is a link that leads nowhere"):
        discover([name])


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("missing.log", "missing.log does not exist"),
        ("a.log/below", "a.log/below does not exist"),
        ("*.xml", "No file matches '\\*.xml'"),
        ("nowhere/*.log", "No file matches 'nowhere/\\*.log'"),
        ("", "is no path"),
        ("a\0b", "is no path"),
    ],
)
def test_what_is_not_there_is_named(tree: Path, path: str, sentence: str) -> None:
    with pytest.raises(CorpusError, match=sentence):
        discover([path])


def test_no_path_at_all_is_refused() -> None:
    with pytest.raises(CorpusError, match="No path was given"):
        discover([])


def test_a_directory_that_may_not_be_listed_is_skipped(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def refuse(directory: str) -> object:
        if directory == "sub":
            raise PermissionError(13, "Permission denied")
        return real(directory)

    monkeypatch.setattr(discover_module.os, "scandir", refuse)
    found = discover(["**/*.log"])
    assert [(entry.path, entry.reason, entry.detail) for entry in found.skipped] == [
        ("sub", "unreadable", "Permission denied")
    ]
    assert [source.name for source in found.sources] == ["a.log", "b.log"]


def test_a_file_name_that_is_no_utf8_survives(tree: Path) -> None:
    raw = os.fsencode(tree) + b"/caf\xe9.log"
    with open(raw, "wb") as file:  # noqa: PTH123 - pathlib takes no bytes
        file.write(b"x\n")
    found = discover(["caf*.log"])
    assert [source.name for source in found.sources] == ["caf\\xe9.log"]
    assert found.sources[0].path.read_bytes() == b"x\n"


def test_a_link_in_a_circle_is_passed_over_and_told(tree: Path) -> None:
    (tree / "round").symlink_to("round")
    found = discover(["*/d.log"])
    assert [source.name for source in found.sources] == ["sub/d.log"]
    assert [(entry.path, entry.reason) for entry in found.skipped] == [("round", "unreadable")]
