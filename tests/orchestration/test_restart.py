"""A whole stack that dies and comes back, and a sweep that runs by itself under the real daemon.

The tests share one deployment and build on each other, in this order.
"""

import json
import time

import dagster as dg
import pytest

from ctxstream_dagster.storage import read_bytes
from tests.fault_server import FaultServer
from tests.orchestration.checkout import status_lines
from tests.orchestration.stack import Stack, wait_until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]

SEGMENTS = 20


@pytest.fixture(scope="module")
def stack(deployment: Stack, busy_server: FaultServer) -> Stack:
    checkout = deployment.checkout
    checkout.write_corpus(status_lines(SEGMENTS))
    checkout.write_sweep(planning={"segment_chars": 43}, batch_size=10, in_flight=2)
    for number, line in enumerate(status_lines(10, start=5000)):
        write_night(deployment, number, line)
    checkout.write_sweep(
        "nightly",
        corpus="nights/*.txt",
        planning={"segment_chars": 43},
        schedule={"cron": "* * * * *", "retry_cron": "* * * * *", "check_every_s": 5},
    )
    (checkout.root / "outage.txt").write_text("\n".join(status_lines(SEGMENTS, start=7000)) + "\n", encoding="utf-8")
    checkout.write_sweep(
        "outage", corpus="outage.txt", planning={"segment_chars": 43}, batch_size=SEGMENTS, in_flight=2
    )
    with dg.DagsterInstance.from_config(str(checkout.project.dagster_home)) as instance:
        for name in ("census", "outage"):
            assert checkout.run(instance, "corpus", name=name).success
    busy_server.latency_s = 1.0
    deployment.start()
    return deployment


def write_night(stack: Stack, number: int, line: str) -> None:
    """Write one file of one line: a segment of the nightly sweep."""
    file = stack.checkout.root / "nights" / f"{number:02}.txt"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{line}\n", encoding="utf-8")


def total(stack: Stack, sweep: str) -> dict[str, int]:
    file = stack.checkout.store(sweep).answer
    return {row["key"]: row["value"] for row in json.loads(read_bytes(file))["tally"]} if file.exists() else {}


def test_a_stack_that_was_killed_resumes_with_the_rest(stack: Stack, busy_server: FaultServer) -> None:
    backfill = stack.backfill()
    wait_until(lambda: len(stack.partitions()["materialized"]) >= 3, timeout_s=120, what="the backfill to begin")
    done = set(stack.partitions()["materialized"])
    stack.kill()
    busy_server.wait_idle(timeout_s=10)
    calls = busy_server.stats.calls
    time.sleep(2)
    assert busy_server.stats.calls == calls, "something still calls the model"
    assert calls < SEGMENTS

    busy_server.latency_s = 0.0
    stack.start()
    assert stack.ended_backfill(backfill, timeout_s=240) == "COMPLETED_SUCCESS"
    assert len(stack.partitions()["materialized"]) == SEGMENTS
    # At most what was in flight when it died, two runs of two, was asked twice.
    assert busy_server.stats.calls <= SEGMENTS + 4
    assert len(done) >= 3
    wait_until(lambda: not stack.slot_holders(), timeout_s=15, what="every slot to be free")
    run = stack.materialize("records", "tally", "answer")
    assert stack.ended(run) == "SUCCESS", stack.failures(run)
    assert total(stack, "census") == {"delta": 2, "gamma": 4, "beta": 6, "alpha": 8}
    assert {check["status"] for check in stack.checks().values()} == {"SUCCEEDED"}


def test_a_server_that_is_away_for_a_while_costs_no_segment(stack: Stack, busy_server: FaultServer) -> None:
    busy_server.latency_s = 1.0
    backfill = stack.backfill(sweep="outage")
    wait_until(lambda: len(stack.partitions("outage")["materialized"]) >= 3, timeout_s=120, what="it to begin")
    run = stack.runs(tags=[{"key": "dagster/backfill", "value": backfill}])[0]["runId"]
    busy_server.stop()
    wait_until(lambda: "try 3 failed, the next is in" in stack.logged(run), timeout_s=60, what="the log to say so")
    busy_server.latency_s = 0.0
    busy_server.start()
    assert stack.ended_backfill(backfill) == "COMPLETED_SUCCESS"
    assert len(stack.materializations(run)) == SEGMENTS


