"""A scan: what one bad file may cost, what a cache may change (time only), what a result depends on (content only)."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ctxstream_dagster.errors import ConfigError
from ctxstream_dagster.planning.codebase import plan_codebase
from ctxstream_dagster.planning.codegraph import analysis, grammars, worker
from ctxstream_dagster.planning.codegraph.cache import Cache
from ctxstream_dagster.planning.codegraph.languages import LANGUAGES
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.summary import graph_json, graph_summary
from tests.planning.codegraph.trees import IN_PROCESS, includes, plant, reasons, scanned

SAMPLES = Path(__file__).parent / "samples"
MIXED: dict[str, str | bytes] = {
    "pkg/__init__.py": "from .a import f\n",
    "pkg/a.py": "import pkg.b\n\ndef unusual_name(): pass\n",
    "pkg/b.py": "from pkg import a\n\ndef g(): unusual_name()\n",
    "src/x.c": '#include "x.h"\nint run(void) { return 1; }\n',
    "src/x.h": "struct s { int a; };\n",
    "web/app.ts": "import { y } from './lib/y.js';\n",
    "web/lib/y.ts": "export const y = () => 1;\n",
    "data.bin": b"\x00\x01\x02",
    "notes.md": "words\n",
    "latin.py": b"# caf\xe9\ndef f(): pass\n",
}


def test_a_scan_finds_files_symbols_edges_and_what_is_left_out(tmp_path: Path) -> None:
    graph = scanned(tmp_path, MIXED)
    assert [file.path for file in graph.files] == sorted(path for path in MIXED if path != "data.bin")
    assert includes(graph) == {
        ("pkg/__init__.py", "pkg/a.py"),
        ("pkg/a.py", "pkg/b.py"),
        ("pkg/b.py", "pkg/a.py"),
        ("src/x.c", "src/x.h"),
        ("web/app.ts", "web/lib/y.ts"),
    }
    references = [edge for edge in graph.edges if edge.kind == "references"]
    assert [(graph.files[edge.source].path, graph.files[edge.target].path) for edge in references] == [
        ("pkg/b.py", "pkg/a.py")
    ]
    assert {(graph.files[symbol.file].path, symbol.name, symbol.node_kind) for symbol in graph.symbols} >= {
        ("src/x.c", "run", "function"),
        ("src/x.h", "s", "struct"),
        ("web/lib/y.ts", "y", "function"),
    }
    assert {file.path: file.encoding for file in graph.files}["latin.py"] == "cp1252"
    assert sum(file.symbols for file in graph.files) == len(graph.symbols)


def test_row_30_a_replacement_character_loses_no_file(tmp_path: Path) -> None:
    graph = scanned(tmp_path, {"a.py": "x = '\ufffd'\n", "b.txt": "\ufffd"})
    assert [(file.path, file.encoding) for file in graph.files] == [("a.py", "utf-8"), ("b.txt", "utf-8")]
    assert graph.skipped == ()


def test_row_32_a_binary_file_stands_among_the_skipped(tmp_path: Path) -> None:
    assert reasons(scanned(tmp_path, {"logo.png": b"\x89PNG\r\n\x1a\n\x00\x00", "a.py": ""})) == {"logo.png": "binary"}


def test_row_35_a_file_over_the_cap_is_skipped_unread(tmp_path: Path) -> None:
    huge = tmp_path / "huge.txt"
    with huge.open("wb") as file:
        file.truncate(480 * 1024 * 1024)
    graph = scanned(tmp_path, {"a.py": ""})
    assert reasons(graph) == {"huge.txt": "too-large"}
    assert "480" not in graph.skipped[0].reason
    assert "503316480 bytes" in graph.skipped[0].detail


@pytest.mark.parametrize("offset", [1023, 1024, 8191, 8192, 65535, 65536, (1 << 20) - 1, 1 << 20])
def test_row_37_a_wide_character_on_any_block_border_is_text(tmp_path: Path, offset: int) -> None:
    source = "# " + "x" * (offset - 3) + "漢\n\ndef after(): pass\n"
    graph = scanned(tmp_path, {"a.py": source})
    assert [(symbol.name, symbol.line) for symbol in graph.symbols] == [("after", 3)]
    symbol = graph.symbols[0]
    assert source[symbol.offset :].startswith("def after")


def test_row_42_a_root_outside_ascii_has_symbols(tmp_path: Path) -> None:
    graph = scanned(tmp_path / "项目 ü", MIXED)
    assert len(graph.symbols) > 5
    assert len(graph.edges.includes) == 5


def test_a_file_without_a_grammar_becomes_text_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "PROVIDERS", ())
    grammars.load_grammar.cache_clear()
    try:
        graph = scanned(tmp_path, {"a.py": "def f(): pass\n"})
    finally:
        grammars.load_grammar.cache_clear()
    assert [(file.language, file.symbols, file.reason) for file in graph.files] == [
        ("python", 0, "grammar-unavailable")
    ]
    assert "1 grammar-unavailable" in graph_summary(graph)


HOSTILE = [("cpp", "a(<"), ("rust", "a("), ("csharp", "{"), ("swift", "x=>"), ("bash", "${"), ("c", "a(")]


@pytest.mark.parametrize(("language", "pattern"), HOSTILE)
def test_a_hostile_megabyte_is_stopped_at_the_first_look_at_the_clock_after_its_budget(
    language: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(reads)), process_time=lambda: float(next(reads)))
    monkeypatch.setattr(grammars, "time", clock)
    source = (pattern * (1_000_000 // len(pattern))).encode()
    found = analysis.analyse(source, language=language, budget_s=0.5)
    assert (found.reason, found.count) == ("parse-timeout", 0)
    # Two when it starts, then elapsed and processor time at the first look; nothing is read after that.
    assert next(reads) == 4


# Linear work on a megabyte takes seconds; each of these took minutes, or the memory, by a careless expression.
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.js", "function a(){\n" * 60_000),
        ("a.py", "".join(f"{' ' * depth}def f():\n" for depth in range(1_200))),
        ("a.c", "struct " * 140_000),
        ("a.cpp", "class A " * 120_000),
        ("a.py", "from " + " " * 1_000_000 + "x import y\n"),
        ("a.py", "from a import (" + "b, " * 300_000 + ")\n"),
        ("a.php", "<?php function" + " " * 1_000_000),
        ("a.php", "<?php use " + "A, " * 300_000 + "B;"),
        ("a.java", "import " + "a. " * 300_000 + "b;"),
        ("a.go", "// x */\nfunc f() {}\n" * 40_000),
        ("a.sh", "source " + "$(" * 400_000),
        ("tsconfig.json", "/*" * 500_000),
        ("tsconfig.json", '{"a' * 300_000),
        ("a.ipynb", '{"cells": ' * 90_000),
    ],
)
def test_no_expression_or_recursion_of_ours_can_be_driven_mad(tmp_path: Path, name: str, content: str) -> None:
    graph = scanned(tmp_path, {name: content, "b.ts": "import './c'\n"})
    assert len(graph.files) + len(graph.skipped) == 2
    plan_codebase(graph)


def test_row_40_a_parser_out_of_budget_leaves_text_and_a_reason(tmp_path: Path) -> None:
    plant(tmp_path, {"bad.c": "a(" * 400_000, "good.c": "int f(void) { return 0; }\n"})
    graph = scan_repo(tmp_path, ScanOptions(workers=1, parse_timeout_s=0.05))
    assert [(file.path, file.symbols, file.reason) for file in graph.files] == [
        ("bad.c", 0, "parse-timeout"),
        ("good.c", 1, ""),
    ]


@pytest.fixture
def crashing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make worker processes die or hang on sources that say so, as a grammar's bug would."""
    start = (
        "import os, time; from ctxstream_dagster.planning.codegraph import worker; analyse = worker.analyse\n"
        "def analyse_or_die(source, **options):\n"
        "    if b'CRASH' in source: os.abort()\n"
        "    if b'HANG' in source: time.sleep(600)\n"
        "    return analyse(source, **options)\n"
        "worker.analyse = analyse_or_die; worker.serve()"
    )
    monkeypatch.setattr(worker, "_START", start)
    monkeypatch.setattr(worker, "_DEADLINE_S", 4.0)
    monkeypatch.setattr(worker, "_WATCH_EVERY_S", 0.05)


