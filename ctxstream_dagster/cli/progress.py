"""Progress on a terminal; silence where nobody watches."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ctxstream_dagster.extraction.records import SegmentResult


class SweepProgress:
    """Segments done and failed, tokens per second and time left; shown only when standard error is a terminal.

    Use as a context manager; call `segment` for every finished segment. With `chars`, the characters of the corpus, and
    `window` called for every answered window, the bar moves inside a segment too.
    """

    def __init__(self, *, segments: int, chars: int = 0) -> None:
        self._segments = segments
        self._by_chars = chars > 0
        self._done = self._failed = self._tokens = 0
        self._started = time.monotonic()
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("Reading", total=chars or max(segments, 1), state=self._state())

    def __enter__(self) -> SweepProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def window(self, chars: int, tokens: int) -> None:
        """Count an answered window: the characters of its units and the tokens its call took."""
        self._tokens += tokens
        self._progress.update(self._task, advance=chars, state=self._state())

    def segment(self, result: SegmentResult) -> None:
        """Count one finished segment."""
        self._done += 1
        self._failed += not result.ok
        if not self._by_chars:
            self._tokens += result.prompt_tokens + result.output_tokens
            self._progress.update(self._task, advance=1)
        if self._done == self._segments:
            # Delimiters are no unit's text, so the characters alone stop a little short.
            self._progress.update(self._task, completed=self._progress.tasks[0].total)
        self._progress.update(self._task, state=self._state())

    def _state(self) -> str:
        failed = f", [red]{self._failed} failed[/red]" if self._failed else ""
        rate = self._tokens / max(time.monotonic() - self._started, 1e-9)
        return f"{self._done}/{self._segments} segments{failed}, {rate:,.0f} tokens/s"
