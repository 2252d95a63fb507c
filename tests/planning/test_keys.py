"""Keys name partitions and files, so nothing but a key may pass for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxstream_dagster.errors import CorpusError
from ctxstream_dagster.planning.corpus import pack
from ctxstream_dagster.planning.keys import LONGEST_SLUG_CHARS, KeyMaker, slug, validate_key
from ctxstream_dagster.planning.manifest import plan
from ctxstream_dagster.planning.options import ManifestOptions


@given(path=st.text(max_size=80))
def test_any_path_gives_a_valid_key(path: str) -> None:
    assert validate_key(KeyMaker().key(path, b"text", division=b""))
    assert 1 <= len(slug(path)) <= LONGEST_SLUG_CHARS


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("logs/Web Server.2026.log", "web-server.2026"),
        ("Ärger.txt", "arger"),
        ("größe.txt", "grosse"),
        ("漢字.txt", "text"),
        ("..", "text"),
        ("a..b.txt", "a.b"),
        (".env", "env"),
        ("-rf.txt", "rf"),
        ("", "text"),
        ("x" * 500, "x" * LONGEST_SLUG_CHARS),
    ],
)
def test_the_readable_half(path: str, name: str) -> None:
    assert slug(path) == name


@pytest.mark.parametrize(
    "key",
    [
        "",
        "tickets",
        "tickets~123",
        "tickets~5c64c7c115fedde",
        "tickets~5c64c7c115fedde4~",
        "tickets~5c64c7c115fedde4~0",
        "tickets~5C64C7C115FEDDE4",
        "Tickets~5c64c7c115fedde4",
        "~5c64c7c115fedde4",
        "..~5c64c7c115fedde4",
        "a..b~5c64c7c115fedde4",
        "../etc~5c64c7c115fedde4",
        "a/b~5c64c7c115fedde4",
        ".hidden~5c64c7c115fedde4",
        "a b~5c64c7c115fedde4",
        "tickets~5c64c7c115fedde4\n",
        "x" * 60 + "~5c64c7c115fedde4",
        "tickets~٥c64c7c115fedde4",
    ],
)
def test_what_is_no_key(key: str) -> None:
    with pytest.raises(CorpusError, match="is no segment key"):
        validate_key(key)


@pytest.mark.parametrize("key", ["tickets~5c64c7c115fedde4", "a_b.c-d~5c64c7c115fedde4~12"])
def test_what_is_a_key(key: str) -> None:
    assert validate_key(key) == key


def test_equal_text_in_other_units_is_another_segment() -> None:
    # Or a result stored for the lines would be read as one for the paragraphs.
    text = "Status: open\n\nStatus: lost\nand found\n"
    lines, paragraphs = (plan(text, ManifestOptions(record_delim=delim))[0].key for delim in ("\n", "\n\n"))
    assert lines != paragraphs


def test_equal_code_in_lines_and_in_symbols_is_another_segment(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text("def f():\n    return 1\n", encoding="utf-8")
    lines, symbols = (
        pack([tmp_path / "code"], directory=tmp_path / unit, options=ManifestOptions(unit=unit)).manifest[0].key
        for unit in ("line", "symbol")
    )
    assert lines != symbols


def test_a_file_that_moves_keeps_its_key(tmp_path: Path) -> None:
    keys: list[str] = []
    for folder in ("before", "after"):
        path = tmp_path / folder / "a.log"
        path.parent.mkdir()
        path.write_text("Status: open\n", encoding="utf-8")
        keys.append(pack([path], directory=tmp_path / f"plan-{folder}").manifest[0].key)
    assert keys[0] == keys[1]
