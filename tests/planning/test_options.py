"""Planning options say what is wrong, with the allowed range, when they are built."""

from __future__ import annotations

import pytest

from ctxstream_dagster.errors import ConfigError
from ctxstream_dagster.planning.options import ManifestOptions, written_delimiter


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"segment_chars": 0}, "segment_chars is 0; it must be 1 or more"),
        ({"segment_chars": "60000"}, "segment_chars is '60000'; it must be a whole number"),
        ({"segment_chars": True}, "segment_chars is True; it must be a whole number"),
        ({"segment_chars": 1e3}, "segment_chars is 1000.0; it must be a whole number"),
        ({"overlap_chars": -1}, "overlap_chars is -1; it must be 0 or more"),
        ({"segment_chars": 500, "overlap_chars": 500}, r"smaller than segment_chars \(500\)"),
        ({"segment_chars": 500, "boundary_slack": 500}, r"boundary_slack is 500; .* segment_chars \(500\)"),
        ({"boundary_slack": -1}, "boundary_slack is -1; it must be 0 or more"),
        ({"boundary": "nearst"}, r"must be one of nearest, stable \(did you mean 'nearest'\?\)"),
        ({"unit": "symbols"}, r"must be one of line, symbol \(did you mean 'symbol'\?\)"),
        ({"record_delim": ""}, "record_delim is ''; it must be text of 1 to 1000 characters"),
        ({"record_delim": 10}, "record_delim is 10"),
        ({"record_delim": "\ud800"}, "lone surrogate"),
        ({"record_delim": "-----", "segment_chars": 4}, r"at least the length of record_delim \(5\)"),
        ({"max_tokens": 15}, "max_tokens is 15; it must be 16 or more"),
        ({"segmnt_chars": 5}, r"'segmnt_chars' is no planning option \(did you mean 'segment_chars'\?\)"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ManifestOptions.from_mapping(values)


@pytest.mark.parametrize(
    ("values", "slack", "overlap"),
    [
        ({}, 4_000, 400),
        ({"boundary": "stable"}, 15_000, 400),
        ({"boundary": "stable", "boundary_slack": 0}, 0, 400),
        ({"segment_chars": 1_000}, 999, 125),
        ({"segment_chars": 1_000, "overlap_chars": 300}, 999, 300),
    ],
)
def test_what_is_left_out_fits_the_segment(values: dict[str, object], slack: int, overlap: int) -> None:
    options = ManifestOptions.from_mapping(values)
    assert (options.slack_chars, options.overlap_limit_chars) == (slack, overlap)


@pytest.mark.parametrize(
    ("written", "delimiter"),
    [
        (r"\n", "\n"),
        (r"\r\n", "\r\n"),
        (r"\t", "\t"),
        (r"\x1e", "\x1e"),
        (r"\u2028", "\u2028"),
        (r"\\n", r"\n"),
        (r"\q", r"\q"),
        ("é\n", "é\n"),
        ("---", "---"),
        ("\\", "\\"),
    ],
)
def test_a_delimiter_as_it_is_written(written: str, delimiter: str) -> None:
    assert written_delimiter(written) == delimiter
