"""What a client of Ollama's native routes relies on: the same tests for the fake engine and for the real model."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from ctxstream_dagster.embedded.llama import LlamaEngine
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.preflight import ask_server
from tests.embedded.conftest import FakeEngine, client_of, serving

CALM = {"temperature": 0, "num_ctx": 512, "num_predict": 24}
CHOICE = {"type": "string", "enum": ["open", "closed"]}


@pytest.fixture(scope="module", params=["fake", pytest.param("real", marks=pytest.mark.model)])
def client(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    engine: FakeEngine | LlamaEngine
    engine = FakeEngine() if request.param == "fake" else request.getfixturevalue("real_engine")
    with serving(engine) as server, client_of(server) as client:
        client.headers["x-model"] = engine.card.name
        yield client


def chat(client: httpx.Client, text: str = "Count.", **changes: Any) -> httpx.Response:
    body = {"model": client.headers["x-model"], "messages": [{"role": "user", "content": text}], "options": CALM}
    return client.post("/api/chat", json={**body, **changes})


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def test_the_root_says_what_ollama_s_says(client: httpx.Client) -> None:
    assert client.get("/").text == "Ollama is running"
    assert client.head("/").status_code == 200


def test_our_own_preflight_accepts_it(client: httpx.Client) -> None:
    options = OllamaOptions(url=str(client.base_url), model=client.headers["x-model"], num_ctx=512, num_predict=24)
    facts = ask_server(client, options)
    assert facts.effective_ctx == 512
    assert len(facts.digest) == 64
    assert facts.capabilities == ("completion",)


def test_it_streams_unless_told_otherwise(client: httpx.Client) -> None:
    reply = chat(client)
    assert reply.headers["content-type"] == "application/x-ndjson"
    *pieces, last = lines(reply)
    assert len(pieces) > 1
    assert all(piece["done"] is False and "eval_count" not in piece for piece in pieces)
    assert last["done"] is True
    assert last["message"] == {"role": "assistant", "content": ""}
    whole = chat(client, stream=False).json()
    assert whole["message"]["content"] == "".join(piece["message"]["content"] for piece in pieces)


@pytest.mark.parametrize("stream", [True, False])
def test_the_last_line_counts_tokens_and_nanoseconds(client: httpx.Client, stream: bool) -> None:
    chat(client)
    last = lines(chat(client, stream=stream))[-1]
    again = lines(chat(client, stream=stream))[-1]
    # Tokens taken from the prefix cache were read too: leaving them out would look like a clipped prompt.
    assert again["prompt_eval_count"] == last["prompt_eval_count"] > 0
    assert 0 < last["eval_count"] <= CALM["num_predict"]
    assert last["prompt_eval_duration"] + last["eval_duration"] > 1_000
    assert last["total_duration"] > 1_000


def test_a_reply_at_num_predict_says_that_it_was_cut(client: httpx.Client) -> None:
    last = chat(client, stream=False, options={**CALM, "num_predict": 2}).json()
    assert (last["done_reason"], last["eval_count"]) == ("length", 2)


def test_a_choice_is_answered_by_one_of_its_texts_as_json(client: httpx.Client) -> None:
    last = chat(client, "#7 | Status: open\nStatus:", format=CHOICE, stream=False).json()
    assert json.loads(last["message"]["content"]) == "open"
    assert last["done_reason"] == "stop"


def test_an_object_holds_each_required_name_in_order(client: httpx.Client) -> None:
    names = ["2", "10", "1"]
    schema = {"type": "object", "properties": dict.fromkeys(names, CHOICE), "required": names}
    content = chat(
        client, format={**schema, "additionalProperties": False}, stream=False, options={**CALM, "num_predict": 99}
    )
    answer = json.loads(content.json()["message"]["content"])
    assert list(answer) == names
    assert set(answer.values()) <= {"open", "closed"}


def test_json_without_a_schema_begins_an_object(client: httpx.Client) -> None:
    assert chat(client, format="json", stream=False).json()["message"]["content"].startswith("{")


@pytest.mark.parametrize("truncate", [False, True, None])
def test_a_prompt_that_does_not_fit_is_refused_and_never_clipped(client: httpx.Client, truncate: bool | None) -> None:
    reply = chat(client, "word " * 600, truncate=truncate)
    assert reply.status_code == 400
    assert "exceed_context_size_error" in reply.json()["error"]
    assert json.loads(reply.json()["error"])["error"]["n_ctx"] == CALM["num_ctx"]


@pytest.mark.parametrize("stream", [True, False])
def test_no_messages_load_and_keep_alive_nothing_unloads(client: httpx.Client, stream: bool) -> None:
    model = client.headers["x-model"]
    loaded = client.post("/api/chat", json={"model": model, "messages": [], "stream": stream, "options": CALM}).json()
    assert (loaded["done"], loaded["done_reason"]) == (True, "load")
    (running,) = client.get("/api/ps").json()["models"]
    assert (running["name"], running["context_length"]) == (f"{model}:latest", CALM["num_ctx"])
    unloaded = client.post("/api/chat", json={"model": model, "keep_alive": 0}).json()
    assert unloaded["done_reason"] == "unload"
    assert client.get("/api/ps").json() == {"models": []}


def test_a_model_answers_to_its_name_with_and_without_tag(client: httpx.Client) -> None:
    name = client.headers["x-model"]
    for written in (name, f"{name}:latest"):
        assert chat(client, model=written, stream=False, options={**CALM, "num_predict": 1}).json()["model"] == written
        assert client.post("/api/show", json={"model": written}).status_code == 200
    assert [model["name"] for model in client.get("/api/tags").json()["models"]] == [f"{name}:latest"]


@pytest.mark.parametrize("route", ["/api/chat", "/api/show"])
def test_another_model_is_not_found(client: httpx.Client, route: str) -> None:
    reply = client.post(route, json={"model": "gemma4:e4b", "messages": []})
    assert (reply.status_code, reply.json()) == (404, {"error": "model 'gemma4:e4b' not found"})


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"think": True}, 400, "does not support thinking"),
        ({"think": "high"}, 400, "does not support thinking"),
        ({"tools": [{"type": "function"}]}, 400, "does not support tools"),
        ({"options": {"num_ctx": "many"}}, 500, 'option "num_ctx" must be of type integer'),
        ({"options": {"temperature": "hot"}}, 500, 'option "temperature" must be of type float32'),
        ({"options": {"num_predict": True}}, 500, 'option "num_predict" must be of type integer'),
        ({"options": {"stop": "x"}}, 500, 'option "stop" must be of type array'),
        ({"options": {"stop": [1]}}, 500, 'option "stop" must be of an array of strings'),
        ({"options": []}, 400, "cannot unmarshal array"),
        ({"format": "yaml"}, 500, "invalid format"),
        ({"format": {"type": "nonsense"}}, 500, "invalid format"),
        ({"keep_alive": "soon"}, 400, "invalid duration"),
        ({"messages": "hello"}, 400, "cannot unmarshal string"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, 400, "invalid role"),
        ({"model": None}, 400, "model is required"),
    ],
)
def test_what_ollama_refuses_is_refused_with_its_words(
    client: httpx.Client, change: dict[str, Any], status: int, says: str
) -> None:
    reply = chat(client, **change)
    assert reply.status_code == status
    assert says in reply.json()["error"]


def test_an_unknown_option_is_ignored_as_ollama_does(client: httpx.Client) -> None:
    assert (
        chat(client, think=False, options={**CALM, "num_ctxx": 7, "num_keep": 4, "num_thread": None}).status_code == 200
    )


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff"])
def test_a_body_that_is_no_object_is_a_400(client: httpx.Client, body: bytes) -> None:
    reply = client.post("/api/chat", content=body)
    assert reply.status_code == 400
    assert reply.json()["error"]


def test_a_body_may_come_in_chunks(client: httpx.Client) -> None:
    body = json.dumps({"model": client.headers["x-model"]}).encode()
    reply = client.post("/api/show", content=iter([body[:5], body[5:]]))
    assert reply.status_code == 200


@pytest.mark.parametrize("path", ["/api/generate", "/v1/chat/completions", "/api/chat/x"])
def test_another_route_is_not_found_and_the_connection_stays_usable(client: httpx.Client, path: str) -> None:
    assert client.post(path, json={"model": "x"}).status_code == 404
    assert client.get(path).status_code == 404
    assert client.get("/api/version").json()["version"].startswith("0.33.0-")


@pytest.mark.parametrize(
    "head", [b"Content-Length: x", b"Content-Length: 99999999999", b"Transfer-Encoding: chunked\r\n\r\n-5"]
)
def test_a_garbled_length_is_refused_at_once(client: httpx.Client, head: bytes) -> None:
    with socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=10) as connection:
        connection.sendall(b"POST /api/chat HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n")
        assert connection.recv(64).startswith((b"HTTP/1.1 400", b"HTTP/1.1 413"))
