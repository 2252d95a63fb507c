"""Reads a server's address the way Ollama's own client does, so that what works there works here."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import httpx

from ctxstream_dagster.errors import ConfigError

_DEFAULT_PORT = 11_434
_SCHEME_PORTS = {"http": 80, "https": 443}


def base_url(host: str) -> str:
    """Return ``scheme://host:port[/path]`` for any form that `OLLAMA_HOST` may have.

    Without a scheme the port defaults to 11434, with one to the scheme's own (80, 443). A path prefix is kept. An
    address that only a server can listen on (0.0.0.0, ::) becomes the loopback address. An empty host is the loopback.

    Raises `ConfigError` for another scheme, a port that is no port, and credentials, a query or a fragment inside the
    address.
    """
    given = host.strip().strip("\"'")
    scheme, separator, rest = given.partition("://")
    if not separator:
        scheme, rest = "http", given
    scheme = scheme.lower()
    if scheme not in _SCHEME_PORTS:
        raise ConfigError(f"The server address {host!r} has the scheme {scheme!r}; use http:// or https://.")
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        name, port = parts.hostname or "127.0.0.1", parts.port
    except ValueError as error:
        raise ConfigError(f"The server address {host!r} cannot be read: {error}. Example: 127.0.0.1:11434") from error
    if not _is_name(name):
        raise ConfigError(f"The server address {host!r} holds no host name. Example: 127.0.0.1:11434")
    if parts.username is not None:
        raise ConfigError("The server address holds a user name or key; set OLLAMA_API_KEY instead.")
    if parts.query or parts.fragment or rest.endswith(("?", "#")):
        raise ConfigError(f"The server address {host!r} holds a query or a fragment (? or #); leave it out.")
    if port is None:
        port = _SCHEME_PORTS[scheme] if separator else _DEFAULT_PORT
    path = parts.path.strip("/")
    return f"{scheme}://{_reachable(name)}:{port}" + (f"/{path}" if path else "")


def is_loopback(url: str) -> bool:
    """Say whether a URL names this machine, for which a proxy is never right."""
    name = urlsplit(url).hostname or ""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_name(name: str) -> bool:
    try:
        # What httpx refuses only when it connects, and then by an error of its own.
        httpx.URL(f"http://{_reachable(name)}/").host.encode("idna")
    except (UnicodeError, httpx.InvalidURL):
        return False
    return name.isprintable() and " " not in name


def _reachable(name: str) -> str:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{name}]" if address.version == 6 else name
