"""Reads one number of a reply: exact, bounded, or a typed reason why it is none; and the numbers that a unit holds."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from functools import lru_cache

from ctxstream_dagster.extraction.records import RejectReason

MAX_INTEGER_DIGITS = 18
MAX_DECIMALS = 9

_NUMBER = re.compile(r"([+-]?)(\d+|\d{1,3}(?:,\d{3})+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_WRITTEN = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d{1,3}(?!\d))?", re.ASCII)
_SIGNS = str.maketrans({"−": "-", "－": "-", "＋": "+", "，": ",", "．": ".", "٬": ",", "٫": ".", "｡": "."})
# No reply's number is longer; longer text is prose, and is not scanned.
_LONGEST = 64


def read_value(text: str, *, count: bool) -> Decimal | RejectReason:
    """Return the number that `text` is, or why it is none.

    Read: digits of any script, a sign, `1,234` (groups of three only), `3.0`, `1e3`, and a number in quotes. Not read,
    because a guess could be wrong: `3 items`, `1.234,5`, `1 000`, `1_000`, `½`, words.

    Args:
        text: one field of a reply line.
        count: whether it counts things; then it is whole and not negative.

    Returns:
        A Decimal of at most 18 integer digits and 9 decimals; else ``bad-value`` or
        ``value-out-of-range``.
    """
    stripped = text.strip().strip("\"'`*").strip()
    if len(stripped) > _LONGEST:
        digits = stripped[:4096]
        return "value-out-of-range" if digits.isdecimal() else "bad-value"
    found = _NUMBER.fullmatch(_ascii_digits(stripped).translate(_SIGNS))
    if found is None:
        return "bad-value"
    sign, whole, decimals, exponent = found.groups()
    fraction = decimals or ""
    number = int(whole.replace(",", "") + fraction)
    scale = len(fraction) - int(exponent or 0)
    if scale < 0:
        number, scale = number * 10**-scale, 0
    while scale and number % 10 == 0:
        number, scale = number // 10, scale - 1
    if scale > MAX_DECIMALS or number >= 10 ** (MAX_INTEGER_DIGITS + scale):
        return "value-out-of-range"
    if count and (scale or (sign == "-" and number)):
        return "value-out-of-range"
    return Decimal(-number if sign == "-" else number).scaleb(-scale)


@lru_cache(maxsize=64)
def numbers_in(text: str) -> frozenset[Decimal]:
    """Return every number that stands in `text` as `read_value` reads it, with and without the sign in front."""
    found: set[Decimal] = set()
    for written in _WRITTEN.findall(_ascii_digits(text).translate(_SIGNS)):
        for form in {written, written.lstrip("+-"), *written.split(",")}:
            value = read_value(form, count=False)
            if not isinstance(value, str):
                found.add(value)
    return frozenset(found)


def _ascii_digits(text: str) -> str:
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(character)) if character.isdecimal() else character for character in text)
