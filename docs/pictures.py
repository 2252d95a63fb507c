"""Takes the documentation's pictures anew: Dagster's pages, the evidence page and the terminal, from the bundled sweep.

Run: ``python docs/pictures.py`` on a quiet machine; it needs Chromium and its driver, and the embedded model. Then look
at every picture. What they were taken of is kept in docs/images/taken-of.json, and a test says when it has changed.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.chrome.webdriver import WebDriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

from ctxstream_dagster.embedded.weights import DEFAULT_MODEL  # noqa: E402
from ctxstream_dagster.orchestration.home import ensure_home  # noqa: E402
from tests.fault_server import FaultServer  # noqa: E402
from tests.orchestration.checkout import Checkout  # noqa: E402
from tests.orchestration.stack import Stack, wait_until  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SWEEP = "status_census"
CTXSTREAM = Path(sys.executable).with_name("ctxstream")
TERMINAL = """<body style="margin:0"><pre style="margin:0;padding:18px 22px;font:14px/1.5 'DejaVu Sans Mono',monospace;
color:#e6edf3;background:#0d1117;white-space:pre-wrap">{}</pre>"""


def main() -> None:
    with browser() as page, tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        with embedded_model() as url, checkout(Path(first), url=url, model=DEFAULT_MODEL) as stack:
            said = sweep_growing(stack)
            stack.start(daemon=False)
            answer_pages(page, stack)
            segment_page(page, stack)
            evidence_page(page, stack)
            terminal(page, said)
        with FaultServer() as server, checkout(Path(second), url=server.url, model="scripted") as stack:
            for ticket in ("#48125", "#48170"):
                server.script({"match": ticket, "fault": "400-other", "times": None})
            sweep(stack)
            stack.start()
            failed_pages(page, stack)
    taken_of = {"segments": segments(said)}
    (IMAGES / "taken-of.json").write_text(json.dumps(taken_of, indent=2) + "\n", encoding="utf-8")


def segments(said: str) -> int:
    """Return how many segments a sweep says that it has."""
    return int(re.findall(r"^\d+ of (\d+) segments read", said, re.MULTILINE)[-1])


@contextlib.contextmanager
def browser() -> Iterator[WebDriver]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or sys.exit("This needs chromium.")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    page = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield page
    finally:
        page.quit()


@contextlib.contextmanager
def embedded_model() -> Iterator[str]:
    command = [CTXSTREAM, "serve-model", "--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = ""
        while not (found := re.search(r"answers at (http://\S+)", said)):
            said += server.stderr.readline()
        try:
            yield found[1]
        finally:
            server.terminate()


@contextlib.contextmanager
def checkout(root: Path, *, url: str, model: str) -> Iterator[Stack]:
    """Yield a checkout with the bundled sweep alone, not started yet."""
    Checkout.lay_out(root)
    shutil.copytree(ROOT / "assets", root / "assets", dirs_exist_ok=True)
    for folder in (root / "assets" / "sweeps").iterdir():
        if folder.is_dir() and folder.name != SWEEP:
            shutil.rmtree(folder)
    own = {"DAGSTER_HOME": str(root / ".dagster"), "OLLAMA_HOST": url, "CTXSTREAM_MODEL": model}
    os.environ.update(own)
    os.environ.pop("CTXSTREAM_HOME", None)
    ensure_home(Checkout(root).project)
    stack = Stack(Checkout(root), {**os.environ, **own})
    try:
        yield stack
    finally:
        stack.stop()


def sweep(stack: Stack) -> str:
    done = subprocess.run(
        [CTXSTREAM, "sweep", SWEEP], cwd=stack.checkout.root, env=stack.environment, capture_output=True, text=True
    )
    return done.stdout


def sweep_growing(stack: Stack) -> str:
    """Sweep the corpus three times as it grows, for the plots; return what the last one says."""
    corpus = stack.checkout.root / "assets" / "corpora" / "tickets.txt"
    lines = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
    said = ""
    for kept in (160, 180, len(lines)):
        corpus.write_text("".join(lines[:kept]), encoding="utf-8")
        said = sweep(stack)
    return said


def size(page: WebDriver, width: int, height: int) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def visit(page: WebDriver, stack: Stack, path: str, *words: str) -> None:
    page.get(f"http://127.0.0.1:{stack.port}/assets/{SWEEP}/{path}")
    shows(page, *words)


def shows(page: WebDriver, *words: str) -> None:
    def all_shown() -> bool:
        text = page.execute_script("return document.body.innerText")
        return all(word in text for word in words)

    wait_until(all_shown, timeout_s=60, what=f"the page to show {words}")
    time.sleep(1.5)


def click(page: WebDriver, words: str) -> None:
    path = f"//*[normalize-space(.)={words!r} and not(*[normalize-space(.)={words!r}])]"
    page.execute_script("arguments[0].click()", page.find_elements(By.XPATH, path)[0])
    time.sleep(2)


def take(page: WebDriver, name: str) -> None:
    file = IMAGES / f"{name}.png"
    page.save_screenshot(str(file))
    # Half the size; this method alone keeps rare colours apart.
    Image.open(file).convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE).save(file, optimize=True)


