"""Segments in, results out: in order, lazily, never more in flight than asked for, and nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxstream_dagster.errors import ConfigError, ContextOverflow, OutputLimit, StorageError
from ctxstream_dagster.extraction.backend import Backend, Prompt
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Mode, Question
from ctxstream_dagster.extraction.store import ReplyStore
from ctxstream_dagster.extraction.stream import PipelineOptions, stream, stream_segments
from ctxstream_dagster.planning.manifest import plan
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.planning.units import SegmentText
from tests.fakes import STATUSES, FakeBackend, segment_of, tally_of, ticket_segments, truth
from tests.fault_server import FaultServer
from tests.scripted_model import user_text

ROOT = Path(__file__).resolve().parents[2]
LABELS = Question(extract="The status.", mode="labels", labels=STATUSES)
QUESTIONS: dict[Mode, Question] = {
    "labels": LABELS,
    "records": Question(extract="The status.", mode="records", grounding="verbatim"),
    "counts": Question(extract="How often each status occurs.", mode="counts"),
}


@pytest.fixture(params=["fake", "ollama"])
def either(request: pytest.FixtureRequest, server: FaultServer) -> Backend:
    """The fake passes the tests of the real client."""
    return FakeBackend() if request.param == "fake" else OllamaBackend(OllamaOptions(url=server.url, model="scripted"))


@pytest.mark.parametrize("mode", QUESTIONS)
@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("ordered", [True, False])
def test_every_segment_gives_one_result_and_the_tally_is_the_truth(
    either: Backend, mode: Mode, concurrency: int, ordered: bool
) -> None:
    segments = ticket_segments(7, lines=9)
    options = PipelineOptions(concurrency=concurrency)
    results = list(stream_segments(segments, QUESTIONS[mode], backend=either, options=options, ordered=ordered))
    indexes = [result.index for result in results]
    assert indexes == list(range(7)) if ordered else sorted(indexes) == list(range(7))
    assert tally_of(results) == truth(segments)
    for result in results:
        assert (result.ok, result.units, result.guard) == (True, 9, "ok")
        assert result.calls == len(result.replies)
        assert result.model
        assert result.model_digest
        assert result.seconds > 0


def test_a_result_is_yielded_as_soon_as_it_is_done_when_order_is_not_asked_for() -> None:
    # The first segment needs a second call.
    backend = FakeBackend(replies=lambda prompt, call: "no idea" if call == 0 else None, latency_s=0.01)
    options = PipelineOptions(concurrency=10)
    results = stream_segments(ticket_segments(4, lines=1), LABELS, backend=backend, options=options, ordered=False)
    assert [result.index for result in results] == [1, 2, 3, 0]


@given(
    lines=st.lists(st.sampled_from(["Status: alpha", "Status: beta", "Status: alpha", "no status", "", "Status: é"])),
    options=st.builds(
        ManifestOptions,
        segment_chars=st.integers(24, 90),
        overlap_chars=st.integers(0, 12),
        boundary_slack=st.integers(0, 23),
        boundary=st.sampled_from(["nearest", "stable"]),
    ),
    mode=st.sampled_from(list(QUESTIONS)),
    per_window=st.sampled_from([0, 1, 3]),
    concurrency=st.sampled_from([1, 4]),
    fails=st.sets(st.integers(0, 12)),
)
@settings(max_examples=60, deadline=None)
def test_a_perfect_model_gives_the_plain_count_whatever_is_split(
    lines: list[str], options: ManifestOptions, mode: Mode, per_window: int, concurrency: int, fails: set[int]
) -> None:
    text = "".join(f"{line}\n" for line in lines)
    keys = ("alpha", "beta", "é", "none")

    def find(unit: str) -> list[tuple[str, str]]:
        found = [(key, "") for key in keys if f"Status: {key}" in unit]
        return found or ([("none", "")] if mode == "labels" else [])

    def replies(prompt: Prompt, call: int) -> Exception | None:
        units = [line for line in user_text(prompt.messages).split("\n") if line.strip()]
        if call in fails and len(units) > 1:
            return OutputLimit("cut", kind="length") if call % 2 else ContextOverflow("long", kind="context")
        return None

    labels = keys if mode == "labels" else ()
    question = Question(extract="x", mode=mode, labels=labels, units_per_window=per_window)
    backend = FakeBackend(find, replies=replies)
    results = list(
        stream(text, plan(text, options), question, backend=backend, options=PipelineOptions(concurrency=concurrency))
    )
    assert all(result.ok for result in results)
    counted: dict[str, Decimal] = {}
    for result in results:
        for record in result.records:
            counted[record.key] = counted.get(record.key, Decimal()) + record.value
    expected: dict[str, int] = {}
    for line in lines:
        for key, _ in find(line) if line else []:
            expected[key] = expected.get(key, 0) + 1
    assert counted == expected
    assert backend.peak <= concurrency


@pytest.mark.parametrize("mode", QUESTIONS)
def test_labels_ask_a_cut_record_once_and_never_send_the_overlap(mode: Mode) -> None:
    text = "Status: alpha " + "x" * 60 + "\nStatus: beta\n"
    segments = plan(text, ManifestOptions(segment_chars=40, overlap_chars=8, boundary_slack=4))
    backend = FakeBackend()
    results = list(stream(text, segments, QUESTIONS[mode], backend=backend))
    sent = "\n".join(prompt.messages[-1]["content"] for prompt in backend.prompts)
    if mode == "labels":
        assert [record.key for result in results for record in result.records] == ["alpha", "beta"]
        assert "CONTEXT" not in sent
    assert all(result.ok for result in results)
    assert {record.line for result in results for record in result.records} == {1, 2}


def test_a_segment_without_units_is_done_without_a_call() -> None:
    backend = FakeBackend()
    [result] = stream_segments([segment_of("\n\n  \n")], LABELS, backend=backend)
    assert (result.ok, result.records, result.calls, backend.prompts) == (True, (), 0, [])


def test_an_empty_corpus_gives_no_result() -> None:
    assert list(stream_segments([], LABELS, backend=FakeBackend())) == []


def test_segments_are_read_only_a_little_ahead_of_the_reader() -> None:
    read: list[int] = []

    def source() -> Iterator[SegmentText]:
        for segment in ticket_segments(200, lines=1):
            read.append(segment.segment.index)
            yield segment

    results = stream_segments(source(), LABELS, backend=FakeBackend(), options=PipelineOptions(concurrency=2))
    for _ in range(3):
        next(results)
    time.sleep(0.1)
    assert len(read) <= 3 + 4 * 2 + 4 + 1
    results.close()


def test_a_source_that_fails_fails_the_sweep_with_its_own_error() -> None:
    def source() -> Iterator[SegmentText]:
        yield from ticket_segments(2, lines=1)
        raise StorageError("the plan is gone")

    backend = FakeBackend()
    with pytest.raises(StorageError, match="the plan is gone"):
        list(stream_segments(source(), LABELS, backend=backend))
    assert backend.closed == 1


def test_an_error_that_is_none_of_ours_ends_the_sweep_and_is_seen() -> None:
    backend = FakeBackend(replies=lambda prompt, call: ZeroDivisionError("a defect") if call == 3 else None)
    with pytest.raises(ZeroDivisionError, match="a defect"):
        list(stream_segments(ticket_segments(5, lines=2), LABELS, backend=backend))
    assert (backend.closed, backend.in_flight) == (1, 0)


def test_a_failed_segment_cancels_only_its_own_calls() -> None:
    backend = FakeBackend(
        replies=lambda prompt, _: OutputLimit("cut", kind="length") if "s1u3." in user_text(prompt.messages) else None,
        latency_s=0.002,
    )
    segments = ticket_segments(4, lines=30)
    results = list(stream_segments(segments, LABELS, backend=backend, options=PipelineOptions(concurrency=3)))
    assert [result.ok for result in results] == [True, False, True, True]
    assert results[1].calls < 12
    assert results[1].error.startswith("t.log:4: cut")


def test_every_window_is_announced_with_its_size() -> None:
    seen: list[tuple[int, int]] = []
    segments = ticket_segments(2, lines=4)
    list(
        stream_segments(
            segments, LABELS, backend=FakeBackend(), on_window=lambda chars, tokens: seen.append((chars, tokens))
        )
    )
    assert sum(chars for chars, _ in seen) == sum(len(unit.text) for segment in segments for unit in segment.units)
    assert [tokens for _, tokens in seen] == [110] * 8


def test_a_canary_that_is_missing_is_noted_and_fails_nothing() -> None:
    question = Question(extract="How often each status occurs.", mode="counts", canary=True)
    segments = ticket_segments(1, lines=3)
    [silent] = stream_segments(segments, question, backend=FakeBackend())
    assert (silent.ok, silent.guard, tally_of([silent])) == (True, "canary-missing", truth(segments))
    [sung] = stream_segments(segments, question, backend=FakeBackend(replies=lambda prompt, _: "#read\nalpha\t1"))
    assert (sung.ok, sung.guard) == (True, "ok")


def test_what_the_server_reports_is_recorded_by_segment(server: FaultServer) -> None:
    server.latency_s, server.parallel = 0.05, 1
    try:
        backend = OllamaBackend(OllamaOptions(url=server.url, model="scripted"))
        options = PipelineOptions(concurrency=2)
        first, second = stream_segments(ticket_segments(2, lines=1), LABELS, backend=backend, options=options)
    finally:
        server.latency_s, server.parallel = 0.0, None
    assert first.queue_wait_s + second.queue_wait_s > 0.02
    assert (first.output_tokens, second.output_tokens) == (9, 9)
    assert min(first.prompt_tokens, second.prompt_tokens) > 20
    assert (first.server_version, first.model) == ("0.33.0", "scripted:latest")


def test_two_threads_may_stream_through_one_backend_and_one_store(server: FaultServer, tmp_path: Path) -> None:
    backend = OllamaBackend(OllamaOptions(url=server.url, model="scripted"))
    store = ReplyStore(tmp_path / "replies.sqlite")
    found: list[dict[str, int]] = []

    def sweep(first: int) -> None:
        segments = ticket_segments(first + 6, lines=5)[first:]
        found.append(tally_of(list(stream_segments(segments, LABELS, backend=backend, store=store))))

    threads = [threading.Thread(target=sweep, args=(first,)) for first in (0, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sum(tally.values()) for tally in found] == [30, 30]
    server.wait_idle()


def test_splitting_stops_at_its_depth_and_names_the_record_that_does_not_fit() -> None:
    backend = FakeBackend(replies=lambda prompt, _: ContextOverflow("too long", kind="context"))
    [result] = stream_segments(ticket_segments(1, lines=8), QUESTIONS["counts"], backend=backend)
    assert (result.ok, result.truncated, result.splits) == (False, True, 3)
    assert result.error == (
        "t.log:1: too long This record alone is too long: raise num_ctx, or choose a record_delim that cuts it."
    )
    shallow = PipelineOptions(max_split_depth=1)
    [result] = stream_segments(ticket_segments(1, lines=8), QUESTIONS["counts"], backend=backend, options=shallow)
    assert result.error == "t.log:1-4: too long"


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"concurrency": True}, {"max_split_depth": -1}])
def test_a_setting_out_of_range_is_a_sentence(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        PipelineOptions(**wrong)  # type: ignore[arg-type]


def test_control_c_ends_the_process_and_the_servers_work(server: FaultServer) -> None:
    server.script({"fault": "hang", "times": None})
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from tests.fakes import ticket_segments, STATUSES\n"
        "from ctxstream_dagster.extraction.ollama import OllamaBackend\n"
        "from ctxstream_dagster.extraction.options import OllamaOptions\n"
        "from ctxstream_dagster.extraction.question import Question\n"
        "from ctxstream_dagster.extraction.stream import stream_segments\n"
        "backend = OllamaBackend(OllamaOptions(url=sys.argv[1], model='scripted'))\n"
        "question = Question(extract='x', mode='labels', labels=STATUSES)\n"
        "print(list(stream_segments(ticket_segments(3, lines=2), question, backend=backend)))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, server.url], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 30
        while server.stats.in_flight < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
        out, error = process.communicate(timeout=20)
    assert (out, error.rstrip().splitlines()[-1]) == ("", "KeyboardInterrupt")
    server.wait_idle()
    assert server.stats.disconnects == 2
