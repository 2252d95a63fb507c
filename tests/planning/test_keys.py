"""Keys name partitions and files, so nothing but a key may pass for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxstream_dagster.errors import CorpusError
from ctxstream_dagster.planning.keys import LONGEST_SLUG_CHARS, KeyMaker, slug, validate_key


@given(path=st.text(max_size=80))
def test_any_path_gives_a_valid_key(path: str) -> None:
    assert validate_key(KeyMaker().key(path, b"text"))
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