@pytest.mark.usefixtures("crashing")
@pytest.mark.parametrize("workers", [1, 3])
def test_a_crash_and_a_hang_of_the_parser_cost_one_file_each(tmp_path: Path, workers: int) -> None:
    files = {f"f{number}.py": f"def f{number}(): pass\n" for number in range(40)}
    plant(tmp_path, {**files, "f3.py": "# CRASH\n", "f5.py": "# HANG\n"})
    graph = scan_repo(tmp_path, ScanOptions(workers=workers, parse_timeout_s=0.05))
    assert {file.path: file.reason for file in graph.files if file.reason} == {
        "f3.py": "parser-crash",
        "f5.py": "parse-timeout",
    }
    assert len(graph.symbols) == 38


@pytest.mark.usefixtures("crashing")
def test_a_crash_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ScanOptions(workers=1, cache_dir=tmp_path / "cache")
    plant(tmp_path / "code", {"a.py": "def f(): pass  # CRASH\n"})
    assert scan_repo(tmp_path / "code", options).files[0].reason == "parser-crash"
    monkeypatch.undo()
    assert scan_repo(tmp_path / "code", options).files[0].symbols == 1


def test_the_worker_imports_nothing_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    code = plant(tmp_path / "code", {f"{name}.py": evil for name in ("struct", "marshal", "re", "tree_sitter", "sys")})
    monkeypatch.chdir(code)
    assert {file.reason for file in scan_repo(".", ScanOptions(workers=1)).files} == {""}
    assert not (tmp_path / "ran").exists()


