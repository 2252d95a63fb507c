"""What is tried again, how often, and after how long: measured in fake time, where two minutes pass in a blink."""

from __future__ import annotations

import asyncio
import logging
import selectors
import threading
from collections import Counter
from collections.abc import Callable

import pytest
import stamina

from ctxstream_dagster.errors import (
    BackendError,
    BadReply,
    ConfigError,
    ContextOverflow,
    OutputLimit,
    PermanentError,
    ServerUnavailable,
    SlowServer,
)
from ctxstream_dagster.extraction.asking import Asker
from ctxstream_dagster.extraction.ledger import Ledger
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.retry import Patience, RetryOptions
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from tests.fakes import STATUSES, tally_of, ticket_segments, truth
from tests.fault_server import FaultServer


class SkippingSelector(selectors.DefaultSelector):
    """Waits for sockets as usual, but skips the pause when nothing comes: the loop's clock jumps instead."""

    def __init__(self, *, patience_s: float) -> None:
        super().__init__()
        self.patience_s = patience_s
        self.skipped_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= self.patience_s:
            return super().select(timeout)
        ready = super().select(self.patience_s)
        if not ready:
            self.skipped_s += timeout - self.patience_s
        return ready


class FakeTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self, *, patience_s: float) -> None:
        self.selector = SkippingSelector(patience_s=patience_s)
        super().__init__(self.selector)

    def time(self) -> float:
        return super().time() + self.selector.skipped_s


class Trial:
    """Runs `Patience.call` over a script of errors, and notes when every attempt began."""

    def __init__(self, *script: Exception | None, options: RetryOptions | None = None) -> None:
        self.script = list(script)
        self.options = options or RetryOptions(wait_jitter_s=0)
        self.begun: list[float] = []
        self.seeds: list[int] = []
        self.failures: Counter[str] = Counter()

    def run(self, patience: Callable[[], Patience] | None = None) -> str:
        loop = FakeTimeLoop(patience_s=0.01)
        try:
            start = loop.time()

            async def attempt(seed_offset: int) -> str:
                self.begun.append(round(loop.time() - start, 1))
                self.seeds.append(seed_offset)
                step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                if step is not None:
                    raise step
                return "done"

            def failed(error: BackendError) -> None:
                self.failures[error.kind] += 1

            with stamina.set_testing(False):
                call = (patience() if patience else Patience(self.options)).call(attempt, on_failure=failed)
                return loop.run_until_complete(call)
        finally:
            loop.close()


AWAY = ServerUnavailable("away", kind="connect")


def test_an_unavailable_server_is_tried_six_times_over_more_than_two_minutes() -> None:
    trial = Trial(AWAY)
    with pytest.raises(ServerUnavailable):
        trial.run()
    pauses = [round(after - before) for before, after in zip(trial.begun, trial.begun[1:], strict=False)]
    assert pauses == [1, 4, 16, 60, 60]
    assert trial.failures == {"connect": 6}


def test_the_pause_a_server_asks_for_is_honoured() -> None:
    trial = Trial(ServerUnavailable("busy", kind="http-503", retry_after_s=37.0), None)
    assert trial.run() == "done"
    assert trial.begun[1] - trial.begun[0] == pytest.approx(37, abs=1)


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (SlowServer("slow", kind="stall"), 2),
        (BadReply("prose", kind="rejected-lines"), 2),
        (OutputLimit("cut", kind="length"), 1),
        (ContextOverflow("long", kind="context"), 1),
        (PermanentError("no", kind="http-404"), 1),
    ],
)
def test_every_class_is_tried_as_often_as_it_may_help(error: BackendError, calls: int) -> None:
    trial = Trial(error)
    with pytest.raises(type(error)):
        trial.run()
    assert len(trial.begun) == calls
    assert trial.failures == {error.kind: calls}


