"""The evidence page in a real browser: what a reader clicks, types and sees; and what hostile text cannot do."""

import json
import random
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from ctxstream_dagster.extraction.records import RejectedLine
from ctxstream_dagster.report.entries import Status
from tests.report.conftest import Open
from tests.report.sweeps import evidence, packed, second_field

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>window.pwned=1</script>",
    "\"'><img src=x onerror=window.pwned=1>",
    "</script><!--<script>",
    "\u202eturned\u202c",
    "שלום עולם",
    "\x1b[31m\x07",
    "\u2028\u2029",
    "😀 {{data}} ${7*7}",
    "javascript:window.pwned=1",
]


def text(page: WebDriver, css: str) -> str:
    """Read in one step: rows are drawn anew while one scrolls."""
    return page.execute_script("return document.querySelector(arguments[0]).innerText", css).strip()


def count(page: WebDriver) -> str:
    return text(page, "#count")


def shown(page: WebDriver) -> int:
    return int(count(page).split(" of ")[1].replace(",", ""))


def type_into(page: WebDriver, name: str, words: str) -> None:
    page.find_element(By.ID, name).send_keys(words)


def press(page: WebDriver, *keys: str) -> None:
    ActionChains(page).send_keys(*keys).perform()


def selected(page: WebDriver) -> str:
    return text(page, "[aria-selected=true]")


def tickets(tmp_path: Path, **more: object) -> object:
    corpus = packed(
        tmp_path,
        {
            "a.txt": "".join(f"a{number}|{'open' if number % 3 else 'closed'}|note\n" for number in range(150)),
            "b.txt": "".join(f"b{number}|reopened|note\n" for number in range(50)),
            "image.png": b"\x89PNG\0",
        },
        segment_chars=500,
    )
    return evidence(corpus, **more)


def test_it_states_answer_certainty_and_coverage_and_loads_nothing(opened: Open, tmp_path: Path) -> None:
    page = opened(tickets(tmp_path, how="most", labels=["never"]))
    assert text(page, "h1") == "Answer: open (100; 50 above the next)"
    assert text(page, ".state") == "complete"
    assert "1 path skipped" in text(page, "[aria-labelledby=coverage-title]")
    assert page.find_element(By.CSS_SELECTOR, ".wide svg").get_attribute("role") == "img"
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    sent = [entry["params"] for entry in messages if entry["method"] == "Network.requestWillBeSent"]
    # The browser's own first page asks for things too.
    urls = [params["request"]["url"] for params in sent if params["documentURL"].startswith("file://")]
    assert urls
    assert all(url.startswith(("file://", "data:")) for url in urls)
    assert page.get_log("browser") == []


def test_filters_by_key_file_status_and_text_work_together(opened: Open, tmp_path: Path) -> None:
    lines = [RejectedLine(text="I am not sure", reason="prose", unit=2)]
    page = opened(tickets(tmp_path, rejected={0: lines}, failed=[1]))
    everything = shown(page)
    type_into(page, "by-key", "open")
    keys_called_so = {row.text.split("\n")[0] for row in page.find_elements(By.CSS_SELECTOR, ".row")}
    assert keys_called_so == {"open"}, "a key that exists is meant as it is, not as a part of others"
    type_into(page, "by-key", "ed")
    assert shown(page) == 50
    assert "reopened" in selected(page)
    press(page, Keys.ESCAPE)
    assert shown(page) == everything
    type_into(page, "by-key", "closed")
    type_into(page, "by-file", "a.txt")
    type_into(page, "by-text", "a14")
    assert [row.text.split("\n")[0] for row in page.find_elements(By.CSS_SELECTOR, ".row")] == ["closed"] * 3
    press(page, Keys.ESCAPE)
    status = Select(page.find_element(By.ID, "by-status"))
    for value, expected in {
        Status.REJECTED: "prose: I am not sure",
        Status.FAILED: "cut at 32 tokens",
        Status.SKIPPED: "binary",
    }.items():
        status.select_by_value(str(int(value)))
        assert count(page).startswith("1 of ")
        assert expected in text(page, "#list")


def test_the_keyboard_goes_through_the_evidence(opened: Open, tmp_path: Path) -> None:
    page = opened(tickets(tmp_path))
    first = selected(page)
    press(page, "n", "n")
    assert count(page).startswith("3 of")
    press(page, "p")
    assert count(page).startswith("2 of")
    assert selected(page) != first
    page.find_element(By.ID, "list").click()
    press(page, Keys.END)
    last = page.execute_script(
        "const row = document.querySelector('[aria-selected=true]');"
        "const told = document.activeElement.getAttribute('aria-activedescendant');"
        "return [row.id, row.ariaPosInSet, row.ariaSetSize, told]"
    )
    assert last[1] == last[2]
    assert last[0] == last[3]
    press(page, Keys.HOME)
    assert selected(page) == first
    press(page, "/", "zzz")
    assert count(page).startswith("0 of")
    press(page, Keys.ESCAPE)
    assert not count(page).startswith("0 of")


