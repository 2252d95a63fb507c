"""A directory on the command line: `graph` says what is in it, `plan` and `ask` read it by lines or by symbols."""

import ast
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fault_server import FaultServer
from tests.planning.codegraph.trees import plant
from tests.scripted_model import by_pattern

ROOT = Path(__file__).resolve().parent.parent.parent
LABELS = ("--mode", "labels", "--labels", "except,raise,plain", "--extract", "Does this function handle errors?")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def code(tmp_path: Path) -> Path:
    return plant(
        tmp_path / "code",
        {
            "a.py": "import b\n\ndef one():\n    try: b.two()\n    except OSError: pass\n",
            "b.py": "def two():\n    raise OSError\n\nclass C:\n    def three(self): return 3\n",
            "README.md": "words\n",
            "logo.png": b"\0",
        },
    )


def test_graph_says_what_is_there(ctxstream: Cli, code: Path) -> None:
    done = ctxstream("graph", code)
    assert done.status == 0
    assert "3 files, " in done.out
    assert "1 includes, 1 references" in done.out
    assert "skipped: 1 binary" in done.out
    assert "imports in python: 1 resolved, 0 external, 0 unresolved" in done.out


def test_graph_as_json_and_as_dot(ctxstream: Cli, code: Path, tmp_path: Path) -> None:
    done = ctxstream("graph", code, "--json", "--dot", tmp_path / "g.dot")
    value = json.loads(done.out)
    assert value["order"] == ["README.md", "b.py", "a.py"]
    assert [symbol["qualname"] for symbol in value["symbols"]] == ["one", "two", "C", "C.three"]
    dot = (tmp_path / "g.dot").read_text()
    assert '[label="a.py", ' in dot
    assert "f1 -> f2;" in dot


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_graph_as_svg(ctxstream: Cli, code: Path, tmp_path: Path) -> None:
    assert ctxstream("graph", code, "--svg", tmp_path / "g.svg").status == 0
    assert "a.py" in (tmp_path / "g.svg").read_text()


def test_without_graphviz_svg_is_refused_with_advice(
    ctxstream: Cli, code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = ctxstream("graph", code, "--svg", tmp_path / "g.svg")
    assert done.status == 2
    assert "Graphviz is not installed" in done.err


def test_graph_of_a_file_is_refused(ctxstream: Cli, code: Path) -> None:
    done = ctxstream("graph", code / "a.py")
    assert done.status == 2
    assert "is no directory" in done.err


def test_plan_shows_a_codebase_s_segments_and_what_it_skips(ctxstream: Cli, code: Path) -> None:
    value = json.loads(ctxstream("plan", code, "--json").out)
    assert value["corpus"]["files"] == 3
    assert [(entry["path"], entry["reason"]) for entry in value["skipped"]] == [("logo.png", "binary")]
    assert len(value["segments"]) == 1


def test_asking_by_symbol_counts_functions_and_knows_their_lines(
    ctxstream: Cli, code: Path, server: FaultServer
) -> None:
    server.find = by_pattern(r"\b(except|raise)\b")
    asked = ("ask", code, *LABELS, "--unit", "symbol", "--url", server.url, "--model", "scripted", "--answer", "list")
    done = ctxstream(*asked)
    assert (done.status, done.out.splitlines()[-1]) == (0, "Answer: except 1, plain 1, raise 1")


def expected_labels(package: Path) -> Counter[str]:
    """Count by Python's own parser: each function outside functions, and each class without one, by its first word."""
    counts: Counter[str] = Counter()

    def visit(nodes: list[ast.stmt], lines: list[str]) -> None:
        for node in nodes:
            inside = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
            nested = [statement for block in inside for statement in block]
            nested += [statement for handler in getattr(node, "handlers", []) for statement in handler.body]
            is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            has_functions = any(
                isinstance(below, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                for statement in nested
                for below in ast.walk(statement)
            )
            if is_function or (isinstance(node, ast.ClassDef) and not has_functions):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])  # type: ignore[attr-defined]
                while first > 1 and lines[first - 2].lstrip().startswith("#"):
                    first -= 1
                found = re.search(r"\b(except|raise)\b", "\n".join(lines[first - 1 : node.end_lineno]))
                counts[found[1] if found else "plain"] += 1
            else:
                visit(nested, lines)

    for path in sorted(package.rglob("*.py")):
        source = path.read_text()
        visit(ast.parse(source).body, source.split("\n"))
    return counts


def test_a_sweep_of_this_very_repository_counts_what_python_s_parser_counts(
    ctxstream: Cli, server: FaultServer
) -> None:
    server.find = by_pattern(r"\b(except|raise)\b")
    package = ROOT / "ctxstream_dagster" / "planning"
    asked = ("ask", package, *LABELS, "--unit", "symbol", "--units-per-window", "8", "--concurrency", "4")
    done = ctxstream(*asked, "--url", server.url, "--model", "scripted", "--answer", "list", "--json")
    assert done.status == 0, done.err
    value = json.loads(done.out)
    expected = expected_labels(package)
    assert {row["key"]: row["value"] for row in value["tally"]} == dict(expected)
    assert sum(expected.values()) > 200
    assert value["coverage"]["share"] == 1.0
