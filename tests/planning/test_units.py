"""Units: every record once, with a position that leads back to its line."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings

from ctxstream_dagster.planning.manifest import ManifestOptions, Segment
from ctxstream_dagster.planning.units import Span, Unit, record_units
from tests.planning.texts import corpora, cuts, manifest_options


def planned_units(files: list[str], options: ManifestOptions) -> Iterator[tuple[Segment, tuple[Unit, ...]]]:
    for index, cut in enumerate(cuts(files, options)):
        segment = Segment(
            index=index,
            offset=cut.start,
            length=len(cut.overlap) + len(cut.core),
            overlap_prefix=len(cut.overlap),
            carried=cut.carried,
        )
        spans = [
            Span(path=str(part.file), start=part.start - cut.start, length=part.length, line=part.line)
            for part in cut.stretches
        ]
        yield (
            segment,
            record_units(
                cut.core,
                segment=segment,
                spans=spans,
                delim=options.record_delim,
                carried_line=cut.carried_line,
                open_end=cut.open,
            ),
        )


def records(files: list[str], *, delim: str) -> Iterator[tuple[int, str, int, str]]:
    """Every record as (offset in the packed text, file, line, text without its delimiter), by plain splitting."""
    start = 0
    with_text = [(number, text) for number, text in enumerate(files) if text]
    for number, text in with_text:
        at = 0
        for record in text.split(delim):
            yield start + at, str(number), text.count("\n", 0, at) + 1, record
            at += len(record) + len(delim)
        start += len(text) + (0 if text.endswith(delim) else len(delim))


@settings(max_examples=300)
@given(files=corpora, options=manifest_options())
def test_every_record_is_a_unit_exactly_once(files: list[str], options: ManifestOptions) -> None:
    truth = {offset: (path, line, text) for offset, path, line, text in records(files, delim=options.record_delim)}
    seen: dict[int, tuple[str, int]] = {}
    shown: dict[int, str] = {}
    for segment, units in planned_units(files, options):
        assert [unit.number for unit in units] == list(range(1, len(units) + 1))
        for unit in units:
            identity = segment.offset + unit.offset
            assert (unit.path, unit.line) == truth[identity][:2]
            shown[identity] = shown.get(identity, "") + unit.text
            if unit.head:
                assert identity not in seen
                seen[identity] = unit.path, unit.line
    for offset, (_, _, text) in truth.items():
        assert offset in seen or not text.strip()
        if offset in seen and text.strip():
            # A blank piece of a cut record is no unit, and the CR of a CRLF is no text.
            assert "".join(shown[offset].split()) == "".join(text.split())


@given(files=corpora, options=manifest_options())
def test_a_unit_s_text_stands_where_its_offset_says(files: list[str], options: ManifestOptions) -> None:
    for cut, (segment, units) in zip(cuts(files, options), planned_units(files, options), strict=True):
        window = cut.overlap + cut.core
        for unit in units:
            if unit.head:
                assert window.startswith(unit.text, unit.offset)
                assert unit.offset >= segment.overlap_prefix
            else:
                assert unit.offset < segment.overlap_prefix


def test_identical_neighbours_are_different_units() -> None:
    found = [
        (segment.offset + unit.offset, unit.line)
        for segment, units in planned_units(["same\nsame\nsame\n"], ManifestOptions(segment_chars=10, overlap_chars=5))
        for unit in units
    ]
    assert found == [(0, 1), (5, 2), (10, 3)]


def test_crlf_and_lf_give_the_same_units() -> None:
    lines = [f"status {number}" for number in range(50)]
    options = ManifestOptions(segment_chars=100, overlap_chars=20)
    by_end = [
        [(unit.text, unit.line) for _, units in planned_units([end.join(lines)], options) for unit in units]
        for end in ("\n", "\r\n")
    ]
    assert by_end[0] == by_end[1] == [(line, number + 1) for number, line in enumerate(lines)]


def test_a_blank_record_is_covered_but_no_unit() -> None:
    [(_, units)] = planned_units(["one\n\n  \t\r\ntwo\n"], ManifestOptions())
    assert [(unit.text, unit.line) for unit in units] == [("one", 1), ("two", 4)]


def test_the_rest_of_a_cut_record_points_at_its_start() -> None:
    text = "first\n" + "x" * 25 + "\nlast\n"
    found = [
        (segment.offset + unit.offset, unit.head, unit.text, unit.line)
        for segment, units in planned_units([text], ManifestOptions(segment_chars=10, overlap_chars=2))
        for unit in units
    ]
    assert found[0] == (0, True, "first", 1)
    assert found[-1] == (32, True, "last", 3)
    middle = found[1:-1]
    assert {offset for offset, _, _, _ in middle} == {6}
    assert [head for _, head, _, _ in middle] == [True] + [False] * (len(middle) - 1)
    assert "".join(piece for _, _, piece, _ in middle) == "x" * 25
    assert {line for _, _, _, line in middle} == {2}


def test_a_record_cut_after_nothing_but_blanks_is_still_asked_for() -> None:
    found = [
        unit for _, units in planned_units([" " * 25 + "x\n"], ManifestOptions(segment_chars=10)) for unit in units
    ]
    assert [unit.head for unit in found].count(True) == 1
    assert found[0].head
