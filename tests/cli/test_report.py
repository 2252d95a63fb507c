"""The report of a sweep that ran through Dagster: the last good tally, or what was extracted so far."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxstream_dagster.report.entries import Status
from ctxstream_dagster.storage import SweepStore
from tests.cli.conftest import Cli
from tests.fault_server import FaultServer
from tests.orchestration.checkout import Checkout, status_lines


@pytest.fixture
def checkout(tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Checkout]:
    root = tmp_path / "checkout"
    root.mkdir()
    Checkout.lay_out(root)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    monkeypatch.setenv("CTXSTREAM_MODEL", "scripted")
    monkeypatch.chdir(root)
    made = Checkout(root)
    made.write_corpus(status_lines(20))
    made.write_sweep()
    yield made
    # Dagster's own home was put into the environment of this process.
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


def data(page: str) -> dict[str, list[object]]:
    return json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])


def test_the_report_of_a_sweep_before_during_and_after_it(
    ctxstream: Cli, checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = ctxstream("report", "censu")
    assert (unknown.status, "(did you mean 'census'?)" in unknown.err) == (2, True)
    early = ctxstream("report", "census")
    assert (early.status, "has not run yet. Run `ctxstream sweep census` first" in early.err) == (2, True)

    assert ctxstream("sweep", "census").status == 0
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    done = ctxstream("report", "census", "--open")
    file = tmp_path / "state" / "sweeps" / "census" / "evidence.html"
    assert done.out.startswith("Answer: delta (2; 2 below the next)\nEvidence: ")
    assert opened == [file.as_uri()]
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    alone = ctxstream("report", "census", "--open")
    assert (alone.status, alone.out) == (0, done.out)
    assert alone.err == f"No browser could be started here. The page is complete: open {file} in one.\n"
    page = file.read_text(encoding="utf-8")
    assert "The status of the ticket." in page
    assert data(page)["status"] == [0] * 20
    assert data(page)["line"] == list(range(1, 21))
    assert data(page)["paths"][0] == "corpus.txt"

    store = SweepStore(tmp_path / "state", "census")
    first = next(iter(sorted((store.root / "extraction").rglob("*.parquet"))))
    first.unlink()
    renewed = json.loads(ctxstream("report", "census", "--json", "--out", "page.html").out)
    assert renewed["answer"] == "Answer: delta (2; 2 below the next)"
    assert "Segments were extracted again since this tally" in renewed["remarks"][0]
    assert renewed["bytes"] == (checkout.root / "page.html").stat().st_size

    latest = json.loads(ctxstream("report", "census", "--json", "--latest", "--out", "page.html").out)
    assert latest["answer"] is None
    assert latest["withheld"] == "3 of 4 segments are read so far"
    assert data((checkout.root / "page.html").read_text(encoding="utf-8"))["status"].count(int(Status.FAILED)) == 1