def test_a_second_scan_parses_nothing_and_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = plant(tmp_path / "code", MIXED)
    options = ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    first = scan_repo(code, options)
    assert first == scan_repo(code, IN_PROCESS)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr("ctxstream_dagster.planning.codegraph.scan.analyse", refuse)
    assert scan_repo(code, options) == first
    (code / "notes.md").write_text("other words\n")  # a new graph, from the same analyses
    second = scan_repo(code, options)
    assert second.symbols == first.symbols
    assert second != first
    monkeypatch.undo()
    (code / "pkg/a.py").write_text("def renamed(): pass\n")
    assert scan_repo(code, options) == scan_repo(code, IN_PROCESS)


def test_row_36_no_option_shares_a_cached_graph_with_another(tmp_path: Path) -> None:
    code = plant(
        tmp_path / "code",
        {
            ".gitignore": "*.log\n",
            "a.log": "1",
            "big.py": "x = 1\n" * 50,
            "build/b.py": "1",
            "extra/c.py": "1",
            "deep.c": "a(" * 200_000,
        },
    )
    (code / "link.py").symlink_to("big.py")
    cached = ScanOptions(workers=0, cache_dir=tmp_path / "cache", parse_timeout_s=0.05)
    changes: list[dict[str, object]] = [
        {},
        {"max_file_bytes": 100},
        {"exclude_dirs": ("extra",)},
        {"follow_symlinks": True},
        {"respect_gitignore": False},
        {"keep_tracked": False},
        {"workers": 1},
        {"references": False},
    ]
    for _ in range(2):
        for change in changes:
            options = replace(cached, **change)  # type: ignore[arg-type]
            assert scan_repo(code, options) == scan_repo(code, replace(options, cache_dir=None)), change


def test_a_damaged_or_unwritable_cache_costs_time_only(tmp_path: Path) -> None:
    code = plant(tmp_path / "code", MIXED)
    expected = scan_repo(code, IN_PROCESS)
    options = ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    scan_repo(code, options)
    (database,) = (tmp_path / "cache").glob("*.sqlite")
    for wal in (tmp_path / "cache").glob("*-wal"):
        wal.unlink()
    data = bytearray(database.read_bytes())
    for position in range(3000, len(data), 97):
        data[position] ^= 0x55
    database.write_bytes(bytes(data))
    assert scan_repo(code, options) == expected
    blocked = plant(tmp_path, {"blocked": "a file where the directory should be"}) / "blocked"
    assert scan_repo(code, replace(options, cache_dir=blocked)) == expected


