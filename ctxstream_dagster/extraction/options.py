"""The one frozen configuration of the Ollama client: every call of a sweep is built from it, so all are alike."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

from ctxstream_dagster.errors import ConfigError, nearest_name
from ctxstream_dagster.extraction.host import base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaOptions:
    """Where the model is and how it is asked.

    Attributes:
        url: server address in any form `OLLAMA_HOST` may have; empty for that variable, else 127.0.0.1:11434.
        model: name as `ollama list` shows it; ``:latest`` may be left out.
        num_ctx: context of every call, in tokens. A different value in another client reloads the model.
        num_predict: most tokens of a reply.
        temperature: 0 for the likeliest reply.
        seed: fixes what temperature leaves open; a bad reply is tried again with the next one.
        num_keep: tokens of the front the server keeps when it clips; sent so that the guard knows it.
        keep_alive: how long the server keeps the model loaded after a call, as Ollama writes it (``10m``, ``-1``).
        timeout_s: wall-clock limit of one call, queue and prompt reading included, in seconds.
        read_timeout_s: longest silence of the server, in seconds: queue, load and prompt reading before the first
            token, then the pause between two tokens.
        connect_timeout_s: limit for opening a connection, in seconds.
        load_timeout_s: limit for loading the model before the first call, in seconds.
        api_key: sent as a bearer token; empty for `OLLAMA_API_KEY`, and none is sent when that is empty too.
        trust_env: whether proxies of the environment are used. Never for this machine's own addresses.

    Raises `ConfigError` for a value of the wrong type or out of range.
    """

    url: str = ""
    model: str = "gemma4:e4b"
    num_ctx: int = 32_768
    num_predict: int = 1_024
    temperature: float = 0.0
    seed: int = 42
    num_keep: int = 4
    keep_alive: str = "10m"
    timeout_s: float = 900.0
    read_timeout_s: float = 600.0
    connect_timeout_s: float = 5.0
    load_timeout_s: float = 600.0
    api_key: str = field(default="", repr=False)
    trust_env: bool = True

    def __post_init__(self) -> None:
        for name in ("url", "model", "keep_alive", "api_key"):
            if not isinstance(cast("object", getattr(self, name)), str):
                raise ConfigError(f"{name!r} is text, not {getattr(self, name)!r}.")
        for name, least in (("num_ctx", 256), ("num_predict", 1), ("seed", 0), ("num_keep", 0)):
            value = cast("object", getattr(self, name))
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigError(f"{name!r} is a whole number from {least}, not {value!r}.")
        for name in ("timeout_s", "read_timeout_s", "connect_timeout_s", "load_timeout_s"):
            value = cast("object", getattr(self, name))
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
                raise ConfigError(f"{name!r} is a number of seconds above 0, not {value!r}.")
        temperature = cast("object", self.temperature)
        if not isinstance(temperature, int | float) or isinstance(temperature, bool) or not 0 <= temperature <= 2:
            raise ConfigError(f"'temperature' is a number from 0 to 2, not {temperature!r}.")
        if not isinstance(cast("object", self.trust_env), bool):
            raise ConfigError(f"'trust_env' is true or false, not {self.trust_env!r}.")
        if not self.model.strip():
            raise ConfigError("'model' is empty; name one that `ollama list` shows.")
        if self.num_predict >= self.num_ctx:
            raise ConfigError(
                f"num_predict ({self.num_predict}) leaves no room for text in num_ctx ({self.num_ctx}); lower it."
            )
        base_url(self.url)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> OllamaOptions:
        """Build options from settings by name; an unknown name raises `ConfigError` with the nearest known one."""
        known = {entry.name for entry in fields(cls)}
        for name in mapping:
            if name not in known:
                raise ConfigError(f"Unknown model setting {name!r}{nearest_name(name, known)}.")
        return cls(**mapping)

    @property
    def base_url(self) -> str:
        """The server's address, complete."""
        return base_url(self.url or os.environ.get("OLLAMA_HOST", ""))

    @property
    def bearer(self) -> str:
        """The key to send, or an empty string; raises `ConfigError`, without the key, for what no header can hold."""
        key = (self.api_key or os.environ.get("OLLAMA_API_KEY", "")).strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigError("OLLAMA_API_KEY holds characters that no key has; copy it again.")
        return key

    def settings(self) -> dict[str, Any]:
        """The options that decide a reply, by the names of Ollama's API."""
        return {
            "num_ctx": self.num_ctx,
            "num_predict": self.num_predict,
            "temperature": self.temperature,
            "seed": self.seed,
            "num_keep": self.num_keep,
        }
