"""Reads and writes the native routes' JSON as Ollama does, wrong types and their wording included.

Source: Ollama's `api/types.go` and `server/routes.go` at v0.33; facts in docs/models.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

DEFAULT_NUM_CTX = 4_096
DEFAULT_KEEP_ALIVE_S = 300.0

_INTEGERS = [
    "num_ctx",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "num_thread",
    "draft_num_predict",
    "num_keep",
    "seed",
    "num_predict",
    "top_k",
    "repeat_last_n",
]
_FLOATS = ["top_p", "min_p", "typical_p", "temperature", "repeat_penalty", "presence_penalty", "frequency_penalty"]
_BOOLEANS = ("use_mmap",)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+")
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)")


class ApiError(Exception):
    """A refusal with its HTTP status; the message is the body's `error`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A checked request to `/api/chat`.

    Attributes:
        model: as the client wrote it.
        messages: role and content; empty to load or unload the model.
        stream: whether the reply comes as lines.
        format: ``"json"``, a JSON schema, or None.
        keep_alive_s: how long the model stays loaded after the call, in seconds; negative for ever.
        options: the known options that were given, right types only.
    """

    model: str
    messages: tuple[Mapping[str, str], ...]
    stream: bool = True
    format: str | Mapping[str, Any] | None = None
    keep_alive_s: float = DEFAULT_KEEP_ALIVE_S
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def num_ctx(self) -> int:
        """Context asked for, in tokens."""
        return int(self.options.get("num_ctx", DEFAULT_NUM_CTX))

    @property
    def most_tokens(self) -> int:
        """Most tokens of a reply; Ollama too stops at ten contexts."""
        asked = int(self.options.get("num_predict", -1))
        return min(asked, 10 * self.num_ctx) if asked >= 0 else 10 * self.num_ctx


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the request's JSON object; raises `ApiError` 400."""
    if not body.strip():
        raise ApiError(400, "missing request body")
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"invalid JSON: {error}") from error
    if not isinstance(entry, dict):
        raise ApiError(400, "json: the request must be an object")
    return cast("dict[str, Any]", entry)


def parse_chat(entry: Mapping[str, Any]) -> ChatRequest:
    """Check a request to `/api/chat`; raises `ApiError` with Ollama's status and wording."""
    model = _typed(entry, "model", str, "")
    if not model:
        raise ApiError(400, "model is required")
    if entry.get("think") not in (None, False, ""):
        raise ApiError(400, f'"{model}" does not support thinking')
    if entry.get("tools"):
        raise ApiError(400, f"{model} does not support tools")
    if entry.get("logprobs"):
        raise ApiError(400, "the embedded server reports no logprobs")
    return ChatRequest(
        model=model,
        messages=tuple(_message(item) for item in cast("list[object]", _typed(entry, "messages", list, []))),
        stream=_typed(entry, "stream", bool, True),
        format=_format(entry.get("format")),
        keep_alive_s=_keep_alive(entry.get("keep_alive")),
        options=_options(cast("dict[str, Any]", _typed(entry, "options", dict, {}))),
    )


def _typed(entry: Mapping[str, Any], name: str, kind: type[Any], default: Any) -> Any:
    value = entry.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise ApiError(400, f"json: cannot unmarshal {_json_kind(value)} into Go struct field ChatRequest.{name}")
    return value


def _message(item: object) -> Mapping[str, str]:
    if not isinstance(item, dict):
        raise ApiError(400, f"json: cannot unmarshal {_json_kind(item)} into Go struct field ChatRequest.messages")
    entry = cast("dict[str, Any]", item)
    if entry.get("images"):
        raise ApiError(400, "this model is missing data required for image input")
    role, content = _typed(entry, "role", str, ""), _typed(entry, "content", str, "")
    if role not in ("system", "user", "assistant"):
        raise ApiError(400, f"invalid role: {role!r}; the embedded server knows system, user and assistant")
    return {"role": role, "content": content}


def _format(value: object) -> str | Mapping[str, Any] | None:
    if value is None or value == "":
        return None
    if value == "json" or isinstance(value, dict):
        return cast("str | dict[str, Any]", value)
    raise ApiError(500, f'invalid format: {json.dumps(value)}; expected "json" or a valid JSON Schema object')


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    # An unknown name is ignored without a word, as Ollama does; that is why our client checks names itself.
    known: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name in _INTEGERS:
            known[name] = int(value) if number else _wrong_type(name, "integer")
        elif name in _FLOATS:
            known[name] = float(value) if number else _wrong_type(name, "float32")
        elif name in _BOOLEANS:
            known[name] = value if isinstance(value, bool) else _wrong_type(name, "boolean")
        elif name == "stop":
            if not isinstance(value, list):
                _wrong_type(name, "array")
            if not all(isinstance(item, str) for item in cast("list[object]", value)):
                raise ApiError(500, 'option "stop" must be of an array of strings')
            known[name] = value
    return known


def _wrong_type(name: str, kind: str) -> Any:
    raise ApiError(500, f'option "{name}" must be of type {kind}')


def _keep_alive(value: object) -> float:
    if value is None:
        return DEFAULT_KEEP_ALIVE_S
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"[-+]?\d+(?:\.\d+)?", text):
            return float(text)
        if _DURATION.fullmatch(text):
            seconds = sum(float(count) * _SECONDS[unit] for count, unit in _DURATION_PART.findall(text))
            return -seconds if text.startswith("-") else seconds
    raise ApiError(400, f"time: invalid duration {json.dumps(value)}")


def _json_kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    return {str: "string", int: "number", float: "number", list: "array", dict: "object"}.get(type(value), "null")
