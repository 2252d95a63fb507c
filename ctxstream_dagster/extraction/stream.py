"""Sends segments through a backend: N calls in flight, results in segment order, and no call left when it ends."""

from __future__ import annotations

import asyncio
import functools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

from ctxstream_dagster.errors import BackendError, ConfigError
from ctxstream_dagster.extraction.asking import Asker
from ctxstream_dagster.extraction.backend import Backend
from ctxstream_dagster.extraction.ledger import Answered, Ledger
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.extraction.retry import Patience, RetryOptions
from ctxstream_dagster.extraction.store import ReplyStore
from ctxstream_dagster.extraction.windows import Window
from ctxstream_dagster.planning.manifest import Segment
from ctxstream_dagster.planning.units import SegmentText, Span, record_units


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """How a sweep's calls are run.

    Attributes:
        concurrency: calls in flight; more than the server runs in parallel (OLLAMA_NUM_PARALLEL, default 1) only
            makes them wait there.
        retry: how often and how long a failed call is tried again.
        max_split_depth: how often a window that does not fit, or whose reply is unusable, is halved; 5 takes a window
            of 32 units down to single ones.
        refresh: whether stored replies are ignored and replaced.
    """

    concurrency: int = 2
    retry: RetryOptions = field(default_factory=RetryOptions)
    max_split_depth: int = 5
    refresh: bool = False

    def __post_init__(self) -> None:
        for name, least, most in (("concurrency", 1, 1_024), ("max_split_depth", 0, 20)):
            value = cast("object", getattr(self, name))
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise ConfigError(f"{name!r} is a whole number from {least} to {most}, not {value!r}.")


def stream_segments(
    segments: Iterable[SegmentText],
    question: Question,
    *,
    backend: Backend,
    options: PipelineOptions | None = None,
    store: ReplyStore | None = None,
    ordered: bool = True,
    on_window: Callable[[int, int], None] = lambda chars, tokens: None,
) -> Iterator[SegmentResult]:
    """Yield one result for every segment; a segment that fails is a result, never an exception.

    Segments are read lazily, a little ahead of the calls. Closing the iterator, Ctrl-C or an exception where the
    results are used cancels every call and closes its connection, so that the server stops generating.

    Args:
        segments: read from another thread, one at a time.
        question: what is asked of each.
        backend: who completes; checked by its `preflight` before the first segment is read.
        options: concurrency, retries, splitting.
        store: replies already there are not asked for again, and new ones are added.
        ordered: yield in the order of `segments`; else each as soon as it is done.
        on_window: told from the thread of the calls of every window answered: the characters of its units, and the
            tokens its call took, 0 for a stored reply.

    Raises:
        PreflightError: server or model are not ready.
        StorageError: the reply store cannot be read or written.
    """
    options = options or PipelineOptions()
    asker = Asker(
        backend=backend,
        identity=backend.preflight(),
        settings=backend.settings(),
        question=question,
        patience=Patience(options.retry),
        slots=asyncio.Semaphore(options.concurrency),
        store=store,
        refresh=options.refresh,
        max_split_depth=options.max_split_depth,
        on_window=on_window,
    )
    run = _Run(segments, asker, concurrency=options.concurrency, ordered=ordered)
    try:
        yield from run.results()
    finally:
        run.stop()


def stream(
    text: str,
    segments: Iterable[Segment],
    question: Question,
    *,
    backend: Backend,
    options: PipelineOptions | None = None,
    record_delim: str = "\n",
    store: ReplyStore | None = None,
    ordered: bool = True,
) -> Iterator[SegmentResult]:
    """Send the segments that `plan` made of `text` through a backend; `stream_segments` as specified."""
    texts = _segment_texts(text, segments, delim=record_delim)
    return stream_segments(texts, question, backend=backend, options=options, store=store, ordered=ordered)


def _segment_texts(text: str, segments: Iterable[Segment], *, delim: str) -> Iterator[SegmentText]:
    line, counted = 1, 0
    for segment in segments:
        start = segment.core_offset
        line, counted = line + text.count("\n", counted, start), start
        spans = (Span(path="", start=segment.overlap_prefix, length=segment.end - start, line=line),)
        core = text[start : segment.end]
        units = record_units(
            core,
            segment=segment,
            spans=spans,
            delim=delim,
            carried_line=line - text.count("\n", start - segment.carried, start),
            open_end=segment.end < len(text) and not core.endswith(delim),
        )
        yield SegmentText(segment=segment, overlap=text[segment.offset : start], core=core, spans=spans, units=units)


