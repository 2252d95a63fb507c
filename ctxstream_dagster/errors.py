"""One tree of errors, so that a caller decides by type and a person reads what to do next.

```
CtxstreamError
├── UsageError              the person asked for something that cannot be done (exit status 2)
│   ├── CorpusError         a path is missing, empty, unreadable or not text
│   ├── ConfigError         a setting is unknown, of the wrong type or out of range
│   └── PreflightError      the server or the model is not ready for this sweep
├── PlanError               the plan broke its own proof: a defect of ours, never of the corpus
├── StorageError            a file could not be written or read whole
└── BackendError            one model call did not give a complete, trustworthy reply
    ├── RetriableError      may succeed when tried again
    │   ├── ServerUnavailable   refused, reset, 429, 502, 503, 504, crashed runner, reply without an end
    │   └── SlowServer          stalled, past its deadline, load time-out, out of memory: one more try only
    ├── ContextOverflow     the prompt did not fit or was clipped: send less
    ├── OutputLimit         the reply was cut at num_predict or empty: send less, never the same again
    ├── BadReply            prose, repetition, too many rejected lines: another seed, then send less
    └── PermanentError      the same call can only fail again: 400, 401, 403, 404, not an Ollama server
```
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CtxstreamError(Exception):
    """Base of every error this package raises on purpose.

    The message is for a person: what happened, where, and what to do next. It never holds a prompt or a key.
    """


class UsageError(CtxstreamError):
    """The person asked for something that cannot be done; the command line exits with status 2."""


class CorpusError(UsageError):
    """A path of the corpus is missing, empty, unreadable or not text."""


class ConfigError(UsageError):
    """A setting is unknown, has the wrong type, or is out of range."""


class PreflightError(UsageError):
    """The server, or the model on it, is not ready for this sweep."""


class PlanError(CtxstreamError):
    """A plan does not tile its corpus. Only a defect in planning can raise it."""


class StorageError(CtxstreamError):
    """A file could not be written or read whole; names the path and the system's reason."""


class BackendError(CtxstreamError):
    """One model call gave no complete, trustworthy reply.

    Attributes:
        kind: short stable name of the cause, counted per segment (``connect``, ``http-503``, ``truncated``, …).
    """

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class RetriableError(BackendError):
    """The same call may succeed when it is tried again.

    Attributes:
        retry_after_s: seconds the server asked to wait, or None.
    """

    def __init__(self, message: str, *, kind: str, retry_after_s: float | None = None) -> None:
        super().__init__(message, kind=kind)
        self.retry_after_s = retry_after_s


class ServerUnavailable(RetriableError):
    """Refused, reset, overloaded, crashed, or a reply without its end: retry with growing pauses."""


class SlowServer(RetriableError):
    """Stalled, past the deadline, load time-out or out of memory: one more try, then advice."""


class ContextOverflow(BackendError):
    """The prompt did not fit the context, or was clipped: split at a record boundary."""


class OutputLimit(BackendError):
    """The reply hit num_predict or came back empty: the same call would do so again, so split."""


class BadReply(BackendError):
    """The reply is complete but not usable: try once with another seed, then split."""


class PermanentError(BackendError):
    """The same call can only fail again."""


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the closest known name, or an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""
