"""What a report is made of: harmless text, charts and Markdown that say what code concluded, pages that stay small."""

import html
import json
import re
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxstream_dagster.extraction.records import RejectedLine
from ctxstream_dagster.planning.corpus import pack
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.reduction.answer import construct
from ctxstream_dagster.reduction.sweep import reduction_json, stored_reduction
from ctxstream_dagster.reduction.tally import Tally
from ctxstream_dagster.report import evidence as evidence_module
from ctxstream_dagster.report.charts import bar_chart, bars, chart_data_url
from ctxstream_dagster.report.entries import Status, list_entries
from ctxstream_dagster.report.escaping import html_text, markdown_text, script_json, visible
from ctxstream_dagster.report.evidence import evidence_page
from ctxstream_dagster.report.source import source_text
from ctxstream_dagster.report.summary import (
    MODEL_COUNTED,
    answer_inline,
    answer_markdown,
    by_file_markdown,
    manifest_markdown,
    short_answer,
)
from tests.report.sweeps import evidence, packed

ANY = st.text(st.characters(codec=None, exclude_categories=()))


def sums(values: dict[str, int]) -> Tally:
    pairs = tuple(sorted(((key, Decimal(value)) for key, value in values.items()), key=lambda pair: (pair[1], pair[0])))
    return Tally(sorted=pairs, total=sum((value for _, value in pairs), Decimal(0)), parsed_records=len(pairs))


