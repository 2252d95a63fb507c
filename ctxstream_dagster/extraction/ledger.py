"""Books one segment's calls while they run, and closes them into its result: whole, or failed with the reason."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace

from ctxstream_dagster.errors import BackendError
from ctxstream_dagster.extraction.backend import Completion, ModelIdentity
from ctxstream_dagster.extraction.decode import Decoded
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.records import Reply, SegmentResult
from ctxstream_dagster.extraction.windows import Window
from ctxstream_dagster.planning.units import SegmentText

_CLIPPED = frozenset(("clipped-signature", "clipped-bound", "shifted", "context"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A window with its decoded reply."""

    window: Window
    decoded: Decoded
    reply: Reply


class Ledger:
    """What happened to one segment so far. Used in one event loop only."""

    def __init__(self, segment: SegmentText, *, asked_units: int) -> None:
        self.segment = segment
        self.asked_units = asked_units
        self.failure: BackendError | None = None
        self.splits = 0
        self.calls = 0
        self._lost_units = 0
        self._refused: list[Answered] = []
        self._attempts: Counter[str] = Counter()
        self._guards: set[str] = set()
        self._tokens = Counter[str]()
        self._call_s = 0.0
        self._queue_wait_s = 0.0
        self._load_s = 0.0
        self._started = time.monotonic()

    def failed_attempt(self, error: BackendError) -> None:
        """Count a failed attempt by its kind."""
        self._attempts[error.kind] += 1

    def completed(self, completion: Completion) -> None:
        """Add a reply's tokens and times, whether or not it can be decoded."""
        self._guards.add(completion.guard)
        self._tokens["prompt"] += completion.prompt_tokens or 0
        self._tokens["cached"] += completion.cached_tokens or 0
        self._tokens["output"] += completion.output_tokens or 0
        self._call_s += completion.seconds
        self._queue_wait_s += completion.queue_wait_s
        self._load_s += completion.load_s

    def lose_unit(self, *, question: Question) -> bool:
        """Note a unit whose reply stays unusable; False when the segment can no longer stay below `max_rejected`."""
        self._lost_units += 1
        return self._lost_units <= question.max_rejected * self.asked_units

    def refuse(self, answer: Answered) -> None:
        """Keep a reply that fails the segment, and its rejected lines, for whoever wants to know why."""
        self._refused.append(answer)

    def note(self, guard: str) -> None:
        """Add a verdict that is recorded but fails nothing."""
        self._guards.add(guard)

    def close(self, answered: list[Answered], *, question: Question, identity: ModelIdentity) -> SegmentResult:
        """Return the segment's result; the answers are sorted into the order of the units."""
        answered = [*answered, *self._refused]
        answered.sort(key=lambda answer: answer.window.units[0].number)
        records = tuple(record for answer in answered for record in answer.decoded.records)
        rejected = tuple(line for answer in answered for line in answer.decoded.rejected)
        failure = self.failure or _too_many_rejected(len(records), len(rejected), question=question)
        verdicts = sorted(self._guards - {"ok"})
        segment = self.segment.segment
        result = SegmentResult(
            index=segment.index,
            key=segment.key,
            ok=failure is None,
            offset=segment.offset,
            records=records,
            rejected=rejected,
            replies=tuple(answer.reply for answer in answered),
            units=sum(unit.head for unit in self.segment.units),
            guard=", ".join(verdicts) or "ok",
            prompt_tokens=self._tokens["prompt"],
            cached_tokens=self._tokens["cached"],
            output_tokens=self._tokens["output"],
            calls=self.calls,
            attempts=dict(self._attempts),
            splits=self.splits,
            seconds=time.monotonic() - self._started,
            call_s=self._call_s,
            queue_wait_s=self._queue_wait_s,
            load_s=self._load_s,
            model=identity.name,
            model_digest=identity.digest,
            server_version=identity.server_version,
        )
        if failure is None:
            return result
        clipped = failure.kind in _CLIPPED
        return replace(
            result,
            records=(),
            error=str(failure),
            error_kind=failure.kind,
            truncated=clipped,
            guard=failure.kind if clipped else result.guard,
        )


def _too_many_rejected(records: int, rejected: int, *, question: Question) -> BackendError | None:
    lines = records + rejected
    if not rejected or rejected <= question.max_rejected * lines:
        return None
    return BackendError(
        f"{rejected} of {lines} reply lines are no records, more than max_rejected ({question.max_rejected:g}) allows. "
        "Look at the rejected lines; reword the question, add examples, or try a larger model.",
        kind="rejected-lines",
    )
