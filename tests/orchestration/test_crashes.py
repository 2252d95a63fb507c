"""Processes that die: orphaned runs are found and ended, nothing is lost or counted twice, however often it happens."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterRunStatus

from ctxstream_dagster.orchestration.orphans import WORKER_TAG, end_orphans, is_gone, worker_id
from ctxstream_dagster.storage import read_bytes
from tests.fault_server import FaultServer
from tests.orchestration.checkout import REPOSITORY, Checkout, status_lines

_MAIN = "from ctxstream_dagster.cli import main; main()"
SOAK_KILLS = int(os.environ.get("CTXSTREAM_SOAK_KILLS", "4"))


def begin_sweep(checkout: Checkout, server: FaultServer) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _MAIN, "sweep", "census", "--json"],
        cwd=checkout.root,
        env={**os.environ, "OLLAMA_HOST": server.url, "CTXSTREAM_MODEL": "scripted", "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def sleeping() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def test_a_process_is_gone_when_it_ended_was_reaped_or_its_number_is_another_s() -> None:
    assert not is_gone(worker_id(os.getpid()))
    process = sleeping()
    worker = worker_id(process.pid)
    assert not is_gone(worker)
    process.kill()
    # Ended, but not yet reaped by us: a zombie works on nothing.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(worker)
    process.wait()
    assert is_gone(worker)
    host, pid, _ = worker_id(os.getpid()).rsplit(":", 2)
    assert is_gone(f"{host}:{pid}:12345"), "another process with the same number"
    assert not is_gone(f"elsewhere:{pid}:1"), "another machine's process cannot be asked"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (DagsterRunStatus.NOT_STARTED, DagsterRunStatus.FAILURE),
        (DagsterRunStatus.STARTED, DagsterRunStatus.FAILURE),
        (DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED),
    ],
)
def test_an_orphaned_run_is_ended_and_its_slot_freed(
    instance: dg.DagsterInstance, status: DagsterRunStatus, expected: DagsterRunStatus
) -> None:
    @dg.job
    def empty() -> None:
        pass

    process = sleeping()
    dead, live = worker_id(process.pid), worker_id(os.getpid())
    process.kill()
    process.wait()
    storage = instance.event_log_storage
    storage.set_concurrency_slots("ollama", 1)
    orphan = instance.create_run_for_job(empty, status=status, tags={WORKER_TAG: dead})
    working = instance.create_run_for_job(empty, status=DagsterRunStatus.STARTED, tags={WORKER_TAG: live})
    unknown = instance.create_run_for_job(empty, status=DagsterRunStatus.STARTED)
    assert storage.claim_concurrency_slot("ollama", orphan.run_id, "step").is_claimed
    assert end_orphans(instance) == [orphan.run_id]
    found = {run.run_id: run.status for run in instance.get_runs()}
    assert found[orphan.run_id] is expected
    assert found[working.run_id] is found[unknown.run_id] is DagsterRunStatus.STARTED
    assert storage.claim_concurrency_slot("ollama", working.run_id, "step").is_claimed


@pytest.mark.soak
@pytest.mark.timeout(280 + 15 * SOAK_KILLS)
def test_a_sweep_killed_at_random_moments_ends_with_the_truth_and_redoes_no_finished_segment(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(120))
    checkout.write_sweep(planning={"segment_chars": 215}, batch_size=6)
    server.latency_s = 0.2
    moments = random.Random(20261201)
    kills = 0
    while kills < SOAK_KILLS:
        process = begin_sweep(checkout, server)
        # From the moment that it calls the model: before, there is nothing to lose.
        before = server.stats.calls
        deadline = time.monotonic() + 60
        while server.stats.calls == before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() == 0:
            # A quick machine was done before it could be killed; every later sweep would have nothing to lose.
            break
        assert process.poll() is None, process.communicate()[1].decode()[-2000:]
        kills += 1
        time.sleep(moments.uniform(0.0, 2.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert all(written.suffix != ".parquet" or readable(written) for written in checkout.store().root.rglob("*"))
    assert kills
    server.latency_s = 0.0
    last = begin_sweep(checkout, server)
    out, err = last.communicate(timeout=120)
    assert last.returncode == 0, err.decode()[-2000:]
    stated = json.loads(out)
    assert stated["withheld"] == ""
    assert {row["key"]: row["value"] for row in stated["tally"]} == {"delta": 12, "gamma": 24, "beta": 36, "alpha": 48}
    # A kill loses at most the calls in flight and the replies of its last instant; everything else was asked once.
    assert server.stats.calls <= 120 + SOAK_KILLS * 2 * 4
    assert {run.status for run in instance.get_runs()} <= {DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE}
    assert json.loads(read_bytes(checkout.store().answer))["total"] == 120


def readable(path: Path) -> bool:
    data = read_bytes(path)
    return path.name.startswith(".") or data[-4:] == b"PAR1"
