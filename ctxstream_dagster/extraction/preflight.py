"""Checks server and model once before a sweep, so that what cannot work fails in a second and in one sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx

from ctxstream_dagster.errors import PreflightError, nearest_name
from ctxstream_dagster.extraction.chat import is_count
from ctxstream_dagster.extraction.faults import error_text, status_error
from ctxstream_dagster.extraction.options import OllamaOptions

# `truncate: false` makes an over-long prompt an error from this version on; before, it is clipped in silence.
OLDEST_VERSION = (0, 12, 6)
_UNCACHED_COUNT_VERSION = (0, 30, 0)
_ASK_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server says of itself and of the model.

    Attributes:
        version: the server's version.
        model: the model's full name, tag included.
        digest: the model's digest; empty when the server does not list it.
        trained_ctx: longest context the model was trained for, in tokens; None when not reported.
        effective_ctx: context the loaded model really has, in tokens; None when not reported.
        capabilities: what the model can do (`completion`, `thinking`, …); empty when not reported.
        load_s: seconds the warm-up took to load the model.
        counts_cached: whether the server's token counts include its prefix cache.
    """

    version: str
    model: str
    digest: str
    trained_ctx: int | None
    effective_ctx: int | None
    capabilities: tuple[str, ...]
    load_s: float
    counts_cached: bool = True


CHECKS = ("server", "version", "model", "trained context", "loading", "context")
"""What `ask_server` checks, in this order."""


def ask_server(
    client: httpx.Client, options: OllamaOptions, *, passed: Callable[[str, str], None] = lambda check, found: None
) -> ServerFacts:
    """Run every one of `CHECKS`; raises `PreflightError` for the first that fails, saying what to do.

    `passed` is told of each check that holds, and what was found.
    """
    version = _version(client, options)
    passed("server", options.base_url)
    _refuse_clipping(version)
    passed("version", version)
    listed = _listed(client, options)
    trained, capabilities = _shown(client, options, listed=listed)
    name = full_name(options.model)
    digest = listed.get(name, "")
    passed("model", " ".join(part for part in (name, digest[:12], *capabilities) if part))
    if trained is not None and trained < options.num_ctx:
        raise PreflightError(
            f"{options.model} was trained for {trained} tokens, and the server would cap num_ctx {options.num_ctx} "
            f"without a word. Set num_ctx to {trained} or less."
        )
    passed("trained context", f"{trained} tokens" if trained else "not reported")
    load_s = _load(client, options)
    passed("loading", f"{load_s:.1f} s")
    effective = _loaded_context(client, options)
    if effective is not None and effective < options.num_ctx:
        raise PreflightError(
            f"The server holds {options.model} with {effective} tokens of context although {options.num_ctx} were "
            f"asked for. Set num_ctx to {effective}, or free memory and reload the model."
        )
    passed("context", f"{effective} tokens" if effective else "not reported")
    return ServerFacts(
        version=version,
        model=name,
        digest=digest,
        trained_ctx=trained,
        effective_ctx=effective,
        capabilities=capabilities,
        load_s=load_s,
        counts_cached=_numbers(version) != _UNCACHED_COUNT_VERSION,
    )


def listed_digest(client: httpx.Client, options: OllamaOptions) -> str:
    """Return the digest the server lists for the model, empty when it lists none; raises `PreflightError`."""
    return _listed(client, options).get(full_name(options.model), "")


def full_name(model: str) -> str:
    """Return a model's name with its tag; without one it is ``latest``."""
    return model if ":" in model.rsplit("/", 1)[-1] else f"{model}:latest"


def _version(client: httpx.Client, options: OllamaOptions) -> str:
    reply = _get(client, "/api/version", options)
    version = reply.get("version") if reply is not None else None
    if not isinstance(version, str):
        raise PreflightError(
            f"{options.base_url} answers, but not as Ollama does (/api/version). Point the URL at Ollama's own port, "
            "usually 11434."
        )
    return version


def _refuse_clipping(version: str) -> None:
    numbers = _numbers(version)
    # A development build says 0.0.0; it is newer than any release.
    if numbers is not None and (0, 0, 0) < numbers < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        raise PreflightError(
            f"Ollama {version} clips a prompt that is too long without saying so. Update it to {oldest} or later."
        )


def _listed(client: httpx.Client, options: OllamaOptions) -> dict[str, str]:
    reply = _get(client, "/api/tags", options)
    return {
        full_name(str(entry.get("name") or entry.get("model") or "")): str(entry.get("digest") or "")
        for entry in _models(reply or {})
    }


