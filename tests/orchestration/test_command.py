"""``ctxstream sweep`` and ``ctxstream gc`` as a person or a script meets them: words, JSON and exit status."""

import json

import pytest
from typer.testing import CliRunner

from ctxstream_dagster.cli import app, main
from tests.fault_server import FaultServer
from tests.orchestration.checkout import Checkout, status_lines


@pytest.fixture
def project(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    checkout.write_corpus(status_lines(20))
    checkout.write_sweep()
    monkeypatch.chdir(checkout.root)
    return checkout


def test_a_sweep_prints_tally_coverage_and_answer_and_a_withheld_one_exits_with_1(
    project: Checkout, server: FaultServer
) -> None:
    done = CliRunner().invoke(app, ["sweep", "census"])
    assert done.exit_code == 0, done.output
    assert "4 of 4 segments sent, 0 failed." in done.output
    assert "4 of 4 segments read, 20 units." in done.output
    assert "Answer: delta (2; 2 below the next)" in done.output

    project.write_corpus(status_lines(25))
    server.script({"match": "ticket 00022", "fault": "400-other", "times": None})
    withheld = CliRunner().invoke(app, ["sweep", "census"])
    assert withheld.exit_code == 1
    assert "4 of 5 segments are read" in withheld.output
    assert "The last good answer was: Answer: delta" in withheld.output

    server.reset()
    repaired = CliRunner().invoke(app, ["sweep", "census", "--json"])
    assert repaired.exit_code == 0
    told = json.loads(repaired.output)
    assert (told["withheld"], told["sent"], told["segments"]) == ("", 1, {"ok": 5, "failed": 0})
    assert told["total"] == 25
    assert len(told["runs"]) == 3

    collected = CliRunner().invoke(app, ["gc", "--older-than-days", "0", "--json"])
    assert collected.exit_code == 0
    assert json.loads(collected.output)["left_alone"] == {}


def test_a_missing_server_is_bad_usage_with_the_sentence_that_starts_one(
    project: Checkout, server: FaultServer
) -> None:
    server.stop()
    refused = CliRunner().invoke(app, ["sweep", "census"])
    assert refused.exit_code == 2
    assert "ollama serve" in refused.output


def test_an_unknown_sweep_is_bad_usage(
    project: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["ctxstream", "sweep", "cencus"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "did you mean 'census'" in capsys.readouterr().err


def test_a_vanished_corpus_is_bad_usage(
    project: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.corpus.unlink()
    monkeypatch.setattr("sys.argv", ["ctxstream", "sweep", "census"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert "corpus.txt" in told
    assert "Traceback" not in told