def test_every_record_is_marked_by_its_key_where_it_stands(opened: Open, tmp_path: Path) -> None:
    def keys(unit: object) -> list[str]:
        return ["open"] if unit.text.startswith("a3|") else second_field(unit)

    page = opened(tickets(tmp_path, keys=keys))
    type_into(page, "by-text", "a3|")
    assert "not in its unit" in selected(page)
    assert "counted, key not in its unit" in text(page, "#source header")
    assert text(page, "mark.chosen") == "a3|closed|note"
    assert not page.find_elements(By.CSS_SELECTOR, "mark.chosen u")
    other = page.find_elements(By.CSS_SELECTOR, "mark")[1]
    assert other.find_element(By.CSS_SELECTOR, "u").text == "open"
    other.click()
    assert text(page, "mark.chosen") == "a1|open|note"
    assert text(page, "#source header b").endswith("a.txt:2")


def test_the_coverage_map_tells_and_filters(opened: Open, tmp_path: Path) -> None:
    page = opened(tickets(tmp_path, failed=[1]))
    coverage = page.find_element(By.ID, "map")
    page.execute_script("arguments[0].focus()", coverage)
    press(page, Keys.ARROW_RIGHT)
    assert text(page, "#map-says").startswith("Segment 2: failed")
    assert coverage.get_attribute("aria-valuetext").startswith("Segment 2: failed")
    press(page, Keys.ENTER)
    assert count(page).startswith("1 of 1")
    assert "cut at 32 tokens" in text(page, "#source header")
    page.find_element(By.ID, "by-segment").click()
    assert not count(page).startswith("1 of 1 ")


def test_hostile_text_shows_as_text_and_never_runs(opened: Open, tmp_path: Path) -> None:
    corpus = packed(
        tmp_path,
        {
            "<img src=x onerror=window.pwned=1>.txt": "".join(f"{n}|{word}|\n" for n, word in enumerate(HOSTILE)),
            "א\u202eב.txt": "".join(f"{n}|{word}|\n" for n, word in enumerate(HOSTILE)),
        },
    )
    nasty = RejectedLine(text="</script><script>window.pwned=1</script>\udfff\x00", reason="prose")
    page = opened(
        evidence(
            corpus, rejected={0: [nasty]}, how="most", question=HOSTILE[0], remarks=(HOSTILE[1],), withheld=HOSTILE[2]
        )
    )
    assert text(page, "h1") == HOSTILE[2]
    assert text(page, ".question") == HOSTILE[0]
    for _ in range(2 * len(HOSTILE) + 2):
        press(page, "n")
    assert page.execute_script("return window.pwned") is None
    assert page.find_elements(By.TAG_NAME, "img") == []
    assert len(page.find_elements(By.TAG_NAME, "script")) == 2
    source = text(page, "#source .text")
    for word in (
        "<script>window.pwned=1</script>",
        "⟨U+202E⟩turned⟨U+202C⟩",
        "שלום עולם",
        "␛[31m␇",
        "⟨U+2028⟩⟨U+2029⟩",
        "😀 {{data}} ${7*7}",
    ):
        assert word in source
    Select(page.find_element(By.ID, "by-status")).select_by_value(str(int(Status.REJECTED)))
    assert "</script><script>window.pwned=1</script>⟨U+DFFF⟩␀" in text(page, "#source header")
    assert page.get_log("browser") == []


def test_ten_thousand_records_open_and_filter_with_few_rows_alive(opened: Open, tmp_path: Path) -> None:
    chance = random.Random(7)
    words = "words that fill a line of an ordinary log file " * 2
    files = {
        f"{number}.log": "".join(f"{line}|key_{chance.randrange(2_000)}|{words}\n" for line in range(2_500))
        for number in range(4)
    }
    page = opened(evidence(packed(tmp_path, files, segment_chars=20_000)))
    assert count(page) == "1 of 10,000"
    assert len(page.find_elements(By.CSS_SELECTOR, ".row")) < 60
    type_into(page, "by-key", "key_77")
    page.find_element(By.ID, "list").click()
    press(page, Keys.END)
    assert "key_77" in selected(page)
    assert (tmp_path / "evidence.html").stat().st_size < 15_000_000


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_sticks_out_at_the_width_of_a_phone_and_of_a_desk(opened: Open, tmp_path: Path, width: int) -> None:
    page = opened(tickets(tmp_path, failed=[1]))
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        charts = [chart for chart in page.find_elements(By.CSS_SELECTOR, ".chart svg") if chart.is_displayed()]
        assert len(charts) == 1
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_printing_writes_out_what_the_filter_left(opened: Open, tmp_path: Path) -> None:
    page = opened(tickets(tmp_path))
    type_into(page, "by-key", "reopened")
    page.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    rows = page.find_elements(By.CSS_SELECTOR, "#print tr")
    assert len(rows) == 50
    assert "b7|reopened|note" in rows[7].get_attribute("textContent")
