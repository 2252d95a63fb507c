"""The native Ollama client: one fixed payload, streamed, and only a whole reply to a whole prompt is accepted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from typing import Any

import anyio
import httpx

from ctxstream_dagster.errors import ConfigError, ContextOverflow, OutputLimit, PreflightError, SlowServer
from ctxstream_dagster.extraction.backend import Completion, ModelIdentity, Prompt
from ctxstream_dagster.extraction.chat import ChatReader, ChatReply
from ctxstream_dagster.extraction.faults import status_error, transport_error
from ctxstream_dagster.extraction.guard import GuardOptions, judge
from ctxstream_dagster.extraction.host import is_loopback
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.preflight import ServerFacts, ask_server, fixed_body, listed_digest

_LONGEST_LINE_BYTES = 8_000_000
_LONGEST_ERROR_BYTES = 64_000


class OllamaBackend:
    """Completes prompts through `/api/chat` of an Ollama server (github.com/ollama/ollama, docs/api.md).

    One value serves any number of threads and event loops. Each call in flight has an HTTP client, and so a connection,
    of its own: a shared pool looks at every connection for every call, which at 32 doubles a call's cost.
    """

    def __init__(self, options: OllamaOptions | None = None) -> None:
        self.options = options or OllamaOptions()
        self._url = self.options.base_url
        self._facts: ServerFacts | None = None
        self._facts_lock = threading.Lock()
        self._idle_lock = threading.Lock()
        self._idle: dict[asyncio.AbstractEventLoop, list[httpx.AsyncClient]] = {}
        # One for all clients: made anew it takes 50 ms with certificates, and 4 ms without, where http needs neither.
        secure = self._url.startswith("https://")
        self._tls = _certificates() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def preflight(self) -> ModelIdentity:
        """Check server and model, once; raises `PreflightError` with one sentence that says what to do."""
        facts = self.facts()
        return ModelIdentity(name=facts.model, digest=facts.digest, server=self._url, server_version=facts.version)

    def facts(self, *, passed: Callable[[str, str], None] = lambda check, found: None) -> ServerFacts:
        """Return what the server says of itself, asked once and kept; raises `PreflightError`.

        `passed` is told of each check that holds, and what was found.
        """
        with self._facts_lock:
            if self._facts is None:
                with self._asking() as client:
                    self._facts = ask_server(client, self.options, passed=passed)
            return self._facts

    def listed_digest(self) -> str:
        """Return the digest the server lists for the model, which is not loaded; empty when no server answers."""
        with self._asking() as client:
            try:
                return listed_digest(client, self.options)
            except PreflightError:
                return ""

    def settings(self) -> Mapping[str, Any]:
        """Return the options that decide a reply."""
        return self.options.settings()

    async def complete(self, prompt: Prompt) -> Completion:
        """Return a whole reply to a prompt that was read whole; cancelling closes the connection.

        Raises:
            ServerUnavailable, SlowServer: the same call may succeed later.
            ContextOverflow: the prompt does not fit, or the guard saw that it was clipped.
            OutputLimit: the reply was cut or is empty.
            BadReply: the server stopped a reply that repeated itself.
            PermanentError: the same call can only fail again.
        """
        started = time.monotonic()
        try:
            # Not asyncio.wait_for: up to Python 3.11 it can lose a cancellation that meets a finished reply.
            with anyio.fail_after(self.options.timeout_s):
                reply = await self._chat(prompt)
        except TimeoutError as error:
            raise SlowServer(
                f"The reply took longer than timeout_s ({self.options.timeout_s:g} s). Raise timeout_s, send less, or "
                "lower the concurrency to what the server runs in parallel (OLLAMA_NUM_PARALLEL).",
                kind="deadline",
            ) from error
        except httpx.RequestError as error:
            raise transport_error(error, url=self._url) from error
        return self._completion(reply, prompt, seconds=time.monotonic() - started)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        with self._idle_lock:
            clients = self._idle.pop(asyncio.get_running_loop(), [])
        for client in clients:
            await client.aclose()

    async def _chat(self, prompt: Prompt) -> ChatReply:
        reader = ChatReader()
        # Escaped to ASCII: a lone surrogate in the corpus is no UTF-8, but is JSON.
        body = json.dumps(self._body(prompt)).encode("ascii")
        with self._client() as client:
            async with client.stream("POST", f"{self._url}/api/chat", content=body) as response:
                if response.status_code != 200:
                    raise status_error(
                        response.status_code,
                        await _start(response),
                        model=self.options.model,
                        retry_after=response.headers.get("retry-after", ""),
                    )
                async for line in _lines(response):
                    reader.feed(line)
        return reader.finish()

    def _completion(self, reply: ChatReply, prompt: Prompt, *, seconds: float) -> Completion:
        counters = reply.counters
        prompt_tokens, output_tokens = counters.get("prompt_eval_count"), counters.get("eval_count")
        facts = self._facts
        verdict = judge(
            "\n".join(message["content"] for message in prompt.messages),
            prompt_tokens,
            output_tokens=output_tokens,
            options=GuardOptions(
                num_ctx=self.options.num_ctx,
                effective_ctx=facts.effective_ctx if facts else None,
                num_keep=self.options.num_keep,
                counts_cached=facts.counts_cached if facts else True,
            ),
        )
        if verdict not in ("ok", "unknown"):
            raise ContextOverflow(
                f"The server read {prompt_tokens} tokens of a longer prompt, or pushed its front out while replying "
                f"({verdict}).",
                kind=verdict,
            )
        load_s = reply.seconds("load_duration")
        busy_s = load_s + reply.seconds("prompt_eval_duration") + reply.seconds("eval_duration")
        return Completion(
            text=reply.text,
            prompt_tokens=prompt_tokens,
            cached_tokens=counters.get("prompt_eval_cached_count"),
            output_tokens=output_tokens,
            guard=verdict,
            seconds=seconds,
            queue_wait_s=max(reply.seconds("total_duration") - busy_s, 0.0),
            load_s=load_s,
        )

    def _body(self, prompt: Prompt) -> dict[str, Any]:
        body = {**fixed_body(self.options), "messages": list(prompt.messages)}
        if prompt.seed_offset:
            body["options"] = {**self.options.settings(), "seed": self.options.seed + prompt.seed_offset}
        if prompt.format is not None:
            body["format"] = prompt.format
        return body

    @contextlib.contextmanager
    def _client(self) -> Generator[httpx.AsyncClient]:
        loop = asyncio.get_running_loop()
        with self._idle_lock:
            idle = self._idle.setdefault(loop, [])
            client = idle.pop() if idle else None
        if client is None:
            options = self.options
            timeout = httpx.Timeout(options.read_timeout_s, connect=options.connect_timeout_s, write=60.0, pool=None)
            client = httpx.AsyncClient(timeout=timeout, **self._client_settings())
        try:
            yield client
        finally:
            with self._idle_lock:
                self._idle.setdefault(loop, []).append(client)

    def _asking(self) -> httpx.Client:
        try:
            return httpx.Client(**self._client_settings())
        except (ValueError, httpx.InvalidURL) as error:
            raise ConfigError(
                f"The environment names a proxy that cannot be used ({error}). Mend HTTP_PROXY, HTTPS_PROXY, "
                "ALL_PROXY or NO_PROXY, or set trust_env to false."
            ) from error

    def _client_settings(self) -> dict[str, Any]:
        headers = {
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "ctxstream",
        }
        if self.options.bearer:
            headers["authorization"] = f"Bearer {self.options.bearer}"
        return {
            "headers": headers,
            "trust_env": self.options.trust_env and not is_loopback(self._url),
            "verify": self._tls,
        }


def _certificates() -> ssl.SSLContext:
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        raise ConfigError(
            f"The certificates of SSL_CERT_FILE or SSL_CERT_DIR cannot be read ({error}). Mend or unset it."
        ) from error


def complete(system_prompt: str, user_prompt: str, *, options: OllamaOptions | None = None) -> Completion:
    """Send one prompt and return the whole reply; the specification's function, for trying things out.

    Raises `PreflightError` when server or model are not ready, else the `BackendError`s of `OllamaBackend.complete`.
    Nothing is retried.
    """
    backend = OllamaBackend(options)
    backend.preflight()
    messages = ({"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt})

    async def once() -> Completion:
        try:
            return await backend.complete(Prompt(messages=messages))
        finally:
            await backend.aclose()

    return asyncio.run(once())


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    # Not httpx's own lines: it also splits at U+2028 and the like, which JSON strings may hold.
    rest = b""
    async for piece in response.aiter_bytes():
        rest += piece
        if b"\n" in piece:
            *whole, rest = rest.split(b"\n")
            for line in whole:
                yield line.decode("utf-8", "replace")
        elif len(rest) > _LONGEST_LINE_BYTES:
            raise OutputLimit("The server sends a line without end.", kind="endless")
    if rest:
        yield rest.decode("utf-8", "replace")


async def _start(response: httpx.Response) -> str:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _LONGEST_ERROR_BYTES:
            break
    return body[:_LONGEST_ERROR_BYTES].decode("utf-8", "replace")
