"""Every fault, at the first, middle and last segment, in every mode, alone and with eight calls in flight.

Whatever the server does: the tally is the truth or the segment is red with the right class, nothing is counted twice or
lost, tries are bounded, and never more than N calls are in flight.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Mode, Question
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from tests.fakes import STATUSES, tally_of, ticket_segments, truth
from tests.fault_server import FaultServer
from tests.faults import FAULTS

SEGMENTS, LINES = 5, 8
QUESTIONS: dict[Mode, Question] = {
    "labels": Question(extract="The status.", mode="labels", labels=STATUSES),
    "records": Question(extract="The status.", mode="records", grounding="verbatim"),
    "counts": Question(extract="How often each status occurs.", mode="counts"),
}


@dataclass(frozen=True)
class Fate:
    """What one fault leads to: healed after `times` hits, or red with `kind`; `tries` bounds the calls it costs."""

    times: int | None
    kind: str = ""
    tries: int = 6


# Hit fewer times than the rules try again, the segment heals and its tally is the truth.
HEALED = {
    "reset-before": Fate(2),
    "close-before": Fate(2),
    "reset-midway": Fate(2),
    "short-length": Fate(2),
    "short-chunks": Fate(2),
    "no-length": Fate(2),
    "garbage": Fate(2),
    "no-end": Fate(2),
    "done-false": Fate(2),
    "midway-error": Fate(2),
    "503": Fate(3),
    "503-retry-after": Fate(2),
    "429": Fate(2),
    "502-html": Fate(2),
    "500-crash": Fate(2),
    "unload": Fate(2),
    "500-memory": Fate(1),
    "500-load": Fate(1),
    "500-unknown": Fate(1),
    "token-repeat": Fate(1),
    "500-repeat": Fate(1),
    "prose": Fate(1),
    "repeated-lines": Fate(1),
    "reload": Fate(1),
    "no-counts": Fate(1),
}
# Cured by sending less, wherever a window can be halved; one unit a call has nothing to halve.
SPLIT = {
    "400-context": "context",
    "half-window": "clipped-signature",
    "full-window": "clipped-signature",
    "length": "length",
    "empty": "empty",
    "thinking-only": "thinking-only",
    "unclosed-think": "unclosed-think",
}
# Hit on every call, the segment is red with this kind after at most so many calls.
RED = {
    "reset-before": Fate(None, "connection", 6),
    "no-end": Fate(None, "no-end", 6),
    "503": Fate(None, "http-503", 6),
    "midway-error": Fate(None, "crash", 6),
    "500-memory": Fate(None, "out-of-memory", 2),
    "500-unknown": Fate(None, "http-500", 2),
    "500-option": Fate(None, "http-500-request", 1),
    "400-other": Fate(None, "http-400", 1),
    "401": Fate(None, "http-401", 1),
    "404-model": Fate(None, "http-404", 1),
    "openai-body": Fate(None, "not-ollama", 1),
    "lmstudio-body": Fate(None, "not-ollama", 1),
    "html-body": Fate(None, "not-ollama", 1),
    "no-reason": Fate(None, "no-done-reason", 1),
    "400-context": Fate(None, "context", 6),
    "half-window": Fate(None, "clipped-signature", 6),
    "length": Fate(None, "length", 6),
    "empty": Fate(None, "empty", 6),
    "prose": Fate(None, "rejected-lines", 12),
}
PLACES = {"first": 0, "middle": SEGMENTS // 2, "last": SEGMENTS - 1}
everywhere = pytest.mark.parametrize("place", PLACES)
in_flight = pytest.mark.parametrize("concurrency", [1, 8])
any_mode = pytest.mark.parametrize("mode", QUESTIONS)


def sweep(
    backend: OllamaBackend, server: FaultServer, *, mode: Mode, concurrency: int, units_per_window: int | None = None
):
    segments = ticket_segments(SEGMENTS, lines=LINES)
    options = PipelineOptions(concurrency=concurrency)
    question = replace(QUESTIONS[mode], units_per_window=units_per_window)
    results = list(stream_segments(segments, question, backend=backend, options=options))
    assert [result.index for result in results] == list(range(SEGMENTS))
    assert server.stats.peak <= concurrency
    begun = sum(result.calls for result in results)
    # A call of a segment that has just failed may be cancelled on its way out.
    assert begun == server.stats.calls if concurrency == 1 else begun >= server.stats.calls
    return segments, results


@everywhere
@in_flight
@any_mode
@pytest.mark.parametrize("fault", HEALED)
def test_a_fault_that_passes_leaves_the_truth(
    backend: OllamaBackend, server: FaultServer, fault: str, mode: Mode, concurrency: int, place: str
) -> None:
    hit, fate = PLACES[place], HEALED[fault]
    server.script({"match": f"s{hit}u3.", "fault": fault, "times": fate.times})
    segments, results = sweep(backend, server, mode=mode, concurrency=concurrency)
    assert [result.error for result in results] == [""] * SEGMENTS
    assert tally_of(results) == truth(segments)
    good = fault in ("reload", "no-counts")
    assert sum(results[hit].attempts.values()) == (0 if good else fate.times)
    assert not any(result.attempts for result in results if result.index != hit)
    assert server.stats.faults == {fault: fate.times}
    assert (results[hit].load_s > 2) == (fault == "reload")


@everywhere
@in_flight
@any_mode
@pytest.mark.parametrize(("fault", "kind"), [("hang", "stall"), ("slow-drip", "deadline")])
def test_a_server_that_is_silent_or_drips_is_left_and_asked_once_more(
    server: FaultServer, fault: str, kind: str, mode: Mode, concurrency: int, place: str
) -> None:
    hit = PLACES[place]
    read_timeout_s, timeout_s = (0.6, 30.0) if fault == "hang" else (30.0, 0.9)
    options = OllamaOptions(url=server.url, model="scripted", read_timeout_s=read_timeout_s, timeout_s=timeout_s)
    server.script({"match": f"s{hit}u3.", "fault": fault, "times": 1})
    segments, results = sweep(OllamaBackend(options), server, mode=mode, concurrency=concurrency)
    assert [result.error for result in results] == [""] * SEGMENTS
    assert tally_of(results) == truth(segments)
    assert results[hit].attempts[kind] >= 1
    assert server.stats.disconnects >= 1


@everywhere
@in_flight
@any_mode
@pytest.mark.parametrize("fault", SPLIT)
def test_a_window_that_does_not_fit_is_halved_without_loss(
    backend: OllamaBackend, server: FaultServer, fault: str, mode: Mode, concurrency: int, place: str
) -> None:
    hit = PLACES[place]
    server.script({"match": f"s{hit}u3.", "fault": fault, "times": 2})
    segments, results = sweep(backend, server, mode=mode, concurrency=concurrency, units_per_window=LINES)
    assert [result.error for result in results] == [""] * SEGMENTS
    assert tally_of(results) == truth(segments)
    assert results[hit].splits == 2
    assert results[hit].attempts == {SPLIT[fault]: 2}
    numbers = [number for reply in results[hit].replies for number in range(reply.first_unit, reply.last_unit + 1)]
    assert numbers == list(range(1, LINES + 1))


@everywhere
@in_flight
@any_mode
@pytest.mark.parametrize("fault", RED)
def test_a_fault_that_stays_makes_that_segment_red_and_no_other(
    backend: OllamaBackend, server: FaultServer, fault: str, mode: Mode, concurrency: int, place: str
) -> None:
    hit, fate = PLACES[place], RED[fault]
    server.script({"match": f"s{hit}u3.", "fault": fault, "times": None})
    segments, results = sweep(backend, server, mode=mode, concurrency=concurrency)
    failed = results[hit]
    assert (failed.ok, failed.error_kind, failed.records) == (False, fate.kind, ())
    assert "t.log:" in failed.error
    assert server.stats.faults[fault] <= fate.tries
    assert failed.truncated == (fate.kind in ("context", "clipped-signature"))
    good = [result for result in results if result.index != hit]
    assert all(result.ok for result in good)
    assert tally_of(good) == truth([segment for segment in segments if segment.segment.index != hit])


@any_mode
@pytest.mark.parametrize("seed", range(4))
def test_any_mixture_of_faults_leaves_the_truth_or_a_red_segment(
    backend: OllamaBackend, server: FaultServer, mode: Mode, seed: int
) -> None:
    draw = random.Random(seed)
    faults = sorted({*HEALED, *SPLIT, *RED})
    segments = ticket_segments(24, lines=LINES)
    for _ in range(40):
        hit = f"s{draw.randrange(24)}u{draw.randrange(LINES)}."
        server.script({"match": hit, "fault": draw.choice(faults), "times": draw.choice([1, 1, 2, 6])})
    question = replace(QUESTIONS[mode], units_per_window=draw.choice([1, 3, 0]))
    options = PipelineOptions(concurrency=8)
    results = list(stream_segments(segments, question, backend=backend, options=options, ordered=False))
    assert sorted(result.index for result in results) == list(range(24))
    assert server.stats.peak <= 8
    for result in results:
        if result.ok:
            assert tally_of([result]) == truth([segments[result.index]])
        else:
            assert (result.records, bool(result.error), bool(result.error_kind)) == ((), True, True)
    assert any(result.ok for result in results)


def test_all_scripted_faults_are_in_the_matrix() -> None:
    assert set(FAULTS) - set(HEALED) - set(SPLIT) - set(RED) == {"text", "hang", "slow-drip"}
