"""Against the tools that people trust, on what is installed here; benchmarks/accuracy_codegraph.py does so on more."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.values import CodeGraph
from tests.planning.codegraph.trees import includes, plant

SAMPLES = Path(__file__).parent / "samples"
IN_PROCESS = ScanOptions(workers=0, respect_gitignore=False, exclude_dirs=("__pycache__",))


def package_root(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CodeGraph]:
    """Each package copied beside nothing else, so that its imports of others lead outside."""
    graphs: dict[str, CodeGraph] = {}
    for name in ("httpx", "rich", "typer"):
        root = tmp_path_factory.mktemp(name)
        shutil.copytree(package_root(name), root / name, ignore=shutil.ignore_patterns("__pycache__"))
        graphs[name] = scan_repo(root, IN_PROCESS)
    return graphs


def grimp_imports(name: str, paths: set[str]) -> set[tuple[str, str]]:
    """Return the imports inside a package that grimp finds, as pairs of paths that start with the package's name."""
    import grimp

    theirs = grimp.build_graph(name, cache_dir=None)

    def path(module: str) -> str:
        plain = module.replace(".", "/")
        return f"{plain}.py" if f"{plain}.py" in paths else f"{plain}/__init__.py"

    return {(path(a), path(b)) for a in theirs.modules for b in theirs.find_modules_directly_imported_by(a) if a != b}


@pytest.mark.skipif(importlib.util.find_spec("grimp") is None, reason="grimp is not installed")
@pytest.mark.parametrize("name", ["httpx", "rich", "typer"])
def test_python_includes_are_the_imports_that_grimp_finds(graphs: dict[str, CodeGraph], name: str) -> None:
    wanted = grimp_imports(name, {file.path for file in graphs[name].files})
    assert len(wanted) > 50
    assert wanted - includes(graphs[name]) == set()


@pytest.mark.skipif(importlib.util.find_spec("grimp") is None, reason="grimp is not installed")
@pytest.mark.parametrize("name", ["_pytest", "rich"])
def test_a_package_scanned_by_itself_has_the_imports_that_grimp_finds(name: str) -> None:
    graph = scan_repo(package_root(name), IN_PROCESS)
    found = {(f"{name}/{source}", f"{name}/{target}") for source, target in includes(graph)}
    wanted = grimp_imports(name, {f"{name}/{file.path}" for file in graph.files})
    assert len(wanted) > 50
    assert wanted - found == set()


def is_universal_ctags() -> bool:
    if shutil.which("ctags") is None:
        return False
    return "Universal" in subprocess.run(["ctags", "--version"], capture_output=True, text=True, check=False).stdout


def ctags(root: Path, kinds: set[str]) -> set[tuple[str, str]]:
    command = ["ctags", "-R", "--output-format=json", "--fields=+K", "-o", "-", "."]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    tags = [json.loads(line) for line in done.stdout.splitlines()]
    return {(tag["path"].removeprefix("./"), tag["name"]) for tag in tags if tag.get("kind") in kinds}


@pytest.mark.skipif(not is_universal_ctags(), reason="universal-ctags is not installed")
@pytest.mark.parametrize("name", ["httpx", "rich", "typer"])
def test_python_symbols_are_the_definitions_that_ctags_finds(graphs: dict[str, CodeGraph], name: str) -> None:
    graph = graphs[name]
    ours = {(graph.files[symbol.file].path, symbol.name) for symbol in graph.symbols}
    theirs = ctags(Path(graph.root), {"class", "function", "member"})
    assert len(theirs) > 100
    assert {tag for tag in theirs if not tag[1].startswith("__anon")} - ours == set()


CTAGS_KINDS = {
    "c": {"function", "struct", "union", "enum", "typedef"},
    "cpp": {"function", "class", "struct", "union", "enum", "typedef"},
    "go": {"func", "struct", "interface", "type", "talias", "methodSpec"},
    "typescript": {"function", "class", "interface", "enum", "method"},
}
SUFFIXES = {"c": "c", "cpp": "cpp", "go": "go", "typescript": "ts"}


@pytest.mark.skipif(not is_universal_ctags(), reason="universal-ctags is not installed")
@pytest.mark.parametrize("language", CTAGS_KINDS)
def test_symbols_of_the_sample_are_what_ctags_finds(tmp_path: Path, language: str) -> None:
    name = f"sample.{SUFFIXES[language]}"
    graph = scan_repo(plant(tmp_path, {name: (SAMPLES / f"{language}.txt").read_bytes()}), IN_PROCESS)
    ours = {re.split(r"::|[.]", symbol.name)[-1] for symbol in graph.symbols}
    theirs = {tag.split("::")[-1].replace("operator ", "operator") for _, tag in ctags(tmp_path, CTAGS_KINDS[language])}
    assert len(theirs) > 5
    assert {tag for tag in theirs if not tag.startswith("__anon")} - ours == set()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_c_includes_are_those_that_gcc_follows(tmp_path: Path) -> None:
    root = plant(
        tmp_path,
        {
            "src/main.c": '#include "util.h"\n#include <lib/api.h>\n#include "../common/types.h"\nint x;\n',
            "src/util.h": '#pragma once\n#include "detail/inner.h"\n#include <stddef.h>\n',
            "src/detail/inner.h": '#include "../../common/types.h"\n',
            "include/lib/api.h": '#include "part.h"\n',
            "include/lib/part.h": "",
            "common/types.h": "#pragma once\n",
            "src/part.h": "",
        },
    )
    command = ["gcc", "-H", "-fsyntax-only", "-Iinclude", "src/main.c"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    above, wanted = [root / "src/main.c"], set[tuple[str, str]]()
    for dots, name in re.findall(r"^(\.+) (.+)$", done.stderr, re.M):
        included = (root / name).resolve()
        above[len(dots) :] = [included]
        if root.resolve() in included.parents:
            wanted.add(tuple(str(path.resolve().relative_to(root.resolve())) for path in above[-2:]))  # type: ignore[arg-type]
    found = includes(scan_repo(root, IN_PROCESS))
    assert len(wanted) == 5
    assert wanted <= found
    # gcc opens a header that guards itself once; the second edge to it is ours alone.
    assert len(found - wanted) <= 1


def test_every_imported_file_of_a_package_is_reached_from_its_start(graphs: dict[str, CodeGraph]) -> None:
    graph = graphs["httpx"]
    edges: dict[str, set[str]] = defaultdict(set)
    for source, target in includes(graph):
        edges[source].add(target)
    seen, waiting = {"httpx/__init__.py"}, ["httpx/__init__.py"]
    while waiting:
        waiting += (new := edges[waiting.pop()] - seen)
        seen |= new
    missed = {file.path for file in graph.files if file.path.endswith(".py")} - seen
    assert missed <= {"httpx/_main.py", "httpx/__main__.py"}
