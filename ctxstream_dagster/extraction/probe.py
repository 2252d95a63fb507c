"""Measures a server with a few short calls: how fast it answers, and how many calls it really runs at once."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from ctxstream_dagster.extraction.backend import Completion
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.render import render
from ctxstream_dagster.extraction.windows import Window
from ctxstream_dagster.planning.manifest import Segment
from ctxstream_dagster.planning.units import SegmentText, Span, record_units

_LINE = "2026-12-01 ticket {number}: the printer on floor 3 prints blank pages. Status: open"
# Share of a call that it spent waiting, by the server's own durations, from which it did not run with the others.
_WAITED = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the calls showed.

    Attributes:
        call_s: wall-clock seconds of a call with a warm prefix, alone.
        tokens: tokens read and written in that call; 0 when not reported.
        at_once: calls of `concurrency` that did not wait in the server's queue, as far as it reports durations.
        concurrency: calls sent together.
    """

    call_s: float
    tokens: int
    at_once: int
    concurrency: int


def measure(backend: OllamaBackend, *, concurrency: int) -> Measured:
    """Send one warming call, one measured call, and `concurrency` calls together; raises `BackendError`."""

    async def calls() -> Measured:
        try:
            await _call(backend, number=0)
            started = time.monotonic()
            alone = await _call(backend, number=1)
            call_s = time.monotonic() - started
            together = await asyncio.gather(*(_call(backend, number=2 + number) for number in range(concurrency)))
            waited = sum(1 for completion in together if completion.queue_wait_s > _WAITED * completion.seconds)
            return Measured(
                call_s=call_s,
                tokens=(alone.prompt_tokens or 0) + (alone.output_tokens or 0),
                at_once=concurrency - waited,
                concurrency=concurrency,
            )
        finally:
            await backend.aclose()

    return asyncio.run(calls())


async def _call(backend: OllamaBackend, *, number: int) -> Completion:
    text = _LINE.format(number=48_101 + number)
    segment = Segment(index=0, offset=0, length=len(text))
    spans = (Span(path="", start=0, length=len(text), line=1),)
    units = record_units(text, segment=segment, spans=spans, delim="\n")
    question = Question(extract="Which status does the ticket have?", mode="labels", labels=("open", "closed"))
    source = SegmentText(segment=segment, overlap="", core=text, spans=spans, units=units)
    return await backend.complete(render(Window(segment=source, units=units), question))
