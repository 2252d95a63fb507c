"""Reads a streamed `/api/chat` reply; it counts only when the server says that it is finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from ctxstream_dagster.errors import BackendError, BadReply, OutputLimit, PermanentError, ServerUnavailable
from ctxstream_dagster.extraction.faults import error_text, not_ollama, stream_error

_REPEATS = 20
_LONGEST_REPLY_CHARS = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A finished reply.

    Attributes:
        text: the content, exactly.
        counters: the final object's numbers: tokens, and durations in nanoseconds; a missing one is unknown.
    """

    text: str
    counters: Mapping[str, int]

    def seconds(self, name: str) -> float:
        """Return a duration in seconds, 0.0 when the server does not report it."""
        return self.counters.get(name, 0) / 1e9


class ChatReader:
    """Collects the lines of one reply; `finish` returns it only when it is whole."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._chars = 0
        self._thought = False
        self._final: dict[str, Any] | None = None

    def feed(self, line: str) -> None:
        """Take one line; raises a `BackendError` as soon as the reply is known to be useless."""
        if not line.strip():
            return
        entry = _object(line, seen=bool(self._pieces) or self._thought)
        if "error" in entry:
            raise stream_error(error_text(json.dumps(entry)))
        message = entry.get("message")
        if not isinstance(message, dict) or "done" not in entry:
            raise not_ollama(line)
        content, thinking = (cast("dict[str, Any]", message).get(name) for name in ("content", "thinking"))
        if content is not None and not isinstance(content, str):
            raise not_ollama(line)
        if content:
            self._pieces.append(content)
            self._chars += len(content)
            if self._chars > _LONGEST_REPLY_CHARS:
                raise OutputLimit("The reply does not end; num_predict was ignored by the server.", kind="endless")
        self._thought = self._thought or bool(thinking)
        if entry["done"] is True:
            self._final = entry

    def finish(self) -> ChatReply:
        """Return the reply; raises a `BackendError` when it has no end, was cut, or says nothing."""
        if self._final is None:
            raise self._unfinished()
        reason = self._final.get("done_reason")
        text = "".join(self._pieces)
        if reason == "length":
            raise OutputLimit("The reply was cut at num_predict tokens. Raise num_predict or send less.", kind="length")
        if reason in ("unload", "load") and not text:
            raise ServerUnavailable("The model was unloaded during the call.", kind="unload")
        if reason != "stop":
            raise PermanentError(
                f"The server does not say that the reply is complete (done_reason {reason!r}); use Ollama 0.12.6 or "
                "later.",
                kind="no-done-reason",
            )
        if not text.strip():
            raise self._empty()
        counters = {name: value for name, value in self._final.items() if is_count(value)}
        return ChatReply(text=text, counters=counters)

    def _unfinished(self) -> BackendError:
        tail = self._pieces[-_REPEATS:]
        if len(tail) == _REPEATS and len(set(tail)) == 1:
            return BadReply("The model repeated one token until the server gave up.", kind="token-repeat")
        return ServerUnavailable("The reply broke off before its end.", kind="no-end")

    def _empty(self) -> OutputLimit:
        if self._thought:
            return OutputLimit(
                "The model thought but did not answer. Choose a model whose thinking can be switched off.",
                kind="thinking-only",
            )
        return OutputLimit("The model answered nothing at all.", kind="empty")


def _object(line: str, *, seen: bool) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if isinstance(entry, dict):
        return cast("dict[str, Any]", entry)
    if seen:
        raise ServerUnavailable("The reply broke off inside a line.", kind="garbled")
    if line.lstrip().startswith("{"):
        raise ServerUnavailable("The reply broke off inside its first line.", kind="garbled")
    raise not_ollama(line)


def is_count(value: object) -> TypeGuard[int]:
    """Say whether a server's number can be a count: whole, not negative, below 2^63."""
    # No true count is larger, and neither a database nor a float holds what could be written here.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
