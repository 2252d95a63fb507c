"""Runs GGUF weights on the processor with llama.cpp, inside this process."""

from __future__ import annotations

import contextlib
import importlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from ctxstream_dagster.embedded.catalog import Weights
from ctxstream_dagster.embedded.engine import Finish, ModelCard
from ctxstream_dagster.embedded.wire import ApiError, ChatRequest
from ctxstream_dagster.errors import PreflightError

_SAMPLING = ("temperature", "seed", "top_k", "top_p", "min_p", "typical_p", "repeat_last_n", "repeat_penalty")
_PENALTIES = ("presence_penalty", "frequency_penalty")
# What a text to continue has instead of an end of turn.
_ENDS = ("\n\n", "\n=>")
_TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_OLLAMA_DEFAULTS = {"temperature": 0.8, "top_k": 40, "top_p": 0.9}


class LlamaEngine:
    """The catalog's weights behind the `Engine` protocol.

    One thing is done differently from Ollama: when the reply is a choice of texts (a `format` that is a bare enum), the
    model generates the bare text, and the quotes of JSON are put around it here; answers of earlier turns lose
    theirs on the way in. A small model copies ``Status: open`` far better than it writes ``"open"`` (docs/models.md).

    Raises `PreflightError` when the runtime is not installed.
    """

    def __init__(self, weights: Weights, path: Path, *, threads: int, parallel: int = 1) -> None:
        try:
            self._runtime: Any = importlib.import_module("xllamacpp")
        except ImportError as error:
            raise PreflightError(
                "The embedded model needs the runtime xllamacpp, which is not installed here. "
                "Run `pip install 'ctxstream-dagster[embedded]'`, or use Ollama."
            ) from error
        self._weights, self._path, self._threads, self._parallel = weights, path, threads, parallel
        self._server: Any = None

    @property
    def card(self) -> ModelCard:
        """What is known of the model."""
        weights = self._weights
        return ModelCard(
            name=weights.name,
            digest=weights.sha256,
            size_bytes=weights.size_bytes,
            architecture=weights.architecture,
            parameters=weights.parameters,
            quantization=weights.quantization,
            context_length=weights.context_length,
            licence=weights.licence,
            template=weights.template,
        )

    @property
    def parallel(self) -> int:
        """Generations that may run at once."""
        return self._parallel

    def load(self, num_ctx: int) -> None:
        """Hold the model with `num_ctx` tokens for every slot."""
        params = self._runtime.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = num_ctx * self._parallel
        params.n_parallel = self._parallel
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.chat_template = self._weights.template
        # Without it a sliding-window model (Gemma) cannot reuse a prompt's prefix: 2.5 s a line instead of 0.4.
        params.swa_full = True
        # Slots keep their own prefix; copies of it in memory would only cost time.
        params.cache_ram_mib = 0
        params.n_ctx_checkpoints = 0
        params.fit_params = False
        params.warmup = False
        params.verbosity = 0
        # The runtime opens a port of its own; a key that nobody knows closes it.
        params.port = 0
        params.api_keys = [secrets.token_hex(16)]
        try:
            self._server = self._runtime.Server(params)
        except (RuntimeError, ValueError) as error:
            raise ApiError(500, f"llama runner process has terminated: {error}") from error
        self._warm_up()

    def unload(self) -> None:
        """Free the model's memory."""
        self._server = None

    def generate(self, request: ChatRequest, emit: Callable[[str], bool]) -> Finish | None:
        """Answer a request; see `Engine`."""
        choices = _choices(request.format)
        reply = _Reply(_Quoted(emit) if choices else _Plain(emit))
        try:
            self._server.handle_chat_completions(self._body(request, choices), reply.take)
        except (RuntimeError, ValueError) as error:
            raise ApiError(500, f"invalid format: {_first_line(error)}") from error
        return reply.finish()

    def _warm_up(self) -> None:
        # The grammar engine reads the vocabulary once, which takes seconds: part of loading, not of somebody's reply.
        empty = '%llguidance {}\nstart: "1"'
        self._server.handle_completions({"prompt": "1", "max_tokens": 1, "grammar": empty})

    def _body(self, request: ChatRequest, choices: Sequence[str]) -> dict[str, Any]:
        sampling = {**_OLLAMA_DEFAULTS, **request.options}
        body: dict[str, Any] = {
            **{name: sampling[name] for name in (*_SAMPLING, *_PENALTIES) if name in sampling},
            "messages": [_bare(message) if choices else dict(message) for message in request.messages],
            "max_tokens": request.most_tokens,
            "cache_prompt": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        stops = [*request.options.get("stop", ()), *(_ENDS if self._weights.continues else ())]
        if stops:
            body["stop"] = stops
        if choices:
            space = '" " ' if self._weights.continues else ""
            texts = " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
            body["grammar"] = f"%llguidance {{}}\nstart: {space}({texts})"
        elif request.format is not None:
            given: Any = {"type": "object"} if request.format == "json" else request.format
            schema: dict[str, Any] = dict(given)
            _check_schema(schema)
            # Free white space is where small models lose themselves.
            schema["x-guidance"] = {"whitespace_flexible": False}
            body["grammar"] = f"%llguidance {{}}\nstart: %json {json.dumps(schema)}"
        return body


class _Reply:
    """Collects llama.cpp's events; hands on text, keeps the counters."""

    def __init__(self, emit: Callable[[str], bool]) -> None:
        self._emit = emit
        self._raised: BaseException | None = None
        self._stopped = False
        self._reason: Literal["stop", "length"] = "stop"
        self._last: dict[str, Any] | None = None

    def take(self, event: Mapping[str, Any]) -> bool:
        """Return True to stop the generation; the runtime swallows exceptions, so they are kept for `finish`."""
        try:
            self._read(event)
        except BaseException as error:
            self._raised = error
        return self._stopped or self._raised is not None

    def finish(self) -> Finish | None:
        if self._raised:
            raise self._raised
        if self._stopped:
            return None
        if self._last is None:
            raise ApiError(500, "model runner has unexpectedly stopped: no end of the reply")
        usage, timings = self._last["usage"], self._last.get("timings", {})
        if isinstance(self._emit, _Quoted) and self._reason == "stop":
            self._emit.close()
        return Finish(
            reason=self._reason,
            prompt_tokens=usage["prompt_tokens"],
            cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
            output_tokens=usage["completion_tokens"],
            prompt_s=timings.get("prompt_ms", 0.0) / 1e3,
            output_s=timings.get("predicted_ms", 0.0) / 1e3,
        )

    def _read(self, event: Mapping[str, Any]) -> None:
        if "error" in event:
            problem = event["error"]
            # As Ollama hands llama-server's refusals on: JSON inside the message.
            raise ApiError(int(problem.get("code", 500)), json.dumps({"error": problem}))
        for choice in event.get("choices", ()):
            text = choice.get("delta", {}).get("content")
            if text and not self._emit(text):
                self._stopped = True
            if choice.get("finish_reason") == "length":
                self._reason = "length"
        if "usage" in event:
            self._last = dict(event)


class _Plain:
    """Hands text on without the space that a continued text begins with."""

    def __init__(self, emit: Callable[[str], bool]) -> None:
        self._emit = emit
        self._begun = False

    def __call__(self, piece: str) -> bool:
        piece = piece if self._begun else piece.lstrip(" ")
        self._begun = self._begun or bool(piece)
        return self._emit(piece) if piece else True


class _Quoted:
    """Turns a bare text that comes in pieces into a JSON string."""

    def __init__(self, emit: Callable[[str], bool]) -> None:
        self._emit = emit
        self._open = False

    def __call__(self, piece: str) -> bool:
        if not self._open:
            piece = piece.lstrip(" ")
            if not piece:
                return True
        inside = json.dumps(piece, ensure_ascii=False)[1:-1]
        before, self._open = ("" if self._open else '"'), True
        return self._emit(before + inside)

    def close(self) -> None:
        self._emit('"' if self._open else '""')


def _choices(format: str | Mapping[str, Any] | None) -> Sequence[str]:
    """The texts of a schema that is nothing but a choice of texts, else nothing."""
    if not isinstance(format, dict) or format.get("type", "string") != "string":
        return ()
    choices = format.get("enum")
    if not isinstance(choices, list) or set(format) - {"type", "enum", "title", "description", "$schema"}:
        return ()
    texts = cast("list[object]", choices)
    if not texts or not all(isinstance(text, str) and text and text == text.strip() for text in texts):
        return ()
    return cast("list[str]", texts)


def _check_schema(schema: object) -> None:
    """Raise `ApiError` 500 for a type that JSON does not have; the runtime would drop the whole schema for it."""
    if isinstance(schema, list):
        for item in cast("list[object]", schema):
            _check_schema(item)
    if not isinstance(schema, dict):
        return
    entry = cast("dict[str, Any]", schema)
    kinds = entry.get("type", [])
    for kind in cast("list[object]", kinds if isinstance(kinds, list) else [kinds]):
        if kind not in _TYPES:
            raise ApiError(500, f"invalid format: JSON schema error: unrecognized type {kind!r}")
    for name in ("properties", "$defs", "definitions"):
        for nested in cast("dict[str, object]", entry.get(name) or {}).values():
            _check_schema(nested)
    for name in ("items", "prefixItems", "anyOf", "oneOf", "allOf", "additionalProperties"):
        _check_schema(entry.get(name))


def _bare(message: Mapping[str, str]) -> dict[str, str]:
    content = message["content"]
    if message["role"] == "assistant" and content.startswith('"'):
        # What is no JSON string after all stays as the client wrote it.
        with contextlib.suppress(ValueError):
            content = str(json.loads(content))
    return {"role": message["role"], "content": content}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
