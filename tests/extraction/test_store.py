"""The same request is never paid for twice, and only what can be trusted is kept."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ctxstream_dagster.errors import StorageError
from ctxstream_dagster.extraction import asking
from ctxstream_dagster.extraction.backend import Completion, ModelIdentity, Prompt
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.store import ReplyStore, request_sha256
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from tests.fakes import STATUSES, FakeBackend, tally_of, ticket_segments, truth

LABELS = Question(extract="The status.", mode="labels", labels=STATUSES)
IDENTITY = ModelIdentity(name="m:latest", digest="d", server="s", server_version="1")
PROMPT = Prompt(messages=({"role": "user", "content": "x"},))
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> ReplyStore:
    return ReplyStore(tmp_path / "deep" / "replies.sqlite")


def run(backend: FakeBackend, store: ReplyStore, question: Question = LABELS, **options: bool):
    segments = ticket_segments(3, lines=5)
    results = list(
        stream_segments(segments, question, backend=backend, store=store, options=PipelineOptions(**options))
    )
    assert tally_of(results) == truth(segments)
    return results


def test_a_second_run_makes_no_call_and_says_so(store: ReplyStore) -> None:
    assert sum(result.calls for result in run(FakeBackend(), store)) == 15
    again = FakeBackend()
    results = run(again, store)
    assert again.prompts == []
    assert [result.calls for result in results] == [0, 0, 0]
    assert all(reply.cached and len(reply.request_sha256) == 64 for result in results for reply in result.replies)


def test_refresh_asks_again_and_replaces(store: ReplyStore) -> None:
    run(FakeBackend(), store)
    again = FakeBackend()
    run(again, store, refresh=True)
    assert len(again.prompts) == 15


def test_whatever_decides_a_reply_is_in_its_key() -> None:
    settings = {"num_ctx": 1, "seed": 2}
    key = request_sha256(PROMPT, identity=IDENTITY, settings=settings)
    others = [
        request_sha256(replace(PROMPT, seed_offset=1), identity=IDENTITY, settings=settings),
        request_sha256(replace(PROMPT, format={"type": "string"}), identity=IDENTITY, settings=settings),
        request_sha256(replace(PROMPT, messages=()), identity=IDENTITY, settings=settings),
        request_sha256(PROMPT, identity=replace(IDENTITY, digest="e"), settings=settings),
        request_sha256(PROMPT, identity=replace(IDENTITY, name="n"), settings=settings),
        request_sha256(PROMPT, identity=IDENTITY, settings={**settings, "num_ctx": 2}),
    ]
    assert len({key, *others}) == 7
    assert key == request_sha256(PROMPT, identity=replace(IDENTITY, server="t"), settings={"seed": 2, "num_ctx": 1})


def test_another_build_of_the_model_is_asked_again(store: ReplyStore) -> None:
    run(FakeBackend(), store)
    rebuilt = FakeBackend(digest="other")
    run(rebuilt, store)
    assert len(rebuilt.prompts) == 15


def test_a_reply_of_the_second_seed_is_found_again(store: ReplyStore) -> None:
    backend = FakeBackend(replies=lambda prompt, _: None if prompt.seed_offset else "no idea")
    assert sum(result.calls for result in run(backend, store)) == 30
    again = FakeBackend(replies=lambda prompt, _: AssertionError("a call was made"))
    run(again, store)


def test_a_new_decoder_reads_stored_replies_without_a_call(store: ReplyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    run(FakeBackend(), store)
    decoded: list[str] = []
    real = asking.decode

    def newer(reply: str, *given: object):
        decoded.append(reply)
        return real(reply, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(asking, "decode", newer)
    run(FakeBackend(replies=lambda prompt, _: AssertionError("a call was made")), store)
    assert len(decoded) == 15


def test_a_stored_reply_that_a_new_decoder_refuses_is_asked_again(store: ReplyStore) -> None:
    run(FakeBackend(), store)
    for request in [reply.request_sha256 for result in run(FakeBackend(), store) for reply in result.replies]:
        store.put(request, Completion(text="words"))
    again = FakeBackend()
    run(again, store)
    assert len(again.prompts) == 15


def test_threads_and_processes_share_one_file(store: ReplyStore) -> None:
    def write(first: int) -> None:
        for number in range(first, first + 50):
            store.put(f"{number:064}", Completion(text=str(number), prompt_tokens=number))
        store.close()

    code = (
        "import sys; from pathlib import Path; from ctxstream_dagster.extraction.store import ReplyStore\n"
        "from ctxstream_dagster.extraction.backend import Completion\n"
        "store = ReplyStore(Path(sys.argv[1]))\n"
        "for number in range(int(sys.argv[2]), int(sys.argv[2]) + 50):\n"
        "    store.put(f'{number:064}', Completion(text=str(number), prompt_tokens=number))\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(store.path), str(first)], cwd=ROOT)
        for first in (1_000, 2_000)
    ]
    threads = [threading.Thread(target=write, args=(first,)) for first in (3_000, 4_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait(60) for process in processes] == [0, 0]
    for first in (1_000, 2_000, 3_000, 4_000):
        for number in range(first, first + 50):
            found = store.get(f"{number:064}")
            assert found is not None
            assert (found.text, found.prompt_tokens) == (str(number), number)


def test_any_text_comes_back_exactly(store: ReplyStore) -> None:
    text = "a\x00b\r\n\u2028\U0001f600\t\ud800"
    store.put("k", Completion(text=text))
    found = store.get("k")
    assert found is not None
    assert found.text == text
    assert store.get("other") is None


def test_a_store_that_cannot_be_used_names_its_file(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(StorageError, match=str(blocked)):
        ReplyStore(blocked / "replies.sqlite").get("k")
    no_database = tmp_path / "no.sqlite"
    no_database.write_bytes(b"this is no database, but it is long enough to be one" * 100)
    with pytest.raises(StorageError, match=r"no\.sqlite"):
        ReplyStore(no_database).get("k")


def test_a_full_disk_ends_the_sweep_and_names_the_file(store: ReplyStore) -> None:
    store.put("k", Completion(text="x"))
    connection = store._connection()  # pyright: ignore[reportPrivateUsage]
    connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(StorageError, match=r"replies\.sqlite.*full"):
        store.put("l", Completion(text="x" * 100_000))
