"""Bytes to text: which encoding a file is in, and its text in pieces, so that no file is ever held whole.

The rule, in this order (guessers of character sets were tried on 23 odd files of 48,600, and guessed oddly):

1. A byte order mark decides: UTF-8 (``utf-8-sig``), UTF-16. The mark itself is no text.
2. A NUL byte anywhere makes the file binary: UTF-16 without a mark is full of them, and so is UTF-32.
3. Valid UTF-8 is UTF-8.
4. Everything else is ``cp1252``. Its five bytes without a character (81, 8D, 8F, 90, 9D) become the control
   characters of the same number, as browsers do, so every byte has exactly one character and none is lost.

Broken UTF-16 (half a surrogate pair, an odd last byte) becomes U+FFFD.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ctxstream_dagster.errors import CorpusError

BLOCK_BYTES = 1 << 20
MOST_UNSIZED_BYTES = 64 << 20

_Decode = Callable[[bytes, bool], str]

_CP1252 = "".join(
    bytes([byte]).decode("cp1252", "ignore") or chr(byte)  # 81, 8D, 8F, 90 and 9D have no character in cp1252
    for byte in range(256)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Why a file gives no text: ``binary``, ``special-file`` or ``unreadable``, with a detail for a person."""

    reason: str
    detail: str


class TextFile:
    """One file open for reading as text; a context manager.

    What is appended to the file after it was opened is not read, so a growing log gives one consistent text.

    Attributes:
        path: the file.
        bytes: its size when it was opened.
        encoding: as in `planning.corpus.SourceFile.encoding`.
    """

    def __init__(self, path: Path, file: BinaryIO, *, size: int, encoding: str, mark: int) -> None:
        self.path = path
        self.bytes = size
        self.encoding = encoding
        self._file = file
        self._mark = mark

    def __enter__(self) -> TextFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def pieces(self) -> Iterator[str]:
        """Yield the text in order, line ends as they are; raises `CorpusError` when the file changed meanwhile."""
        decode = _decoder(self.encoding)
        try:
            left = self.bytes - self._mark
            for block in _blocks(self._file, start=self._mark, size=self.bytes):
                left -= len(block)
                yield decode(block, False)
            yield decode(b"", True)
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(
                f"{self.path} changed while it was read ({error}). Run again when nobody writes it."
            ) from error
        if left:
            raise CorpusError(f"{self.path} became shorter while it was read. Run again when nobody writes it.")


def open_text(path: Path) -> TextFile | Unreadable:
    """Open `path` and find its encoding, reading it once; what is not text comes back as a value, never as an error."""
    try:
        # Opening a pipe or a device could block for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            return Unreadable(reason="special-file", detail="neither a file nor a directory")
        file: BinaryIO = io.FileIO(path, opener=without_waiting)
    except OSError as error:
        return Unreadable(reason="unreadable", detail=error.strerror or str(error))
    try:
        size = os.fstat(file.fileno()).st_size
        if not size:
            file, size = _without_size(file)
        verdict = _verdict(file, size=size)
    except OSError as error:
        file.close()
        return Unreadable(reason="unreadable", detail=error.strerror or str(error))
    except BaseException:
        file.close()
        raise
    if isinstance(verdict, Unreadable):
        file.close()
        return verdict
    encoding, mark = verdict
    return TextFile(path, file, size=size, encoding=encoding, mark=mark)


def without_waiting(name: str, flags: int) -> int:
    """Open a file for `io.FileIO`: some of /proc wait for something to happen; ordinary ones do not know the flag."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _without_size(file: BinaryIO) -> tuple[BinaryIO, int]:
    """Return what a file that reports no size holds, as files of /proc and /sys do, and how much that is."""
    with file:
        data = bytearray()
        while block := file.read(BLOCK_BYTES):
            data += block
            if len(data) > MOST_UNSIZED_BYTES:
                raise OSError(errno.EFBIG, f"reports no size and holds more than {MOST_UNSIZED_BYTES >> 20} MB")
    return io.BytesIO(data), len(data)


def decode_bytes(data: bytes) -> tuple[str, str] | Unreadable:
    """Return (text, encoding) of a whole file's bytes by the same rule as `open_text`, or why it is no text."""
    verdict = _verdict(io.BytesIO(data), size=len(data))
    if isinstance(verdict, Unreadable):
        return verdict
    encoding, mark = verdict
    return _decoder(encoding)(data[mark:], True), encoding


def _verdict(file: BinaryIO, *, size: int) -> tuple[str, int] | Unreadable:
    head = file.read(4)
    if head in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        return Unreadable(reason="binary", detail="UTF-32; convert it to UTF-8 to include it")
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if head.startswith(mark):
            return _utf16(file, encoding, size=size)
    encoding, mark = ("utf-8-sig", 3) if head.startswith(codecs.BOM_UTF8) else ("utf-8", 0)
    decode = _decoder("utf-8")
    is_utf8 = True
    for block in _blocks(file, start=mark, size=size):
        if b"\0" in block:
            return Unreadable(reason="binary", detail=_nul_detail(head))
        if is_utf8:
            is_utf8 = _decodes(decode, block)
    if is_utf8 and _decodes(decode, b"", final=True):
        return encoding, mark
    return "cp1252", 0


def _utf16(file: BinaryIO, encoding: str, *, size: int) -> tuple[str, int] | Unreadable:
    decode = _decoder(encoding)
    if any("\0" in decode(block, False) for block in _blocks(file, start=2, size=size)):
        return Unreadable(reason="binary", detail="starts like UTF-16 but holds NUL characters")
    return encoding, 2


def _nul_detail(head: bytes) -> str:
    if len(head) == 4 and (head[1] == head[3] == 0 or head[0] == head[2] == 0) and any(head):
        return "holds NUL bytes; it looks like UTF-16 without a byte order mark: convert it to UTF-8 to include it"
    return "holds NUL bytes"


def _decodes(decode: _Decode, block: bytes, *, final: bool = False) -> bool:
    try:
        decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _blocks(file: BinaryIO, *, start: int, size: int) -> Iterator[bytes]:
    file.seek(start)
    left = size - start
    while left > 0 and (block := file.read(min(BLOCK_BYTES, left))):
        left -= len(block)
        yield block


def _decoder(encoding: str) -> _Decode:
    if encoding == "cp1252":
        return _decode_cp1252
    if encoding.startswith("utf-16"):
        return codecs.getincrementaldecoder(encoding)("replace").decode
    return codecs.getincrementaldecoder("utf-8")("strict").decode


def _decode_cp1252(block: bytes, _final: bool) -> str:
    # A table given as text is the fast way in and documented in C, but typeshed knows only mappings.
    return codecs.charmap_decode(block, "strict", _CP1252)[0]  # pyright: ignore[reportArgumentType]
