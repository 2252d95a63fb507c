"""Everything a server or a network can do to one `/api/chat` call, by name: the scripted server's repertoire."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Call:
    """One call to be answered badly.

    Attributes:
        request: the decoded body.
        reply: what a perfect model would say.
        writer: the connection.
        args: the rule's own settings (seconds, status, text, …).
        pause: sleeps, but ends at once when the client hangs up.
    """

    request: dict[str, Any]
    reply: str
    writer: asyncio.StreamWriter
    pause: Callable[[float], Awaitable[None]]
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def num_ctx(self) -> int:
        return self.request.get("options", {}).get("num_ctx", 4096)


Fault = Callable[[Call], Awaitable[None]]


async def send(call: Call, data: bytes) -> None:
    call.writer.write(data)
    await call.writer.drain()


def head(status: int, *headers: str, length: int | None = None, chunked: bool = False, reason: str = "X") -> bytes:
    lines = [f"HTTP/1.1 {status} {reason}", "Content-Type: application/x-ndjson", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n" % len(data) + data + b"\r\n"


def piece(text: str, **more: Any) -> bytes:
    """One line of a streamed reply."""
    message = {"role": "assistant", "content": text, **more}
    return json.dumps({"model": "m", "message": message, "done": False}, ensure_ascii=False).encode() + b"\n"


def final(call: Call, *, reason: str | None = "stop", tokens: int | None = 300, text: str = "", **more: Any) -> bytes:
    """The last line of a streamed reply, with its counters."""
    entry: dict[str, Any] = {"model": "m", "message": {"role": "assistant", "content": text}, "done": True}
    if reason is not None:
        entry["done_reason"] = reason
    if tokens is not None:
        entry["prompt_eval_count"] = tokens
    entry.update({"eval_count": 9, "total_duration": 3_000_000, "load_duration": 1_000, "prompt_eval_duration": 1})
    entry.update({"eval_duration": 1, **more})
    return json.dumps(entry).encode() + b"\n"


async def whole(call: Call, body: bytes, *, status: int = 200, headers: tuple[str, ...] = ()) -> None:
    """A complete response, after which the connection goes on."""
    await send(call, head(status, *headers, length=len(body)) + body)


def said(*, text: str | None = None, status: int = 200, headers: tuple[str, ...] = ()) -> Fault:
    """A response with a fixed body; `{model}` and `{num_ctx}` stand for the request's."""

    async def respond(call: Call) -> None:
        body = call.args.get("text", text) or ""
        body = body.replace("{model}", str(call.request.get("model"))).replace("{num_ctx}", str(call.num_ctx))
        more = tuple(call.args.get("headers", headers))
        await whole(call, body.encode(), status=call.args.get("status", status), headers=more)

    return respond


def replied(text: str | None = None, **more: Any) -> Fault:
    """A whole reply with another text, or another end."""

    async def respond(call: Call) -> None:
        body = piece(call.args.get("text", call.reply if text is None else text)) + final(call, **more)
        await whole(call, body)

    return respond


def _abort(call: Call) -> None:
    connection = call.writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    call.writer.transport.abort()


async def reset_before(call: Call) -> None:
    _abort(call)


async def close_before(call: Call) -> None:
    call.writer.close()


async def reset_midway(call: Call) -> None:
    await send(call, head(200, length=500) + piece(call.reply[:3]))
    await asyncio.sleep(0.02)
    _abort(call)


async def short_length(call: Call) -> None:
    await send(call, head(200, length=500) + b'{"message":{"content":"par')
    call.writer.close()


async def short_chunks(call: Call) -> None:
    await send(call, head(200, chunked=True) + chunk(piece(call.reply[:3])))
    call.writer.close()


async def no_end(call: Call) -> None:
    await send(call, head(200, chunked=True) + chunk(piece(call.reply)) + b"0\r\n\r\n")


async def done_false(call: Call) -> None:
    await whole(call, piece(call.reply))


async def no_length(call: Call) -> None:
    await send(call, b"HTTP/1.0 200 OK\r\n\r\n" + piece(call.reply)[:-9])
    call.writer.close()


async def garbage(call: Call) -> None:
    await send(call, b"\x00\x01\x02nonsense\r\n\r\n")
    call.writer.close()


async def hang(call: Call) -> None:
    await call.pause(call.args.get("seconds", 30.0))
    call.writer.close()


async def slow_drip(call: Call) -> None:
    await send(call, head(200, chunked=True))
    for _ in range(1_000):
        await send(call, chunk(piece("a")))
        await call.pause(call.args.get("seconds", 0.05))


