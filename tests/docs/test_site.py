"""The built documentation is whole and needs no network."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import ROOT

# What makes a browser fetch something while a page loads.
_FETCHED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*?\bsrc=\"?([^\" >]+)|<link\b([^>]*)>", re.IGNORECASE)


def test_it_builds_strictly_and_fetches_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        # Not --quiet: it silences the warnings that --strict counts, and then nothing fails.
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(list((ROOT / "docs").glob("*.md")))
    outside = {
        fetched
        for page in pages
        for source, link in _FETCHED.findall(page.read_text(encoding="utf-8"))
        for fetched in (source, *re.findall(r"href=\"?([^\" >]+)", link if "canonical" not in link else ""))
        if re.match(r"(?:https?:)?//", fetched)
    }
    assert outside == set()
