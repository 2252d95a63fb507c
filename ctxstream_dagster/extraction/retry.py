"""Decides what is tried again, how often and after how long; splitting and giving up are decided by the caller."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar, cast

import stamina
import stamina.instrumentation

from ctxstream_dagster.errors import BackendError, BadReply, ConfigError, RetriableError, ServerUnavailable, SlowServer

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
_QUIET_RETRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """How patient a sweep is.

    Attributes:
        max_retries: tries after the first for a server that is away, overloaded or crashed.
        wait_initial_s: pause before the first retry, in seconds; each next one is four times as long, so that five
            retries (1, 4, 16, 60, 60 s) outlast a server that is away for two minutes.
        wait_max_s: longest pause, in seconds, unless the server asks for more by Retry-After (up to ten minutes).
        wait_jitter_s: random extra of a pause, in seconds.
    """

    max_retries: int = 5
    wait_initial_s: float = 1.0
    wait_max_s: float = 60.0
    wait_jitter_s: float = 1.0

    def __post_init__(self) -> None:
        value = cast("object", self.max_retries)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 20:
            raise ConfigError(f"'max_retries' is a whole number from 0 to 20, not {value!r}.")
        for name in ("wait_initial_s", "wait_max_s", "wait_jitter_s"):
            value = cast("object", getattr(self, name))
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
                raise ConfigError(f"{name!r} is a number of seconds from 0, not {value!r}.")


def _log_retry(details: stamina.instrumentation.RetryDetails) -> None:
    # Two short pauses happen every day; from the third on, whoever watches a run wonders what it waits for.
    level = logging.WARNING if details.retry_num > _QUIET_RETRIES else logging.INFO
    _LOG.log(level, "try %d failed, the next is in %.0f s: %s", details.retry_num, details.wait_for, details.caused_by)


class Patience:
    """Retries calls to one server, and notices when that server is gone for good.

    Once a call used up its retries because the server was unavailable, further calls get a single try each until one
    succeeds: a thousand segments do not wait two minutes each for a server that is down.
    """

    def __init__(self, options: RetryOptions) -> None:
        # By default stamina prints every retry to standard output when structlog is there, in the middle of an answer.
        stamina.instrumentation.set_on_retry_hooks((_log_retry,))
        self._options = options
        self._server_gone = False

    async def call(self, attempt: Callable[[int], Awaitable[T]], *, on_failure: Callable[[BackendError], None]) -> T:
        """Run `attempt(seed_offset)` until it succeeds or its error is not, or no longer, to be retried.

        Args:
            attempt: one call with guard and decoding; `seed_offset` is above 0 after a bad reply.
            on_failure: told of every failed attempt.

        Raises the last attempt's error.
        """
        rules = _Rules(on_failure)
        options = self._options
        attempts = 1 if self._server_gone else options.max_retries + 1
        try:
            async for trial in stamina.retry_context(
                on=rules.again,
                attempts=attempts,
                timeout=None,
                wait_initial=options.wait_initial_s,
                wait_max=options.wait_max_s,
                wait_jitter=options.wait_jitter_s,
                wait_exp_base=4,
            ):
                with trial:
                    result = await attempt(rules.bad_replies)
                    self._server_gone = False
                    return result
        except ServerUnavailable:
            self._server_gone = True
            raise
        raise AssertionError("a retry context ends by returning or raising")


class _Rules:
    """The retry table for one window: which errors so far, and so which may be tried again."""

    def __init__(self, on_failure: Callable[[BackendError], None]) -> None:
        self._on_failure = on_failure
        self._slow = 0
        self.bad_replies = 0

    def again(self, error: Exception) -> bool | float:
        if not isinstance(error, BackendError):
            return False
        self._on_failure(error)
        if isinstance(error, BadReply):
            self.bad_replies += 1
            return 0.0 if self.bad_replies <= 1 else False
        if isinstance(error, SlowServer):
            self._slow += 1
            if self._slow > 1:
                return False
        if isinstance(error, RetriableError):
            return True if error.retry_after_s is None else error.retry_after_s
        return False
