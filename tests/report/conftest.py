"""A headless Chromium for the evidence page; without one the browser tests say so and are skipped."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver

from ctxstream_dagster.report.evidence import Evidence, evidence_page

Open = Callable[[Evidence], WebDriver]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1280,900",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield running
    finally:
        running.quit()


@pytest.fixture
def opened(chromium: WebDriver, tmp_path: Path) -> Open:
    """Open the page of a sweep from a file, as a person would."""

    def open_page(evidence: Evidence) -> WebDriver:
        file = tmp_path / "evidence.html"
        file.write_bytes(evidence_page(evidence))
        for log in ("browser", "performance"):
            chromium.get_log(log)
        chromium.get(f"file://{quote(str(file))}")
        return chromium

    return open_page
