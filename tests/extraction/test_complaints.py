"""What users of other tools complained about (rows 1-5 and 8-28 of the complaint table), each by its symptom."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ctxstream_dagster.errors import PreflightError
from ctxstream_dagster.extraction.decode import parse_records
from ctxstream_dagster.extraction.guard import clipped_counts, judge, looks_truncated
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.extraction.store import ReplyStore
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from tests.fakes import STATUSES, segment_of, tally_of, ticket_segments, truth
from tests.fault_server import FaultServer

COUNTS = Question(extract="How often each status occurs.", mode="counts")
RECORDS = Question(extract="The status.", mode="records")
LABELS = Question(extract="The status.", mode="labels", labels=STATUSES)


def ask(
    backend: OllamaBackend, question: Question = COUNTS, *, count: int = 3, lines: int = 6, **more: Any
) -> list[SegmentResult]:
    return list(stream_segments(ticket_segments(count, lines=lines), question, backend=backend, **more))


def say(server: FaultServer, text: str, *, times: int | None = None, match: str = "") -> None:
    server.script({"match": match, "fault": "text", "times": times, "args": {"text": text}})


def test_row_1_one_bad_segment_keeps_the_others_and_a_rerun_asks_only_it(
    backend: OllamaBackend, server: FaultServer, tmp_path: Path
) -> None:
    store = ReplyStore(tmp_path / "replies.sqlite")
    server.script({"match": "s1u", "fault": "400-other", "times": None})
    first = ask(backend, store=store)
    assert [result.ok for result in first] == [True, False, True]
    server.reset()
    again = ask(backend, store=store)
    assert all(result.ok for result in again)
    assert ["s1u" in body["messages"][-1]["content"] for body in server.bodies] == [True]


def test_row_2_the_timeout_is_the_configured_one(server: FaultServer) -> None:
    server.script({"fault": "hang", "times": None})
    options = OllamaOptions(url=server.url, model="scripted", read_timeout_s=0.15, timeout_s=5.0)
    [result] = ask(OllamaBackend(options), count=1)
    assert (result.error_kind, result.calls) == ("stall", 2)
    server.reset()
    server.script({"fault": "hang", "times": None})
    options = OllamaOptions(url=server.url, model="scripted", read_timeout_s=5.0, timeout_s=0.15)
    [result] = ask(OllamaBackend(options), count=1)
    assert (result.error_kind, result.calls) == ("deadline", 2)


def test_row_3_a_reply_that_cannot_be_read_is_asked_again_once_with_another_seed(
    backend: OllamaBackend, server: FaultServer
) -> None:
    say(server, "I think alpha is the most common one.", times=1)
    [result] = ask(backend, count=1)
    assert result.ok
    assert [body["options"]["seed"] for body in server.bodies] == [42, 43]
    assert result.attempts == {"rejected-lines": 1}


def test_row_4_no_wrapper_is_needed_and_header_lines_are_ignored(backend: OllamaBackend, server: FaultServer) -> None:
    say(server, "key\tcount\nalpha\t2\nbeta\t4")
    [result] = ask(backend, count=1)
    assert (tally_of([result]), result.rejected) == ({"alpha": 2, "beta": 4}, ())


def test_row_5_control_tokens_are_stripped_and_what_stays_unreadable_is_no_zero(
    backend: OllamaBackend, server: FaultServer
) -> None:
    say(server, "<|channel|>\x02alpha\t2<|end|>", times=1, match="s0u")
    say(server, "\x01\x02<|message|>{analysis", match="s1u")
    good, bad, _ = ask(backend)
    assert tally_of([good]) == {"alpha": 2}
    assert (bad.ok, bad.records) == (False, ())


def test_row_8_a_label_keeps_the_place_of_its_unit(backend: OllamaBackend, server: FaultServer) -> None:
    segment = segment_of("no status here\nStatus: beta\n", offset=500, overlap="before\n", path="a/b.log")
    [result] = stream_segments([segment], LABELS, backend=backend)
    places = [(record.offset, record.path, record.line, record.key) for record in result.records]
    assert places == [(7, "a/b.log", 1, "delta"), (22, "a/b.log", 2, "beta")]


@pytest.mark.parametrize("fault", ["empty", "thinking-only", "length", "no-end", "prose", "half-window"])
def test_row_9_a_failed_or_empty_reply_is_never_stored(
    backend: OllamaBackend, server: FaultServer, tmp_path: Path, fault: str
) -> None:
    store = ReplyStore(tmp_path / "replies.sqlite")
    server.script({"fault": fault, "times": None})
    [result] = ask(backend, LABELS, count=1, lines=1, store=store)
    assert not result.ok
    server.reset()
    [result] = ask(backend, LABELS, count=1, lines=1, store=store)
    assert (result.ok, server.stats.calls) == (True, 1)


@pytest.mark.parametrize(
    ("count", "value"),
    [('"3"', 3), ("3.0", 3), ("1,234", 1234), ("٣", 3), ("1e3", 1000), ("true", None), ("-2", None), ("3 items", None)],
)
def test_row_10_count_types_are_checked_strictly(count: str, value: int | None) -> None:
    assert [record.value for record in parse_records(f"alpha\t{count}")] == ([] if value is None else [value])


def test_row_11_a_prompt_cut_to_16387_tokens_fails_its_segment(backend: OllamaBackend, server: FaultServer) -> None:
    server.script({"match": "s1u", "fault": "half-window", "times": None})
    results = ask(backend, LABELS, lines=1)
    assert [(result.ok, result.truncated) for result in results] == [(True, False), (False, True), (True, False)]
    assert results[1].guard == "clipped-signature"
    assert looks_truncated("word " * 160_689, 16_387)
    assert looks_truncated(720_000, 16_387)


@pytest.mark.parametrize(("context", "count"), [(65_536, 32_770), (32_768, 16_386), (32_768, 16_387), (4_096, 2_050)])
def test_row_12_the_limit_silently_halved_is_known_by_its_count(context: int, count: int) -> None:
    assert count in clipped_counts(context)
    assert looks_truncated("x", count, num_ctx=context)


@pytest.mark.parametrize(
    "body",
    [
        '{"error":"the input length exceeds the context length"}',
        '{"error":"{\\"error\\":{\\"code\\":400,\\"type\\":\\"exceed_context_size_error\\",\\"n_prompt_tokens\\":9}}"}',
        '{"error":"prompt is longer than the context length currently set"}',
        '{"error":{"message":"This model\'s maximum context length is 8192 tokens"}}',
    ],
)
def test_row_13_any_context_error_is_split_and_not_retried(
    backend: OllamaBackend, server: FaultServer, body: str
) -> None:
    server.script({"fault": "400-context", "times": 1, "args": {"text": body}})
    segments = ticket_segments(1, lines=6)
    [result] = stream_segments(segments, COUNTS, backend=backend)
    assert (result.ok, result.splits, result.calls, result.attempts) == (True, 1, 3, {"context": 1})
    assert tally_of([result]) == truth(segments)


def test_row_14_an_absent_count_is_unknown_and_no_alarm(backend: OllamaBackend, server: FaultServer) -> None:
    server.script({"fault": "no-counts", "times": None})
    [result] = ask(backend, count=1)
    assert (result.ok, result.guard, result.prompt_tokens) == (True, "unknown", 0)
    assert judge("x" * 100_000, None) == "unknown"
    assert not looks_truncated(100_000, 0)


def test_row_15_a_busy_server_is_asked_again_until_the_retries_are_used_up(
    backend: OllamaBackend, server: FaultServer
) -> None:
    server.script({"match": "s0u", "fault": "503", "times": 5})
    results = ask(backend)
    assert [(result.ok, result.calls) for result in results] == [(True, 6), (True, 1), (True, 1)]
    assert results[0].attempts == {"http-503": 5}


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_rows_16_and_17_never_more_calls_in_flight_than_asked_for(
    backend: OllamaBackend, server: FaultServer, concurrency: int
) -> None:
    server.latency_s = 0.01
    try:
        results = ask(backend, LABELS, count=10, lines=30, options=PipelineOptions(concurrency=concurrency))
    finally:
        server.latency_s = 0.0
    assert sum(len(result.records) for result in results) == 300
    assert min(concurrency, 2) <= server.stats.peak <= concurrency


def test_row_18_prose_despite_a_schema_is_noticed(backend: OllamaBackend, server: FaultServer) -> None:
    say(server, "The ticket seems to be in the state alpha, or maybe beta.")
    [result] = ask(backend, LABELS, count=1, lines=1)
    assert (result.ok, result.error_kind) == (False, "rejected-lines")
    assert [line.reason for line in result.rejected] == ["unknown-label"]
    assert result.raw.startswith("The ticket seems")


def test_row_19_garbage_before_the_records_is_rejected_by_name(backend: OllamaBackend, server: FaultServer) -> None:
    records = "\n".join(f"key {number}\t1" for number in range(60))
    say(server, f"assistant analysis {{{{\n{records}")
    [result] = ask(backend, count=1)
    assert (result.ok, len(result.records)) == (True, 60)
    assert [line.reason for line in result.rejected] == ["no-tab"]


@pytest.mark.parametrize("fence", ["```\n{}\n```", "```json\n{}\n```", "```\n{}", "~~~\n{}\n~~~"])
def test_row_20_a_fence_is_no_part_of_the_answer(backend: OllamaBackend, server: FaultServer, fence: str) -> None:
    say(server, fence.replace("{}", '"beta"'))
    [result] = ask(backend, LABELS, count=1, lines=1)
    assert tally_of([result]) == {"beta": 1}


def test_row_21_thinking_without_an_answer_is_a_failure(backend: OllamaBackend, server: FaultServer) -> None:
    server.script({"fault": "thinking-only", "times": None})
    [result] = ask(backend, LABELS, count=1, lines=1)
    assert (result.ok, result.error_kind) == (False, "thinking-only")


def test_row_22_closed_thinking_is_stripped_and_unclosed_thinking_is_a_cut_reply(
    backend: OllamaBackend, server: FaultServer
) -> None:
    say(server, '<think>beta 9</think>\n"alpha"', match="s0u")
    say(server, '<think>so "alpha"', match="s1u")
    good, bad, _ = ask(backend, LABELS, lines=1)
    assert tally_of([good]) == {"alpha": 1}
    assert (bad.ok, bad.error_kind) == (False, "unclosed-think")


def test_rows_23_and_24_a_reply_cut_at_its_limit_is_never_counted_and_its_tokens_are_not_lost(
    backend: OllamaBackend, server: FaultServer
) -> None:
    server.script({"match": "s0u", "fault": "length", "times": None})
    cut, good, _ = ask(backend, lines=1)
    assert (cut.ok, cut.error_kind, cut.records, cut.calls) == (False, "length", (), 1)
    assert (good.prompt_tokens > 0, good.output_tokens) == (True, 9)


@pytest.mark.parametrize(
    ("fault", "kind"), [("502-html", "http-502"), ("html-body", "not-ollama"), ("garbage", "connection")]
)
def test_row_25_a_body_that_is_no_json_is_an_error_in_words(
    backend: OllamaBackend, server: FaultServer, fault: str, kind: str
) -> None:
    server.script({"fault": fault, "times": None})
    [result] = ask(backend, count=1)
    assert (result.ok, result.error_kind) == (False, kind)
    assert "Traceback" not in result.error


def test_row_26_an_empty_reply_is_not_no_records(backend: OllamaBackend, server: FaultServer) -> None:
    say(server, "NONE", match="s0u")
    say(server, "", match="s1u")
    none, empty, _ = ask(backend, lines=1)
    assert (none.ok, none.records) == (True, ())
    assert (empty.ok, empty.error_kind) == (False, "empty")


def test_row_27_a_cold_load_has_a_limit_of_its_own_and_happens_before_the_first_call(server: FaultServer) -> None:
    options = OllamaOptions(url=server.url, model="scripted", load_timeout_s=0.1, timeout_s=9.0)
    server.load_s = 0.5
    try:
        with pytest.raises(PreflightError, match=r"did not load the model within 0\.1 s"):
            OllamaBackend(options).preflight()
    finally:
        server.load_s = 0.0
    assert server.stats.calls == 0
    OllamaBackend(options).preflight()


def test_row_28_only_the_native_route_and_every_call_with_the_same_options(
    backend: OllamaBackend, server: FaultServer
) -> None:
    ask(backend, LABELS)
    ask(backend, RECORDS)
    changing = ("messages", "format")
    fixed = [{name: value for name, value in body.items() if name not in changing} for body in server.bodies]
    assert all(body == fixed[0] for body in fixed)
    assert fixed[0] == {
        "model": "scripted",
        "stream": True,
        "think": False,
        "truncate": False,
        "keep_alive": "10m",
        "options": {"num_ctx": 32_768, "num_predict": 1_024, "temperature": 0.0, "seed": 42, "num_keep": 4},
    }


@pytest.mark.parametrize("ending", ["close", "exception", "interrupt"])
def test_leaving_the_loop_stops_the_server_from_generating(
    backend: OllamaBackend, server: FaultServer, ending: str
) -> None:
    server.script({"match": "s2u", "fault": "hang", "times": None}, {"match": "s3u", "fault": "hang", "times": None})
    segments = ticket_segments(4, lines=1)
    results = stream_segments(segments, LABELS, backend=backend, options=PipelineOptions(concurrency=2))
    assert next(results).ok
    assert next(results).ok
    deadline = time.monotonic() + 60
    while server.stats.in_flight < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    if ending == "close":
        results.close()
    else:
        raised = KeyboardInterrupt if ending == "interrupt" else ValueError
        with pytest.raises(raised):
            results.throw(raised())
    server.wait_idle()
    assert (server.stats.disconnects, server.stats.in_flight) == (2, 0)
    assert not [thread for thread in threading.enumerate() if thread.name == "ctxstream"]


def test_a_failure_says_where_it_happened_and_never_the_prompt(backend: OllamaBackend, server: FaultServer) -> None:
    server.script({"match": "s1u", "fault": "503", "times": None})
    failed = ask(backend)[1]
    assert failed.error.startswith("t.log:1-6: The server answered 503")
    assert "ticket" not in failed.error
