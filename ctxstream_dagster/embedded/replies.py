"""What `/api/chat` answers with: its last line's numbers, and lines that go out one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler
from typing import Any

from ctxstream_dagster.embedded.engine import Finish


class ReplyLines:
    """A streamed reply: one JSON object a line, each line a chunk, the headers only when there is something to say."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self._handler = handler
        self.begun = False

    def write(self, entry: Mapping[str, Any]) -> bool:
        """Send a line; False when the client is gone."""
        data = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        try:
            if not self.begun:
                self.begun = True
                self._handler.send_response(200)
                self._handler.send_header("Content-Type", "application/x-ndjson")
                self._handler.send_header("Transfer-Encoding", "chunked")
                self._handler.end_headers()
            self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        except OSError:
            self._handler.close_connection = True
            return False
        return True

    def end(self) -> None:
        """Say that no more lines come."""
        try:
            self._handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            self._handler.close_connection = True


def counters(finish: Finish, *, total_s: float, load_s: float) -> dict[str, int]:
    """Return the last line's token counts and durations in nanoseconds.

    Zeros are left out, as Ollama does; clients must take that for unknown.
    """
    counted = {
        "total_duration": nanoseconds(total_s),
        "load_duration": nanoseconds(load_s),
        "prompt_eval_count": finish.prompt_tokens,
        "prompt_eval_cached_count": finish.cached_tokens,
        "prompt_eval_duration": nanoseconds(finish.prompt_s),
        "eval_count": finish.output_tokens,
        "eval_duration": nanoseconds(finish.output_s),
    }
    return {name: value for name, value in counted.items() if value}


def nanoseconds(seconds: float) -> int:
    """Return whole nanoseconds."""
    return int(seconds * 1e9)


def timestamp(epoch_s: float) -> str:
    """Return a moment as Ollama writes it; infinite is far in the future."""
    if epoch_s == float("inf"):
        return "2318-01-01T00:00:00Z"
    return datetime.fromtimestamp(epoch_s, tz=timezone.utc).isoformat().replace("+00:00", "Z")
