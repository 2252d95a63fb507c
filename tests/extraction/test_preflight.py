"""What cannot work fails before the first call, with one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctxstream_dagster.errors import PreflightError
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from tests.fault_server import FaultServer


@pytest.fixture
def own() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def facts(server: FaultServer, **options: object):
    return OllamaBackend(OllamaOptions(**{"url": server.url, "model": "scripted", **options})).facts()  # type: ignore[arg-type]


def test_a_ready_server_says_what_it_is(own: FaultServer) -> None:
    found = facts(own)
    assert (found.version, found.model, found.digest) == ("0.33.0", "scripted:latest", "5c91" * 16)
    assert (found.trained_ctx, found.effective_ctx, found.capabilities) == (131_072, 32_768, ("completion",))


@pytest.mark.parametrize("model", ["scripted", "scripted:latest"])
def test_latest_may_be_left_out(own: FaultServer, model: str) -> None:
    assert facts(own, model=model).digest


def test_it_asks_once_and_remembers(own: FaultServer) -> None:
    backend = OllamaBackend(OllamaOptions(url=own.url, model="scripted"))
    first = backend.preflight()
    own.stop()
    try:
        assert backend.preflight() == first
    finally:
        own.start()


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (
            {},
            {"model": "scripte"},
            r"does not have scripte \(did you mean 'scripted:latest'\?\). Run `ollama pull scripte`",
        ),
        ({"version": "0.12.5"}, {}, "Ollama 0.12.5 clips .* Update it to 0.12.6"),
        ({"version": "0.3.1-rc1"}, {}, "Update it"),
        ({"trained_ctx": 8_192}, {}, "trained for 8192 tokens.*Set num_ctx to 8192"),
        ({"effective_ctx": 4_096}, {}, "4096 tokens of context although 32768.*Set num_ctx to 4096"),
        ({"capabilities": ["embedding"]}, {}, "cannot chat.*embedding"),
    ],
)
def test_each_check_has_its_sentence(
    own: FaultServer, change: dict[str, object], options: dict[str, object], says: str
) -> None:
    for name, value in change.items():
        setattr(own, name, value)
    with pytest.raises(PreflightError, match=says):
        facts(own, **options)


@pytest.mark.parametrize("version", ["0.12.6", "0.33.0-rc2", "1.0.0", "v0.40.10", "0.0.0", "0.0.0-embedded", "dev"])
def test_new_and_development_versions_pass(own: FaultServer, version: str) -> None:
    own.version = version
    assert facts(own).version == version


def test_version_0_30_0_leaves_cached_tokens_out_of_its_count(own: FaultServer) -> None:
    assert facts(own).counts_cached
    own.version = "0.30.0"
    assert not facts(own).counts_cached


def test_nobody_there() -> None:
    server = FaultServer()
    server.start()
    server.stop()
    with pytest.raises(PreflightError, match=f"Nothing answers at {server.url}. Start it with `ollama serve`"):
        facts(server)


@pytest.mark.parametrize(
    "answer",
    [(200, b"<html>hello</html>"), (404, b'{"error":"no"}'), (200, b"[1]"), (200, b'{"error":"Unexpected endpoint"}')],
)
def test_another_server_is_told_apart(own: FaultServer, answer: tuple[int, bytes]) -> None:
    own.answers["/api/version"] = answer
    with pytest.raises(PreflightError, match=r"Ollama|Unexpected endpoint"):
        facts(own)


@pytest.mark.parametrize("missing", ["/api/ps", "/api/tags"])
def test_a_server_without_the_minor_routes_still_serves(own: FaultServer, missing: str) -> None:
    own.answers[missing] = (404, b"{}")
    found = facts(own)
    assert found.effective_ctx is None if missing == "/api/ps" else found.digest == ""


def test_a_server_out_of_memory_says_what_to_lower(own: FaultServer) -> None:
    own.answers["load"] = (500, b'{"error":"model requires more system memory (9.6 GiB) than is available (7.1 GiB)"}')
    with pytest.raises(PreflightError, match=r"9\.6 GiB.*Lower num_ctx"):
        facts(own)


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/api/tags", b'{"models":{"a":1}}'),
        ("/api/tags", b'{"models":[1,null]}'),
        ("/api/show", b'{"model_info":[1],"capabilities":5}'),
        ("/api/show", b'{"model_info":{"general.architecture":"a","a.context_length":true}}'),
        ("load", b'{"load_duration":' + b"9" * 400 + b"}"),
        ("/api/ps", b'{"models":[5]}'),
        ("/api/ps", b'{"models":"x"}'),
    ],
)
def test_an_answer_of_another_shape_is_taken_for_none(own: FaultServer, route: str, body: bytes) -> None:
    own.answers[route] = (200, body)
    assert facts(own).model == "scripted:latest"
