"""`ctxstream doctor`: the exit status says whether a sweep would run, the table what to change."""

import json

import pytest

from ctxstream_dagster.cli import doctor
from ctxstream_dagster.cli.finding import Finding
from ctxstream_dagster.embedded.server import VERSION as EMBEDDED_VERSION
from tests.cli.conftest import Cli
from tests.fault_server import FaultServer


def states(out: str) -> dict[str, str]:
    return {entry["check"]: entry["state"] for entry in json.loads(out)["checks"]}


@pytest.fixture(autouse=True)
def _only_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "dagster_findings", lambda: [])


def test_a_ready_server_passes_every_check(ctxstream: Cli, server: FaultServer) -> None:
    done = ctxstream("doctor", "--url", server.url, "--model", "scripted", "--json")
    assert done.status == 0
    assert set(states(done.out).values()) == {"ok"}
    assert list(states(done.out))[-2:] == ["speed", "slots"]


def test_the_table_is_for_a_person(ctxstream: Cli, server: FaultServer) -> None:
    done = ctxstream("doctor", "--url", server.url, "--model", "scripted")
    assert (done.status, done.out.splitlines()[-1]) == (0, "A sweep would run.")
    assert "scripted:latest 5c915c915c91" in done.out


@pytest.mark.parametrize(
    ("change", "arguments", "check", "advice"),
    [
        ({}, ("--model", "other"), "model", "ollama pull other"),
        ({"version": "0.9.0"}, (), "version", "Update it"),
        ({"trained_ctx": 4_096}, (), "trained context", "Set num_ctx to 4096"),
        ({"effective_ctx": 4_096}, (), "context", "Set num_ctx to 4096"),
    ],
)
def test_what_keeps_a_sweep_from_running_is_named_with_its_cure(
    ctxstream: Cli, server: FaultServer, change: dict[str, object], arguments: tuple[str, ...], check: str, advice: str
) -> None:
    for name, value in change.items():
        setattr(server, name, value)
    done = ctxstream("doctor", "--url", server.url, "--json", "--model", "scripted", *arguments)
    assert done.status == 1
    found = {entry["check"]: entry for entry in json.loads(done.out)["checks"]}
    assert found[check]["state"] == "problem"
    assert advice in found[check]["change"]
    assert [entry["state"] for entry in found.values()].count("problem") == 1


def test_nobody_there_and_a_model_that_cannot_answer(ctxstream: Cli, server: FaultServer) -> None:
    done = ctxstream("doctor", "--url", "127.0.0.1:1", "--model", "scripted")
    assert (done.status, done.out.splitlines()[-1]) == (1, "A sweep would not run yet.")
    assert "ollama serve" in done.out
    server.script({"fault": "500-memory", "times": None})
    done = ctxstream("doctor", "--url", server.url, "--model", "scripted", "--json")
    assert (done.status, states(done.out)["speed"]) == (1, "problem")


def test_a_server_that_runs_one_call_at_a_time_is_a_warning(ctxstream: Cli, server: FaultServer) -> None:
    server.latency_s, server.parallel = 0.2, 1
    done = ctxstream("doctor", "--url", server.url, "--model", "scripted", "--concurrency", "3", "--json")
    assert (done.status, states(done.out)["slots"]) == (0, "warning")
    assert "Set OLLAMA_NUM_PARALLEL=3 for the server, or keep at most 1 in flight" in done.out
    server.version = EMBEDDED_VERSION
    done = ctxstream("doctor", "--url", server.url, "--model", "scripted", "--concurrency", "3", "--json")
    assert "Start it with `ctxstream serve-model --parallel 3`" in done.out


def test_other_rooms_add_their_checks(ctxstream: Cli, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Finding(check="home", state="problem", found="two daemons", change="stop one")
    monkeypatch.setattr(doctor, "dagster_findings", lambda: [broken])
    done = ctxstream("doctor", "--url", server.url, "--model", "scripted")
    assert done.status == 1
    assert "two daemons" in done.out
