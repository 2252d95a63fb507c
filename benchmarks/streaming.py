"""How close `stream` comes to the ideal, calls x latency / N, on a server whose every reply takes the same time.

Beside it, in the same run, a loop over bare sockets that sends ready-made bytes and reads nothing into the reply: what
this machine can reach at all, under whatever else it is doing.

Run: ``python benchmarks/streaming.py [--latency 0.25] [--rounds 80] [--repeat 1]``. The server is a process of its own.
Saves the table as JSON in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.stream import PipelineOptions, stream
from ctxstream_dagster.planning.manifest import plan
from ctxstream_dagster.planning.options import ManifestOptions

ROOT = Path(__file__).resolve().parent.parent
LABELS = ("alpha", "beta", "gamma", "delta")
REACH = 0.97


@contextlib.contextmanager
def server(*, latency_s: float) -> Iterator[str]:
    """Start the scripted server and yield its address."""
    command = [sys.executable, str(ROOT / "tests" / "fault_server.py"), "--latency", str(latency_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def seconds(url: str, *, concurrency: int, calls: int) -> float:
    """Return the wall-clock time of one sweep of `calls` calls; checks that every one of them was counted."""
    lines = [f"ticket {number} | Status: {LABELS[number % len(LABELS)]} | owner: ana\n" for number in range(calls)]
    text = "".join(lines)
    segments = plan(text, ManifestOptions(segment_chars=2_000, overlap_chars=0, boundary_slack=200))
    question = Question(extract="Which status does the ticket have?", mode="labels", labels=LABELS)
    backend = OllamaBackend(OllamaOptions(url=url, model="scripted"))
    backend.preflight()
    started = time.perf_counter()
    results = list(stream(text, segments, question, backend=backend, options=PipelineOptions(concurrency=concurrency)))
    elapsed = time.perf_counter() - started
    counted = sum(len(result.records) for result in results)
    if counted != calls or any(result.calls != result.units for result in results):
        raise SystemExit(f"{counted} of {calls} records were counted")
    return elapsed


def bare_seconds(url: str, *, concurrency: int, calls: int) -> float:
    """Return the wall-clock time of `calls` identical requests over `concurrency` bare connections."""
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps({"model": "scripted", "messages": [{"role": "user", "content": "Status: alpha"}]}).encode()
    request = b"POST /api/chat HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body

    async def lane(count: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for _ in range(count):
            writer.write(request)
            await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.close()

    async def lanes() -> None:
        await asyncio.gather(*(lane(calls // concurrency) for _ in range(concurrency)))

    started = time.perf_counter()
    asyncio.run(lanes())
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=80, help="calls per place in flight")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 2, 8, 32])
    options = parser.parse_args()
    rows: list[dict[str, float]] = []
    print(f"{'N':>3} {'calls':>6} {'ideal s':>8} {'bare s':>8} {'stream s':>9} {'of ideal':>9} {'of bare':>8}")
    with server(latency_s=options.latency) as url:
        for concurrency in options.concurrency:
            calls = concurrency * options.rounds
            sizes = {"concurrency": concurrency, "calls": calls}
            pairs = [(bare_seconds(url, **sizes), seconds(url, **sizes)) for _ in range(options.repeat)]
            ideal = calls * options.latency / concurrency
            bare, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
            share = ideal / ours
            line = f"{concurrency:>3} {calls:>6} {ideal:>8.2f} {bare:>8.2f} {ours:>9.2f}"
            print(f"{line} {share:>8.1%} {bare / ours:>8.1%}", flush=True)
            row = {"n": concurrency, "calls": calls, "ideal_s": ideal, "bare_s": bare, "median_s": ours, "share": share}
            rows.append(row)
    worst = min(row["share"] for row in rows)
    print(f"{'reached' if worst >= REACH else 'NOT reached'}: {REACH:.0%} of ideal for every N (worst {worst:.1%})")
    result = {
        "benchmark": "streaming",
        "latency_s": options.latency,
        "repeat": options.repeat,
        "rows": rows,
        "python": platform.python_version(),
        "httpx": version("httpx"),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
    }
    target = ROOT / "benchmarks" / "results" / "streaming.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