def test_a_sweep_that_is_switched_on_needs_nobody(stack: Stack, busy_server: FaultServer) -> None:
    busy_server.reset()
    stack.switch_on("nightly_automation", kind="sensor")
    stack.switch_on("nightly_plan_schedule", kind="schedule")
    first = {"delta": 1, "gamma": 2, "beta": 3, "alpha": 4}
    wait_until(lambda: total(stack, "nightly") == first, timeout_s=240, what="the first night")
    assert busy_server.stats.calls == 10
    before = set(stack.partitions("nightly")["materialized"])

    # Three files edited, one deleted, two added.
    lines = status_lines(12, start=5000)
    for number in (1, 4, 8):
        write_night(stack, number, lines[number].replace("ana", "bo!"))
    (stack.checkout.root / "nights" / "06.txt").unlink()
    for number in (10, 11):
        write_night(stack, number, lines[number])
    second = {"delta": 0, "gamma": 2, "beta": 4, "alpha": 5}
    # From here on somebody else plans: the schedule has shown what it does, and its minutes are long.
    assert stack.ended(stack.materialize("corpus", sweep="nightly")) == "SUCCESS"
    wait_until(lambda: total(stack, "nightly") == second, timeout_s=120, what="the second night")
    assert busy_server.stats.calls == 10 + 5
    after = set(stack.partitions("nightly")["materialized"])
    assert (len(before - after), len(after - before)) == (4, 5)

    busy_server.reset()
    for number, line in enumerate(lines[:10]):
        write_night(stack, number, line)
    for number in (10, 11):
        (stack.checkout.root / "nights" / f"{number}.txt").unlink()
    assert stack.ended(stack.materialize("corpus", sweep="nightly")) == "SUCCESS"
    wait_until(lambda: total(stack, "nightly") == first, timeout_s=120, what="the night of the revert")
    assert busy_server.stats.calls == 0
    assert set(stack.partitions("nightly")["materialized"]) == before


def test_every_segment_is_stale_once_the_model_s_options_changed_and_is_asked_again(
    stack: Stack, busy_server: FaultServer
) -> None:
    segments = stack.partitions()["materialized"]
    assert stack.staleness(segments[0]) == ("FRESH", "")
    stack.checkout.write_sweep(planning={"segment_chars": 43}, ollama={"num_ctx": 8192, "num_predict": 64})
    stack.reload()
    for segment in segments[:3]:
        status, reason = stack.staleness(segment)
        assert status == "STALE"
        assert "code version" in reason
    run = stack.materialize("records", "tally")
    assert stack.ended(run) == "FAILURE"
    assert "The tally is withheld: 0 of 20 segments are read" in stack.failures(run)

    busy_server.reset()
    assert stack.ended_backfill(stack.backfill()) == "COMPLETED_SUCCESS"
    assert busy_server.stats.calls == SEGMENTS
    assert {stack.staleness(segment) for segment in segments[:3]} == {("FRESH", "")}


def test_after_another_cut_no_tally_mixes_two_plans(stack: Stack) -> None:
    before, answer = stack.partitions(), total(stack, "census")
    files = set(stack.checkout.store().root.rglob("*.parquet"))
    stack.checkout.write_sweep(planning={"segment_chars": 215}, ollama={"num_ctx": 8192, "num_predict": 64})
    stack.reload()
    assert stack.ended(stack.materialize("corpus")) == "SUCCESS"
    states = stack.partitions()
    assert not set(states["unmaterialized"]) & set(before["materialized"])
    assert (len(states["unmaterialized"]), states["materialized"]) == (SEGMENTS / 5, [])
    assert stack.ended(stack.materialize("records", "tally", "answer")) == "FAILURE"
    assert total(stack, "census") == answer
    assert files <= set(stack.checkout.store().root.rglob("*.parquet")), "until `ctxstream gc`"


def test_a_wrong_sweep_is_named_where_the_location_fails(stack: Stack) -> None:
    stack.checkout.write_sweep(corpuss="x")
    stack.reload()
    told = stack.location_error()
    assert "census/defs.yaml:" in told
    assert "did you mean 'corpus'" in told
