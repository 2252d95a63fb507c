"""The seam between grammars and their providers: the first that has a language gives it; a fetcher is none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ctxstream_dagster.planning.codegraph import grammars
from ctxstream_dagster.planning.codegraph.languages import LANGUAGES

PACK = "tree_sitter_language_pack"


def pretend(monkeypatch: pytest.MonkeyPatch, modules: dict[str, tuple[object, str]]) -> None:
    """Let only `modules` be installed, each a module with its version."""
    monkeypatch.setattr(grammars, "_imported", lambda name: modules[name][0] if name in modules else None)
    monkeypatch.setattr(grammars, "_stamp", lambda name: f"{name} {modules[name][1] if name in modules else '0'}")


def refuse(name: str) -> object:
    raise AssertionError(f"asked for {name}")


def test_a_pack_below_1_gives_what_no_wheel_does(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = SimpleNamespace(__name__=PACK, get_language=lambda name: f"tables of {name}")
    pretend(monkeypatch, {PACK: (pack, "0.13.0")})
    found = [provider("csharp") for provider in grammars.PROVIDERS]
    assert found == [None, grammars.Grammar("csharp", f"{PACK} 0.13.0", "tables of csharp"), None]


def test_a_pack_from_1_on_is_never_asked_and_the_advice_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {PACK: (SimpleNamespace(__name__=PACK, get_language=refuse), "1.25.0")})
    assert [provider("python") for provider in grammars.PROVIDERS] == [None, None, None]
    assert "tree-sitter-language-pack<1" in grammars.missing_advice()


def test_the_old_bundle_on_a_new_core_is_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_name: str) -> object:
        raise TypeError("__init__() takes exactly 1 argument (2 given)")

    pretend(monkeypatch, {"tree_sitter_languages": (SimpleNamespace(get_language=fails), "1.10.2")})
    assert grammars.legacy_languages("c") is None


def test_versions_of_grammars_are_part_of_every_cache_key() -> None:
    stamps = {grammars.grammar_stamp(language) for language in LANGUAGES}
    assert all(stamp.startswith("tree-sitter 0.26") for stamp in stamps)
    assert len(stamps) == len(LANGUAGES) - 1  # TSX and TypeScript share a wheel


def test_a_parser_is_usable_again_after_a_timeout() -> None:
    grammar = grammars.load_grammar("c")
    assert grammar is not None
    with pytest.raises(grammars.ParseTimeout, match=r"more than 0\.05 s"):
        grammars.parse(grammar, b"a(" * 400_000, budget_s=0.05)
    assert not grammars.parse(grammar, b"int f(void) { return 0; }\n", budget_s=5).root_node.has_error
