"""In `counts` the model adds up by itself: the page gives such numbers a name and a window, never one line."""

from dataclasses import replace
from pathlib import Path

import pytest

from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.stream import stream_segments
from ctxstream_dagster.planning.corpus import pack
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.reduction.sweep import reduce_sweep
from ctxstream_dagster.report.entries import Status, list_entries
from ctxstream_dagster.report.evidence import Evidence, evidence_page
from ctxstream_dagster.report.source import source_text
from tests.fakes import FakeBackend
from tests.report.conftest import Open


def counted_by_the_model(tmp_path: Path, *, units: int) -> Evidence:
    for name in ("a.log", "b.log"):
        lines = (f"{name} {number} Status: {'beta' if number % 4 else 'alpha'}\n" for number in range(30))
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    options = ManifestOptions(segment_chars=400, overlap_chars=60)
    corpus = pack([tmp_path / "a.log", tmp_path / "b.log"], directory=tmp_path / "plan", options=options)
    question = Question(extract="Status?", mode="counts", units_per_window=units)
    results = {result.key: result for result in stream_segments(corpus, question, backend=FakeBackend())}
    reduction = reduce_sweep(corpus, results.values(), how="list")
    return Evidence(sweep="counts", corpus=corpus, results=results, reduction=reduction)


@pytest.mark.parametrize("units", [0, 3])
def test_a_count_leads_to_the_whole_window_and_only_to_it(tmp_path: Path, units: int) -> None:
    sweep = counted_by_the_model(tmp_path, units=units)
    entries = list_entries(sweep.corpus, results=sweep.results, reduction=sweep.reduction).entries
    assert {entry.status for entry in entries} == {Status.MODEL_COUNTED}
    assert sum(entry.value for entry in entries) == 60
    source = source_text(sweep.corpus, entries, budget_chars=100_000)
    for entry, place in zip(entries, source.places, strict=True):
        assert place is not None
        path, _, text = source.chunks[place[0]]
        window = text[place[1] : place[1] + place[2]]
        assert path == entry.path
        assert window.startswith(Path(path).name)
        if window.endswith(("alpha", "beta")):
            # A window that goes on in the next file ends with its own file here.
            assert window.count(f"Status: {entry.key}") <= entry.value


def test_the_page_says_that_the_model_counted(tmp_path: Path) -> None:
    sweep = counted_by_the_model(tmp_path, units=0)
    for withheld in ("", "1 of 2 segments are read so far"):
        page = evidence_page(replace(sweep, withheld=withheld)).decode("utf-8")
        assert page.count("The model added up by itself (mode counts)") == 1
        assert "Nothing unread" not in page
        assert ("it is no answer yet" in page) == bool(withheld)


@pytest.mark.browser
def test_a_reader_sees_the_window_and_that_no_line_stands_behind_the_number(opened: Open, tmp_path: Path) -> None:
    page = opened(counted_by_the_model(tmp_path, units=3))

    def text(css: str) -> str:
        return page.execute_script("return document.querySelector(arguments[0]).innerText", css)

    assert text("[aria-selected=true]").startswith("alpha × 1")
    assert "in all of: a.log 0 Status: alpha" in text("[aria-selected=true]")
    assert "no single line stands behind this number" in text("#source header")
    marks = page.execute_script("return [...document.querySelectorAll('mark.chosen')].map(mark => mark.innerText)")
    assert [mark.split(" Status")[0] for mark in marks] == ["a.log 0", "a.log 1", "a.log 2"]
    choices = page.execute_script("return [...document.querySelectorAll('#by-status option')].map(o => o.innerText)")
    assert choices[2].startswith("counted by the model (")
