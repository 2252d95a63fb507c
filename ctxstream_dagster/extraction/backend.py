"""The seam between the pipeline and whatever completes a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What one call sends, before the backend adds its fixed options.

    Attributes:
        messages: chat messages in order; the fixed prefix first so that servers reuse it.
        format: JSON schema that forces the reply, or None.
        seed_offset: added to the configured seed; not 0 only when a bad reply is tried again.
    """

    messages: tuple[Mapping[str, str], ...]
    format: Mapping[str, Any] | None = None
    seed_offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A complete reply: `done` seen, reason ``stop``, guard passed.

    Attributes:
        text: exactly what the model returned.
        prompt_tokens: None when the server does not report it, which is not zero.
        cached_tokens: tokens of the prompt the server took from its prefix cache; None when not reported.
        output_tokens: tokens generated; None when not reported.
        guard: ``ok``, ``unknown`` (no count reported) or the guard's warning.
        seconds: wall-clock time of the call; queue_wait_s and load_s as the server reports them.
    """

    text: str
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    guard: str = "ok"
    seconds: float = 0.0
    queue_wait_s: float = 0.0
    load_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIdentity:
    """Who answers: part of every request hash and of every segment's metadata."""

    name: str
    digest: str
    server: str
    server_version: str


class Backend(Protocol):
    """Completes prompts one at a time; many calls may be in flight."""

    def preflight(self) -> ModelIdentity:
        """Check server and model once per run; raises `PreflightError` with one actionable sentence."""
        ...

    def settings(self) -> Mapping[str, Any]:
        """The options that change a reply (num_ctx, num_predict, temperature, seed, …): hashed into the request."""
        ...

    async def complete(self, prompt: Prompt) -> Completion:
        """Return a complete reply; raises a `BackendError` subclass. Cancelling closes the connection."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
