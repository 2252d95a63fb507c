"""What Dagster promises, on a real webserver and daemon: backfills, only the failed, cancel, kill, two sweeps at once.

The tests share one deployment and build on each other, in this order: starting one takes longer than most of them.
"""

import contextlib
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import dagster as dg
import pytest

from ctxstream_dagster.storage import read_table
from tests.fault_server import FaultServer
from tests.orchestration.checkout import status_lines
from tests.orchestration.stack import Stack, wait_until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]

SEGMENTS = 20
# One line a segment, so that a segment is a call.
SWEEPS = {"census": 0, "left": 1000, "right": 2000, "slow": 3000, "dying": 4000}
READERS = 8
BAD = ("ticket 00002", "ticket 00007", "ticket 00015")


@pytest.fixture(scope="module")
def stack(deployment: Stack, busy_server: FaultServer) -> Stack:
    for name, start in SWEEPS.items():
        lines = status_lines(SEGMENTS, start=start)
        (deployment.checkout.root / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        deployment.checkout.write_sweep(
            name, corpus=f"{name}.txt", planning={"segment_chars": 43}, batch_size=10, in_flight=4
        )
    deployment.checkout.write_sweep("alone", corpus="left.txt", ollama={"url": "http://127.0.0.1:9"})
    busy_server.latency_s = 0.2
    with dg.DagsterInstance.from_config(str(deployment.checkout.project.dagster_home)) as instance:
        for name in (*SWEEPS, "alone"):
            if name != "census":
                assert deployment.checkout.run(instance, "corpus", name=name).success
    deployment.start()
    assert deployment.ended(deployment.materialize("corpus")) == "SUCCESS"
    return deployment


def tickets(server: FaultServer) -> list[int]:
    """Return the ticket numbers that the calls were about, in the order they arrived."""
    texts = [body["messages"][-1]["content"] for body in server.bodies]
    return [int(text.split("ticket ")[-1][:5]) for text in texts]


def calls(server: FaultServer, first: int) -> list[int]:
    """Return those of one sweep."""
    return [number for number in tickets(server) if first <= number < first + SEGMENTS]


@pytest.fixture(scope="module")
def first_backfills(stack: Stack, busy_server: FaultServer) -> dict[str, str]:
    busy_server.script(*({"match": ticket, "fault": "400-other", "times": None} for ticket in BAD))
    assert stack.ended(stack.materialize("tally", "records")) == "FAILURE"
    started = {name: stack.backfill(sweep=name) for name in ("census", "left", "right", "alone")}
    with people_looking(stack):
        return {name: f"{backfill} {stack.ended_backfill(backfill)}" for name, backfill in started.items()}


@contextlib.contextmanager
def people_looking(stack: Stack) -> Iterator[None]:
    """Have several people watch the partitions meanwhile; every page must come, whatever the runs write."""
    over = threading.Event()

    def look() -> int:
        pages = 0
        while not over.wait(0.5):
            stack.partitions()
            pages += 1
        return pages

    with ThreadPoolExecutor(READERS) as pool:
        looking = [pool.submit(look) for _ in range(READERS)]
        try:
            yield
        finally:
            over.set()
        assert all(person.result() for person in looking)


def test_without_a_server_a_run_fails_with_the_sentence_that_starts_one(
    stack: Stack, first_backfills: dict[str, str]
) -> None:
    backfill, status = first_backfills["alone"].split()
    assert status == "COMPLETED_FAILED"
    run = stack.runs(tags=[{"key": "dagster/backfill", "value": backfill}])[0]
    told = stack.failures(run["runId"])
    assert "http://127.0.0.1:9" in told
    assert "ollama serve" in told


def test_three_failing_segments_are_red_and_no_other(stack: Stack, first_backfills: dict[str, str]) -> None:
    states = stack.partitions()
    assert len(states["materialized"]) == SEGMENTS - 3
    assert len(states["failed"]) == 3
    assert first_backfills["census"].endswith("COMPLETED_FAILED")


def test_two_sweeps_share_the_server_within_the_pool_and_neither_starves(
    stack: Stack, first_backfills: dict[str, str], busy_server: FaultServer
) -> None:
    assert first_backfills["left"].endswith("COMPLETED_SUCCESS")
    assert first_backfills["right"].endswith("COMPLETED_SUCCESS")
    assert busy_server.stats.peak <= 2 * 4
    assert Counter(calls(busy_server, 1000)).most_common(1)[0][1] == 1
    assert busy_server.stats.calls >= 3 * SEGMENTS
    order = [number // 1000 for number in tickets(busy_server)]
    assert order.index(2) < len(order) - 1 - order[::-1].index(1), "the right sweep waited for the whole left one"


def test_the_tally_is_withheld_and_names_the_failed(stack: Stack, first_backfills: dict[str, str]) -> None:
    assert stack.ended(stack.materialize("tally", "records", "answer")) == "FAILURE"
    assert not stack.checkout.store().tally.exists()
    assert stack.runs(tags=[{"key": "ctxstream/sweep", "value": "census"}])


def test_a_retry_of_only_the_failed_sends_exactly_three(
    stack: Stack, first_backfills: dict[str, str], busy_server: FaultServer
) -> None:
    failed = set(stack.partitions()["failed"])
    busy_server.reset()
    retry = stack.retry_failed(first_backfills["census"].split()[0])
    assert stack.ended_backfill(retry) == "COMPLETED_SUCCESS"
    assert sorted(calls(busy_server, 0)) == [2, 7, 15]
    assert len(failed) == 3
    assert not stack.partitions()["failed"]
    run = stack.materialize("tally", "records", "answer")
    assert stack.ended(run) == "SUCCESS", stack.failures(run)
    rows = read_table(stack.checkout.store().tally).to_pylist()
    assert {row["key"]: int(row["value"]) for row in rows} == {"delta": 2, "gamma": 4, "beta": 6, "alpha": 8}
    assert all(found["status"] == "SUCCEEDED" for found in stack.checks().values())


@dataclass(frozen=True)
class Interrupted:
    """A run stopped in the middle, and the tickets whose segments were finished right after."""

    backfill: str
    run_id: str
    status: str
    kept: set[int]


@pytest.fixture(scope="module")
def interrupted(stack: Stack, first_backfills: dict[str, str], busy_server: FaultServer) -> dict[str, Interrupted]:
    """Cancel a run of one sweep and kill the worker of another's, each in the middle of a batch."""
    busy_server.reset()
    # Long enough for a quick machine to be caught in the middle; one after the other, or the second would be done.
    busy_server.latency_s = 3.0
    found: dict[str, Interrupted] = {}
    for name in ("slow", "dying"):
        backfill = stack.backfill(sweep=name)
        wait_until(lambda name=name: len(finished(stack, name)) >= 3, timeout_s=120, what=f"{name} to begin")
        begun = stack.runs(tags=[{"key": "dagster/backfill", "value": backfill}], statuses=["STARTED"])
        # The other one may still be loading.
        run = next(run for run in begun if stack.materializations(run["runId"]))
        if name == "slow":
            stack.terminate(run["runId"])
        else:
            os.kill(int(run["tags"]["ctxstream/worker"].split(":")[1]), signal.SIGKILL)
        status = stack.ended(run["runId"])
        wait_until(lambda run=run: run["runId"] not in stack.slot_holders(), timeout_s=15, what="its slot to be free")
        found[name] = Interrupted(backfill, run["runId"], status, finished(stack, name))
    return found


def finished(stack: Stack, sweep: str) -> set[int]:
    """Return the tickets of a sweep's materialized segments: one line a segment, in plan order."""
    with dg.DagsterInstance.from_config(str(stack.checkout.project.dagster_home)) as instance:
        order = stack.checkout.partitions(instance, sweep)
    return {SWEEPS[sweep] + order.index(key) for key in stack.partitions(sweep)["materialized"]}


def test_a_cancelled_run_keeps_what_is_finished_and_a_retry_sends_only_the_rest(
    stack: Stack, interrupted: dict[str, Interrupted], busy_server: FaultServer
) -> None:
    slow = interrupted["slow"]
    assert slow.status == "CANCELED"
    written = stack.materializations(slow.run_id)
    stack.ended_backfill(slow.backfill)
    assert stack.materializations(slow.run_id) == written
    rest = set(range(SWEEPS["slow"], SWEEPS["slow"] + SEGMENTS)) - finished(stack, "slow")
    assert rest
    busy_server.reset()
    busy_server.latency_s = 0.0
    assert stack.ended_backfill(stack.retry_failed(slow.backfill)) == "COMPLETED_SUCCESS"
    # A call that was in flight when the run ended left no reply; one that had just ended may have left one.
    assert set(calls(busy_server, SWEEPS["slow"])) <= rest
    assert finished(stack, "slow") == set(range(SWEEPS["slow"], SWEEPS["slow"] + SEGMENTS))


def test_a_killed_worker_frees_its_slots_and_its_run_goes_on_with_the_rest(
    stack: Stack, interrupted: dict[str, Interrupted], busy_server: FaultServer
) -> None:
    dying = interrupted["dying"]
    assert dying.status == "FAILURE"
    assert stack.ended_backfill(dying.backfill) == "COMPLETED_SUCCESS"
    assert len(finished(stack, "dying")) == SEGMENTS
    again = [ticket for ticket, count in Counter(calls(busy_server, SWEEPS["dying"])).items() if count > 1]
    assert not set(again) & dying.kept
    wait_until(lambda: not stack.slot_holders(), timeout_s=15, what="every slot to be free")
    run = stack.materialize("tally", "records", "answer", sweep="dying")
    assert stack.ended(run) == "SUCCESS", stack.failures(run)
