"""The client's happy paths, and its unhappy ones, against a real small model behind the native routes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxstream_dagster.embedded.catalog import known_weights
from ctxstream_dagster.embedded.llama import LlamaEngine
from ctxstream_dagster.embedded.server import EmbeddedServer
from ctxstream_dagster.embedded.weights import DEFAULT_MODEL, obtain
from ctxstream_dagster.errors import ContextOverflow, OutputLimit
from ctxstream_dagster.extraction.backend import Prompt
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Example, Question
from ctxstream_dagster.extraction.store import ReplyStore
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from tests.fakes import segment_of, tally_of

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

STATUSES = ("open", "pending", "solved")
NAMES = ("ana", "bilal", "chidi", "dora")
TICKETS = "".join(
    f"#{48_100 + number} | team network | Status: {STATUSES[number * number % 3]} | owner: {NAMES[number % 4]}\n"
    for number in range(12)
)
QUESTION = Question(
    extract="Which status does the ticket have?",
    mode="labels",
    labels=STATUSES,
    cue="Status:",
    examples=(
        Example(text="#47001 | team billing | Status: solved | owner: emil", reply="solved"),
        Example(text="#47002 | team desktop | Status: open | owner: farah", reply="open"),
        Example(text="#47003 | team payroll | Status: pending | owner: goran", reply="pending"),
    ),
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    weights = known_weights(DEFAULT_MODEL)
    engine = LlamaEngine(weights, obtain(weights), threads=1, parallel=1)
    with EmbeddedServer(engine) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield server.url
        server.shutdown()
        serving.join()


@pytest.fixture
def backend(url: str) -> OllamaBackend:
    return OllamaBackend(OllamaOptions(url=url, model=DEFAULT_MODEL, num_ctx=2_048, num_predict=64))


def test_a_real_model_labels_every_unit_right_and_the_second_run_is_free(
    backend: OllamaBackend, tmp_path: Path
) -> None:
    store, segment = ReplyStore(tmp_path / "replies.sqlite"), segment_of(TICKETS)
    for calls in (12, 0):
        [result] = stream_segments(
            [segment], QUESTION, backend=backend, store=store, options=PipelineOptions(concurrency=2)
        )
        assert (result.error, result.calls, result.attempts, result.guard) == ("", calls, {}, "ok")
        assert tally_of([result]) == {key: count for key, count in _statuses().items() if count}
    assert result.model == f"{DEFAULT_MODEL}:latest"
    assert len(result.model_digest) == 64


def test_a_prompt_longer_than_the_context_is_an_error_of_its_own(backend: OllamaBackend) -> None:
    with pytest.raises(ContextOverflow):
        _complete(backend, "word " * 4_000)


def test_a_reply_cut_at_its_limit_is_an_error_of_its_own(url: str) -> None:
    short = OllamaBackend(OllamaOptions(url=url, model=DEFAULT_MODEL, num_ctx=2_048, num_predict=3))
    with pytest.raises(OutputLimit):
        _complete(short, "Tell a long story about a printer.")


def test_leaving_early_frees_the_model_for_the_next_call(url: str) -> None:
    # 1,500 tokens take this model longer than the time limit of a call.
    options = OllamaOptions(url=url, model=DEFAULT_MODEL, num_ctx=2_048, num_predict=1_500, timeout_s=25)
    backend = OllamaBackend(options)
    prompt = Prompt(messages=({"role": "user", "content": "Count to a million:"},))

    async def leave() -> None:
        call = asyncio.create_task(backend.complete(prompt))
        await asyncio.sleep(0.5)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await backend.aclose()

    asyncio.run(leave())
    [result] = stream_segments([segment_of(TICKETS.splitlines()[0])], QUESTION, backend=backend)
    assert (result.ok, result.calls) == (True, 1)


def _statuses() -> dict[str, int]:
    return {status: TICKETS.count(f"Status: {status}") for status in STATUSES}


def _complete(backend: OllamaBackend, text: str) -> None:
    async def call() -> None:
        try:
            await backend.complete(Prompt(messages=({"role": "user", "content": text},)))
        finally:
            await backend.aclose()

    asyncio.run(call())
