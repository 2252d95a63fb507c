"""What the server needs of a model, and how callers of several threads share its slots."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from ctxstream_dagster.embedded.wire import ApiError, ChatRequest

_POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What is known of a model without loading it.

    Attributes:
        name: without tag.
        digest: SHA-256 of the weights file, hexadecimal.
        size_bytes: of the weights file.
        architecture: GGUF architecture.
        parameters: as Ollama writes it.
        quantization: as Ollama writes it.
        context_length: longest context it was trained for, in tokens.
        licence: of the weights.
        template: chat template in use; empty for the one inside the file.
    """

    name: str
    digest: str
    size_bytes: int
    architecture: str
    parameters: str
    quantization: str
    context_length: int
    licence: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """How a generation ended.

    Attributes:
        reason: ``stop``, or ``length`` when it was cut.
        prompt_tokens: of the whole prompt, those taken from the prefix cache included.
        cached_tokens: of these, taken from the prefix cache.
        output_tokens: generated.
        prompt_s: seconds spent reading the prompt.
        output_s: seconds spent generating.
    """

    reason: Literal["stop", "length"]
    prompt_tokens: int
    cached_tokens: int = 0
    output_tokens: int
    prompt_s: float = 0.0
    output_s: float = 0.0


class Engine(Protocol):
    """A model on this machine. The server sees to it that at most `parallel` generations run, all with one context."""

    @property
    def card(self) -> ModelCard:
        """What is known of the model."""
        ...

    @property
    def parallel(self) -> int:
        """Generations that may run at once."""
        ...

    def load(self, num_ctx: int) -> None:
        """Hold the model with `num_ctx` tokens for every slot, in place of what was loaded before."""
        ...

    def unload(self) -> None:
        """Free the model's memory."""
        ...

    def generate(self, request: ChatRequest, emit: Callable[[str], bool]) -> Finish | None:
        """Answer a request, handing each piece of text to `emit` as it comes.

        Returns None when `emit` said False, which stops the generation. Raises `ApiError`: 400 when the prompt does not
        fit, 500 when the format is no usable schema.
        """
        ...


class Slots:
    """Hands out an engine's slots first come first served, and (re)loads the engine when it is its turn."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        self._active = 0
        self._num_ctx = 0
        self._expires_at = float("inf")

    @property
    def loaded_ctx(self) -> int:
        """Context of the loaded model in tokens, 0 when none is loaded."""
        return self._num_ctx

    @property
    def expires_at(self) -> float:
        """When the model will be unloaded, in seconds since the epoch; infinite for never."""
        return self._expires_at

    @contextlib.contextmanager
    def slot(self, num_ctx: int, *, keep_alive_s: float, gone: Callable[[], bool]) -> Iterator[float]:
        """Wait for a slot with `num_ctx` tokens and hold it; yields the seconds that loading took.

        A context beyond the trained one is capped, as Ollama does. Raises `ApiError` 499 when `gone` says that the
        caller has left.
        """
        num_ctx = max(min(num_ctx, self._engine.card.context_length), 1)
        load_s = self._enter(num_ctx, keep_alive_s=keep_alive_s, gone=gone)
        try:
            yield load_s
        finally:
            with self._changed:
                self._active -= 1
                self._expires_at = _expiry(keep_alive_s)
                if keep_alive_s == 0 and not self._active:
                    self._unload()
                self._changed.notify_all()

    def unload(self) -> None:
        """Free the model now, or when the calls that use it have ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._active)
            self._unload()

    def unload_when_due(self) -> None:
        """Free the model when nobody has used it for as long as the last caller asked; never waits."""
        if not self._changed.acquire(blocking=False):
            return  # somebody is loading or leaving: it is in use
        try:
            if self._num_ctx and not self._active and not self._queue and time.time() >= self._expires_at:
                self._unload()
        finally:
            self._changed.release()

    def close(self, *, timeout_s: float) -> None:
        """Free the model once nothing runs or waits; raises `TimeoutError` when that takes longer."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._active and not self._queue, timeout_s):
                raise TimeoutError("a generation did not stop")
            self._unload()

    def _enter(self, num_ctx: int, *, keep_alive_s: float, gone: Callable[[], bool]) -> float:
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                while not self._may_start(ticket, num_ctx):
                    self._changed.wait(_POLL_S)
                    if gone():
                        raise ApiError(499, "the client closed the connection")
                started = time.perf_counter()
                if self._num_ctx != num_ctx:
                    self._unload()
                    self._engine.load(num_ctx)
                    self._num_ctx = num_ctx
                self._active += 1
                self._expires_at = _expiry(keep_alive_s)
                return time.perf_counter() - started
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def _may_start(self, ticket: object, num_ctx: int) -> bool:
        if self._queue[0] is not ticket or self._active >= self._engine.parallel:
            return False
        return self._active == 0 or self._num_ctx == num_ctx

    def _unload(self) -> None:
        if self._num_ctx:
            self._engine.unload()
        self._num_ctx = 0


def _expiry(keep_alive_s: float) -> float:
    return time.time() + keep_alive_s if keep_alive_s >= 0 else float("inf")
