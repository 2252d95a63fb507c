"""A fake engine that keeps the real one's promises, and servers over real sockets for either."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from ctxstream_dagster.embedded.catalog import known_weights
from ctxstream_dagster.embedded.engine import Finish, ModelCard
from ctxstream_dagster.embedded.llama import LlamaEngine
from ctxstream_dagster.embedded.server import EmbeddedServer
from ctxstream_dagster.embedded.weights import DEFAULT_MODEL, obtain
from ctxstream_dagster.embedded.wire import ApiError, ChatRequest

WORDS = ["one", " two", " three", " four", " five", " six", " seven", " eight"]


@dataclass
class FakeEngine:
    """Counts words for tokens; says the first choice of a schema, else counts to eight.

    `hold` keeps every generation from going on after its first word until it is set, `hold_load` every load.
    """

    parallel: int = 1
    name: str = "fake"
    context_length: int = 4_096
    hold: threading.Event | None = None
    hold_load: threading.Event | None = None
    loads: list[int] = field(default_factory=list)
    running: int = 0
    peak: int = 0
    stopped: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def card(self) -> ModelCard:
        return ModelCard(
            name=self.name,
            digest="0" * 64,
            size_bytes=1,
            architecture="fake",
            parameters="1",
            quantization="F16",
            context_length=self.context_length,
        )

    def load(self, num_ctx: int) -> None:
        assert self.running == 0, "a running generation would lose its context"
        self.loads.append(num_ctx)
        if self.hold_load is not None:
            self.hold_load.wait()

    def unload(self) -> None:
        assert self.running == 0

    def generate(self, request: ChatRequest, emit: Callable[[str], bool]) -> Finish | None:
        prompt = sum(len(message["content"].split()) for message in request.messages)
        if prompt >= self.loads[-1]:
            error = {"type": "exceed_context_size_error", "n_prompt_tokens": prompt, "n_ctx": self.loads[-1]}
            error["message"] = f"request ({prompt} tokens) exceeds the available context size"
            raise ApiError(400, json.dumps({"error": error}))
        with self._lock:
            self.running += 1
            self.peak = max(self.peak, self.running)
        try:
            return self._say(_words(request), request, emit, prompt=prompt)
        finally:
            with self._lock:
                self.running -= 1

    def _say(
        self, words: list[str], request: ChatRequest, emit: Callable[[str], bool], *, prompt: int
    ) -> Finish | None:
        said = 0
        for word in words:
            if said == request.most_tokens:
                return Finish(reason="length", prompt_tokens=prompt, output_tokens=said)
            if not emit(word):
                self.stopped += 1
                return None
            said += 1
            while self.hold is not None and not self.hold.wait(0.01):
                if not emit("."):
                    self.stopped += 1
                    return None
        return Finish(
            reason="stop", prompt_tokens=prompt, cached_tokens=1, output_tokens=said, prompt_s=1.0, output_s=2.0
        )


def _words(request: ChatRequest) -> list[str]:
    schema = request.format
    if schema == "json":
        return ["{", "}"]
    if not isinstance(schema, dict):
        return [word for word in WORDS if not any(stop in word for stop in request.options.get("stop", ()))]
    if schema.get("type") == "nonsense":
        raise ApiError(500, "invalid format: JSON schema error: unrecognized type 'nonsense'")
    if "enum" in schema:
        return [json.dumps(schema["enum"][0])]
    return [json.dumps({name: choice["enum"][0] for name, choice in schema["properties"].items()})]


@contextmanager
def serving(engine: FakeEngine | LlamaEngine) -> Iterator[EmbeddedServer]:
    """Run a server in a thread on a free port."""
    server = EmbeddedServer(engine)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def client_of(server: EmbeddedServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as client:
        yield client


@pytest.fixture(scope="session")
def real_engine() -> LlamaEngine:
    weights = known_weights(DEFAULT_MODEL)
    return LlamaEngine(weights, obtain(weights), threads=1)
