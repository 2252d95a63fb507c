"""What the server's own clocks say about how it is used: advice for a person, never a failure."""

from __future__ import annotations

from collections.abc import Iterable

from ctxstream_dagster.extraction.records import SegmentResult

# Below this a sweep is too short to judge a server by.
_LEAST_CALLS = 8
_WAITING_SHARE = 0.5
_RELOAD_S = 1.0
_RELOADED_SEGMENTS = 3


def server_advice(results: Iterable[SegmentResult]) -> list[str]:
    """Return a sentence for each sign that the server is used badly.

    Queue wait and load time are the server's own (`total_duration` less its parts, `load_duration`); see Ollama's
    docs/api.md. Nothing is said of fewer than eight calls, nor of a server that reports no durations.
    """
    calls, reloaded = 0, 0
    waited_s = took_s = 0.0
    for result in results:
        calls += result.calls
        waited_s += result.queue_wait_s
        took_s += result.call_s
        reloaded += result.load_s > _RELOAD_S
    sentences: list[str] = []
    if calls >= _LEAST_CALLS and waited_s > _WAITING_SHARE * took_s > 0:
        sentences.append(
            f"Calls spent {waited_s / took_s:.0%} of their time waiting in the server. "
            "Keep no more in flight than it runs in parallel: OLLAMA_NUM_PARALLEL, or `serve-model --parallel`, 1 by "
            "default."
        )
    if reloaded >= _RELOADED_SEGMENTS:
        sentences.append(
            f"The server loaded the model again during {reloaded} segments: another client uses it with other options. "
            "Give every client the same num_ctx."
        )
    return sentences