async def half_window(call: Call) -> None:
    size = call.num_ctx
    await whole(call, piece(call.reply) + final(call, tokens=size - (size - 5) // 2))


async def full_window(call: Call) -> None:
    await whole(call, piece(call.reply) + final(call, tokens=call.num_ctx))


async def token_repeat(call: Call) -> None:
    lines = b"".join(piece("<unused50>") for _ in range(32))
    await send(call, head(200, chunked=True) + chunk(lines) + b"0\r\n\r\n")


async def thinking_only(call: Call) -> None:
    await whole(call, piece("", thinking="Let me count the statuses.") + final(call))


async def midway_error(call: Call) -> None:
    error = b'{"error":"an error was encountered while running the model: unexpected EOF"}\n'
    await whole(call, piece(call.reply[:3]) + error)


async def reload(call: Call) -> None:
    await call.pause(call.args.get("seconds", 0.05))
    await whole(call, piece(call.reply) + final(call, load_duration=2_500_000_000, total_duration=2_600_000_000))


async def part_of_reply(call: Call) -> None:
    """A reply that was cut at num_predict: what stands there looks perfectly good."""
    cut = call.reply[: max(1, len(call.reply) // 2)]
    await whole(call, piece(cut) + final(call, reason="length"))


_OVERFLOW = (
    '{"error":"{\\"error\\":{\\"code\\":400,\\"message\\":\\"request (40000 tokens) exceeds the available context size '
    '({num_ctx} tokens)\\",\\"type\\":\\"exceed_context_size_error\\",\\"n_ctx\\":{num_ctx}}}"}'
)
_OPENAI = (
    '{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"alpha"},'
    '"finish_reason":"stop"}],"usage":{"prompt_tokens":9}}'
)

FAULTS: dict[str, Fault] = {
    # the connection
    "reset-before": reset_before,
    "close-before": close_before,
    "reset-midway": reset_midway,
    "short-length": short_length,
    "short-chunks": short_chunks,
    "no-length": no_length,
    "garbage": garbage,
    "hang": hang,
    "slow-drip": slow_drip,
    # a reply that does not end
    "no-end": no_end,
    "done-false": done_false,
    "token-repeat": token_repeat,
    "midway-error": midway_error,
    # statuses
    "503": said(status=503, text='{"error":"server busy, please try again. maximum pending requests exceeded"}'),
    "503-retry-after": said(status=503, text='{"error":"busy"}', headers=("Retry-After: 0",)),
    "429": said(status=429, text='{"error":"too many requests"}', headers=("Retry-After: 0",)),
    "502-html": said(status=502, text="<html><body>Bad gateway</body></html>"),
    "500-crash": said(status=500, text='{"error":"model runner has unexpectedly stopped, this may be due to"}'),
    "500-memory": said(status=500, text='{"error":"model requires more system memory (9.6 GiB) than is available"}'),
    "500-load": said(status=500, text='{"error":"timed out waiting for llama runner to start"}'),
    "500-unknown": said(status=500, text='{"error":"something odd"}'),
    "500-repeat": said(status=500, text='{"error":"prediction aborted, token repeat limit reached"}'),
    "500-option": said(status=500, text='{"error":"option \\"num_ctx\\" must be of type integer"}'),
    "400-context": said(status=400, text=_OVERFLOW),
    "400-other": said(status=400, text='{"error":"invalid message role"}'),
    "401": said(status=401, text='{"error":"unauthorized"}'),
    "404-model": said(status=404, text='{"error":"model \'{model}\' not found"}'),
    # bodies that are not Ollama's
    "openai-body": said(text=_OPENAI),
    "lmstudio-body": said(text='{"error":"Unexpected endpoint or method. (POST /api/chat)"}'),
    "html-body": said(text="<!doctype html><title>Login</title>"),
    # clipping
    "half-window": half_window,
    "full-window": full_window,
    # whole replies that say nothing, too little or something else
    "length": part_of_reply,
    "empty": replied(""),
    "thinking-only": thinking_only,
    "prose": replied("Sure! I looked at everything carefully and it is mostly fine."),
    "unclosed-think": replied("<think>alpha is common, so"),
    "repeated-lines": replied("\n".join(["1\talpha"] * 40)),
    "unload": replied("", reason="unload"),
    "no-reason": replied(reason=None),
    # odd, yet good
    "no-counts": replied(tokens=None),
    "reload": reload,
    "text": replied(),
}