def _models(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    models = reply.get("models")
    entries = cast("list[object]", models) if isinstance(models, list) else []
    return [cast("dict[str, Any]", entry) for entry in entries if isinstance(entry, dict)]


def _shown(
    client: httpx.Client, options: OllamaOptions, *, listed: Mapping[str, str]
) -> tuple[int | None, tuple[str, ...]]:
    response = _send(client, "POST", "/api/show", options, body={"model": options.model})
    if response.status_code == 404:
        near = nearest_name(full_name(options.model), listed)
        has = f", or name one that it has (CTXSTREAM_MODEL, --model): {', '.join(list(listed)[:5])}" if listed else ""
        raise PreflightError(f"The server does not have {options.model}{near}. Run `ollama pull {options.model}`{has}.")
    shown = _object(response, options)
    told, able = shown.get("model_info"), shown.get("capabilities")
    info = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    trained = info.get(f"{info.get('general.architecture')}.context_length")
    capabilities = tuple(map(str, cast("list[object]", able))) if isinstance(able, list) else ()
    if capabilities and "completion" not in capabilities:
        raise PreflightError(f"{options.model} cannot chat (it can: {', '.join(capabilities)}). Choose another model.")
    return (trained if is_count(trained) and trained else None), capabilities


def _load(client: httpx.Client, options: OllamaOptions) -> float:
    body: dict[str, Any] = {**fixed_body(options), "messages": [], "stream": False}
    response = _send(client, "POST", "/api/chat", options, body=body, timeout_s=options.load_timeout_s)
    if response.status_code == 400:
        # Servers that only resemble Ollama refuse a call without messages; the first real call then loads the model.
        return 0.0
    loaded = _object(response, options)
    duration = loaded.get("load_duration")
    return duration / 1e9 if is_count(duration) else 0.0


def _loaded_context(client: httpx.Client, options: OllamaOptions) -> int | None:
    response = _send(client, "GET", "/api/ps", options)
    if response.status_code == 404:
        return None
    wanted = full_name(options.model)
    for entry in _models(_object(response, options)):
        if full_name(str(entry.get("name") or entry.get("model") or "")) == wanted:
            context = entry.get("context_length")
            return context if is_count(context) and context else None
    return None


def fixed_body(options: OllamaOptions) -> dict[str, Any]:
    """Return what every call to `/api/chat` carries, so that no call makes the server reload the model."""
    return {
        "model": options.model,
        "stream": True,
        "think": False,
        "truncate": False,
        "keep_alive": options.keep_alive,
        "options": options.settings(),
    }


def _get(client: httpx.Client, path: str, options: OllamaOptions) -> dict[str, Any] | None:
    response = _send(client, "GET", path, options)
    return None if response.status_code in (404, 405) else _object(response, options)


def _send(
    client: httpx.Client,
    method: str,
    path: str,
    options: OllamaOptions,
    *,
    body: Mapping[str, Any] | None = None,
    timeout_s: float = _ASK_TIMEOUT_S,
) -> httpx.Response:
    url = options.base_url
    timeout = httpx.Timeout(timeout_s, connect=options.connect_timeout_s)
    try:
        return client.request(method, f"{url}{path}", json=body, timeout=timeout)
    except httpx.ConnectError as error:
        raise PreflightError(
            f"Nothing answers at {url}. Start it with `ollama serve` (without Ollama: `ctxstream serve-model`), "
            "or set OLLAMA_HOST (--url) to where it runs."
        ) from error
    except httpx.TimeoutException as error:
        doing = "load the model" if path == "/api/chat" else f"answer {path}"
        raise PreflightError(
            f"{url} did not {doing} within {timeout_s:g} s. Look at the server's log; restart `ollama serve`."
        ) from error
    except httpx.RequestError as error:
        raise PreflightError(f"The connection to {url} broke at {path}: {error or type(error).__name__}.") from error


def _object(response: httpx.Response, options: OllamaOptions) -> dict[str, Any]:
    if response.status_code != 200:
        failure = status_error(response.status_code, response.text, model=options.model)
        raise PreflightError(str(failure))
    try:
        content = json.loads(response.content)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise PreflightError(
            f"{options.base_url} answers {response.request.url.path} with something that is no Ollama reply: "
            f"{response.text[:80]!r}. Point the URL at Ollama's own port, usually 11434."
        )
    entry = cast("dict[str, Any]", content)
    if "error" in entry:
        raise PreflightError(f"The server answers {response.request.url.path}: {error_text(response.text)}")
    return entry


def _numbers(version: str) -> tuple[int, int, int] | None:
    found = re.match(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})", version)
    return (int(found.group(1)), int(found.group(2)), int(found.group(3))) if found else None
