"""What Dagster costs for each segment, and how busy a backfill keeps the model.

First table: batch runs against an instant server, for several numbers of segments: CPU of this process for planning
and for extraction (planned events and materializations included), beside it that of an asset that does nothing but
say "materialized" in the same home, the size of the home, and the time of the UI's partition-status query on a real
webserver. Second: the same segments in batches of 10, 25, 50 and 100, with the CPU of starting one worker added.
Third (``--busy``): a real daemon, calls of 1 s, 4 in flight, 200 segments. Fourth (``--backfill``): all of it for
real, webserver, daemon and workers, in batches of 100, while eight people watch the partitions; then the same once
more, cancelled on the way.

Run: ``python benchmarks/orchestration.py [--sizes 100 1000] [--batches 10 25 50 100] [--busy] [--backfill 10000]``.
Saves the tables as JSON in benchmarks/results/.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dagster as dg

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.streaming import server  # noqa: E402
from ctxstream_dagster.orchestration.automation import RANGE_END, RANGE_START  # noqa: E402
from ctxstream_dagster.orchestration.home import ensure_home  # noqa: E402
from ctxstream_dagster.orchestration.partitions import contiguous_ranges, segments_of  # noqa: E402
from tests.orchestration.checkout import Checkout, status_lines  # noqa: E402
from tests.orchestration.stack import Stack, wait_until  # noqa: E402

CPU_LIMIT_MS = 30
BUSY_REACH = 0.85
WATCHERS = 8


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def prepared(place: Path, *, segments: int, batch_size: int, in_flight: int = 8) -> Checkout:
    Checkout.lay_out(place)
    checkout = Checkout(place)
    checkout.write_corpus(status_lines(segments))
    checkout.write_sweep(planning={"segment_chars": 43}, batch_size=batch_size, in_flight=in_flight)
    os.environ["DAGSTER_HOME"] = str(place / ".dagster")
    ensure_home(checkout.project)
    return checkout


def batch_runs(place: Path, *, segments: int, batch_size: int) -> tuple[Checkout, dict[str, float]]:
    """Plan and extract in batch runs as a backfill's workers do; return CPU seconds of each part."""
    checkout = prepared(place, segments=segments, batch_size=batch_size)
    # A worker loads the definitions once; `worker_start_s` counts that.
    loaded = checkout.definitions()
    with dg.DagsterInstance.from_config(str(checkout.project.dagster_home)) as instance:
        start, wall = cpu_s(), time.perf_counter()
        assert checkout.run(instance, "corpus", loaded=loaded).success
        planned = cpu_s()
        keys = checkout.partitions(instance)
        assert len(keys) == segments
        for batch in contiguous_ranges(keys, keys, longest=batch_size):
            assert checkout.run(instance, "extraction", batch=batch, loaded=loaded).success
        extracted = cpu_s()
        assert checkout.run(instance, "records", "tally", "answer", loaded=loaded).success
        tallied = cpu_s()
    costs = {"plan": planned - start, "extract": extracted - planned, "tally": tallied - extracted}
    return checkout, {**costs, "wall": time.perf_counter() - wall}


def nothing_cpu_s(checkout: Checkout, *, batch_size: int) -> float:
    """Return what Dagster itself costs: CPU seconds a segment, over the first ten batches."""

    @dg.asset(partitions_def=segments_of("census"), output_required=False)
    def nothing(context: dg.AssetExecutionContext) -> Iterator[dg.AssetMaterialization]:
        for key in context.partition_keys:
            yield dg.AssetMaterialization("nothing", partition=key)

    job = dg.Definitions(assets=[nothing]).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.from_config(str(checkout.project.dagster_home)) as instance:
        keys = checkout.partitions(instance)
        batches = list(contiguous_ranges(keys, keys, longest=batch_size))[:10]
        start = cpu_s()
        for batch in batches:
            assert job.execute_in_process(
                instance=instance,
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                tags={RANGE_START: batch[0], RANGE_END: batch[-1]},
            ).success
        return (cpu_s() - start) / sum(map(len, batches))


