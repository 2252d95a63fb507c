"""Gets one window answered: a stored reply or a call, retried by the rules, split when that is the cure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ctxstream_dagster.errors import BackendError, BadReply, ContextOverflow, OutputLimit, PermanentError
from ctxstream_dagster.extraction.backend import Backend, Completion, ModelIdentity, Prompt
from ctxstream_dagster.extraction.decode import Decoded, decode
from ctxstream_dagster.extraction.ledger import Answered, Ledger
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.records import Reply
from ctxstream_dagster.extraction.render import prompt_overhead_tokens, render
from ctxstream_dagster.extraction.retry import Patience
from ctxstream_dagster.extraction.store import ReplyStore, request_sha256
from ctxstream_dagster.extraction.windows import Window, split, windows
from ctxstream_dagster.planning.tokens import budget_tokens
from ctxstream_dagster.planning.units import SegmentText

# The configured seed, then the one that a bad reply is tried again with.
_SEED_OFFSETS = (0, 1)


class _RejectedLines(BadReply):
    """A whole reply with more lines that are no records than allowed; it carries what could be read."""

    def __init__(self, message: str, *, decoded: Decoded, completion: Completion, request: str) -> None:
        super().__init__(message, kind="rejected-lines")
        self.decoded = decoded
        self.completion = completion
        self.request = request


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Everything one sweep's calls share.

    Attributes:
        backend: who completes.
        identity: the model behind it.
        settings: the backend's options, part of every request's hash.
        question: what is asked.
        patience: the retry rules and their state.
        slots: as many permits as calls may be in flight.
        store: where replies are kept, or None.
        refresh: whether stored replies are ignored (and replaced).
        max_split_depth: how often a window may be halved, then halved again.
        on_window: told of every window answered: the characters of its units, and the tokens its call took.
    """

    backend: Backend
    identity: ModelIdentity
    settings: Mapping[str, Any]
    question: Question
    patience: Patience
    slots: asyncio.Semaphore
    store: ReplyStore | None
    refresh: bool
    max_split_depth: int
    on_window: Callable[[int, int], None]

    def windows(self, segment: SegmentText) -> list[Window]:
        """Return the segment's windows, each sized to the context that the backend states."""
        num_ctx, num_predict = self.settings.get("num_ctx"), self.settings.get("num_predict")
        if not isinstance(num_ctx, int) or not isinstance(num_predict, int):
            return list(windows(segment, self.question))
        overhead = prompt_overhead_tokens(self.question)
        budget = budget_tokens(num_ctx, num_predict=num_predict, overhead_tokens=overhead)
        return list(windows(segment, self.question, budget_tokens=budget))

    async def ask(self, window: Window, ledger: Ledger) -> list[Answered]:
        """Return the window's answers, several when it had to be split; raises the `BackendError` that ends it."""
        try:
            return [await self._answer(window, ledger)]
        except (ContextOverflow, OutputLimit, BadReply) as error:
            if len(window.units) == 1 or window.depth >= self.max_split_depth:
                return [self._accept_or_raise(error, window, ledger)]
        except BackendError as error:
            raise _final(error, window) from error
        ledger.splits += 1
        left, right = split(window)
        return [*await self.ask(left, ledger), *await self.ask(right, ledger)]

    async def _answer(self, window: Window, ledger: Ledger) -> Answered:
        stored = self._stored(window)
        if stored is not None:
            self.on_window(window.chars, 0)
            return stored

        async def attempt(seed_offset: int) -> Answered:
            return await self._call(window, ledger, seed_offset=seed_offset)

        return await self.patience.call(attempt, on_failure=ledger.failed_attempt)

    async def _call(self, window: Window, ledger: Ledger, *, seed_offset: int) -> Answered:
        prompt = render(window, self.question, seed_offset=seed_offset)
        async with self.slots:
            ledger.calls += 1
            completion = await self.backend.complete(prompt)
        ledger.completed(completion)
        request = self._request(prompt)
        decoded = decode(completion.text, window, self.question)
        if decoded.rejected_share > self.question.max_rejected:
            first = decoded.rejected[0]
            raise _RejectedLines(
                f"{len(decoded.rejected)} lines of the reply are no records; the first ({first.reason}): "
                f"{first.text[:80]!r}.",
                decoded=decoded,
                completion=completion,
                request=request,
            )
        if decoded.canary is False:
            ledger.note("canary-missing")
        if self.store is not None:
            self.store.put(request, completion)
        self.on_window(window.chars, (completion.prompt_tokens or 0) + (completion.output_tokens or 0))
        return _answered(window, decoded, completion.text, request=request)

    def _stored(self, window: Window) -> Answered | None:
        if self.store is None or self.refresh:
            return None
        for seed_offset in _SEED_OFFSETS:
            request = self._request(render(window, self.question, seed_offset=seed_offset))
            completion = self.store.get(request)
            if completion is None:
                continue
            try:
                decoded = decode(completion.text, window, self.question)
            except BackendError:
                # A newer decoder rejects what an older one took; the model is asked again.
                continue
            if decoded.rejected_share <= self.question.max_rejected:
                return _answered(window, decoded, completion.text, request=request, cached=True)
        return None

    def _request(self, prompt: Prompt) -> str:
        if self.store is None:
            return ""
        return request_sha256(prompt, identity=self.identity, settings=self.settings)

    def _accept_or_raise(self, error: BackendError, window: Window, ledger: Ledger) -> Answered:
        if isinstance(error, _RejectedLines):
            answer = _answered(window, error.decoded, error.completion.text, request=error.request)
            # One unit whose reply stays unusable is a rejected unit, not a failed segment, as long as they are few.
            # Several units behind one bad reply could hide many records, and are never accepted.
            if len(window.units) == 1 and ledger.lose_unit(question=self.question):
                return answer
            ledger.refuse(answer)
        raise _final(error, window) from error


def _answered(window: Window, decoded: Decoded, text: str, *, request: str, cached: bool = False) -> Answered:
    first, last = window.units[0].number, window.units[-1].number
    reply = Reply(first_unit=first, last_unit=last, text=text, request_sha256=request, cached=cached)
    return Answered(window=window, decoded=decoded, reply=reply)


def _final(error: BackendError, window: Window) -> BackendError:
    """The error that ends the segment: where it happened, and what to do where neither retry nor split is a cure."""
    advice = ""
    if isinstance(error, ContextOverflow) and len(window.units) == 1:
        advice = " This record alone is too long: raise num_ctx, or choose a record_delim that cuts it."
    elif isinstance(error, BadReply):
        advice = " Reword the question, add examples, or try a larger model."
    return PermanentError(f"{window.place}: {error}{advice}", kind=error.kind)
