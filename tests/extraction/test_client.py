"""The address, the settings, the key and the payload of the Ollama client, over real sockets."""

from __future__ import annotations

import asyncio
import json
from dataclasses import FrozenInstanceError

import pytest

from ctxstream_dagster.errors import ConfigError, ServerUnavailable
from ctxstream_dagster.extraction.backend import Prompt
from ctxstream_dagster.extraction.faults import error_text, status_error
from ctxstream_dagster.extraction.host import base_url, is_loopback
from ctxstream_dagster.extraction.ollama import OllamaBackend, complete
from ctxstream_dagster.extraction.options import OllamaOptions
from tests.fault_server import FaultServer

PROMPT = Prompt(messages=({"role": "user", "content": "Status: alpha"},), format={"type": "string", "enum": ["alpha"]})


def once(backend: OllamaBackend, prompt: Prompt = PROMPT):
    async def call():
        try:
            return await backend.complete(prompt)
        finally:
            await backend.aclose()

    return asyncio.run(call())


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("1.2.3.4", "http://1.2.3.4:11434"),
        (":56789", "http://127.0.0.1:56789"),
        ("1.2.3.4:56789", "http://1.2.3.4:56789"),
        ("http://1.2.3.4", "http://1.2.3.4:80"),
        ("https://1.2.3.4", "https://1.2.3.4:443"),
        ("HTTPS://Example.com:8443", "https://example.com:8443"),
        ("example.com", "http://example.com:11434"),
        ("example.com/", "http://example.com:11434"),
        ("example.com/path/", "http://example.com:11434/path"),
        ("https://example.com:56789/a/b/", "https://example.com:56789/a/b"),
        ("[0001:002:003:0004::1]", "http://[0001:002:003:0004::1]:11434"),
        ("[0001:002:003:0004::1]:56789/path", "http://[0001:002:003:0004::1]:56789/path"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
        ("[::]:11434", "http://[::1]:11434"),
        ('"localhost:1"', "http://localhost:1"),
    ],
)
def test_an_address_is_read_as_ollamas_own_client_reads_it(host: str, url: str) -> None:
    assert base_url(host) == url


@pytest.mark.parametrize(
    "host",
    [
        *("ftp://x", "http://x:port", "x:99999", "http://[::1", "http://user:key@x", "tcp://1.2.3.4"),
        *("\u2603.invalid:80", "http://..:80", "a" * 300, "http://xn--:80", "http://\x7f:1", "http://a b:1"),
        *("http://x:1/?key=a", "x:1#part", "http://x/v1?"),
    ],
)
def test_an_address_that_is_none_is_a_sentence(host: str) -> None:
    with pytest.raises(ConfigError) as failure:
        OllamaOptions(url=host)
    assert "key@" not in str(failure.value)


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("http://127.0.0.1:1", True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("http://10.0.0.1:1", False),
    ],
)
def test_this_machine_is_known(url: str, own: bool) -> None:
    assert is_loopback(url) is own


def test_the_environment_names_the_server_and_the_key(monkeypatch: pytest.MonkeyPatch, server: FaultServer) -> None:
    monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://"))
    monkeypatch.delenv("OLLAMA_API_KEY", raising=False)
    once(OllamaBackend(OllamaOptions(model="scripted")))
    assert "authorization" not in server.headers[-1]
    monkeypatch.setenv("OLLAMA_API_KEY", "secret-1")
    once(OllamaBackend(OllamaOptions(model="scripted")))
    assert server.headers[-1]["authorization"] == "Bearer secret-1"
    once(OllamaBackend(OllamaOptions(model="scripted", api_key="secret-2")))
    assert server.headers[-1]["authorization"] == "Bearer secret-2"


def test_the_key_is_nowhere_to_be_seen() -> None:
    options = OllamaOptions(api_key="secret-3")
    assert "secret-3" not in repr(options)
    assert "secret-3" not in json.dumps(options.settings())


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, server: FaultServer, name: str
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    backend = OllamaBackend(OllamaOptions(url=server.url, model="scripted"))
    backend.preflight()
    assert once(backend).text == '"alpha"'


