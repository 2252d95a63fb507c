"""Several callers, one model: they queue, a caller who leaves frees the slot, and no one's context is taken away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.embedded.conftest import WORDS, FakeEngine, client_of, serving


def body(**changes: object) -> dict[str, object]:
    return {"model": "fake", "messages": [{"role": "user", "content": "Count."}], **changes}


def until(holds: Callable[[], object], *, within_s: float = 10.0) -> None:
    """Wait for a condition of another thread."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.005)


@pytest.mark.parametrize("parallel", [1, 3])
def test_calls_beyond_the_slots_wait_and_all_are_answered(parallel: int) -> None:
    hold = threading.Event()
    engine = FakeEngine(parallel=parallel, hold=hold)
    with serving(engine) as server, client_of(server) as client, ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(client.post, "/api/chat", json=body(stream=False)) for _ in range(8)]
        until(lambda: engine.running == parallel)
        hold.set()
        replies = [call.result().json() for call in calls]
    assert engine.peak == parallel
    assert all(reply["done_reason"] == "stop" and reply["message"]["content"].startswith("one") for reply in replies)
    assert engine.loads == [4_096]


def test_a_piece_arrives_while_the_reply_is_still_being_made() -> None:
    engine = FakeEngine(hold=threading.Event())
    with (
        serving(engine) as server,
        client_of(server) as client,
        client.stream("POST", "/api/chat", json=body()) as reply,
    ):
        first = json.loads(next(reply.iter_lines()))
        assert first["message"]["content"] == WORDS[0]
        assert engine.running == 1


@pytest.mark.parametrize("stream", [True, False])
def test_a_closed_connection_stops_the_generation_and_frees_its_slot(stream: bool) -> None:
    engine = FakeEngine(hold=threading.Event())
    with serving(engine) as server, client_of(server) as client:
        with pytest.raises(httpx.ReadTimeout), client_of(server) as leaving:
            leaving.post("/api/chat", json=body(stream=False), timeout=0.3)
        if stream:
            with client.stream("POST", "/api/chat", json=body()) as reply:
                next(reply.iter_lines())
        until(lambda: engine.running == 0)
        assert engine.stopped == 1 + stream
        engine.hold = None
        assert client.post("/api/chat", json=body(stream=False)).status_code == 200


def test_a_caller_who_leaves_the_queue_is_never_answered() -> None:
    hold = threading.Event()
    engine = FakeEngine(hold=hold)
    with serving(engine) as server, client_of(server) as client, ThreadPoolExecutor(1) as pool:
        running = pool.submit(client.post, "/api/chat", json=body(stream=False))
        until(lambda: engine.running == 1)
        with pytest.raises(httpx.ReadTimeout), client_of(server) as leaving:
            leaving.post("/api/chat", json=body(options={"num_ctx": 99}), timeout=0.3)
        until(lambda: not server.slots._queue)
        hold.set()
        assert running.result().status_code == 200
    assert engine.loads == [4_096]


def test_another_context_waits_for_the_running_call_then_reloads() -> None:
    hold = threading.Event()
    engine = FakeEngine(parallel=2, hold=hold)
    with serving(engine) as server, client_of(server) as client, ThreadPoolExecutor(2) as pool:
        small = pool.submit(client.post, "/api/chat", json=body(options={"num_ctx": 100}, stream=False))
        until(lambda: engine.running == 1)
        large = pool.submit(client.post, "/api/chat", json=body(options={"num_ctx": 10**9}, stream=False))
        until(lambda: server.slots._queue)
        assert engine.loads == [100]
        hold.set()
        assert {small.result().status_code, large.result().status_code} == {200}
        # More than the model was trained for is capped, as Ollama does.
        assert engine.loads == [100, 4_096]
        (running,) = client.get("/api/ps").json()["models"]
        assert running["context_length"] == 4_096


def test_a_server_that_loads_still_answers_what_needs_no_model() -> None:
    engine = FakeEngine(hold_load=threading.Event())
    with serving(engine) as server, client_of(server) as client, ThreadPoolExecutor(1) as pool:
        loading = pool.submit(client.post, "/api/chat", json=body(stream=False))
        until(lambda: engine.loads)
        for path in ("/api/version", "/api/tags", "/api/ps"):
            assert httpx.get(server.url + path, timeout=5).status_code == 200
        engine.hold_load.set()  # type: ignore[union-attr]
        assert loading.result().status_code == 200


def test_a_model_nobody_uses_is_unloaded_when_its_time_is_up() -> None:
    engine = FakeEngine()
    with serving(engine) as server, client_of(server) as client:
        client.post("/api/chat", json=body(keep_alive="20ms"))
        until(lambda: client.get("/api/ps").json() == {"models": []})
        client.post("/api/chat", json=body(keep_alive=-1))
        assert client.get("/api/ps").json()["models"][0]["expires_at"].startswith("2318")
    assert len(engine.loads) == 2


def test_a_server_that_stops_ends_what_it_was_saying() -> None:
    engine = FakeEngine(hold=threading.Event())
    with serving(engine) as server, client_of(server) as client, ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.post, "/api/chat", json=body(stream=False))
        until(lambda: engine.running == 1)
        server.server_close()
        with pytest.raises(httpx.RemoteProtocolError):
            call.result()
    assert engine.stopped == 1
