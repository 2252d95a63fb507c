"""Ollama's native routes over any `Engine`, with the standard library's HTTP server.

Routes: /, /api/version, /api/tags, /api/ps, /api/show, /api/chat. A prompt that does not fit is refused with 400, also
when `truncate` is true or left out, where Ollama would clip it in silence: nobody who counts wants that.
"""

from __future__ import annotations

import contextlib
import json
import re
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ctxstream_dagster.embedded.engine import Engine, Slots
from ctxstream_dagster.embedded.replies import ReplyLines, counters, nanoseconds, timestamp
from ctxstream_dagster.embedded.wire import ApiError, ChatRequest, parse_chat, parse_object

# The number says whose contract is kept (clients read it to know what `truncate: false` does), the rest what this is.
VERSION = "0.33.0-ctxstream-embedded"
_MOST_BODY_BYTES = 64 << 20
_STOP_S = 10.0
_HEX = re.compile(rb"[0-9a-fA-F]{1,8}")


class EmbeddedServer(ThreadingHTTPServer):
    """An HTTP server for one engine; `serve_forever` answers until `shutdown`."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, engine: Engine, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.engine = engine
        self.slots = Slots(engine)
        self.stopping = threading.Event()
        self.address_family = _family(host)
        super().__init__((host, port), _Handler)

    @staticmethod
    def probe(*, host: str, port: int) -> None:
        """Raise `OSError` where a server could not listen."""
        with socket.socket(_family(host)) as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, port))

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"http://[{host}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"

    def service_actions(self) -> None:
        """Unload a model that nobody uses any more; called about twice a second."""
        self.slots.unload_when_due()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that hung up or fell silent; anything else is a defect and is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """Close the port, stop what is being generated, and free the model.

        Raises `TimeoutError` when a generation does not stop, as one does that is still reading a long prompt.
        """
        self.stopping.set()
        super().server_close()
        self.slots.close(timeout_s=_STOP_S)


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EmbeddedServer  # pyright: ignore[reportIncompatibleVariableOverride]
    # A pause between two requests of a kept connection, not the length of a reply.
    timeout = 300

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet: one line a call would drown everything else."""

    def do_GET(self) -> None:
        self._answer(
            {
                "/": self._root,
                "/api/version": lambda: self._json(200, {"version": VERSION}),
                "/api/tags": self._tags,
                "/api/ps": self._ps,
            }
        )

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self._answer({"/api/show": self._show, "/api/chat": self._chat})

    def _answer(self, routes: Mapping[str, Callable[[], None]]) -> None:
        route = routes.get(self.path.partition("?")[0])
        try:
            if route is None:
                self._body()
                return self._text(404, "404 page not found")
            route()
        except ApiError as error:
            self._json(error.status, {"error": str(error)})

    # ------------------------------------------------------------------ what there is

    def _root(self) -> None:
        self._text(200, "Ollama is running")

    def _tags(self) -> None:
        self._json(200, {"models": [{**self._entry(), "modified_at": timestamp(0)}]})

    def _ps(self) -> None:
        models: list[dict[str, Any]] = []
        slots = self.server.slots
        if slots.loaded_ctx:
            held = {"size_vram": 0, "context_length": slots.loaded_ctx, "expires_at": timestamp(slots.expires_at)}
            models.append({**self._entry(), **held})
        self._json(200, {"models": models})

    def _show(self) -> None:
        entry = parse_object(self._body())
        self._known(entry.get("model") or entry.get("name") or "")
        card = self.server.engine.card
        info = {
            "general.architecture": card.architecture,
            f"{card.architecture}.context_length": card.context_length,
        }
        shown = {"license": card.licence, "template": card.template, "details": self._details()}
        self._json(200, {**shown, "model_info": info, "capabilities": ["completion"], "modified_at": timestamp(0)})

    def _entry(self) -> dict[str, Any]:
        card = self.server.engine.card
        name = f"{card.name}:latest"
        return {
            "name": name,
            "model": name,
            "size": card.size_bytes,
            "digest": card.digest,
            "details": self._details(),
        }

    def _details(self) -> dict[str, Any]:
        card = self.server.engine.card
        return {
            "parent_model": "",
            "format": "gguf",
            "family": card.architecture,
            "families": [card.architecture],
            "parameter_size": card.parameters,
            "quantization_level": card.quantization,
        }

    def _known(self, name: object) -> None:
        own = self.server.engine.card.name
        if name not in (own, f"{own}:latest"):
            raise ApiError(404, f"model '{name}' not found")

    # ------------------------------------------------------------------ chat

    def _chat(self) -> None:
        started = time.perf_counter()
        request = parse_chat(parse_object(self._body()))
        self._known(request.model)
        if not request.messages and request.keep_alive_s == 0:
            self.server.slots.unload()
            return self._json(200, self._line(request, "", done_reason="unload"))
        with self._slot(request) as load_s:
            if not request.messages:
                durations = {
                    "total_duration": nanoseconds(time.perf_counter() - started),
                    "load_duration": nanoseconds(load_s),
                }
                return self._json(200, {**self._line(request, "", done_reason="load"), **durations})
            self._generate(request, started=started, load_s=load_s)

    def _generate(self, request: ChatRequest, *, started: float, load_s: float) -> None:
        pieces: list[str] = []
        lines = ReplyLines(self)

        def emit(piece: str) -> bool:
            if self._gone():
                return False
            if request.stream:
                return lines.write(self._line(request, piece))
            pieces.append(piece)
            return True

        try:
            finish = self.server.engine.generate(request, emit)
        except ApiError as error:
            if not lines.begun:
                raise
            lines.write({"error": str(error)})
            return lines.end()
        if finish is None:
            self.close_connection = True
            return
        numbers = counters(finish, total_s=time.perf_counter() - started, load_s=load_s)
        final = {**self._line(request, "".join(pieces), done_reason=finish.reason), **numbers}
        if not request.stream:
            return self._json(200, final)
        lines.write(final)
        lines.end()

    def _slot(self, request: ChatRequest) -> contextlib.AbstractContextManager[float]:
        return self.server.slots.slot(request.num_ctx, keep_alive_s=request.keep_alive_s, gone=self._gone)

    def _line(self, request: ChatRequest, text: str, *, done_reason: str = "") -> dict[str, Any]:
        line: dict[str, Any] = {
            "model": request.model,
            "created_at": timestamp(time.time()),
            "message": {"role": "assistant", "content": text},
            "done": bool(done_reason),
        }
        return {**line, "done_reason": done_reason} if done_reason else line

    def _gone(self) -> bool:
        """Whether nobody waits for a reply any more; nothing is taken out of the connection."""
        if self.server.stopping.is_set():
            return True
        with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
            selector.register(self.connection, selectors.EVENT_READ)
            return bool(selector.select(0)) and self.connection.recv(1, socket.MSG_PEEK) == b""
        return True

    # ------------------------------------------------------------------ bytes

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > _MOST_BODY_BYTES:
            self.close_connection = True
            raise ApiError(413, "the request's body is too long")
        return self.rfile.read(int(length))

    def _chunks(self) -> Iterator[bytes]:
        left = _MOST_BODY_BYTES
        while size := self._chunk_size(most=left):
            left -= size
            yield self.rfile.read(size)
            self.rfile.readline(64)
        self.rfile.readline(64)

    def _chunk_size(self, *, most: int) -> int:
        written = self.rfile.readline(64).partition(b";")[0].strip()
        if _HEX.fullmatch(written) and int(written, 16) <= most:
            return int(written, 16)
        self.close_connection = True
        raise ApiError(400, "the request's chunks are garbled or too long")

    def _json(self, status: int, entry: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(entry, ensure_ascii=False).encode(), "application/json; charset=utf-8")

    def _text(self, status: int, text: str) -> None:
        self._send(status, text.encode(), "text/plain; charset=utf-8")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
