"""A backend without a server, and corpora with a known truth: for tests and benchmarks of every room."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from ctxstream_dagster.extraction.backend import Completion, ModelIdentity, Prompt
from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.planning.manifest import Segment
from ctxstream_dagster.planning.units import SegmentText, Span, record_units
from tests.scripted_model import by_pattern, perfect_reply

STATUSES = ("alpha", "beta", "gamma", "delta")


class FakeBackend:
    """A perfect model in this process: `find` gives the (key, value) pairs of a unit's text.

    `replies`, when set, is asked first: it gets the prompt and the number of calls before, and returns a text, an error
    to raise, or None for the perfect reply. `closed` counts `aclose`; `peak` is the most calls ever in flight.
    """

    def __init__(
        self,
        find: Callable[[str], list[tuple[str, str]]] | None = None,
        *,
        replies: Callable[[Prompt, int], str | Exception | None] | None = None,
        latency_s: float = 0.0,
        digest: str = "fake-digest",
    ) -> None:
        self.find = find or by_pattern()
        self.replies = replies
        self.latency_s = latency_s
        self.digest = digest
        self.prompts: list[Prompt] = []
        self.in_flight = self.peak = self.closed = self.cancelled = 0

    def preflight(self) -> ModelIdentity:
        return ModelIdentity(name="fake:latest", digest=self.digest, server="fake", server_version="0.33.0")

    def settings(self) -> Mapping[str, Any]:
        return {"num_ctx": 32_768, "num_predict": 1_024, "temperature": 0.0, "seed": 42}

    async def complete(self, prompt: Prompt) -> Completion:
        call = len(self.prompts)
        self.prompts.append(prompt)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s)
            text = self.replies(prompt, call) if self.replies else None
            if isinstance(text, Exception):
                raise text
            if text is None:
                text = perfect_reply(prompt.messages, prompt.format, find=self.find)
            return Completion(text=text, prompt_tokens=100, output_tokens=10)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1

    async def aclose(self) -> None:
        self.closed += 1


def segment_of(text: str, *, index: int = 0, offset: int = 0, overlap: str = "", path: str = "t.log") -> SegmentText:
    """Return `text` as a segment of its own, its lines as units."""
    segment = Segment(
        index=index,
        offset=offset,
        length=len(overlap) + len(text),
        overlap_prefix=len(overlap),
        key=f"seg~{index:04}",
    )
    spans = (Span(path=path, start=len(overlap), length=len(text), line=1),)
    units = record_units(text, segment=segment, spans=spans, delim="\n")
    return SegmentText(segment=segment, overlap=overlap, core=text, spans=spans, units=units)


def ticket_segments(count: int, *, lines: int) -> list[SegmentText]:
    """Return `count` segments of tickets; line j of segment i has the status (i + j) % 4, and names `s<i>u<j>`."""
    segments: list[SegmentText] = []
    offset = 0
    for index in range(count):
        text = "".join(
            f"s{index}u{line}. ticket | Status: {STATUSES[(index + line) % 4]} | owner: ana\n" for line in range(lines)
        )
        segments.append(segment_of(text, index=index, offset=offset))
        offset += len(text)
    return segments


def truth(segments: Sequence[SegmentText]) -> dict[str, int]:
    """Count the statuses of segments by code."""
    find = by_pattern()
    return dict(Counter(key for segment in segments for unit in segment.units for key, _ in find(unit.text)))


def tally_of(results: Sequence[SegmentResult]) -> dict[str, int]:
    """Sum the records of results by key, each identity once."""
    by_identity: dict[tuple[int, str, int], Decimal] = {}
    for result in results:
        for record in result.records:
            identity = (result.offset + record.offset, record.key, record.occurrence)
            assert identity not in by_identity, f"{identity} was reported twice"
            by_identity[identity] = record.value
    totals: Counter[str] = Counter()
    for (_, key, _), value in by_identity.items():
        totals[key] += int(value)
    return dict(totals)
