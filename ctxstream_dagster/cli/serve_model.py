"""``ctxstream serve-model``: a small model on the processor behind Ollama's native routes."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated
from urllib.parse import urlsplit

import typer

from ctxstream_dagster.embedded.catalog import CATALOG, known_weights
from ctxstream_dagster.embedded.llama import LlamaEngine
from ctxstream_dagster.embedded.server import EmbeddedServer
from ctxstream_dagster.embedded.weights import DEFAULT_MODEL, obtain
from ctxstream_dagster.errors import UsageError
from ctxstream_dagster.extraction.host import base_url


def serve_model(
    *,
    model: Annotated[str, typer.Option(help=f"One of: {', '.join(CATALOG)}.")] = DEFAULT_MODEL,
    host: Annotated[str, typer.Option(help="Address to listen on; left out, that of OLLAMA_HOST.")] = "",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port, 0 for any free one; left out, that of OLLAMA_HOST.")
    ] = None,
    threads: Annotated[int, typer.Option(min=0, help="Processor threads; 0 for half the cores, at most 8.")] = 0,
    parallel: Annotated[int, typer.Option(min=1, max=64, help="Calls answered at the same time; others wait.")] = 1,
) -> None:
    """Serve a small model as Ollama would, until Ctrl-C. For machines without Ollama; weights are downloaded once.

    ctxstream serve-model --port 11435
    """
    weights = known_weights(model)
    here = urlsplit(base_url(os.environ.get("OLLAMA_HOST", "")))
    host, port = host or here.hostname or "127.0.0.1", here.port or 11434 if port is None else port
    # Before hundreds of megabytes are fetched for nothing.
    with _reporting(host, port):
        EmbeddedServer.probe(host=host, port=port)
    path = obtain(weights, say=_say)
    engine = LlamaEngine(weights, path, threads=threads or _half_the_cores(), parallel=parallel)
    with _reporting(host, port):
        server = EmbeddedServer(engine, host=host, port=port)
    _say(f"{weights.name} answers at {server.url} ({weights.licence}). Ctrl-C stops it.")
    with _stopped_by_signals():
        server.serve_forever()
    try:
        server.server_close()
    except TimeoutError:
        # The runtime reads a prompt in one go and cannot be told to stop; an ordinary exit would abort in its threads.
        _say("Stopped while a prompt was being read.")
        os._exit(0)
    _say("Stopped.")


def _half_the_cores() -> int:
    # Threads wait for each other in a busy loop: with all cores taken by others, two were ten times slower than one.
    return max(1, min((os.cpu_count() or 2) // 2, 8))


@contextmanager
def _reporting(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"Port {port} of {host} is taken, perhaps by Ollama itself. Choose another (--port), and point "
                "OLLAMA_HOST at it."
            ) from error
        raise UsageError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}. Choose another --host or --port."
        ) from error


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    def stop(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)  # noqa: T201 -- standard output stays free for pipes