def answer_pages(page: WebDriver, stack: Stack) -> None:
    size(page, 1280, 1000)
    visit(page, stack, "answer?view=overview", "Answer:", "coverage_share")
    take(page, "ui-answer")
    click(page, "Plots")
    heading = page.find_element(By.XPATH, "//*[.='Metadata' and not(*)]")
    page.execute_script("arguments[0].scrollIntoView()", heading)
    time.sleep(1)
    take(page, "ui-plots")
    visit(page, stack, "answer?view=overview", "[Show Markdown]")
    click(page, "[Show Markdown]")
    take(page, "ui-chart")
    size(page, 1280, 1150)
    visit(page, stack, "corpus?view=overview", "by_file")
    take(page, "ui-corpus")


def segment_page(page: WebDriver, stack: Stack) -> None:
    size(page, 1280, 1000)
    visit(page, stack, "extraction?view=partitions", "Partitions Selected")
    key = re.findall(r"tickets~[0-9a-f]+", page.execute_script("return document.body.innerText"))[2]
    visit(page, stack, f"extraction?view=partitions&partition={key}", "preview", "reply")
    take(page, "ui-segment")


def evidence_page(page: WebDriver, stack: Stack) -> None:
    file = stack.checkout.root / "evidence.html"
    command = [CTXSTREAM, "report", SWEEP, "--out", str(file)]
    subprocess.run(command, cwd=stack.checkout.root, env=stack.environment, check=True, capture_output=True)
    for width, height in ((1280, 1140), (400, 1500)):
        size(page, width, height)
        page.get(file.as_uri())
        time.sleep(1)
        take(page, f"evidence-{width}")


def terminal(page: WebDriver, said: str) -> None:
    size(page, 560, 330)
    written = f"$ ctxstream sweep {SWEEP}\n{said}"
    file = IMAGES / "terminal.html"
    file.write_text(TERMINAL.format(html.escape(written)), encoding="utf-8")
    page.get(file.as_uri())
    size(page, 560, page.execute_script("return document.querySelector('pre').offsetHeight"))
    take(page, "terminal")
    file.unlink()


def failed_pages(page: WebDriver, stack: Stack) -> None:
    size(page, 1280, 900)
    visit(page, stack, "extraction?view=partitions", "Failed (2)")
    # What failed alone, to read its key; then everything again, with it chosen.
    click(page, "Materialized (12)")
    key = re.findall(r"tickets~[0-9a-f]+", page.execute_script("return document.body.innerText"))[0]
    visit(page, stack, f"extraction?view=partitions&partition={key}", "Failed (2)", key)
    take(page, "ui-partitions")
    click(page, "Materialize…")
    click(page, "Failed and missing")
    shows(page, "2 partitions")
    take(page, "ui-failed-and-missing")


if __name__ == "__main__":
    main()
