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
    write_nightly(deployment, status_lines(10, start=5000))
    checkout.write_sweep(
        "nightly",
        corpus="nightly.txt",
        planning={"segment_chars": 43},
        schedule={"cron": "* * * * *", "retry_cron": "* * * * *", "check_every_s": 5},
    )
    with dg.DagsterInstance.from_config(str(checkout.project.dagster_home)) as instance:
        assert checkout.run(instance, "corpus").success
    busy_server.latency_s = 1.0
    deployment.start()
    return deployment


def write_nightly(stack: Stack, lines: list[str]) -> None:
    (stack.checkout.root / "nightly.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


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
    wait_until(lambda: stack.slots()["active"] == 0, timeout_s=30, what="every slot to be free")
    run = stack.materialize("records", "tally", "answer")
    assert stack.ended(run) == "SUCCESS", stack.failures(run)
    assert total(stack, "census") == {"delta": 2, "gamma": 4, "beta": 6, "alpha": 8}
    assert {check["status"] for check in stack.checks().values()} == {"SUCCEEDED"}


def test_a_sweep_that_is_switched_on_needs_nobody(stack: Stack, busy_server: FaultServer) -> None:
    busy_server.reset()
    stack.switch_on("nightly_automation", kind="sensor")
    stack.switch_on("nightly_plan_schedule", kind="schedule")
    wait_until(lambda: total(stack, "nightly"), timeout_s=240, what="the first night")
    assert total(stack, "nightly") == {"delta": 1, "gamma": 2, "beta": 3, "alpha": 4}
    assert busy_server.stats.calls == 10

    write_nightly(stack, [*status_lines(9, start=5000), "ticket 05009 | Status: delta | owner: bo!"])
    wait_until(lambda: total(stack, "nightly").get("delta") == 2, timeout_s=240, what="the second night")
    assert busy_server.stats.calls == 11
    assert len(stack.partitions("nightly")["materialized"]) == 10


def test_every_segment_is_stale_once_the_model_s_options_changed(stack: Stack) -> None:
    segment = stack.partitions()["materialized"][0]
    assert stack.staleness(segment) == ("FRESH", "")
    stack.checkout.write_sweep(planning={"segment_chars": 43}, ollama={"num_ctx": 8192, "num_predict": 64})
    stack.reload()
    for partition in stack.partitions()["materialized"][:3]:
        status, reason = stack.staleness(partition)
        assert status == "STALE"
        assert "code version" in reason


def test_a_wrong_sweep_is_named_where_the_location_fails(stack: Stack) -> None:
    stack.checkout.write_sweep(corpuss="x")
    stack.reload()
    told = stack.location_error()
    assert "census/defs.yaml:" in told
    assert "did you mean 'corpus'" in told