def test_only_a_bad_reply_changes_the_seed() -> None:
    trial = Trial(AWAY, BadReply("prose", kind="rejected-lines"), AWAY, None)
    assert trial.run() == "done"
    assert trial.seeds == [0, 0, 1, 1]


def test_a_server_gone_for_good_costs_later_calls_one_try_each_until_it_is_back() -> None:
    patience = Patience(RetryOptions(wait_jitter_s=0))
    for script, calls in (((AWAY,), 6), ((AWAY,), 1), ((None,), 1), ((AWAY, None), 2)):
        trial = Trial(*script)
        if script[-1] is None:
            trial.run(lambda: patience)
        else:
            with pytest.raises(ServerUnavailable):
                trial.run(lambda: patience)
        assert len(trial.begun) == calls


def test_an_error_of_another_kind_is_never_retried() -> None:
    trial = Trial(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        trial.run()
    assert len(trial.begun) == 1


def test_two_minutes_without_a_server_lose_nothing() -> None:
    server = FaultServer()
    server.start()
    question = Question(extract="The status.", mode="labels", labels=STATUSES)
    backend = OllamaBackend(OllamaOptions(url=server.url, model="scripted"))
    [segment] = ticket_segments(1, lines=1)
    # Longer than a busy machine takes to answer, or a pause would be taken for a server's silence.
    loop = FakeTimeLoop(patience_s=1.0)
    asker = Asker(
        backend=backend,
        identity=backend.preflight(),
        settings=backend.settings(),
        question=question,
        patience=Patience(RetryOptions()),
        slots=asyncio.Semaphore(1),
        store=None,
        refresh=False,
        max_split_depth=5,
        on_window=lambda chars, tokens: None,
    )
    server.stop()
    ledger = Ledger(segment, asked_units=1)

    async def ask() -> str:
        start = loop.time()
        loop.call_later(120, server.start)
        [answered] = await asker.ask(asker.windows(segment)[0], ledger)
        assert loop.time() - start >= 120
        await backend.aclose()
        return answered.decoded.records[0].key

    try:
        with stamina.set_testing(False):
            assert loop.run_until_complete(ask()) == "alpha"
    finally:
        loop.close()
        server.stop()
    result = ledger.close([], question=question, identity=asker.identity)
    assert (dict(result.attempts), result.calls) == ({"connect": 5}, 6)


def test_a_server_restarted_in_the_middle_of_a_sweep_loses_nothing() -> None:
    server = FaultServer(latency_s=0.03)
    server.start()
    segments = ticket_segments(8, lines=20)
    question = Question(extract="The status.", mode="labels", labels=STATUSES)
    options = PipelineOptions(concurrency=4, retry=RetryOptions(max_retries=8, wait_initial_s=0.05, wait_max_s=1.0))
    backend = OllamaBackend(OllamaOptions(url=server.url, model="scripted"))
    try:
        with stamina.set_testing(False):
            results = stream_segments(segments, question, backend=backend, options=options)
            first = next(results)
            server.stop()
            threading.Timer(0.3, server.start).start()
            rest = list(results)
    finally:
        server.stop()
    assert [result.error for result in (first, *rest)] == [""] * 8
    assert tally_of([first, *rest]) == truth(segments)
    assert sum(result.attempts.get("connect", 0) for result in rest) > 0


def test_retries_are_logged_and_never_printed(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ctxstream_dagster"):
        Trial(AWAY, None).run()
    assert "try 1 failed" in caplog.text
    assert capsys.readouterr().out == ""


def test_a_wait_that_people_notice_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    Trial(AWAY, AWAY, AWAY, None).run()
    assert [record.getMessage() for record in caplog.records] == ["try 3 failed, the next is in 16 s: away"]


@pytest.mark.parametrize(
    "wrong", [{"max_retries": -1}, {"max_retries": True}, {"wait_max_s": -1}, {"wait_initial_s": float("inf")}]
)
def test_a_setting_out_of_range_is_a_sentence(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RetryOptions(**wrong)  # type: ignore[arg-type]
