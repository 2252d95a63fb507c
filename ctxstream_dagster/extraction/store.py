"""Keeps every trusted reply by the hash of its request, so that a crash, a revert or a new decoder costs no call."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctxstream_dagster.errors import StorageError
from ctxstream_dagster.extraction.backend import Completion, ModelIdentity, Prompt

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    request_sha256 TEXT PRIMARY KEY,
    reply BLOB NOT NULL,
    prompt_tokens INTEGER,
    output_tokens INTEGER,
    created TEXT NOT NULL DEFAULT (datetime('now'))
) WITHOUT ROWID
"""
_BUSY_S = 60.0


def request_sha256(prompt: Prompt, *, identity: ModelIdentity, settings: Mapping[str, Any]) -> str:
    """Return the key of a request: SHA-256 of the canonical JSON of all that decides its reply."""
    request = {
        "model": identity.name,
        "digest": identity.digest,
        "settings": dict(settings),
        "messages": [dict(message) for message in prompt.messages],
        "format": prompt.format,
        "seed_offset": prompt.seed_offset,
    }
    text = json.dumps(request, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class ReplyStore:
    """One SQLite file of replies, safe across threads and processes. Only whole, decodable replies belong in it.

    Raises `StorageError`, naming the file, when it cannot be opened, read or written (a full disk, no permission).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()

    def get(self, request: str) -> Completion | None:
        """Return a stored reply with its token counts, or None."""
        try:
            row = (
                self._connection()
                .execute("SELECT reply, prompt_tokens, output_tokens FROM replies WHERE request_sha256 = ?", (request,))
                .fetchone()
            )
        except sqlite3.Error as error:
            raise self._failure("read", error) from error
        if row is None:
            return None
        text = row[0].decode("utf-8", "surrogatepass")
        return Completion(text=text, prompt_tokens=row[1], output_tokens=row[2])

    def put(self, request: str, completion: Completion) -> None:
        """Store a reply; one already stored for the request is replaced."""
        # As bytes, because a reply may hold half a surrogate pair, which SQLite's text cannot.
        reply = completion.text.encode("utf-8", "surrogatepass")
        try:
            with self._connection() as connection:
                connection.execute(
                    "INSERT OR REPLACE INTO replies (request_sha256, reply, prompt_tokens, output_tokens) "
                    "VALUES (?, ?, ?, ?)",
                    (request, reply, completion.prompt_tokens, completion.output_tokens),
                )
        except sqlite3.Error as error:
            raise self._failure("write", error) from error

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self._failure("create", error) from error
            connection = sqlite3.connect(self.path, timeout=_BUSY_S)
            connection.execute("PRAGMA journal_mode = WAL")
            # After a power cut the newest replies may be missing, never broken; they are then asked for again.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
            self._local.connection = connection
        return connection

    def _failure(self, doing: str, error: Exception) -> StorageError:
        return StorageError(f"Cannot {doing} the reply store {self.path}: {error}. Check space and permissions.")