def test_a_cached_value_that_was_changed_is_not_given_back(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        cache.keep_graph(b"key", b"value")
        assert cache.graph(b"key") == b"value"
        cache._write("UPDATE graph SET value = ?", [(b"12345678forged",)])
        assert cache.graph(b"key") is None


def test_row_29_a_scan_killed_half_way_leaves_nothing_that_a_later_one_trips_over(tmp_path: Path) -> None:
    code = plant(tmp_path / "code", {f"m{number}.py": f"def f{number}(): pass\n" * 200 for number in range(150)})
    cache = tmp_path / "cache"
    script = (
        "import sys; from pathlib import Path\n"
        "from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo\n"
        "print('ready', flush=True)\n"
        "scan_repo(sys.argv[1], ScanOptions(workers=0, cache_dir=Path(sys.argv[2])))\n"
    )
    for delay_s in (0.02, 0.15, 0.4):
        with subprocess.Popen([sys.executable, "-c", script, str(code), str(cache)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay_s)
            process.send_signal(signal.SIGKILL)
    assert scan_repo(code, ScanOptions(workers=0, cache_dir=cache)) == scan_repo(code, IN_PROCESS)


def test_the_result_depends_on_neither_hash_seed_nor_workers_nor_cache(tmp_path: Path) -> None:
    code = plant(tmp_path / "code", MIXED)
    plant(code, {f"samples/{path.stem}.{path.stem[:2]}": path.read_bytes() for path in SAMPLES.glob("*.txt")})
    script = (
        "import json, sys; from pathlib import Path\n"
        "from ctxstream_dagster import plan_codebase, scan_repo, ScanOptions\n"
        "from ctxstream_dagster.planning.codegraph.summary import graph_json, graph_summary\n"
        "cache = Path(sys.argv[3]) if len(sys.argv) > 3 else None\n"
        "graph = scan_repo(sys.argv[1], ScanOptions(workers=int(sys.argv[2]), cache_dir=cache))\n"
        "keys = [segment.key for segment in plan_codebase(graph).manifest]\n"
        "print(json.dumps([graph_json(graph), graph_summary(graph), keys]))\n"
    )

    def outcome(seed: str, *arguments: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", script, str(code), *arguments]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    first = outcome("0", "0")
    assert json.loads(first)[0]["symbols"]
    assert outcome("1", "3") == first
    assert outcome("2", "1", str(tmp_path / "cache")) == first
    assert outcome("3", "2", str(tmp_path / "cache")) == first


def test_a_notebook_is_its_cells_source(tmp_path: Path) -> None:
    notebook = {
        "nbformat": 4,
        "metadata": {"kernelspec": {"language": "python"}},
        "cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "words"]},
            {"cell_type": "code", "source": "def f():\n    return 1", "outputs": [{"data": {"image/png": "A" * 999}}]},
            {"cell_type": "code", "source": ["import helper\n"]},
        ],
    }
    graph = scanned(tmp_path, {"n.ipynb": json.dumps(notebook), "helper.py": "", "bad.ipynb": "{not json"})
    files = {file.path: file for file in graph.files}
    assert (files["n.ipynb"].language, files["n.ipynb"].derived, files["n.ipynb"].symbols) == ("python", True, 1)
    assert includes(graph) == {("n.ipynb", "helper.py")}
    assert (files["bad.ipynb"].language, files["bad.ipynb"].derived) == ("text", False)


@pytest.mark.parametrize("change", [{"workers": -1}, {"max_file_bytes": 0}, {"parse_timeout_s": 0.0}])
def test_an_option_out_of_range_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        ScanOptions(**change)  # type: ignore[arg-type]


def test_every_language_has_a_grammar_from_its_official_wheel() -> None:
    for language in LANGUAGES:
        grammar = grammars.load_grammar(language)
        assert grammar is not None
        assert grammar.provider.startswith("tree-sitter-")
        assert "language" not in grammar.provider


def test_the_json_names_everything_by_path(tmp_path: Path) -> None:
    value = graph_json(scanned(tmp_path, MIXED))
    assert ["src/x.c", "src/x.h", "includes"] in value["edges"]
    assert value["cycles"] == [["pkg/a.py", "pkg/b.py"]]
    assert len(value["broken"]) == 1
    assert {"path": "data.bin", "reason": "binary", "detail": "holds NUL bytes"} in value["skipped"]
    json.dumps(value)
