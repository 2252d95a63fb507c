"""Analyses and whole graphs kept by content hash, so that a second scan of an unchanged tree parses nothing.

One SQLite file; a key holds everything its value depends on, so nothing is ever invalidated, only dropped when old.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

# The number goes up with the form of what is stored.
_FILE = "codegraph-2.sqlite"
_CHECK_BYTES = 8
_CHUNK = 500
_MOST_GRAPHS = 32
_MOST_BYTES = 1 << 30
_BUSY_TIMEOUT_S = 5.0


class Cache:
    """A key-value store of three tables; a context manager.

    A cache that cannot be opened, read or written (no directory, a full disk, a damaged file) is no cache: the scan is
    slower and as right as before. Values carry a checksum, for a damaged one could crash the reader.
    """

    def __init__(self, directory: Path | None) -> None:
        self._database: sqlite3.Connection | None = None
        if directory is None:
            return
        with contextlib.suppress(OSError, sqlite3.Error):
            directory.mkdir(parents=True, exist_ok=True)
            # Threads take turns: `scan` writes under a lock.
            database = sqlite3.connect(directory / _FILE, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = OFF")
            database.execute("CREATE TABLE IF NOT EXISTS analysis (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
            # Numbered, so that the oldest graphs can be told.
            database.execute("CREATE TABLE IF NOT EXISTS graph (id INTEGER PRIMARY KEY, key BLOB UNIQUE, value BLOB)")
            database.execute("CREATE TABLE IF NOT EXISTS hashes (key BLOB PRIMARY KEY, value BLOB)")
            self._database = database

    def __enter__(self) -> Cache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._database is not None:
            self._database.close()

    def graph(self, key: bytes) -> bytes | None:
        """Return the graph kept under `key`, or None."""
        return next((value for _, value in self._rows("SELECT key, value FROM graph WHERE key = ?", (key,))), None)

    def keep_graph(self, key: bytes, value: bytes) -> None:
        """Keep a graph, and of all graphs only the newest."""
        self._write("INSERT OR REPLACE INTO graph (key, value) VALUES (?, ?)", [(key, _checked(value))])
        self._write(f"DELETE FROM graph WHERE id <= (SELECT MAX(id) FROM graph) - {_MOST_GRAPHS}", [()])

    def hashes(self, key: bytes) -> bytes | None:
        """Return the files' hashes kept for the directory `key`, or None."""
        return next((value for _, value in self._rows("SELECT key, value FROM hashes WHERE key = ?", (key,))), None)

    def keep_hashes(self, key: bytes, value: bytes) -> None:
        """Keep the files' hashes of a directory in place of those kept before, and only the newest directories'."""
        self._write("INSERT OR REPLACE INTO hashes (key, value) VALUES (?, ?)", [(key, _checked(value))])
        self._write(f"DELETE FROM hashes WHERE rowid <= (SELECT MAX(rowid) FROM hashes) - {_MOST_GRAPHS}", [()])

    def analyses(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what is kept under each of `keys`."""
        found: dict[bytes, bytes] = {}
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            found.update(self._rows(f"SELECT key, value FROM analysis WHERE key IN ({marks})", tuple(chunk)))
        return found

    def keep_analyses(self, values: Mapping[bytes, bytes]) -> None:
        """Keep analyses; a store that has grown over a gigabyte starts anew."""
        if self._size_bytes() > _MOST_BYTES:
            self._write("DELETE FROM analysis", [()])
        self._write(
            "INSERT OR REPLACE INTO analysis (key, value) VALUES (?, ?)",
            [(key, _checked(value)) for key, value in values.items()],
        )

    def _size_bytes(self) -> int:
        sizes = [int(row[0]) for name in ("page_count", "page_size") for row in self._select(f"PRAGMA {name}", ())]
        return sizes[0] * sizes[1] if len(sizes) == 2 else 0

    def _rows(self, query: str, values: tuple[bytes, ...]) -> Iterator[tuple[bytes, bytes]]:
        for key, stored in self._select(query, values):
            value = bytes(stored[_CHECK_BYTES:])
            if _checked(value) == stored:
                yield bytes(key), value

    def _select(self, query: str, values: tuple[bytes, ...]) -> list[Any]:
        if self._database is None:
            return []
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.Error:
            return []

    def _write(self, statement: str, rows: Sequence[tuple[bytes, ...]]) -> None:
        if self._database is None:
            return
        with contextlib.suppress(sqlite3.Error), self._database:
            self._database.executemany(statement, rows)


def _checked(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=_CHECK_BYTES).digest() + value
