"""How large the evidence page gets and how quickly a real browser opens and filters it, side by side for three sizes.

Run: ``python benchmarks/report.py [--records 1000 10000 40000] [--rounds 5]``. Needs Chromium and its driver. Lines of
a log, each with a record; filtered by a key, by words in the text and by a status. Times are medians, in milliseconds,
measured by the page's own clock and layout included. Saves the table in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.chrome.webdriver import WebDriver  # noqa: E402

from ctxstream_dagster.report.evidence import evidence_page  # noqa: E402
from tests.report.sweeps import evidence, packed  # noqa: E402

WORDS = "words that fill a line of an ordinary log file " * 2
FILTERS = {"key": ("by-key", "key_77"), "text": ("by-text", "9|key_1"), "status": ("by-status", "counted")}
_FILTER = """
const [id, value] = arguments, started = performance.now();
document.getElementById(id).value = value;
filter();
document.getElementById("list").getBoundingClientRect();
const took = performance.now() - started;
clear();
return took;"""
_OPENED = "const [entry] = performance.getEntriesByType('navigation'); return entry.loadEventEnd - entry.startTime;"


def make_page(directory: Path, *, records: int) -> tuple[Path, float]:
    """Return the page of a sweep with so many records, and the seconds that making it took."""
    chance = random.Random(7)
    lines = "".join(f"{line}|key_{chance.randrange(2_000)}|{WORDS}\n" for line in range(records))
    sweep = evidence(packed(directory, {"app.log": lines}, segment_chars=60_000))
    started = time.perf_counter()
    page = evidence_page(sweep)
    took_s = time.perf_counter() - started
    file = directory / "evidence.html"
    file.write_bytes(page)
    return file, took_s


def browser(profile: str) -> WebDriver:
    """Return a headless Chromium; exits with a sentence where there is none."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        sys.exit("This needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver).")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,900",
    ):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={profile}")
    return webdriver.Chrome(options=options, service=Service(driver))


def measured(page: WebDriver, file: Path, *, rounds: int) -> dict[str, float]:
    """Return the medians of opening and of each filter."""
    opened: list[float] = []
    filtered: dict[str, list[float]] = {name: [] for name in FILTERS}
    for _ in range(rounds):
        page.get(file.as_uri())
        opened.append(page.execute_script(_OPENED))
        for name, (field, value) in FILTERS.items():
            filtered[name].append(page.execute_script(_FILTER, field, value))
    return {"open_ms": statistics.median(opened)} | {
        f"filter_{name}_ms": statistics.median(times) for name, times in filtered.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[1_000, 10_000, 40_000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"{'records':>8} {'MB':>6} {'made s':>7} {'open ms':>8} " + " ".join(f"{f'by {n} ms':>13}" for n in FILTERS))
    with tempfile.TemporaryDirectory() as directory:
        page = browser(f"{directory}/profile")
        try:
            for records in options.records:
                file, made_s = make_page(Path(directory) / str(records), records=records)
                row = {"records": records, "mb": file.stat().st_size / 1e6, "made_s": made_s}
                row |= measured(page, file, rounds=options.rounds)
                rows.append(row)
                times = " ".join(f"{row[f'filter_{name}_ms']:>13.0f}" for name in FILTERS)
                print(f"{records:>8,} {row['mb']:>6.1f} {made_s:>7.1f} {row['open_ms']:>8.0f} {times}", flush=True)
        finally:
            page.quit()
    result = {"benchmark": "report", "cpus": os.cpu_count(), "load": os.getloadavg()[0], "rounds": options.rounds}
    target = ROOT / "benchmarks" / "results" / "report.json"
    target.write_text(json.dumps({**result, "sizes": rows}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
