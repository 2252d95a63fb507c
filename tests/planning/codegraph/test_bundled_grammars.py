"""The two bundles that may stand in for the official wheels, each in an environment of its own.

``make test-legacy-grammars`` makes both: they need parsers that the official wheels do not go with, or lack them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ctxstream_dagster.planning.codegraph import grammars
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.symbols import read_tree
from ctxstream_dagster.planning.codegraph.values import Symbols, pack_rows

BUNDLES = ("tree_sitter_languages", "tree_sitter_language_pack")
BUNDLE = next((name for name in BUNDLES if importlib.util.find_spec(name)), "")
pytestmark = pytest.mark.skipif(
    not BUNDLE or importlib.util.find_spec("tree_sitter_python") is not None,
    reason="a bundle is asked where the official wheels are missing: make test-legacy-grammars",
)

SAMPLES = Path(__file__).parent / "samples"
VERSIONS = {
    "tree_sitter_languages": "tree-sitter-languages 1.10.2",
    "tree_sitter_language_pack": "tree-sitter-language-pack 0.",
}
MISSING = {"tree_sitter_languages": {"swift"}, "tree_sitter_language_pack": set[str]()}
OFFICIAL_ALL_THE_SAME = {"tree_sitter_languages": set[str](), "tree_sitter_language_pack": {"csharp"}}
"""The pack takes the wheel of C# as a dependency."""
# The older bundle's grammars are of 2024: what they read otherwise than the official wheels do.
DIFFERENT = {
    ("tree_sitter_languages", "lua"): {"function M.assigned 6-6", "function v 7-7", "import require a.b"},
}


@pytest.mark.parametrize("sample", sorted(path.stem for path in SAMPLES.glob("*.txt")))
def test_a_sample_gives_the_same_symbols_but_for_the_known_ones(sample: str) -> None:
    language = sample.split("-")[0]
    grammar = grammars.load_grammar(language)
    if language in MISSING[BUNDLE]:
        assert grammar is None
        return
    assert grammar is not None
    if language not in OFFICIAL_ALL_THE_SAME[BUNDLE]:
        assert grammar.provider.startswith(VERSIONS[BUNDLE])
    source = (SAMPLES / f"{sample}.txt").read_bytes()
    rows, imports = read_tree(grammars.parse(grammar, source, budget_s=5), source, language=language)
    symbols = Symbols((pack_rows(rows),), (len(rows),)).of_file(0)
    found = {f"{symbol.kind} {symbol.qualname} {symbol.line}-{symbol.end_line}" for symbol in symbols}
    found |= {f"import {form} {target}".replace("\0", " ") for form, target in imports}
    expected = set((SAMPLES / f"{sample}.expected").read_text().splitlines())
    assert expected - found == DIFFERENT.get((BUNDLE, sample), set())
    assert found - expected == set()


def test_a_scan_works_in_a_worker_and_what_has_no_grammar_becomes_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(): pass\n")
    (tmp_path / "b.swift").write_text("func f() {}\n")
    graph = scan_repo(tmp_path, ScanOptions(workers=1))
    swift = (0, "grammar-unavailable") if "swift" in MISSING[BUNDLE] else (1, "")
    assert [(file.path, file.symbols, file.reason) for file in graph.files] == [("a.py", 1, ""), ("b.swift", *swift)]
