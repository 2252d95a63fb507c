"""A parser in a process of its own: when a grammar crashes or hangs, one file loses its symbols and the scan goes on.

The worker is a fresh interpreter on two pipes, so nothing is forked (Dagster runs threads) and no caller needs a
``__main__`` guard. A request is ``(language, budget, references, source)`` in marshal behind its length; a reply is an
analysis.
"""

from __future__ import annotations

import marshal
import os
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

from ctxstream_dagster.planning.codegraph.analysis import Analysis, analyse, from_bytes, to_bytes

_LENGTH = struct.Struct("<Q")
_DEADLINE_FACTOR = 10
_DEADLINE_S = 30.0
_WATCH_EVERY_S = 0.5
_PACKAGE_HOME = str(Path(__file__).resolve().parents[3])
_START = f"from {__name__} import serve; serve()"


class Worker:
    """One worker process, started when it is first needed and again after it died. Used by one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._deadline = float("inf")
        self._hung = False

    def analyse(self, source: bytes, *, language: str, budget_s: float, references: bool = True) -> Analysis:
        """Return the analysis; reason ``parser-crash`` when the process died on it, ``parse-timeout`` when it hung."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        deadline_s = budget_s * _DEADLINE_FACTOR + _DEADLINE_S
        self._hung = False
        self._deadline = time.monotonic() + deadline_s
        try:
            _send(process.stdin, marshal.dumps((language, budget_s, references, source), 2))
            reply = _receive(process.stdout)
        except OSError:
            reply = None
        finally:
            self._deadline = float("inf")
        if reply is not None:
            return from_bytes(reply)
        self.close()
        if self._hung:
            return Analysis(reason="parse-timeout", detail=f"the parser did not answer within {deadline_s:g} s")
        return Analysis(
            reason="parser-crash", detail=f"the parser of {language} ended its process ({process.returncode})"
        )

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was not sent is lost with the process, which is being given up
                    continue
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        # The child finds this package wherever the parent found it, and nothing in the working directory: that may be
        # the very repository that is scanned, with a struct.py of its own.
        paths = [path for path in sys.path if path]
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path[:] = sys.argv[1:]\n{_START}", *paths, _PACKAGE_HOME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()
        return self._process

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        # A timer for every file would cost more than parsing a small one.
        while process.poll() is None:
            if time.monotonic() > self._deadline:
                self._hung = True
                process.kill()
                return
            time.sleep(_WATCH_EVERY_S)


def serve() -> None:
    """Answer requests on standard input until it ends; run in the worker process."""
    # A stray print must not break the protocol.
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (request := _receive(requests)) is not None:
        language, budget_s, references, source = marshal.loads(request)
        _send(replies, to_bytes(analyse(source, language=language, budget_s=budget_s, references=references)))


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = pipe.read(length)
    return data if len(data) == length else None
