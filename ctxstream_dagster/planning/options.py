"""How a corpus is cut: every planning option with its unit, default and allowed range, checked when it is built."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from ctxstream_dagster.errors import ConfigError, nearest_name

Boundary = Literal["nearest", "stable"]
UnitKind = Literal["line", "symbol"]

DEFAULT_OVERLAP_CHARS = 400
DEFAULT_NEAREST_SLACK_CHARS = 4_000
LONGEST_DELIM_CHARS = 1_000
SMALLEST_TOKEN_BUDGET = 16

_ESCAPE = re.compile(r"\\([nrt0\\]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})")
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOptions:
    """How a corpus is cut. Raises `ConfigError` naming field, value and allowed range.

    Attributes:
        segment_chars: most characters a window may hold, overlap included; 1 or more.
        overlap_chars: most characters of the previous segment shown in front, in whole records where one fits, never
            of another file; 0 or more and below `segment_chars`. Left at 400, it shrinks to an eighth of a segment
            too small for it.
        boundary_slack: how far before the limit a record boundary is preferred, in characters; below
            `segment_chars`. None means 4,000 under ``nearest`` and a quarter of a segment under ``stable``
            (see `slack_chars`). Where the slack holds no boundary the last one before it is taken, so a record that
            fits in a window is never cut.
        record_delim: what ends a record, 1 to 1,000 characters. The end of a file ends a record too.
        boundary: ``nearest`` cuts at the last record boundary within the slack; ``stable`` at the one whose
            preceding record has the smallest hash, so that plans re-align after an edit.
        max_tokens: most tokens a window may hold by `planning.tokens.estimate_upper`; 16 or more, None for no limit.
        unit: what a codebase is labelled by: ``line`` (its records) or ``symbol``. Text files have no symbols.
    """

    segment_chars: int = 60_000
    overlap_chars: int = DEFAULT_OVERLAP_CHARS
    boundary_slack: int | None = None
    record_delim: str = "\n"
    boundary: Boundary = "nearest"
    max_tokens: int | None = None
    unit: UnitKind = "line"

    def __post_init__(self) -> None:
        _whole_number("segment_chars", self.segment_chars, least=1)
        _whole_number("overlap_chars", self.overlap_chars, least=0)
        _delimiter(self.record_delim)
        _one_of("boundary", self.boundary, known=get_args(Boundary))
        _one_of("unit", self.unit, known=get_args(UnitKind))
        if self.overlap_chars >= self.segment_chars and self.overlap_chars != DEFAULT_OVERLAP_CHARS:
            raise ConfigError(
                f"overlap_chars is {self.overlap_chars}; it must be smaller than segment_chars ({self.segment_chars})."
            )
        if len(self.record_delim) > self.segment_chars:
            raise ConfigError(
                f"segment_chars is {self.segment_chars}; it must be at least the length of record_delim "
                f"({len(self.record_delim)})."
            )
        if self.boundary_slack is not None:
            _whole_number("boundary_slack", self.boundary_slack, least=0)
            if self.boundary_slack >= self.segment_chars:
                raise ConfigError(
                    f"boundary_slack is {self.boundary_slack}; it must be smaller than segment_chars "
                    f"({self.segment_chars})."
                )
        if self.max_tokens is not None:
            _whole_number("max_tokens", self.max_tokens, least=SMALLEST_TOKEN_BUDGET)

    @property
    def slack_chars(self) -> int:
        """The slack in force, in characters."""
        if self.boundary_slack is not None:
            return self.boundary_slack
        if self.boundary == "stable":
            return self.segment_chars // 4
        return min(DEFAULT_NEAREST_SLACK_CHARS, self.segment_chars - 1)

    @property
    def overlap_limit_chars(self) -> int:
        """The overlap in force, in characters."""
        if self.overlap_chars == DEFAULT_OVERLAP_CHARS:
            return min(DEFAULT_OVERLAP_CHARS, self.segment_chars // 8)
        return self.overlap_chars

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ManifestOptions:
        """Build the options from field names and values (YAML, JSON); raises `ConfigError`, with the nearest name."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(
                    f"{name!r} is no planning option{nearest_name(str(name), known)}. Known: {', '.join(known)}."
                )
        return cls(**values)


def written_delimiter(written: str) -> str:
    r"""Return the delimiter that a person wrote where control characters cannot be typed.

    ``\n``, ``\r``, ``\t``, ``\0``, ``\\``, ``\xNN`` and ``\uNNNN`` stand for one character; everything else for itself.
    """
    return _ESCAPE.sub(_unescaped, written)


def _unescaped(match: re.Match[str]) -> str:
    escape = match.group(1)
    return _CONTROL.get(escape) or chr(int(escape[1:], 16))


def _whole_number(name: str, value: object, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}; it must be a whole number, {least} or more.")
    if value < least:
        raise ConfigError(f"{name} is {value}; it must be {least} or more.")


def _one_of(name: str, value: object, *, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(
            f"{name} is {value!r}; it must be one of {', '.join(known)}{nearest_name(str(value), known)}."
        )


def _delimiter(value: object) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_DELIM_CHARS:
        raise ConfigError(f"record_delim is {value!r}; it must be text of 1 to {LONGEST_DELIM_CHARS} characters.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConfigError(f"record_delim is {value!r}; it holds a lone surrogate, which no text file can.") from error