class Seen(HTMLParser):
    """Which elements and which text a parser sees."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(ANY)
@example("</script><!--<script>\u2028\ud800&amp;")
def test_json_in_a_script_element_comes_back_whole_and_cannot_end_it(text: str) -> None:
    written = script_json({text: [text]})
    assert not re.search("[<>&\u2028\u2029\ud800-\udfff]", written)
    assert json.loads(written) == {text: [text]}
    assert written.encode("utf-8")


@given(ANY)
def test_text_in_html_is_one_text_node(text: str) -> None:
    seen = Seen()
    seen.feed(f"<p title='{html_text(text)}'>{html_text(text)}</p>")
    seen.close()
    assert seen.tags == ["p"]
    assert "\x00" not in html_text(text).encode("utf-8").decode("utf-8")


@given(ANY)
@example("\u202eabc\u0000\t\n\r\x7f\ud800\u200b")
def test_nothing_invisible_survives_and_a_line_stays_a_line(text: str) -> None:
    shown = visible(text)
    assert len(shown.splitlines()) <= 1
    assert "\u202e" not in shown
    assert re.sub(r"[\s\u200c\u200d]", "", shown).isprintable()
    assert len(visible(text, limit=10)) <= 10


@given(ANY)
@example("a | b `c` **d** [e](javascript:f) <img src=x> https://g $h$ \\")
def test_text_in_a_markdown_cell_has_no_meaning(text: str) -> None:
    shown = markdown_text(text)
    assert not re.search(r"[<>\n]", shown)
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*_\[\]$~]", shown)
    assert html.unescape(re.sub(r"\\(.)", r"\1", shown)) == visible(text)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(ANY, st.integers(-5, 50), max_size=40), st.sampled_from(["least", "most", "total", "list"]))
@example({"#010101": 1, ' id="x"': 2, "$x^2$": 3, "</text><script>": 4, "\ud800\x00": 5}, "most")
def test_any_tally_is_a_well_formed_chart_that_names_its_keys(values: dict[str, int], how: str) -> None:
    counted = sums(values)
    statement = construct(counted, how)
    for width in (330, 680):
        svg = bar_chart(counted, statement, width_px=width)
        words = [node.text for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        labels = [visible(row.label, limit=34) for row in bars(counted, statement)]
        assert [word for word in labels if word and word.strip() and word not in words] == []
        assert svg == bar_chart(counted, statement, width_px=width)


def test_ten_thousand_keys_are_thirty_bars_and_a_remark_that_adds_up() -> None:
    counted = sums({f"k{number}": number for number in range(10_000)})
    rows = bars(counted, construct(counted, "most"))
    assert len(rows) == 31
    assert rows[0].label == "k9999"
    assert rows[0].note == "9,999 · 0.0% · 1 above the next"
    assert [row.label for row in rows if row.value is None] == ["… 9,970 other keys"]
    shown = sum(row.value or 0 for row in rows)
    assert f"together {counted.total - shown:,}" in rows[15].note
    assert len(chart_data_url(bar_chart(counted, construct(counted, "most")))) < 60_000


def test_shares_are_left_out_where_they_make_no_sense() -> None:
    counted = sums({"a": -5, "b": 12})
    assert [row.note for row in bars(counted, construct(counted, "least"))] == ["-5 · 17 below the next", "12"]


def test_a_long_answer_names_a_few_and_counts_the_others() -> None:
    tie = sums({f"k{number}": 1 for number in range(9)} | {"z": 3})
    assert (
        short_answer(construct(tie, "least"), tie)
        == "Answer: k0, k1, k2, k3, k4 and 4 more (tie of 9 at 1; 2 below the next)"
    )
    listed = sums({f"k{number}": number for number in range(7)})
    assert short_answer(construct(listed, "list"), listed) == "Answer: 7 keys: k6 6, k5 5, k4 4, k3 3, k2 2 and 2 more"


LINES = "".join(f"{number}|{'open' if number % 3 else 'closed'}|x\n" for number in range(300))


def test_the_answer_comes_first_then_how_sure_then_why(tmp_path: Path) -> None:
    sweep = evidence(packed(tmp_path, {"a|b.txt": LINES, "c.bin": b"\0"}), failed=[1])
    shown = answer_markdown(sweep.reduction, segment_url=lambda key: f"/segment/{key}")
    failed = sweep.reduction.coverage.failed[0].key
    parts = ["### Answer: closed", "Not certain: 1 of", "](data:image/svg+xml;base64,", "| **closed** |", "**Coverage"]
    assert [shown.index(part) for part in parts] == sorted(shown.index(part) for part in parts)
    assert f"](/segment/{failed}): The reply was cut" in shown
    assert answer_markdown(sweep.reduction, withheld="2 of 3 read").startswith("### No answer: 2 of 3 read")


@pytest.mark.parametrize("keys", [5, 3_000])
def test_the_inline_answer_is_short_enough_to_be_shown_at_once(tmp_path: Path, keys: int) -> None:
    lines = "".join(f"{number}|*key_{number % keys}*|x\n" for number in range(3_600))
    reduction = evidence(packed(tmp_path, {"a.txt": lines}, segment_chars=20_000), how="most").reduction
    shown = answer_inline(reduction)
    assert shown.startswith("### Answer: ")
    assert len(shown) < 1_000
    listed = shown.count("key") - shown.splitlines()[0].count("key") - 1
    assert (listed >= 5) if keys == 5 else ("other keys. Coverage 100.0% of" in shown)
    assert "█" in shown


def test_the_plan_at_a_glance(tmp_path: Path) -> None:
    files = {"a.txt": LINES, "b|.txt": "1|x|\n", "c.bin": b"\0", f"{'long_' * 20}.txt": "1|x|\n"}
    corpus = packed(tmp_path, {**files, **{f"d{number}.txt": "1|x|\n" for number in range(5)}})
    shown = manifest_markdown(corpus, root=str(tmp_path))
    chars = sum(len(text) for text in files.values() if isinstance(text, str)) + 25
    assert f"**{len(corpus.manifest)} segments** tile {chars:,} characters of 8 files" in shown
    assert r"- corpus/b\|.txt: 1 segment, " in shown
    assert "- and 3 more files" in shown
    assert "**1 path skipped:** 1 binary." in shown
    assert "tokens in all" in shown
    assert len(shown) < 1_000, "more would hide behind a link"
    # Dagster breaks lines at spaces only; a longer word would widen the column and cut all of it off.
    assert max(map(len, shown.split())) <= 34


def test_every_file_and_every_skipped_path_is_told_in_a_window_of_its_own(tmp_path: Path) -> None:
    corpus = packed(tmp_path, {"a.txt": LINES, "b|\u202e.txt": "1|x|\n", "c.bin": b"\0"})
    shown = by_file_markdown(corpus, root=str(tmp_path))
    assert len(shown) > 1_000, "less would stand in the page's narrow column"
    assert f"| corpus/a.txt | {len(corpus.manifest)} | " in shown
    assert f" | {len(LINES):,} | {len(LINES):,} | utf-8 |" in shown
    assert r"| corpus/b\|⟨U+202E⟩.txt | 1 | " in shown
    assert "**1 path skipped**" in shown
    assert "| corpus/c.bin | binary | holds NUL bytes |" in shown
    assert len(by_file_markdown(packed(tmp_path / "one", {"a": "1|x|\n"}))) > 1_000


def test_an_answer_that_the_model_added_up_never_looks_like_code_s(tmp_path: Path) -> None:
    reduction = evidence(packed(tmp_path, {"a.txt": LINES})).reduction
    for shown in (answer_inline(reduction, model_counted=True), answer_markdown(reduction, model_counted=True)):
        assert MODEL_COUNTED in shown
        assert "Nothing unread" not in shown


def test_a_stored_reduction_comes_back_as_it_was(tmp_path: Path) -> None:
    whole = evidence(packed(tmp_path, {"a.txt": LINES}), failed=[0], how="most").reduction
    document = json.loads(json.dumps(reduction_json(whole)))
    assert stored_reduction(document, records=whole.records, tally_table=whole.tally_table) == whole


WIDE = "".join(f"{number}|{'😀' * (number % 4)}key|שלום\n" for number in range(200))


@pytest.mark.parametrize("budget", [1_000_000, 2_000])
@pytest.mark.parametrize("delim", ["\n", ";"])
def test_every_entry_points_at_its_unit_in_utf_16_code_units(tmp_path: Path, budget: int, delim: str) -> None:
    corpus = packed(tmp_path, {"a.txt": WIDE.replace("\n", delim), "b.txt": LINES.replace("\n", delim)}, delim=delim)
    sweep = evidence(corpus, rejected={0: [RejectedLine(text="?", reason="prose", unit=3)]})
    entries = list_entries(corpus, results=sweep.results, reduction=sweep.reduction).entries
    source = source_text(corpus, entries, budget_chars=budget)
    assert source.whole is (budget == 1_000_000)
    units = {(text.segment.index, unit.offset): unit.text for text in corpus for unit in text.units}
    for entry, place in zip(entries, source.places, strict=True):
        assert place is not None
        path, first_line, text = source.chunks[place[0]]
        before = text.encode("utf-16-le")[: 2 * place[1]].decode("utf-16-le")
        found = text.encode("utf-16-le")[2 * place[1] : 2 * (place[1] + place[2])].decode("utf-16-le")
        assert found == units[entry.segment, entry.start]
        assert path == entry.path
        assert first_line + before.count("\n") == entry.line


@pytest.mark.parametrize("unit", ["line", "symbol"])
def test_entries_of_a_codebase_point_at_its_lines_and_symbols(tmp_path: Path, unit: str) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "a.py").write_text(
        "import b\n\n\ndef one() -> str:\n    return '😀'\n\n\nclass C:\n    def two(self):\n        raise X\n"
    )
    (code / "b.py").write_text("X = 1\n\n\ndef three():\n    raise ValueError\n")
    corpus = pack([code], directory=tmp_path / "plan", options=ManifestOptions(segment_chars=400, unit=unit))
    sweep = evidence(corpus, keys=lambda found: ["raise"] if "raise" in found.text else [])
    entries = list_entries(corpus, results=sweep.results, reduction=sweep.reduction).entries
    source = source_text(corpus, entries, budget_chars=1_000_000)
    assert sorted((entry.path, entry.status) for entry in entries) == [("a.py", 0), ("b.py", 0)]
    for place in source.places:
        assert place is not None
        _, _, text = source.chunks[place[0]]
        raw = text.encode("utf-16-le")[2 * place[1] : 2 * (place[1] + place[2])].decode("utf-16-le")
        assert raw.lstrip().startswith("raise" if unit == "line" else "def")


def test_too_much_for_one_page_is_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = packed(tmp_path, {"a.txt": LINES * 20})
    sweep = evidence(corpus)
    monkeypatch.setattr("ctxstream_dagster.report.entries.RECORDS_LISTED", 500)
    listing = list_entries(corpus, results=sweep.results, reduction=sweep.reduction)
    assert len(listing.entries) == 500
    assert listing.left_out == {Status.COUNTED: 5_500}
    assert {entry.key for entry in listing.entries} == {"open", "closed"}
    monkeypatch.setattr(evidence_module, "LARGEST_PAGE_BYTES", 90_000)
    monkeypatch.setattr(evidence_module, "_BUDGETS_CHARS", (1_000_000, 10_000))
    page = evidence_page(sweep)
    assert len(page) < 90_000
    assert b"5,500 counted records are counted but not listed" in page
    assert b"only the text around what is listed" in page


def test_a_page_holds_no_address_but_its_own_namespace(tmp_path: Path) -> None:
    page = evidence_page(evidence(packed(tmp_path, {"a.txt": LINES}))).decode("utf-8")
    assert set(re.findall(r"https?://[^\"'\s<]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "default-src 'none'" in page
    assert "{{" not in page
