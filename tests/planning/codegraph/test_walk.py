"""Discovery: git's rules, nothing lost, all that is left out is said. Rows are those of the issues this learnt from."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxstream_dagster.errors import CorpusError
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.walk import WalkOptions, tracked_files, walk_directory
from tests.planning.codegraph.trees import IN_PROCESS, plant, reasons, scanned, unaccounted

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")

TRICKY: dict[str, str | bytes] = {
    ".gitignore": (
        "\ufeff# a comment\n*.log\n!keep.log\n/anchored.txt\ndir_only/\ndoc/**/*.tmp\n**/deep.txt\nmid/*/end.txt\n"
        "trailing.space   \nescaped\\ \n\\#hash\n\\!bang\n[a-c].chr\nq?.txt\n/sub/ignored_here\n!/sub/dir_only/\n"
        "a/**\n!a/b.keep\nvend*r_x/\n"
    ),
    "a.log": "1",
    "keep.log": "1",
    "anchored.txt": "1",
    "sub/anchored.txt": "1",
    "dir_only/x": "1",
    "sub/dir_only/x": "1",
    "other/dir_only": "a file of that name",
    "doc/x.tmp": "1",
    "doc/a/b/x.tmp": "1",
    "doc/a/b/x.txt": "1",
    "x/y/deep.txt": "1",
    "mid/one/end.txt": "1",
    "mid/one/two/end.txt": "1",
    "trailing.space": "1",
    "escaped ": "1",
    "#hash": "1",
    "!bang": "1",
    "b.chr": "1",
    "d.chr": "1",
    "q1.txt": "1",
    "q12.txt": "1",
    "sub/ignored_here/x": "1",
    "a/b.keep": "1",
    "a/c": "1",
    "vendor_x/x": "1",
    "nested/.gitignore": "*\n!.gitignore\n!important/\n!important/**\n",
    "nested/gone.txt": "1",
    "nested/important/kept.txt": "1",
    "nested/important/.gitignore": "kept_not.txt\r\n",
    "nested/important/kept_not.txt": "1",
    "negated/.gitignore": "!*.log\n",
    "negated/back.log": "1",
    "ünï/.gitignore": "ö*\n",
    "ünï/öx": "1",
    "ünï/x": "1",
    ".hidden/file": "1",
}


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.excludesFile=", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def paths(root: Path, **options: object) -> set[str]:
    found, _ = walk_directory(root, WalkOptions(exclude_dirs=(".git",), **options))  # type: ignore[arg-type]
    return {file.path for file in found}


@needs_git
def test_tricky_gitignore_files_mean_what_git_says(tmp_path: Path) -> None:
    plant(tmp_path, TRICKY)
    git(tmp_path, "init", "-q")
    listed = git(tmp_path, "-c", "core.quotePath=false", "ls-files", "-co", "--exclude-standard", "-z")
    assert paths(tmp_path) == set(filter(None, listed.split("\0")))


@needs_ripgrep
def test_tricky_gitignore_files_mean_what_ripgrep_says(tmp_path: Path) -> None:
    plant(tmp_path, TRICKY)
    command = ["rg", "--files", "--hidden", "--no-require-git", "--no-ignore-global", "-0", "--glob", "!.git"]
    listed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert paths(tmp_path) == set(filter(None, listed.split("\0")))


@needs_git
def test_what_git_tracks_is_read_though_it_is_ignored_or_below_a_directory_named_build(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            ".gitignore": "build/\n*.gen.py\n",
            "operations/build/source.py": "x = 1",
            "operations/build/scratch.py": "y = 2",
            "kept.gen.py": "z = 3",
            "lost.gen.py": "z = 3",
            "dist/out.js": "1",
        },
    )
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", "operations/build/source.py", "kept.gen.py")
    graph = scan_repo(tmp_path, IN_PROCESS)
    assert {file.path for file in graph.files} == {".gitignore", "operations/build/source.py", "kept.gen.py"}
    assert reasons(graph) == {
        ".git/": "excluded-dir",
        "operations/build/scratch.py": "ignored",
        "lost.gen.py": "ignored",
        "dist/": "excluded-dir",
    }
    strict = scan_repo(tmp_path, ScanOptions(workers=0, keep_tracked=False))
    assert {file.path for file in strict.files} == {".gitignore"}


def test_without_git_a_package_named_build_is_source_and_other_excluded_directories_are_recorded(
    tmp_path: Path,
) -> None:
    graph = scanned(
        tmp_path,
        {
            "pip/build/__init__.py": "",
            "pip/build/wheel.py": "x = 1",
            "web/build/bundle.js": "1",
            "node_modules/x/index.js": "1",
            "vendor/lib.c": "1",
        },
    )
    assert {file.path for file in graph.files} == {"pip/build/__init__.py", "pip/build/wheel.py"}
    assert reasons(graph) == {
        "web/build/": "excluded-dir",
        "node_modules/": "excluded-dir",
        "vendor/": "excluded-dir",
    }


def test_row_31_a_scan_of_a_subdirectory_heeds_the_ignore_files_above_it(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            ".gitignore": "*.log\n/src/secret.txt\n",
            "src/.gitignore": "!kept.log\n",
            "src/app/a.log": "1",
            "src/app/kept.log": "1",
            "src/app/code.py": "1",
            "src/secret.txt": "1",
        },
    )
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("src/app/mine/\n")
    plant(tmp_path, {"src/app/mine/x.py": "1"})
    assert paths(tmp_path / "src" / "app") == {"kept.log", "code.py"}
    assert paths(tmp_path / "src") == {".gitignore", "app/kept.log", "app/code.py"}
    assert "app/a.log" in paths(tmp_path / "src", respect_gitignore=False)


def test_a_directory_that_is_ignored_is_read_when_it_is_named(tmp_path: Path) -> None:
    plant(tmp_path, {".gitignore": "third/\n*.log\n", "third/party/a.py": "1", "third/party/b.log": "1"})
    (tmp_path / ".git").mkdir()
    assert paths(tmp_path / "third" / "party") == {"a.py", "b.log"}


def test_row_38_broken_and_looping_links_are_recorded_and_followed_only_on_request(tmp_path: Path) -> None:
    plant(tmp_path, {"real/a.py": "x = 1", "b.py": "y = 2"})
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "real" / "up").symlink_to("..")
    (tmp_path / "itself").symlink_to("itself")
    (tmp_path / "copy").symlink_to("real")
    graph = scan_repo(tmp_path, IN_PROCESS)
    assert {file.path for file in graph.files} == {"b.py", "real/a.py"}
    assert reasons(graph) == dict.fromkeys(("broken", "copy", "itself", "loop", "real/up"), "symlink")
    followed = scan_repo(tmp_path, ScanOptions(workers=0, follow_symlinks=True))
    assert {file.path for file in followed.files} == {"b.py", "copy/a.py", "real/a.py"}
    assert reasons(followed) == {
        "broken": "broken-link",
        "copy/up": "symlink",
        "itself": "broken-link",
        "loop": "symlink",
        "real/up": "symlink",
    }


@pytest.mark.skipif(os.name == "nt", reason="file names are Unicode there")
def test_row_39_a_file_name_that_is_not_utf8_is_read_and_shown_escaped(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("def f(): pass\n")
    graph = scan_repo(tmp_path, IN_PROCESS)
    assert [(file.path, file.symbols) for file in graph.files] == [("caf\\xe9.py", 1)]


def test_row_41_nested_and_badly_encoded_gitignore_files_work(tmp_path: Path) -> None:
    graph = scanned(
        tmp_path,
        {
            ".gitignore": b"caf\xe9*\r\n*.tmp\r\n",
            "x.tmp": "1",
            "one/.gitignore": "!x.tmp\nlocal\n",
            "one/x.tmp": "1",
            "one/local": "1",
            "two/local": "1",
        },
    )
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("1")
    graph = scan_repo(tmp_path, IN_PROCESS)
    assert {file.path for file in graph.files} == {".gitignore", "one/.gitignore", "one/x.tmp", "two/local"}


def test_special_files_and_unreadable_places_are_recorded(tmp_path: Path) -> None:
    plant(tmp_path, {"a.py": "1", "closed/x.py": "1", "sub/.git": "gitdir: ../elsewhere"})
    os.mkfifo(tmp_path / "pipe")
    graph = scan_repo(tmp_path, IN_PROCESS)
    assert reasons(graph) == {"pipe": "special-file", "sub/.git": "excluded-dir"}


def test_a_missing_root_is_an_error_for_a_person(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no directory"):
        scan_repo(tmp_path / "gone")


@needs_git
def test_git_is_asked_nothing_that_runs_a_program_of_the_repository(tmp_path: Path) -> None:
    plant(tmp_path, {"a.py": "1"})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "a.py")
    git(tmp_path, "config", "core.fsmonitor", f"touch {tmp_path / 'ran'}; false")
    assert tracked_files(tmp_path) == {"a.py"}
    assert not (tmp_path / "ran").exists()


@needs_git
def test_a_link_into_a_repository_is_asked_about_as_what_it_leads_to(tmp_path: Path) -> None:
    plant(tmp_path / "repository", {"sub/a.py": "1"})
    git(tmp_path / "repository", "init", "-q")
    git(tmp_path / "repository", "add", "sub/a.py")
    (tmp_path / "link").symlink_to(tmp_path / "repository" / "sub")
    assert tracked_files(tmp_path / "link") == {"a.py"}


names = st.sampled_from(["a", "b.py", "build", "x.log", "node_modules", "ü", ".hid", "dist", "é.txt"])
trees = st.dictionaries(
    st.lists(names, min_size=1, max_size=4).map("/".join),
    st.sampled_from([b"", b"x = 1\n", b"\x00\x01", b"\xff\xfe", b"caf\xe9"]),
    max_size=8,
)
ignores = st.lists(
    st.sampled_from(["*.log", "build/", "!build/", "/a", "b.py", "!b.py", "**/x.log", "ü*", "# no", ""]), max_size=5
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(trees, ignores)
def test_no_file_is_ever_missing_from_both_files_and_skipped(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, bytes], ignored: list[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for path, content in tree.items():
        target = root / path
        if any(parent.is_file() for parent in target.parents) or target.is_dir():
            continue
        plant(root, {path: content})
    if not (root / ".gitignore").exists():
        (root / ".gitignore").write_text("\n".join(ignored))
    for options in (IN_PROCESS, ScanOptions(workers=0, respect_gitignore=False, exclude_dirs=())):
        assert unaccounted(root, scan_repo(root, options)) == set()
