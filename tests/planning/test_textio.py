"""Bytes to text: every encoding we claim, and what is no text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxstream_dagster.errors import CorpusError
from ctxstream_dagster.planning import textio
from ctxstream_dagster.planning.textio import BLOCK_BYTES, TextFile, Unreadable, decode_bytes, open_text


def read(path: Path) -> tuple[str, str]:
    opened = open_text(path)
    assert isinstance(opened, TextFile), opened
    with opened as text:
        return text.encoding, "".join(text.pieces())


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"plain\n", "utf-8", "plain\n"),
        ("größer 漢 😀\r\n".encode(), "utf-8", "größer 漢 😀\r\n"),
        (b"\xef\xbb\xbf" + "größer\n".encode(), "utf-8-sig", "größer\n"),
        (b"\xff\xfe" + "größer 😀\n".encode("utf-16-le"), "utf-16-le", "größer 😀\n"),
        (b"\xfe\xff" + "größer 😀\n".encode("utf-16-be"), "utf-16-be", "größer 😀\n"),
        ("größer – 5 €\n".encode("cp1252"), "cp1252", "größer – 5 €\n"),
        (b"\x81\x8d\x8f\x90\x9d", "cp1252", "\x81\x8d\x8f\x90\x9d"),
        (b"\xef\xbb\xbfcaf\xe9", "cp1252", "ï»¿café"),
        (b"\xff\xfe" + b"\x00\xd8a\x00", "utf-16-le", "\ufffda"),
        (b"\xff\xfea\x00b", "utf-16-le", "a\ufffd"),
        ("was already broken: \ufffd\n".encode(), "utf-8", "was already broken: \ufffd\n"),
        (b"", "utf-8", ""),
        (b"\xef\xbb\xbf", "utf-8-sig", ""),
        (b"\n", "utf-8", "\n"),
        (b"old mac\rline\r", "utf-8", "old mac\rline\r"),
    ],
)
def test_encodings(tmp_path: Path, data: bytes, encoding: str, text: str) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(data)
    assert read(path) == (encoding, text)
    assert decode_bytes(data) == (text, encoding)


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"MZ\0\0", "NUL"),
        (b"text" * 400_000 + b"\0", "NUL"),
        ("größer\n".encode("utf-16-le"), "UTF-16 without a byte order mark"),
        ("größer\n".encode("utf-16-be"), "UTF-16 without a byte order mark"),
        (b"\xff\xfe\x00\x00" + "x".encode("utf-32-le"), "UTF-32"),
        (b"\x00\x00\xfe\xff" + "x".encode("utf-32-be"), "UTF-32"),
        (b"\xff\xfea\x00\x00\x00", "NUL"),
    ],
)
def test_binary_files_say_what_they_are(tmp_path: Path, data: bytes, detail: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    verdict = open_text(path)
    assert isinstance(verdict, Unreadable)
    assert verdict.reason == "binary"
    assert decode_bytes(data) == verdict
    assert detail in verdict.detail


@given(text=st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_utf8_comes_back_whole(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "utf8.txt"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read(path) == ("utf-8-sig", text)


@given(data=st.binary(min_size=1).map(lambda data: data.replace(b"\0", b"\x80") + b"\x81"))
def test_bytes_that_are_no_utf8_become_one_character_each(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "cp1252.txt"
    path.write_bytes(b"\xe9 " + data)
    encoding, text = read(path)
    assert encoding == "cp1252"
    assert len(text) == len(data) + 2


@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("shift", range(4))
def test_a_character_on_the_edge_of_a_block_is_read_whole(tmp_path: Path, width: int, shift: int) -> None:
    character = {2: "é", 3: "漢", 4: "😀"}[width]
    text = "a" * (BLOCK_BYTES - shift) + character + "b" * 10
    path = tmp_path / "edge.txt"
    path.write_bytes(text.encode())
    assert read(path) == ("utf-8", text)


def test_a_named_pipe_is_skipped_without_waiting_for_it(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert open_text(path) == Unreadable(reason="special-file", detail="neither a file nor a directory")


def test_what_may_not_be_opened_is_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.txt"
    path.write_text("x")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("ctxstream_dagster.planning.textio.os.open", refuse)
    assert open_text(path) == Unreadable(reason="unreadable", detail="Permission denied")


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs files that report no size")
def test_a_file_that_reports_no_size_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("/proc/version")
    assert path.stat().st_size == 0
    assert read(path) == ("utf-8", path.read_text(encoding="utf-8"))
    monkeypatch.setattr("ctxstream_dagster.planning.textio.MOST_UNSIZED_BYTES", 3)
    refused = open_text(path)
    assert isinstance(refused, Unreadable)
    assert "reports no size" in refused.detail


def test_a_growing_log_is_read_up_to_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"one\n")
    opened = open_text(path)
    assert isinstance(opened, TextFile)
    with path.open("ab") as log:
        log.write(b"two\xff\n")
    with opened as text:
        assert "".join(text.pieces()) == "one\n"


@pytest.mark.parametrize("data", [b"short", b"\xff" * 2_000_000])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "moving.txt"
    path.write_bytes(b"a" * 2_000_000)
    opened = open_text(path)
    assert isinstance(opened, TextFile)
    path.write_bytes(data)
    with opened as text, pytest.raises(CorpusError, match=r"while it was read.*Run again"):
        list(text.pieces())


def test_no_more_than_a_block_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textio, "BLOCK_BYTES", 1000)
    path = tmp_path / "line.txt"
    path.write_bytes("é".encode() * 5000)
    opened = open_text(path)
    assert isinstance(opened, TextFile)
    with opened as text:
        pieces = list(text.pieces())
    assert max(map(len, pieces)) <= 500
    assert "".join(pieces) == "é" * 5000
