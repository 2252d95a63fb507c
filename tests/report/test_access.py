"""Whoever sees little, no colours or uses no mouse can use the evidence page: names, headings, contrast, keyboard."""

import importlib.resources
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.report.conftest import Open
from tests.report.sweeps import evidence, packed

PAGE = importlib.resources.files("ctxstream_dagster.report") / "page"
CSS = (PAGE / "page.css").read_text(encoding="utf-8")
THEMES = dict(zip(("light", "dark"), re.findall(r":root \{(.*?)\n *\}", CSS, re.DOTALL), strict=True))
TEXT, SHAPE = 4.5, 3.0  # WCAG 2.2, success criteria 1.4.3 and 1.4.11
PAIRS = [
    *((TEXT, ink, ground) for ink in ("ink", "muted", "good", "warn", "bad") for ground in ("paper", "card")),
    *((TEXT, ink, "row") for ink in ("ink", "muted")),
    *((SHAPE, f"k{number}", "card") for number in range(8)),
    *((SHAPE, ink, ground) for ink in ("focus", "chart-answer") for ground in ("card", "paper")),
]


def colours(theme: str) -> dict[str, str]:
    light, own = THEMES["light"], THEMES[theme]
    found = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", light))
    return {**found, **dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", own))}


def luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("least", "ink", "ground"), PAIRS)
def test_what_is_read_stands_out(theme: str, least: float, ink: str, ground: str) -> None:
    shades = colours(theme)
    low, high = sorted(luminance(shades[name]) for name in (ink, ground))
    assert (high + 0.05) / (low + 0.05) >= least


class Outline(HTMLParser):
    """Headings, and the controls with the words that name them."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.unnamed: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.open += [] if tag in ("meta", "link", "input", "br") else [tag]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        named = "label" in self.open or "aria-label" in given or "aria-labelledby" in given
        if (tag in ("input", "select") or given.get("tabindex") == "0" or given.get("role")) and not named:
            self.unnamed.append(f"{tag} {given}")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass


def test_headings_go_down_one_by_one_and_every_control_has_a_name() -> None:
    outline = Outline()
    outline.feed((PAGE / "page.html").read_text(encoding="utf-8"))
    assert outline.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip([0, *outline.headings], outline.headings, strict=False))
    assert outline.unnamed == []


@pytest.mark.browser
def test_the_tab_key_reaches_every_control_and_shows_where_it_is(opened: Open, tmp_path: Path) -> None:
    page = opened(evidence(packed(tmp_path, {"a.txt": "1|open|x\n2|closed|x\n"})))
    reached: list[str] = []
    for _ in range(20):
        ActionChains(page).send_keys(Keys.TAB).perform()
        name, outline = page.execute_script(
            "const e = document.activeElement;"
            "return [e.id || e.className || e.tagName, getComputedStyle(e).outlineStyle]"
        )
        if name in reached or name == "BODY":
            break
        assert outline != "none", f"{name} has the focus and does not show it"
        reached.append(name)
    order = ["skip", "SUMMARY", "map", "by-key", "by-file", "by-status", "by-text", "next", "list", "source"]
    assert reached == order