def test_a_proxy_is_used_elsewhere_unless_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with pytest.raises(ServerUnavailable) as failure:
        once(OllamaBackend(OllamaOptions(url="http://192.0.2.1:1", model="m", connect_timeout_s=0.5)))
    assert failure.value.kind == "connect"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"num_ctx": "32768"}, "num_ctx"),
        ({"num_ctx": True}, "num_ctx"),
        ({"num_ctx": 10}, "num_ctx"),
        ({"num_predict": 40_000}, "leaves no room"),
        ({"temperature": 3}, "temperature"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"model": " "}, "model"),
        ({"keep_alive": 5}, "keep_alive"),
        ({"seed": -1}, "seed"),
        ({"num_ctxx": 4_096}, "did you mean 'num_ctx'"),
    ],
)
def test_a_wrong_setting_is_a_sentence(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        OllamaOptions.from_mapping(wrong)


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(FrozenInstanceError):
        OllamaOptions().num_ctx = 1  # type: ignore[misc]


def test_the_seeds_complete_answers_one_prompt(server: FaultServer) -> None:
    completion = complete(
        "<number>\t<key>", "<<<TEXT\n1| Status: beta\nTEXT>>>", options=OllamaOptions(url=server.url, model="scripted")
    )
    assert (completion.text, completion.guard) == ("1\tbeta", "ok")
    assert completion.prompt_tokens
    assert completion.seconds > 0


def test_one_backend_serves_several_event_loops_and_leaves_no_connection(server: FaultServer) -> None:
    backend = OllamaBackend(OllamaOptions(url=server.url, model="scripted"))
    for _ in range(3):
        assert once(backend).text == '"alpha"'
    server.wait_idle()


def test_a_separator_of_unicode_inside_a_reply_does_not_cut_its_line(server: FaultServer) -> None:
    server.script({"fault": "text", "args": {"text": "a\u2028b\u0085c\t1"}})
    assert once(OllamaBackend(OllamaOptions(url=server.url, model="scripted"))).text == "a\u2028b\u0085c\t1"


def test_half_a_surrogate_pair_in_corpus_or_reply_stops_nothing(server: FaultServer) -> None:
    server.script({"fault": "text", "args": {"text": "reply"}})
    prompt = Prompt(messages=({"role": "user", "content": "a\ud800b"},))
    assert once(OllamaBackend(OllamaOptions(url=server.url, model="scripted")), prompt).text == "reply"
    assert server.bodies[-1]["messages"][0]["content"] == "a\ud800b"


def test_a_path_prefix_goes_in_front_of_every_route(server: FaultServer) -> None:
    server.prefix = "/ollama"
    try:
        backend = OllamaBackend(OllamaOptions(url=f"{server.url}/ollama/", model="scripted"))
        assert backend.preflight().digest
        assert once(backend).text == '"alpha"'
    finally:
        server.prefix = ""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"error":"plain"}', "plain"),
        ('{"error":{"message":"inner","code":400}}', "inner"),
        ('{"error":"{\\"error\\":{\\"message\\":\\"deep\\"}}"}', "deep"),
        ("<html>gateway</html>", "<html>gateway</html>"),
        ('{"detail":"x"}', "x"),
        ("{", "{"),
        ("{" * 5_000, "{" * 300),
        ("", ""),
        ("x" * 5_000, "x" * 300),
    ],
)
def test_an_error_body_is_unwrapped_and_kept_short(body: str, text: str) -> None:
    assert error_text(body) == text


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (503, "The server answered 503: Service Unavailable, without a message."),
        (500, "The server failed: Internal Server Error, without a message."),
        (418, "The server rejects the request (418): I'm a Teapot, without a message."),
        (499, "The server answered 499: HTTP status 499, without a message."),
        (302, "The server redirects elsewhere (302 Found). Point the URL at Ollama itself"),
    ],
)
def test_a_reply_without_a_body_still_says_what_it_is(status: int, sentence: str) -> None:
    assert str(status_error(status, "", model="m")).startswith(sentence)


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7), ("0.5", 0.5), ("-3", 0), ("9999", 600), ("soon", None), ("nan", None), ("", None)]
)
def test_retry_after_is_read_and_bounded(value: str, seconds: float | None) -> None:
    error = status_error(503, "{}", model="m", retry_after=value)
    assert isinstance(error, ServerUnavailable)
    assert error.retry_after_s == seconds


def test_retry_after_may_be_a_date() -> None:
    error = status_error(503, "{}", model="m", retry_after="Wed, 21 Oct 2015 07:28:00 GMT")
    assert isinstance(error, ServerUnavailable)
    assert error.retry_after_s == 0


@pytest.mark.parametrize("name", ["total_duration", "load_duration", "eval_count"])
def test_a_counter_beyond_any_count_is_not_reported(server: FaultServer, name: str) -> None:
    reply = {"message": {"content": "alpha"}, "done": True, "done_reason": "stop", name: 10**400}
    server.script({"fault": "openai-body", "args": {"text": json.dumps(reply)}})
    completion = once(OllamaBackend(OllamaOptions(url=server.url, model="scripted")))
    assert (completion.text, completion.output_tokens, completion.load_s) == ("alpha", None, 0.0)


def test_a_reply_in_a_broken_encoding_is_a_broken_connection(server: FaultServer) -> None:
    server.script({"fault": "openai-body", "args": {"text": "no gzip", "headers": ["Content-Encoding: gzip"]}})
    with pytest.raises(ServerUnavailable, match="broke"):
        once(OllamaBackend(OllamaOptions(url=server.url, model="scripted")))
