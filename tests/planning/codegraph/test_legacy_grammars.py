"""The provider of last resort, in the environment that it needs: ``make test-legacy-grammars``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import tree_sitter

from ctxstream_dagster.planning.codegraph import grammars
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.symbols import read_tree
from ctxstream_dagster.planning.codegraph.values import Symbols, pack_rows

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tree_sitter_languages") is None or hasattr(tree_sitter, "QueryCursor"),
    reason="tree_sitter_languages needs tree-sitter 0.21 and an environment of its own: make test-legacy-grammars",
)

SAMPLES = Path(__file__).parent / "samples"
# Its grammars are of 2024: what they read otherwise than the official wheels do.
DIFFERENT = {
    "lua": {"function M.assigned 6-6", "function v 7-7", "import require a.b"},
}


@pytest.mark.parametrize("sample", sorted(path.stem for path in SAMPLES.glob("*.txt")))
def test_a_sample_gives_the_same_symbols_but_for_the_known_ones(sample: str) -> None:
    language = sample.split("-")[0]
    grammar = grammars.load_grammar(language)
    if language == "swift":
        assert grammar is None
        return
    assert grammar is not None
    assert grammar.provider == "tree-sitter-languages 1.10.2"
    source = (SAMPLES / f"{sample}.txt").read_bytes()
    rows, imports = read_tree(grammars.parse(grammar, source, budget_s=5), source, language=language)
    symbols = Symbols((pack_rows(rows),), (len(rows),)).of_file(0)
    found = {f"{symbol.kind} {symbol.qualname} {symbol.line}-{symbol.end_line}" for symbol in symbols}
    found |= {f"import {form} {target}".replace("\0", " ") for form, target in imports}
    expected = set((SAMPLES / f"{sample}.expected").read_text().splitlines())
    assert expected - found == DIFFERENT.get(sample, set())
    assert found - expected == set()


def test_a_scan_works_in_a_worker_and_swift_becomes_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): pass\n")
    (tmp_path / "b.swift").write_text("func f() {}\n")
    graph = scan_repo(tmp_path, ScanOptions(workers=1))
    assert [(file.path, file.symbols, file.reason) for file in graph.files] == [
        ("a.py", 1, ""),
        ("b.swift", 0, "grammar-unavailable"),
    ]
