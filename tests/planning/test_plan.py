"""The plan's promises, for any text and any options."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxstream_dagster.errors import PlanError
from ctxstream_dagster.planning.keys import validate_key
from ctxstream_dagster.planning.manifest import ManifestOptions, Segment, check_tiling, plan, segment_text
from ctxstream_dagster.planning.tokens import estimate_upper
from tests.planning.texts import corpora, cuts, manifest_options, packed, pieces, texts


@given(text=texts, options=manifest_options())
def test_cores_tile_the_text_exactly(text: str, options: ManifestOptions) -> None:
    manifest = plan(text, options)
    assert "".join(text[segment.core_offset : segment.end] for segment in manifest) == text
    assert manifest.proof.owned_chars == manifest.proof.chars == len(text)
    assert manifest.proof.text_sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert [segment.index for segment in manifest] == list(range(len(manifest)))


@given(files=corpora, options=manifest_options())
def test_cores_of_several_files_tile_the_packed_text(files: list[str], options: ManifestOptions) -> None:
    found = cuts(files, options)
    text = packed(files, delim=options.record_delim)
    assert "".join(cut.core for cut in found) == text
    for cut in found:
        assert text.startswith(cut.overlap + cut.core, cut.start)


@example(files=["x" * 9 + "||yy"], options=ManifestOptions(segment_chars=10, record_delim="||"), sizes=[1])
@example(files=["x" * 9 + "\r\nyy"], options=ManifestOptions(segment_chars=10), sizes=[1])
@example(files=["x" * 10, "yy"], options=ManifestOptions(segment_chars=10), sizes=[1])
@settings(max_examples=300)
@given(files=corpora, options=manifest_options(), sizes=pieces)
def test_how_the_text_arrives_does_not_change_the_plan(
    files: list[str], options: ManifestOptions, sizes: list[int]
) -> None:
    assert cuts(files, options, pieces=sizes) == cuts(files, options)


@given(text=texts, options=manifest_options())
def test_a_window_keeps_both_limits(text: str, options: ManifestOptions) -> None:
    for segment in plan(text, options):
        assert segment.length - segment.overlap_prefix > 0
        assert segment.length <= options.segment_chars
        assert segment.overlap_prefix <= options.overlap_limit_chars
        if options.max_tokens is not None and segment.length > len(options.record_delim):
            assert estimate_upper(segment_text(text, segment)) <= options.max_tokens


@given(text=texts, options=manifest_options())
def test_a_record_that_fits_a_window_is_never_cut(text: str, options: ManifestOptions) -> None:
    delim = options.record_delim
    parts = text.split(delim)
    records = [part + delim for part in parts[:-1]] + parts[-1:]
    ends = {0}
    at = 0
    for record in records:
        at += len(record)
        ends.add(at)
        fits = len(record) <= options.segment_chars and (
            options.max_tokens is None or estimate_upper(record) <= options.max_tokens
        )
        if not fits:
            ends.update(range(at - len(record), at))
    assert {segment.core_offset for segment in plan(text, options)} <= ends


@given(text=texts, options=manifest_options())
def test_a_delimiter_is_never_cut(text: str, options: ManifestOptions) -> None:
    delim = options.record_delim
    at = 0
    inside: set[int] = set()
    while (at := text.find(delim, at)) >= 0:
        inside.update(range(at + 1, at + len(delim)))
        at += len(delim)
    assert not inside & {segment.core_offset for segment in plan(text, options)}


@given(files=corpora, options=manifest_options())
def test_an_overlap_stays_in_its_file_and_in_the_segment_before(files: list[str], options: ManifestOptions) -> None:
    ends = {0}
    at = 0
    delim = options.record_delim
    for text in filter(None, files):
        at += len(text) + (0 if text.endswith(delim) else len(delim))
        ends.add(at)
    before = 0
    for cut in cuts(files, options):
        core = cut.start + len(cut.overlap)
        assert cut.start >= before
        assert not {end for end in ends if cut.start < end <= core and cut.overlap}
        before = core


@given(text=texts, options=manifest_options())
def test_keys_are_valid_unique_and_name_one_text_in_one_division(text: str, options: ManifestOptions) -> None:
    manifest = plan(text, options)
    keys = [validate_key(segment.key) for segment in manifest]
    assert len(set(keys)) == len(keys)
    named = {
        segment.key.split("~")[1]: (segment_text(text, segment), segment.overlap_prefix, segment.carried)
        for segment in manifest
    }
    for segment in manifest:
        content = (segment_text(text, segment), segment.overlap_prefix, segment.carried)
        assert named[segment.key.split("~")[1]] == content


def test_equal_windows_get_ordinals() -> None:
    manifest = plan("same\n" * 6, ManifestOptions(segment_chars=10, overlap_chars=0))
    first = manifest[0].key
    assert [segment.key for segment in manifest] == [first, f"{first}~2", f"{first}~3"]


def test_an_overlap_holds_whole_records_where_one_fits() -> None:
    text = "".join(f"record {number}\n" for number in range(20))
    for segment in plan(text, ManifestOptions(segment_chars=50, overlap_chars=15)).segments[1:]:
        overlap = segment_text(text, segment)[: segment.overlap_prefix]
        assert overlap.startswith("record")
        assert overlap.endswith("\n")


def test_an_overlap_is_raw_where_no_record_fits() -> None:
    text = "a" * 30 + "\n" + "b" * 30 + "\n"
    manifest = plan(text, ManifestOptions(segment_chars=40, overlap_chars=5))
    assert [segment_text(text, segment) for segment in manifest] == ["a" * 30 + "\n", "aaaa\n" + "b" * 30 + "\n"]


def test_the_overlap_gives_way_to_a_record_that_fits_only_without_it() -> None:
    text = "a" * 8 + "\n" + "b" * 19 + "\n" + "c" * 8 + "\n"
    manifest = plan(text, ManifestOptions(segment_chars=20, overlap_chars=9))
    assert [segment.overlap_prefix for segment in manifest] == [0, 0, 9]
    assert manifest.proof.cut_records == 0


def test_an_overlap_reaches_no_further_than_the_segment_before() -> None:
    manifest = plan("aaa\nbbbb\nc\nddddd\n", ManifestOptions(segment_chars=10, overlap_chars=5))
    assert [(segment.core_offset, segment.overlap_prefix) for segment in manifest] == [(0, 0), (9, 5), (11, 2)]


def test_a_crlf_is_not_cut() -> None:
    text = "x" * 9 + "\r\n" + "y\n"
    manifest = plan(text, ManifestOptions(segment_chars=10, overlap_chars=0))
    assert [segment_text(text, segment) for segment in manifest] == ["x" * 9, "\r\ny\n"]


def test_equal_records_leave_stable_segments_full() -> None:
    options = ManifestOptions(segment_chars=100, overlap_chars=0, boundary="stable")
    assert {segment.length for segment in plan("same\n" * 100, options)} == {100}


@pytest.mark.parametrize("text", ["x" * 1000, "x" * 1000 + "\n", "ok\n" + "x" * 1000 + "\nok\n"])
def test_a_record_longer_than_a_segment_is_cut_and_said_so(text: str) -> None:
    manifest = plan(text, ManifestOptions(segment_chars=300, overlap_chars=20))
    assert manifest.proof.cut_records == 1
    start = text.index("x")
    for segment in manifest:
        if segment.carried:
            assert segment.core_offset - segment.carried == start


@example(text="\ud800 lone")
@given(text=st.text(max_size=40))
def test_any_string_can_be_planned(text: str) -> None:
    assert plan(text, ManifestOptions(segment_chars=7)).proof.owned_chars == len(text)


def test_an_empty_text_has_no_segments() -> None:
    assert len(plan("")) == 0


def test_the_defaults_are_those_of_the_specification() -> None:
    options = ManifestOptions()
    assert (options.segment_chars, options.overlap_chars, options.slack_chars, options.record_delim) == (
        60_000,
        400,
        4_000,
        "\n",
    )


def test_stable_boundaries_realign_after_an_insertion() -> None:
    lines = [f"{number * 7919 % 100_003} status open\n" for number in range(4000)]
    edited = [*lines[:50], "a new record\n", *lines[50:]]

    def new_keys(boundary: str) -> int:
        options = ManifestOptions.from_mapping({"segment_chars": 1000, "overlap_chars": 60, "boundary": boundary})
        before = {segment.key for segment in plan("".join(lines), options)}
        return sum(segment.key not in before for segment in plan("".join(edited), options))

    assert new_keys("stable") <= 12
    assert new_keys("stable") < new_keys("nearest")


@pytest.mark.parametrize("change", [{"offset": 1}, {"length": 9}, {"overlap_prefix": 1}, {"length": 0}])
def test_a_plan_that_does_not_tile_is_refused(change: dict[str, int]) -> None:
    segments = [Segment(index=0, offset=0, length=10), Segment(index=1, offset=10, length=5)]
    assert check_tiling(segments, chars=15) == 15
    with pytest.raises(PlanError, match="defect of the planner"):
        check_tiling([dataclasses.replace(segments[0], **change), segments[1]], chars=15)
    with pytest.raises(PlanError, match="defect of the planner"):
        check_tiling(segments[:1], chars=15)
