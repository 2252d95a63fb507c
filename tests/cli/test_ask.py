"""`ctxstream ask` against a real socket server: the right answer, or a sentence and the promised exit status."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fault_server import FaultServer

LABELS = ("--mode", "labels", "--labels", "open,closed,lost", "--extract", "Which status does the ticket have?")


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    file = tmp_path / "tickets.log"
    statuses = ["open"] * 5 + ["closed"] * 3
    file.write_text("".join(f"{number} Status: {status}\n" for number, status in enumerate(statuses)), encoding="utf-8")
    return file


def served(server: FaultServer) -> tuple[str, ...]:
    return ("--url", server.url, "--model", "scripted")


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("least", "Answer: lost (0; 3 below the next)"),
        ("most", "Answer: open (5; 2 above the next)"),
        ("total", "Answer: 8"),
        ("list", "Answer: lost 0, closed 3, open 5"),
    ],
)
def test_the_answer_is_the_last_line(
    ctxstream: Cli, server: FaultServer, tickets: Path, answer: str, line: str
) -> None:
    done = ctxstream("ask", tickets, *LABELS, *served(server), "--answer", answer)
    assert (done.status, done.out.splitlines()[-1]) == (0, line)


def test_cue_and_examples_reach_the_model(ctxstream: Cli, server: FaultServer, tickets: Path) -> None:
    shown = ("--cue", "Status:", "--example", "7 => x Status: open => open", "--example", "8 Status: lost=>lost")
    assert ctxstream("ask", tickets, *LABELS, *served(server), *shown).status == 0
    _, first, reply, second, *_, last = server.bodies[-1]["messages"]
    assert first["content"].splitlines()[1::2] == ["7 => x Status: open", "Status:"]
    assert reply["content"] == '"open"'
    assert "8 Status: lost\n" in second["content"]
    assert last["content"].endswith("\nStatus:")


def test_json_is_the_documented_object(ctxstream: Cli, server: FaultServer, tickets: Path) -> None:
    done = ctxstream("ask", tickets, *LABELS, *served(server), "--answer", "least", "--json")
    document = json.loads(done.out)
    assert document["answer"] == "Answer: lost (0; 3 below the next)"
    assert document["tally"] == [
        {"key": "lost", "value": 0},
        {"key": "closed", "value": 3},
        {"key": "open", "value": 5},
    ]
    assert document["coverage"]["share"] == 1.0
    assert document["rejected"] == 0
    assert document["segments"] == {"ok": 1, "failed": 0}


@pytest.mark.parametrize("mode", ["counts", "records"])
def test_the_other_modes_count_the_same(ctxstream: Cli, server: FaultServer, tickets: Path, mode: str) -> None:
    options = ("--mode", mode, "--extract", "Report the status.", "--segment-chars", "60", "--concurrency", "3")
    done = ctxstream("ask", tickets, *options, *served(server), "--answer", "list")
    assert (done.status, done.out.splitlines()[-1]) == (0, "Answer: closed 3, open 5")


def test_counts_with_labels_is_advised_against(ctxstream: Cli, server: FaultServer, tickets: Path) -> None:
    done = ctxstream("ask", tickets, *LABELS[2:], "--mode", "counts", *served(server))
    assert done.status == 0
    assert "mode 'labels' lets code count" in done.err


def test_a_failed_segment_withholds_the_answer_and_the_next_run_sends_only_it(
    ctxstream: Cli, server: FaultServer, tickets: Path
) -> None:
    server.script({"match": "7 Status", "fault": "400-other", "times": None})
    options = (*LABELS, *served(server), "--answer", "least", "--segment-chars", "40")
    done = ctxstream("ask", tickets, *options)
    assert done.status == 1
    assert "Withheld" in done.out
    assert "Answer:" not in done.out
    server.reset()
    done = ctxstream("ask", tickets, *options)
    assert (done.status, done.out.splitlines()[-1]) == (0, "Answer: lost (0; 3 below the next)")
    assert server.stats.calls == 1


def test_refresh_asks_again(ctxstream: Cli, server: FaultServer, tickets: Path) -> None:
    for extra in ((), (), ("--refresh",)):
        ctxstream("ask", tickets, *LABELS, *served(server), *extra)
    assert server.stats.calls == 16


BAD_INPUT = {
    "no such path": (("nowhere.log", *LABELS), "nowhere.log"),
    "labels mode without labels": (("{tickets}", "--mode", "labels", "--extract", "x"), "at least two"),
    "unknown option": (("{tickets}", *LABELS, "--concurency", "3"), "--concurrency"),
    "unknown mode": (("{tickets}", "--mode", "label", "--extract", "x"), "labels"),
    "num_ctx too small": (("{tickets}", *LABELS, "--num-ctx", "1100"), "num_ctx 1100 is too small for one record"),
    "num_predict above num_ctx": (("{tickets}", *LABELS, "--num-predict", "40000"), "leaves no room"),
    "overlap above segment": (
        ("{tickets}", *LABELS, "--segment-chars", "90", "--overlap-chars", "100"),
        "overlap_chars",
    ),
    "example without a reply": (("{tickets}", *LABELS, "--example", "Status: open"), "'TEXT => REPLY'"),
    "example of another label": (("{tickets}", *LABELS, "--example", "x => opne"), "did you mean 'open'"),
    "empty corpus": (("{empty}", *LABELS), "empty"),
    "binary corpus": (("{binary}", *LABELS), "binary"),
    "model not pulled": (("{tickets}", *LABELS, "--model", "missing"), "ollama pull missing"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_a_sentence_and_status_2(
    ctxstream: Cli, server: FaultServer, tickets: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "empty.log").touch()
    (tmp_path / "binary.bin").write_bytes(b"\x7fELF\0\0\0")
    places = {"tickets": str(tickets), "empty": str(tmp_path / "empty.log"), "binary": str(tmp_path / "binary.bin")}
    arguments, expected = BAD_INPUT[name]
    done = ctxstream("ask", *served(server), *(argument.format(**places) for argument in arguments))
    assert (done.status, done.out) == (2, "")
    assert expected in done.err
    assert "Traceback" not in done.err


def test_no_server_says_how_to_start_one(ctxstream: Cli, tickets: Path) -> None:
    done = ctxstream("ask", tickets, *LABELS, "--url", "http://127.0.0.1:9")
    assert done.status == 2
    assert "ollama serve" in done.err


def test_progress_is_silent_when_nobody_watches(ctxstream: Cli, server: FaultServer, tickets: Path) -> None:
    assert ctxstream("ask", tickets, *LABELS, *served(server)).err == ""


def test_labels_that_look_like_markup_are_shown_as_they_are(
    ctxstream: Cli, server: FaultServer, tmp_path: Path
) -> None:
    (tmp_path / "odd.log").write_text("is it [/a]\n", encoding="utf-8")
    asked = ("--mode", "labels", "--labels", "[b],[/a]", "--extract", "Which?", "--answer", "most")
    done = ctxstream("ask", tmp_path / "odd.log", *asked, *served(server))
    assert done.out.splitlines()[-1] == "Answer: [/a] (1; 1 above the next)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CTXSTREAM_HOME", "~nobody-of-this-name/x"),
        ("CTXSTREAM_HOME", "nonsense://x"),
        ("OLLAMA_API_KEY", "\u043a\u043b\u044e\u0447"),
        ("OLLAMA_API_KEY", "secret\nkey"),
        ("HTTP_PROXY", "nonsense://x"),
        ("NO_PROXY", "[::"),
        ("SSL_CERT_FILE", "/nonexistent"),
    ],
)
def test_a_variable_that_cannot_be_used_is_a_sentence(
    ctxstream: Cli, server: FaultServer, tickets: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    proxied = {
        "HTTP_PROXY": "http://host.invalid",
        "NO_PROXY": "http://host.invalid",
        "SSL_CERT_FILE": "https://x.invalid",
    }
    done = ctxstream("ask", tickets, *LABELS, "--model", "scripted", "--url", proxied.get(name, server.url))
    assert (done.status, done.out) == (2, "")
    assert name in done.err
    assert "secret" not in done.err
