"""What the server's clocks are taken to say."""

from __future__ import annotations

from ctxstream_dagster.extraction.advice import server_advice
from ctxstream_dagster.extraction.records import SegmentResult


def segment(*, calls: int = 8, call_s: float = 8.0, queue_wait_s: float = 0.0, load_s: float = 0.0) -> SegmentResult:
    return SegmentResult(
        index=0, key="a~1", ok=True, calls=calls, call_s=call_s, queue_wait_s=queue_wait_s, load_s=load_s
    )


def test_calls_that_mostly_wait_are_too_many_at_a_time() -> None:
    (sentence,) = server_advice([segment(queue_wait_s=4), segment(queue_wait_s=8)])
    assert "75% of their time waiting" in sentence
    assert "OLLAMA_NUM_PARALLEL" in sentence


def test_a_model_loaded_over_and_over_has_another_client() -> None:
    (sentence,) = server_advice([segment(load_s=4), segment(load_s=2), segment(load_s=3)])
    assert "again during 3 segments" in sentence


def test_nothing_is_said_of_a_server_used_well_or_hardly_at_all() -> None:
    assert server_advice([segment(queue_wait_s=2, load_s=9), segment(load_s=0.1)]) == []
    assert server_advice([segment(calls=3, call_s=3, queue_wait_s=2.9)]) == []
    assert server_advice([]) == []
