"""Turns whatever a server or a connection did wrong into a typed error that says what to do next."""

from __future__ import annotations

import email.utils
import json
import time
from http import HTTPStatus
from typing import Any, cast

import httpx

from ctxstream_dagster.errors import (
    BackendError,
    BadReply,
    ContextOverflow,
    PermanentError,
    ServerUnavailable,
    SlowServer,
)

_SHOWN = 300
_LONGEST_WAIT_S = 600.0
_OVERFLOW = (
    "exceed_context_size",
    "exceeds the available context",
    "longer than the context length",
    "exceeds the context length",
    "maximum context length",
    "no user query found",
)
_OUT_OF_MEMORY = ("out of memory", "more system memory", "cudamalloc failed", "unable to allocate")
_LOAD = ("timed out waiting for", "load timeout", "loading model", "load model")
_LASTING = ("option ", "invalid format", "invalid options", "unknown model architecture", "unsupported model")
_CRASH = ("unexpectedly stopped", "unexpected eof", "connection refused", "connection reset", "broken pipe", "signal:")
_TRANSIENT_STATUS = frozenset((408, 425, 429, 499, 502, 503, 504))
_NOT_OLLAMA = "Point the URL at Ollama itself (native route /api/chat), not at an OpenAI-style server or a proxy."


def error_text(body: str) -> str:
    """Return the message inside an error body, unwrapping JSON nested in strings; at most 300 characters."""
    message: object = body
    for _ in range(4):
        message = _unwrap(message)
        if not isinstance(message, dict):
            break
        entry = cast("dict[str, Any]", message)
        message = entry.get("error", entry.get("message", entry.get("detail", "")))
    text = message if isinstance(message, str) else json.dumps(message)
    return " ".join(text.split())[:_SHOWN]


def status_error(status: int, body: str, *, model: str, retry_after: str = "") -> BackendError:
    """Return the error for a reply with an HTTP status other than 200."""
    said = error_text(body) or f"{_phrase(status)}, without a message."
    kind = f"http-{status}"
    if any(mark in body.lower() for mark in _OVERFLOW):
        return ContextOverflow(f"The prompt is longer than the model's context: {said}", kind="context")
    if status == 413:
        return ContextOverflow("The server refuses a request of this size (413).", kind=kind)
    if status in _TRANSIENT_STATUS:
        wait = _retry_after_s(retry_after)
        return ServerUnavailable(f"The server answered {status}: {said}", kind=kind, retry_after_s=wait)
    if 300 <= status < 400:
        return PermanentError(f"The server redirects elsewhere ({status} {_phrase(status)}). {_NOT_OLLAMA}", kind=kind)
    if status >= 500:
        return _server_error(said, kind=kind)
    return PermanentError(_refusal(status, said, model=model), kind=kind)


def stream_error(said: str) -> BackendError:
    """Return the error for an `error` object inside a reply whose status was 200."""
    if any(mark in said.lower() for mark in _OVERFLOW):
        return ContextOverflow(f"The prompt is longer than the model's context: {said}", kind="context")
    if "unexpected endpoint" in said.lower():
        return not_ollama(said)
    found = _server_error(said, kind="stream-error")
    # Nothing says it is lasting, and the connection was fine until now.
    return ServerUnavailable(str(found), kind="stream-error") if found.kind == "stream-error" else found


def transport_error(error: httpx.RequestError, *, url: str) -> BackendError:
    """Return the error for a connection that failed before, during or after a reply."""
    detail = str(error) or type(error).__name__
    if isinstance(error, httpx.ReadTimeout):
        return SlowServer(
            "The server was silent for longer than read_timeout_s; it is stuck, or the prompt takes longer to read. "
            "Raise read_timeout_s or lower num_ctx.",
            kind="stall",
        )
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return ServerUnavailable(f"Nothing answers at {url} ({detail}). Is `ollama serve` running?", kind="connect")
    if isinstance(error, httpx.ProxyError):
        return ServerUnavailable(f"The proxy refused ({detail}). Unset HTTP_PROXY or trust_env.", kind="proxy")
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return PermanentError(f"The request cannot be sent to {url}: {detail}.", kind="request")
    return ServerUnavailable(f"The connection to {url} broke: {detail}.", kind="connection")


def not_ollama(body: str) -> PermanentError:
    """Return the error for a body that no Ollama server sends."""
    return PermanentError(f"This is no Ollama reply: {error_text(body)[:120]!r}. {_NOT_OLLAMA}", kind="not-ollama")


def _server_error(said: str, *, kind: str) -> BackendError:
    low = said.lower()
    if "token repeat limit" in low:
        return BadReply(f"The model repeated one token until the server stopped it: {said}", kind="token-repeat")
    if any(mark in low for mark in _LASTING):
        return PermanentError(f"The server rejects the request: {said}", kind="http-500-request")
    if any(mark in low for mark in _OUT_OF_MEMORY):
        return SlowServer(
            f"The server is out of memory: {said} Lower num_ctx or OLLAMA_NUM_PARALLEL, or set "
            "OLLAMA_KV_CACHE_TYPE=q8_0.",
            kind="out-of-memory",
        )
    if any(mark in low for mark in _CRASH):
        return ServerUnavailable(f"The model's runner crashed: {said}", kind="crash")
    if any(mark in low for mark in _LOAD):
        return SlowServer(f"The model did not load in time: {said} Raise OLLAMA_LOAD_TIMEOUT.", kind="load-timeout")
    return SlowServer(f"The server failed: {said}", kind=kind)


def _refusal(status: int, said: str, *, model: str) -> str:
    if status in (401, 403):
        return f"The server refuses access ({status}): {said} Set OLLAMA_API_KEY or run `ollama signin`."
    if status == 404 and "not found" in said.lower() and "model" in said.lower():
        return f"The server does not have the model: {said} Run `ollama pull {model}`."
    if status in (404, 405):
        return f"The server has no /api/chat ({status}). {_NOT_OLLAMA}"
    return f"The server rejects the request ({status}): {said}"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP status {status}"


def _unwrap(message: object) -> object:
    if isinstance(message, str) and message.lstrip().startswith("{") and len(message) < 100_000:
        try:
            return json.loads(message)
        except (ValueError, RecursionError):
            return message
    return message


def _retry_after_s(value: str) -> float | None:
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), _LONGEST_WAIT_S) if seconds == seconds else None