def status_seconds(checkout: Checkout) -> tuple[float, float]:
    """Return the first and the median later time of the partition-status query on a real webserver."""
    stack = Stack(checkout, dict(os.environ))
    try:
        stack.start(daemon=False)
        times: list[float] = []
        for _ in range(6):
            started = time.perf_counter()
            states = stack.partitions()
            times.append(time.perf_counter() - started)
        assert not states["failed"]
        assert not states["unmaterialized"]
        return times[0], sorted(times[1:])[len(times[1:]) // 2]
    finally:
        stack.stop()


def home_megabytes(checkout: Checkout) -> float:
    return sum(file.stat().st_size for file in (checkout.root / ".dagster").rglob("*") if file.is_file()) / 1e6


def worker_start_s() -> float:
    """Return the CPU seconds of one worker before it does anything: an interpreter that loads the definitions."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = (
        "from ctxstream_dagster.orchestration.home import find_project\n"
        "from ctxstream_dagster.orchestration.launch import load_project\n"
        "load_project(find_project()).get_repository_def()\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def sizes_table(sizes: list[int], *, batch_size: int) -> list[dict[str, Any]]:
    print(f"Batches of {batch_size}, instant server; CPU in milliseconds a segment")
    titles = f"{'segments':>9} {'plan':>6} {'extract':>8} {'nothing':>8} {'tally':>6} {'wall s':>7} {'home MB':>8}"
    print(f"{titles} {'status s':>9} {'later':>6}")
    rows: list[dict[str, Any]] = []
    for segments in sizes:
        with tempfile.TemporaryDirectory(prefix="bench-") as place:
            checkout, costs = batch_runs(Path(place), segments=segments, batch_size=batch_size)
            each = {name: costs[name] / segments * 1000 for name in ("plan", "extract", "tally")}
            megabytes = home_megabytes(checkout)
            first, later = status_seconds(checkout)
            each["nothing"] = nothing_cpu_s(checkout, batch_size=batch_size) * 1000
        print(
            f"{segments:>9} {each['plan']:>6.1f} {each['extract']:>8.1f} {each['nothing']:>8.1f} {each['tally']:>6.1f} "
            f"{costs['wall']:>7.1f} "
            f"{megabytes:>8.1f} {first:>9.2f} {later:>6.2f}",
            flush=True,
        )
        rows.append(
            {"segments": segments, "cpu_ms": each, "wall_s": costs["wall"], "home_mb": megabytes, "status_s": first}
            | {"status_later_s": later}
        )
    worst = max(row["cpu_ms"]["extract"] for row in rows)
    print(
        f"{'reached' if worst <= CPU_LIMIT_MS else 'NOT reached'}: at most {CPU_LIMIT_MS} ms of CPU a segment extracted"
    )
    return rows


def batches_table(batches: list[int], *, segments: int) -> list[dict[str, Any]]:
    start = worker_start_s()
    print(f"{segments} segments; starting a worker costs {start:.1f} s of CPU")
    print(f"{'batch':>6} {'runs':>5} {'extract ms':>11} {'with start ms':>14} {'home MB':>8}")
    rows: list[dict[str, Any]] = []
    for batch_size in batches:
        with tempfile.TemporaryDirectory(prefix="bench-") as place:
            checkout, costs = batch_runs(Path(place), segments=segments, batch_size=batch_size)
            megabytes = home_megabytes(checkout)
        runs = -(-segments // batch_size)
        each = costs["extract"] / segments * 1000
        whole = each + start * runs / segments * 1000
        print(f"{batch_size:>6} {runs:>5} {each:>11.1f} {whole:>14.1f} {megabytes:>8.1f}", flush=True)
        rows.append({"batch": batch_size, "cpu_ms": each, "cpu_with_start_ms": whole, "home_mb": megabytes})
    return rows


def busy_table(*, segments: int) -> dict[str, Any]:
    """Backfill `segments` calls of 1 s with 4 in flight through a real daemon; return how busy the server was."""
    with tempfile.TemporaryDirectory(prefix="bench-") as place, server(latency_s=1.0) as url:
        os.environ.update({"OLLAMA_HOST": url, "CTXSTREAM_MODEL": "scripted"})
        # The pool lets two runs work at once: two calls each.
        checkout = prepared(Path(place), segments=segments, batch_size=100, in_flight=2)
        with dg.DagsterInstance.from_config(str(checkout.project.dagster_home)) as instance:
            assert checkout.run(instance, "corpus").success
        stack = Stack(checkout, dict(os.environ))
        try:
            stack.start()
            backfill = stack.backfill()
            while _stats(url)["calls"] == 0:
                time.sleep(0.05)
            started = time.perf_counter()
            while (stats := _stats(url))["calls"] < segments or stats["in_flight"]:
                time.sleep(0.1)
            elapsed = time.perf_counter() - started
            assert len(stack.partitions()["failed"]) == 0, backfill
        finally:
            stack.stop()
    share = segments / 4 / elapsed
    reached = "reached" if share >= BUSY_REACH else "NOT reached"
    print(f"{segments} calls of 1 s, 4 in flight, took {elapsed:.1f} s: {share:.0%} busy ({reached}: {BUSY_REACH:.0%})")
    return {"segments": segments, "elapsed_s": elapsed, "busy": share, "peak": stats["peak"]}


def backfill_table(*, segments: int) -> dict[str, Any]:
    """Backfill through a real stack while people look; return what they saw, and how long a cancel takes."""
    with tempfile.TemporaryDirectory(prefix="bench-") as place, server(latency_s=0.0) as url:
        os.environ.update({"OLLAMA_HOST": url, "CTXSTREAM_MODEL": "scripted"})
        checkout = prepared(Path(place), segments=segments, batch_size=100, in_flight=8)
        with dg.DagsterInstance.from_config(str(checkout.project.dagster_home)) as instance:
            assert checkout.run(instance, "corpus").success
        stack = Stack(checkout, dict(os.environ))
        try:
            stack.start()
            started = time.perf_counter()
            backfill = stack.backfill()
            with watching(stack) as seen:
                assert stack.ended_backfill(backfill, timeout_s=7200) == "COMPLETED_SUCCESS"
            elapsed = time.perf_counter() - started
            runs = len(stack.runs(tags=[{"key": "dagster/backfill", "value": backfill}]))
            megabytes = home_megabytes(checkout)
            again = stack.backfill()
            wait_until(lambda: len(_runs(stack, again, "SUCCESS")) >= 3, timeout_s=600, what="three batches")
            started = time.perf_counter()
            stack.cancel_backfill(again)
            assert stack.ended_backfill(again, timeout_s=600) == "CANCELED"
            wait_until(lambda: not _runs(stack, again, "STARTED", "CANCELING"), timeout_s=600, what="its runs to end")
            cancel = time.perf_counter() - started
        finally:
            stack.stop()
    looks = sorted(seen)
    median, p95 = looks[len(looks) // 2], looks[int(len(looks) * 0.95)]
    print(
        f"{segments} segments in {runs} runs took {elapsed:.0f} s; home {megabytes:.0f} MB; cancelled in {cancel:.0f} s"
    )
    print(f"{WATCHERS} people looked {len(looks)} times without an error: median {median:.2f} s, 95 % {p95:.2f} s")
    return {
        "segments": segments,
        "runs": runs,
        "elapsed_s": elapsed,
        "home_mb": megabytes,
        "cancel_s": cancel,
        "looks": len(looks),
        "look_median_s": median,
        "look_p95_s": p95,
    }


@contextmanager
def watching(stack: Stack) -> Iterator[list[float]]:
    """Have people look at the partitions every second; yield the seconds of every look, complete at the end."""
    seen: list[float] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(1.0):
            started = time.perf_counter()
            stack.partitions()
            seen.append(time.perf_counter() - started)

    with ThreadPoolExecutor(WATCHERS) as pool:
        people = [pool.submit(look) for _ in range(WATCHERS)]
        try:
            yield seen
        finally:
            over.set()
        for person in people:
            person.result()


def _runs(stack: Stack, backfill: str, *statuses: str) -> list[dict[str, Any]]:
    return stack.runs(tags=[{"key": "dagster/backfill", "value": backfill}], statuses=statuses)


def _stats(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/_stats", timeout=10) as reply:
        return json.load(reply)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--batches", type=int, nargs="*", default=[10, 25, 50, 100])
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--backfill", type=int)
    options = parser.parse_args()
    os.environ.pop("CTXSTREAM_HOME", None)
    result: dict[str, Any] = {}
    with server(latency_s=0.0) as url:
        os.environ.update({"OLLAMA_HOST": url, "CTXSTREAM_MODEL": "scripted"})
        if options.sizes:
            result["sizes"] = sizes_table(options.sizes, batch_size=options.batch_size)
        if options.batches:
            result["batches"] = batches_table(options.batches, segments=200)
    if options.busy:
        result["busy"] = busy_table(segments=200)
    if options.backfill:
        result["backfill"] = backfill_table(segments=options.backfill)
    target = ROOT / "benchmarks" / "results" / "orchestration.json"
    kept = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {"benchmark": "orchestration"}
    machine = {"python": platform.python_version(), "dagster": version("dagster"), "cpus": os.cpu_count()}
    document = {**kept, **machine, "load": os.getloadavg()[0], **result}
    target.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
