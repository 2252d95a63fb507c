"""`ctxstream serve-model` as a person starts and stops it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ctxstream_dagster.embedded.weights import DEFAULT_MODEL

CTXSTREAM = Path(sys.executable).with_name("ctxstream")


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload]
        [CTXSTREAM, "serve-model", *arguments], capture_output=True, text=True, timeout=240, check=False, **options
    )


def test_an_unknown_model_is_a_sentence_that_names_the_known() -> None:
    done = run("--model", "smollm2")
    assert done.returncode == 2
    assert "did you mean 'smollm2-135m'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_that_cannot_be_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    done = run("--host", "256.0.0.1", env={**os.environ, "CTXSTREAM_MODELS": str(tmp_path)})
    assert done.returncode == 2
    assert done.stderr.startswith("Error: Cannot listen on 256.0.0.1:")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_a_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run(env={**os.environ, "OLLAMA_HOST": f"127.0.0.1:{port}"})
    assert done.returncode == 2
    assert f"Port {port} of 127.0.0.1 is taken" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.model
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_answers_and_stops_in_the_middle_of_a_reply(stop: signal.Signals) -> None:
    command = [CTXSTREAM, "serve-model", "--port", "0", "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while not (found := re.search(r"http://\S+:\d+", said)):
            said += process.stderr.readline()
        assert DEFAULT_MODEL in said
        body = {"model": DEFAULT_MODEL, "messages": [{"role": "user", "content": "Count: 1 2 3"}], "format": "json"}
        with (
            httpx.Client(trust_env=False, timeout=120) as client,
            client.stream("POST", f"{found.group()}/api/chat", json=body) as reply,
        ):
            next(reply.iter_lines())
            process.send_signal(stop)
            rest = process.communicate(timeout=60)[1]
        assert process.returncode == 0
        assert rest == "Stopped.\n"