class _Job:
    """A segment under way: its windows' tasks and what they brought so far."""

    def __init__(self, segment: SegmentText, *, position: int, asked_units: int) -> None:
        self.position = position
        self.ledger = Ledger(segment, asked_units=asked_units)
        self.answered: list[Answered] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.issued = False

    def fail(self, error: BackendError) -> None:
        """Keep the first failure and end the segment's other calls: nothing partial is counted anyway."""
        if self.ledger.failure is None:
            self.ledger.failure = error
            for task in self.tasks - {asyncio.current_task()}:
                task.cancel()


class _Run:
    """One sweep's event loop in a thread of its own, and the queue that brings its results out."""

    def __init__(self, segments: Iterable[SegmentText], asker: Asker, *, concurrency: int, ordered: bool) -> None:
        self._source = iter(segments)
        self._asker = asker
        self._ordered = ordered
        self._out: queue.SimpleQueue[SegmentResult | BaseException | None] = queue.SimpleQueue()
        self._early: dict[int, SegmentResult] = {}
        self._next = 0
        # A result not yet taken holds a place, so a slow reader slows the calls down instead of filling the memory.
        self._places = asyncio.Semaphore(4 * concurrency + 4)
        # Enough windows wait with their prompts ready that a free slot never does.
        self._gate = asyncio.Semaphore(2 * concurrency + 2)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False
        self._loop = asyncio.new_event_loop()
        self._broken: asyncio.Future[None] = self._loop.create_future()
        self._main = self._loop.create_task(self._run())
        self._thread = threading.Thread(target=self._work, name="ctxstream", daemon=True)

    def results(self) -> Iterator[SegmentResult]:
        self._thread.start()
        while (item := self._out.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            self._loop.call_soon_threadsafe(self._places.release)

    def stop(self) -> None:
        """Cancel what still runs and wait until its connections are closed."""
        self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join()
        self._loop.close()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._main)
            self._out.put(None)
        except asyncio.CancelledError:
            self._out.put(None)
        except BaseException as error:
            # Whatever it is, the thread that reads the results is the one to see it.
            self._out.put(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())

    async def _run(self) -> None:
        dispatch = self._loop.create_task(self._dispatch())
        try:
            await asyncio.wait((dispatch, self._broken), return_when=asyncio.FIRST_COMPLETED)
            if self._broken.done():
                self._broken.result()
            dispatch.result()
        finally:
            self._ending = True
            for task in (dispatch, *self._tasks):
                task.cancel()
            await asyncio.gather(dispatch, *self._tasks, return_exceptions=True)
            await self._asker.backend.aclose()
            if self._asker.store is not None:
                self._asker.store.close()

    async def _dispatch(self) -> None:
        position = 0
        while True:
            await self._places.acquire()
            segment = await asyncio.to_thread(next, self._source, None)
            if segment is None:
                break
            await self._issue(segment, position=position)
            position += 1
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _issue(self, segment: SegmentText, *, position: int) -> None:
        asked = self._asker.windows(segment)
        job = _Job(segment, position=position, asked_units=sum(len(window.units) for window in asked))
        for window in asked:
            await self._gate.acquire()
            if job.ledger.failure is not None:
                self._gate.release()
                break
            task = self._loop.create_task(self._ask(window, job))
            job.tasks.add(task)
            self._tasks.add(task)
            task.add_done_callback(functools.partial(self._done, job))
        job.issued = True
        if not job.tasks:
            self._close(job)

    async def _ask(self, window: Window, job: _Job) -> None:
        try:
            job.answered += await self._asker.ask(window, job.ledger)
        except BackendError as error:
            # At once, so that no call of this segment takes the place that has just become free.
            job.fail(error)

    def _done(self, job: _Job, task: asyncio.Task[None]) -> None:
        self._gate.release()
        self._tasks.discard(task)
        job.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not self._broken.done():
            self._broken.set_exception(error)
        if job.issued and not job.tasks and not self._ending:
            self._close(job)

    def _close(self, job: _Job) -> None:
        result = job.ledger.close(job.answered, question=self._asker.question, identity=self._asker.identity)
        if not self._ordered:
            self._out.put(result)
            return
        self._early[job.position] = result
        while self._next in self._early:
            self._out.put(self._early.pop(self._next))
            self._next += 1
