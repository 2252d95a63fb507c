"""A scripted Ollama server on real sockets: perfect unless its script says which call goes wrong, and how.

As a fixture: ``with FaultServer() as server: server.script({"match": "ticket 12", "fault": "503", "times": 2})``.
On its own: ``python tests/fault_server.py --port 11500 --latency 0.25`` and, while it runs, ``POST /_script`` with
``{"rules": [...], "latency_s": 0.1, "pattern": "Status: (\\w+)"}``, ``POST /_reset``,
``GET /_stats``, ``GET /_bodies``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.faults import FAULTS, Call, chunk, final, head, piece, whole
from tests.scripted_model import ORDER, STATUS, by_pattern, perfect_reply, user_text

MODEL = "scripted:latest"


@dataclass
class Rule:
    """Which calls go wrong: those whose corpus text holds `match`, from the first, `times` of them (None: all)."""

    fault: str
    match: str = ""
    times: int | None = 1
    args: dict[str, Any] = field(default_factory=dict)
    hits: int = 0


@dataclass
class Stats:
    calls: int = 0
    in_flight: int = 0
    peak: int = 0
    connections: int = 0
    opened: int = 0
    disconnects: int = 0
    faults: dict[str, int] = field(default_factory=dict)


class FaultServer:
    """The server in a thread of its own; the port stays the same after `stop` and `start`."""

    def __init__(self, *, port: int = 0, latency_s: float = 0.0, model: str = MODEL, version: str = "0.33.0") -> None:
        self.port = port
        self.latency_s = latency_s
        self.model = model
        self.version = version
        self.trained_ctx = 131_072
        self.effective_ctx: int | None = None
        self.obedient = False
        self.prefix = ""
        self.load_s = 0.0
        self.parallel: int | None = None
        self.capabilities = ["completion"]
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.find = by_pattern(STATUS)
        self.rules: list[Rule] = []
        self.stats = Stats()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._num_ctx = 0
        self._slots: asyncio.Semaphore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FaultServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, args=(self._loop, ready), daemon=True)
        self._thread.start()
        if not ready.wait(10):
            raise RuntimeError("the scripted server did not start")

    def stop(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._main.cancel)
            self._thread.join(10)
            self._loop = None

    def script(self, *rules: dict[str, Any] | Rule) -> None:
        """Add rules; the first one that matches a call and has hits left decides."""
        added = [rule if isinstance(rule, Rule) else Rule(**rule) for rule in rules]
        unknown = [rule.fault for rule in added if rule.fault not in FAULTS]
        if unknown:
            raise ValueError(f"no such fault: {unknown}; there are {sorted(FAULTS)}")
        self.rules += added

    def reset(self) -> None:
        """Forget rules, bodies and counts; open connections stay counted."""
        self.rules.clear()
        self.bodies.clear()
        self.headers.clear()
        self.stats = Stats(connections=self.stats.connections, in_flight=self.stats.in_flight)

    def wait_idle(self, *, timeout_s: float = 5.0) -> None:
        """Return when no connection is open; raises `TimeoutError`."""
        deadline = time.monotonic() + timeout_s
        while self.stats.connections:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.stats.connections} connections are still open")
            time.sleep(0.005)

    def _work(self, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
        asyncio.set_event_loop(loop)
        self._main = loop.create_task(self.serve(ready))
        try:
            loop.run_until_complete(self._main)
        except asyncio.CancelledError:
            pass
        finally:
            loop.close()

    async def serve(self, ready: threading.Event | None = None) -> None:
        """Serve until cancelled."""
        handlers: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            handlers.add(task)
            self.stats.connections += 1
            self.stats.opened += 1
            try:
                while await self._exchange(reader, writer):
                    pass
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                self.stats.connections -= 1
                handlers.discard(task)
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", self.port, limit=1 << 24, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        if ready is not None:
            ready.set()
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            for task in list(handlers):
                task.cancel()
            await asyncio.gather(*handlers, return_exceptions=True)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False when the connection is over."""
        try:
            top = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        first, *lines = top.decode("latin-1").split("\r\n")
        given = first.split(" ")[1]
        path = given.removeprefix(self.prefix) if given.startswith(self.prefix) else "outside"
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        body = json.loads(data) if data else {}
        scripted = self.answers.get("load" if path == "/api/chat" and not body.get("messages") else path)
        if path != "/api/chat" or scripted is not None:
            status, text = scripted or self._answer(path, body)
            writer.write(head(status, length=len(text)) + text)
            await writer.drain()
            return True
        return await self._chat(body, headers, reader, writer)

    def _answer(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        status, answer = self._route(path, body)
        return status, json.dumps(answer, ensure_ascii=False).encode()

    def _route(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        details = {"format": "gguf", "family": "scripted", "parameter_size": "0B", "quantization_level": "none"}
        known = {self.model, self.model.removesuffix(":latest")}
        if path == "/api/version":
            return 200, {"version": self.version}
        if path == "/api/tags":
            entry = {"name": self.model, "model": self.model, "digest": "5c91" * 16, "details": details}
            return 200, {"models": [entry]}
        if path == "/api/ps":
            loaded = {"name": self.model, "model": self.model, "context_length": self.effective_ctx or self._num_ctx}
            return 200, {"models": [loaded] if self._num_ctx else []}
        if path == "/api/show":
            if body.get("model") not in known:
                return 404, {"error": f"model '{body.get('model')}' not found"}
            info = {"general.architecture": "scripted", "scripted.context_length": self.trained_ctx}
            return 200, {"details": details, "model_info": info, "capabilities": self.capabilities}
        if path == "/_stats":
            return 200, vars(self.stats)
        if path == "/_bodies":
            return 200, self.bodies
        if path == "/_reset":
            self.reset()
            return 200, {}
        if path == "/_script":
            try:
                self.script(*body.get("rules", []))
            except (TypeError, ValueError) as error:
                return 400, {"error": str(error)}
            self.latency_s = body.get("latency_s", self.latency_s)
            self.obedient = body.get("obedient", self.obedient)
            if "pattern" in body:
                self.find = by_pattern(body["pattern"])
            return 200, {"rules": len(self.rules)}
        return 404, {"error": f"no such path: {path}"}

    async def _chat(
        self, body: dict[str, Any], headers: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        messages = body.get("messages") or []
        self._num_ctx = body.get("options", {}).get("num_ctx", 4096)

        async def pause(seconds: float) -> None:
            if seconds > 0:
                await self._pause(seconds, reader)

        call = Call(request=body, reply="", writer=writer, pause=pause)
        if not messages:
            await pause(self.load_s)
            await whole(call, final(call, reason="load", tokens=None))
            return True
        for _ in range(4):
            # A client that hung up just before this call is no longer in flight; let its handler notice.
            await asyncio.sleep(0)
        stats = self.stats
        self.bodies.append(body)
        self.headers.append(headers)
        stats.calls += 1
        stats.in_flight += 1
        stats.peak = max(stats.peak, stats.in_flight)
        try:
            text = user_text(messages)
            rule = next((rule for rule in self.rules if rule.match in text and rule.hits != rule.times), None)
            call.reply = self._reply(text, body)
            if rule is None:
                arrived = time.monotonic()
                async with self._slot():
                    waited_s = time.monotonic() - arrived
                    await pause(self.latency_s)
                await self._good(call, messages, waited_s=waited_s)
            else:
                rule.hits += 1
                stats.faults[rule.fault] = stats.faults.get(rule.fault, 0) + 1
                call.args = rule.args
                await FAULTS[rule.fault](call)
        except ConnectionError:
            self.stats.disconnects += 1
            return False
        finally:
            # Of the statistics as they are now: a reset may have replaced those that this call began with.
            self.stats.in_flight -= 1
        return not writer.is_closing()

    def _slot(self) -> contextlib.AbstractAsyncContextManager[object]:
        """A place of `parallel`, as OLLAMA_NUM_PARALLEL has them; free when that is None."""
        if self.parallel is None:
            return contextlib.nullcontext()
        if self._slots is None:
            self._slots = asyncio.Semaphore(self.parallel)
        return self._slots

    def _reply(self, text: str, body: dict[str, Any]) -> str:
        reply = perfect_reply(body["messages"], body.get("format"), find=self.find)
        order = ORDER.search(text) if self.obedient else None
        if order is None:
            return reply
        wanted = f"{order.group(1)}\t{order.group(2)}"
        return wanted if body.get("format") else f"{reply}\n{wanted}"

    async def _good(self, call: Call, messages: list[dict[str, str]], *, waited_s: float) -> None:
        tokens = count_tokens(messages)
        if tokens >= call.num_ctx and call.request.get("truncate") is False:
            await FAULTS["400-context"](call)
            return
        worked, waited = int(self.latency_s * 1e9), int(waited_s * 1e9)
        end = final(call, tokens=tokens, total_duration=worked + waited + 1_001, eval_duration=worked)
        data = piece(call.reply) + end
        call.writer.write(head(200, chunked=True) + chunk(data) + b"0\r\n\r\n")
        await call.writer.drain()

    async def _pause(self, seconds: float, reader: asyncio.StreamReader) -> None:
        """Sleep as a busy model does, and notice when the client hangs up meanwhile."""
        hung_up = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((hung_up,), timeout=seconds)
            if hung_up.done():
                raise ConnectionResetError("the client hung up")
        finally:
            hung_up.cancel()
            await asyncio.gather(hung_up, return_exceptions=True)


def count_tokens(messages: list[dict[str, str]]) -> int:
    """A plausible count: a token for every three bytes, never one of the numbers that give clipping away."""
    tokens = sum(len(message["content"].encode()) for message in messages) // 3 + 8 * len(messages)
    return tokens + 3 if tokens in (16_386, 16_387) else tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every reply")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--pattern", default=STATUS, help="finds the key of a unit")
    options = parser.parse_args()
    server = FaultServer(port=options.port, latency_s=options.latency, model=options.model)
    server.find = by_pattern(options.pattern)

    async def run() -> None:
        serving = asyncio.ensure_future(server.serve())
        while not server.port:
            await asyncio.sleep(0.005)
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await serving

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())


if __name__ == "__main__":
    main()
