"""Definitions and imports of every language, by samples; the traps of each grammar are in the samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxstream_dagster.planning.codegraph import grammars
from ctxstream_dagster.planning.codegraph.analysis import analyse
from ctxstream_dagster.planning.codegraph.languages import LANGUAGES
from ctxstream_dagster.planning.codegraph.macros import without_macros
from ctxstream_dagster.planning.codegraph.names import without_template_arguments
from ctxstream_dagster.planning.codegraph.symbols import read_tree
from ctxstream_dagster.planning.codegraph.values import SymbolNode, SymbolRow, Symbols, pack_rows, unpack_rows

SAMPLES = Path(__file__).parent / "samples"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.txt"))


def language_of(sample: str) -> str:
    return sample.split("-")[0]


def read(source: bytes, language: str) -> tuple[tuple[SymbolNode, ...], list[tuple[str, str]]]:
    grammar = grammars.load_grammar(language)
    assert grammar is not None
    rows, imports = read_tree(grammars.parse(grammar, source, budget_s=5), source, language=language)
    return Symbols((pack_rows(rows),), (len(rows),)).of_file(0), imports


@pytest.mark.parametrize("sample", NAMES)
def test_a_sample_gives_its_symbols_and_imports(sample: str) -> None:
    symbols, imports = read((SAMPLES / f"{sample}.txt").read_bytes(), language_of(sample))
    found = [f"{symbol.kind} {symbol.qualname} {symbol.line}-{symbol.end_line}" for symbol in symbols]
    found += [f"import {form} {target}".replace("\0", " ") for form, target in imports]
    assert found == (SAMPLES / f"{sample}.expected").read_text().splitlines()


def test_every_language_has_a_sample() -> None:
    assert {language_of(name) for name in NAMES} == set(LANGUAGES)


@pytest.mark.parametrize("sample", NAMES)
def test_the_walk_of_statements_finds_what_a_walk_of_every_node_finds(
    sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxstream_dagster.planning.codegraph import symbols as module

    source = (SAMPLES / f"{sample}.txt").read_bytes()
    quick = read(source, language_of(sample))
    walk = module.walk
    monkeypatch.setattr(module, "walk", lambda *args, **options: walk(*args, **options, whole=True))
    assert quick == read(source, language_of(sample))


@pytest.mark.parametrize("sample", NAMES)
def test_offsets_count_characters_and_lines_even_after_wide_text(sample: str) -> None:
    comment = {"lua": "-- ", "python": "# ", "ruby": "# ", "bash": "# ", "php": "<?php // "}.get(
        language_of(sample), "// "
    )
    text = f"{comment}größe 漢字 😀\n\n" + (SAMPLES / f"{sample}.txt").read_text()
    lines = text.splitlines(keepends=True)
    symbols, _ = read(text.encode(), language_of(sample))
    for symbol in symbols:
        before = "".join(lines[: symbol.line - 1])
        assert len(before) <= symbol.offset <= len(before) + len(lines[symbol.line - 1])
        part = text[symbol.offset : symbol.offset + symbol.length]
        assert part.count("\n") == symbol.end_line - symbol.line
        assert not part.endswith("\n")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("formatter<custom_type<int>>", "formatter"),
        ("a<b>::c<d<e>>::f", "a::c::f"),
        ("operator<", "operator<"),
        ("stack<T>::operator<<", "stack::operator<<"),
        ("process_attribute<is_operator>", "process_attribute"),
        ("plain", "plain"),
    ],
)
def test_a_specialisation_defines_the_template_s_name(written: str, name: str) -> None:
    assert without_template_arguments(written) == name


rows = st.lists(
    st.tuples(
        st.sampled_from(["class", "function"]), st.text(max_size=5), st.integers(1, 9), st.integers(1, 9),
        st.integers(0, 99), st.integers(0, 99), st.just(-1),
    )
)  # fmt: skip


@given(st.lists(rows, max_size=5))
def test_packed_symbols_come_back_by_file_and_by_position(files: list[list[SymbolRow]]) -> None:
    symbols = Symbols(tuple(map(pack_rows, files)), tuple(map(len, files)))
    assert [unpack_rows(block) for block in symbols.blocks] == files
    assert list(symbols) == [symbols[number] for number in range(len(symbols))]
    assert [symbol.id for symbol in symbols] == list(range(len(symbols)))
    assert [symbol.name for symbol in symbols] == [row[1] for file in files for row in file]


def test_bare_macros_hide_no_definition_of_cplusplus() -> None:
    source = (
        b"namespace n {\n\nEXPORT_BEGIN\ntemplate <typename T> struct is_range { int a; };\n\nEXPORT_ENUM enum class"
        b" color : int { red };\n\nclass GTEST_API_ Helper {\n public:\n  int* locked(int a) LOCKS_EXCLUDED(mutex_) {\n"
        b"    return 0;\n  }\n};\n\nGTEST_API_ Cardinality AtLeast(int n) { return 1; }\nEXPORT_END\n}\n"
    )
    found = analyse(source, language="cpp", budget_s=5).symbol_rows()
    assert [(kind, name) for kind, name, *_ in found] == [
        ("namespace", "n"),
        ("struct", "is_range"),
        ("enum", "color"),
        ("class", "Helper"),
        ("method", "locked"),
        ("function", "AtLeast"),
    ]
    assert without_macros(source, language="cpp").count(b"\n") == source.count(b"\n")
    assert len(without_macros(source, language="cpp")) == len(source)


def test_a_bare_macro_on_the_first_line_is_blanked_too() -> None:
    assert without_macros(b"FMT_EXPORT\nclass A {};\n", language="cpp") == b" " * 10 + b"\nclass A {};\n"
