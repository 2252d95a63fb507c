"""A sweep that runs by itself: exactly the new and changed segments, failures with a cap, a tally when complete.

The conditions are evaluated as the daemon evaluates them; what they request is run in this process.
"""

from dataclasses import dataclass, field

import dagster as dg
import pytest
from dagster._core.definitions.asset_daemon_cursor import AssetDaemonCursor

from ctxstream_dagster.orchestration.automation import RANGE_END, RANGE_START, count_tries, failed_segments
from ctxstream_dagster.orchestration.partitions import contiguous_ranges
from tests.fault_server import FaultServer
from tests.orchestration.checkout import Checkout, status_lines


@dataclass
class Nights:
    """The daemon's part, tick by tick."""

    checkout: Checkout
    instance: dg.DagsterInstance
    cursor: AssetDaemonCursor | None = None
    asked: list[str] = field(default_factory=list)
    tallies: int = 0

    def plan(self) -> None:
        assert self.checkout.run(self.instance, "corpus").success

    def tick(self) -> tuple[list[str], bool]:
        """Evaluate once and run what is requested; return the segments sent and whether a tally was made."""
        result = dg.evaluate_automation_conditions(
            defs=self.checkout.definitions(), instance=self.instance, cursor=self.cursor
        )
        self.cursor = result.cursor
        wanted = result.get_requested_partitions(dg.AssetKey(["census", "extraction"]))
        have = self.checkout.partitions(self.instance)
        for batch in contiguous_ranges(have, [key for key in wanted if key], longest=25):
            self.checkout.run(self.instance, "extraction", batch=batch)
        tally = bool(result.get_num_requested(dg.AssetKey(["census", "tally"])))
        assert bool(result.get_num_requested(dg.AssetKey(["census", "records"]))) == tally
        if tally:
            assert result.get_num_requested(dg.AssetKey(["census", "answer"]))
            assert self.checkout.run(self.instance, "records", "tally", "answer").success
        return sorted(key for key in wanted if key), tally

    def settle(self) -> tuple[list[str], int]:
        """Tick until nothing is requested; return every segment sent and the number of tallies."""
        sent: list[str] = []
        tallies = 0
        for _ in range(6):
            keys, tally = self.tick()
            sent += keys
            tallies += tally
            if not keys and not tally:
                return sent, tallies
        raise AssertionError(f"the automation does not come to rest: {sent}, {tallies} tallies")


@pytest.fixture
def nights(checkout: Checkout, instance: dg.DagsterInstance) -> Nights:
    checkout.write_corpus(status_lines(60))
    checkout.write_sweep(planning={"segment_chars": 215}, schedule={"cron": "0 3 * * *", "max_tries": 2})
    night = Nights(checkout, instance)
    night.plan()
    return night


def test_another_answer_is_tallied_from_what_is_extracted(nights: Nights, server: FaultServer) -> None:
    nights.settle()
    server.reset()
    nights.checkout.write_sweep(planning={"segment_chars": 215}, schedule={"cron": "0 3 * * *"}, answer="most")
    assert nights.settle() == ([], 1)
    assert server.stats.calls == 0


def test_every_night_costs_what_changed(nights: Nights, server: FaultServer) -> None:
    lines = status_lines(60)
    everything = nights.checkout.partitions(nights.instance)
    sent, tallies = nights.settle()
    assert (sorted(sent), tallies, server.stats.calls) == (sorted(everything), 1, 60)

    server.reset()
    nights.plan()
    assert nights.settle() == ([], 0), "nothing changed"

    edited = [line.replace("owner: ana", "owner: bo!") if number == 33 else line for number, line in enumerate(lines)]
    nights.checkout.write_corpus(edited)
    nights.plan()
    new = set(nights.checkout.partitions(nights.instance)) - set(everything)
    sent, tallies = nights.settle()
    assert (set(sent), tallies, server.stats.calls) == (new, 1, 1)

    server.reset()
    nights.checkout.write_corpus(lines)
    nights.plan()
    assert nights.settle() == ([], 1), "a revert is a hit, and the tally follows it"
    assert server.stats.calls == 0

    # Whole segments go: nothing is extracted, and the tally must still follow.
    nights.checkout.write_corpus(lines[:30])
    nights.plan()
    sent, tallies = nights.settle()
    assert tallies == 1
    assert len(sent) <= 1, "only the segment at the cut is new"
    assert server.stats.calls == 0, "and its lines were answered before"
    assert nights.settle() == ([], 0)


def test_failed_segments_wait_for_the_retry_schedule_and_give_up_after_its_cap(
    nights: Nights, server: FaultServer
) -> None:
    server.script({"match": "ticket 00042", "fault": "400-other", "times": None})
    _, tallies = nights.settle()
    assert tallies == 0, "the tally is withheld"
    spec = nights.checkout.spec()
    (failed,) = failed_segments(nights.instance, spec, nights.checkout.partitions(nights.instance))
    (request,) = nights.checkout.retry(nights.instance)
    assert (request.tags[RANGE_START], request.tags[RANGE_END]) == (failed, failed)
    assert nights.settle() == ([], 0), "automation itself does not retry"
    nights.checkout.run(nights.instance, "extraction", batch=[failed])
    assert count_tries(nights.instance, spec, [failed]) == {failed: 2}
    (skipped,) = nights.checkout.retry(nights.instance)
    assert "1 segments failed 2 times" in skipped.skip_message
    assert failed in skipped.skip_message

    # Somebody corrects the cause and runs it by hand; the tally follows by itself.
    server.reset()
    assert nights.checkout.run(nights.instance, "extraction", batch=[failed]).success
    assert nights.settle() == ([], 1)
    (skipped,) = nights.checkout.retry(nights.instance)
    assert skipped.skip_message == "no segment failed"
