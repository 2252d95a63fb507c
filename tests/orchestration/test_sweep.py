"""A sweep in this process: the answer, the truth per segment, and what a second sweep costs."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.partition_status_cache import AssetPartitionStatus

from ctxstream_dagster.errors import ConfigError, CtxstreamError
from ctxstream_dagster.orchestration.launch import run_sweep, sweep_names
from ctxstream_dagster.orchestration.results import tally_facts, with_facts
from ctxstream_dagster.reduction.records import result_to_table, table_to_result
from ctxstream_dagster.storage import read_bytes, read_table, write_bytes, write_table
from tests.fault_server import FaultServer
from tests.orchestration.checkout import Checkout, Told, status_lines

GOOD, BAD = AssetPartitionStatus.MATERIALIZED, AssetPartitionStatus.FAILED


def answer(checkout: Checkout) -> dict[str, object]:
    return json.loads(read_bytes(checkout.store().answer))


def test_a_sweep_answers_and_every_segment_stands_in_the_instance(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(30))
    checkout.write_sweep()
    outcome, told = checkout.sweep(instance)
    assert (outcome.withheld, outcome.segments, outcome.sent) == ("", 6, 6)
    assert set(checkout.states(instance).values()) == {GOOD}
    assert answer(checkout)["answer"] == "Answer: delta (3; 3 below the next)"
    assert server.stats.calls == 30
    assert sorted(result.key for result in told.results) == sorted(checkout.partitions(instance))
    runs = [instance.get_run_by_id(run_id) for run_id in outcome.run_ids]
    assert all(run is not None and run.tags["ctxstream/sweep"] == "census" for run in runs)


def test_97_good_and_3_bad_show_as_97_materialized_and_3_failed(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(100))
    checkout.write_sweep(planning={"segment_chars": 43}, batch_size=50)
    bad = ("ticket 00007", "ticket 00051", "ticket 00052")
    server.script(*({"match": ticket, "fault": "400-other", "times": None} for ticket in bad))
    outcome, _ = checkout.sweep(instance)
    states = checkout.states(instance)
    assert Counter(states.values()) == {GOOD: 97, BAD: 3}
    assert sorted(outcome.failed) == sorted(key for key, state in states.items() if state is BAD)
    assert "97 of 100 segments" in outcome.withheld
    assert not checkout.store().tally.exists()

    server.reset()
    again, told = checkout.sweep(instance)
    assert (again.withheld, again.sent, server.stats.calls) == ("", 3, 3)
    assert {result.key for result in told.results} == set(outcome.failed)
    assert Counter(checkout.states(instance).values()) == {GOOD: 100}
    assert answer(checkout)["tally"] == [
        {"key": key, "value": count} for key, count in (("delta", 10), ("gamma", 20), ("beta", 30), ("alpha", 40))
    ]


def test_the_tally_is_withheld_and_the_last_good_one_kept(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    before = read_bytes(checkout.store().tally)
    checkout.write_corpus(status_lines(20))
    server.script({"match": "ticket 00017", "fault": "400-other", "times": None})
    outcome, _ = checkout.sweep(instance)
    assert outcome.withheld.startswith("The tally is withheld: 3 of 4 segments are read")
    assert read_bytes(checkout.store().tally) == before
    latest = instance.get_latest_materialization_event(dg.AssetKey(["census", "tally"]))
    assert latest is not None
    assert latest.run_id not in outcome.run_ids


@pytest.mark.parametrize("edited", [1, 20])
def test_an_edit_sends_the_changed_segments_only_and_a_revert_none(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer, edited: int
) -> None:
    lines = status_lines(200)
    checkout.write_corpus(lines)
    # Without the reply store every call would be seen; with it, only segments that really are new make one.
    checkout.write_sweep(planning={"segment_chars": 430, "boundary": "stable"})
    checkout.sweep(instance)
    before = set(checkout.partitions(instance))
    changed = [
        line.replace("owner: ana", "owner: bo!") if n % (200 // edited) == 7 else line for n, line in enumerate(lines)
    ]
    checkout.write_corpus(changed)
    server.reset()
    outcome, _ = checkout.sweep(instance)
    new = set(checkout.partitions(instance)) - before
    assert outcome.sent == len(new) <= 2 * edited
    assert server.stats.calls == edited

    checkout.write_corpus(lines)
    server.reset()
    reverted, _ = checkout.sweep(instance)
    assert (reverted.sent, server.stats.calls) == (0, 0)
    assert set(checkout.partitions(instance)) == before


def test_three_files_edited_one_deleted_and_two_added_cost_the_changed_lines(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    def write(number: int, lines: list[str]) -> None:
        file = checkout.root / "logs" / f"{number:02}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    for number in range(12):
        write(number, status_lines(8, start=100 * number))
    checkout.write_sweep(corpus="logs/*.txt", planning={"segment_chars": 345, "boundary": "stable"})
    checkout.sweep(instance)
    before = set(checkout.partitions(instance))
    server.reset()
    for number in (1, 5, 9):
        write(number, [*status_lines(7, start=100 * number), f"ticket {number:05} | Status: delta | owner: bo!"])
    (checkout.root / "logs" / "03.txt").unlink()
    for number in (20, 21):
        write(number, status_lines(8, start=100 * number))
    outcome, _ = checkout.sweep(instance)
    after = set(checkout.partitions(instance))
    assert (outcome.withheld, outcome.sent) == ("", len(after - before))
    assert server.stats.calls == 3 + 2 * 8, "unchanged lines were answered before"
    assert len(after & before) >= len(before) // 2, "most of the plan is the same"
    assert answer(checkout)["total"] == 8 * 13


def test_removed_segments_leave_the_partitions_and_the_tally(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(20))
    checkout.write_sweep()
    checkout.sweep(instance)
    checkout.write_corpus(status_lines(10))
    server.reset()
    outcome, _ = checkout.sweep(instance)
    assert (outcome.segments, outcome.sent, server.stats.calls) == (2, 0, 0)
    assert len(checkout.partitions(instance)) == 2
    assert answer(checkout)["total"] == 10


def test_a_vanished_corpus_keeps_the_last_good_answer(checkout: Checkout, instance: dg.DagsterInstance) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    before = read_bytes(checkout.store().answer)
    checkout.corpus.unlink()
    with pytest.raises(CtxstreamError, match=r"corpus\.txt"):
        checkout.sweep(instance)
    assert read_bytes(checkout.store().answer) == before
    assert set(checkout.states(instance).values()) == {GOOD}


def test_no_server_fails_with_the_sentence_that_starts_one(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep(batch_size=1)
    server.stop()
    outcome, _ = checkout.sweep(instance)
    assert "withheld" in outcome.withheld
    assert "ollama serve" in outcome.withheld
    assert len(outcome.run_ids) == 3, "the other batches would be told the same"
    failure = instance.get_run_by_id(outcome.run_ids[1])
    assert failure is not None
    server.start()
    assert checkout.sweep(instance)[0].withheld == ""


def test_an_unknown_sweep_names_the_nearest(checkout: Checkout, instance: dg.DagsterInstance) -> None:
    checkout.write_sweep()
    with pytest.raises(ConfigError, match="did you mean 'census'"):
        checkout.sweep(instance, "cencus")


def test_refresh_asks_again(checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    server.reset()
    outcome, _ = checkout.sweep(instance, refresh=True)
    assert (outcome.sent, server.stats.calls) == (2, 10)


def test_a_batch_that_is_stored_already_is_told_again_without_the_server(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    server.stop()
    keys = checkout.partitions(instance)
    assert checkout.run(instance, "extraction", batch=keys).success
    records = instance.fetch_materializations(dg.AssetKey(["census", "extraction"]), limit=2).records
    told = [record.asset_materialization for record in records]
    assert all("| reused | yes" in str(event.metadata["call"].value) for event in told if event)
    assert {event.partition for event in told if event} == set(keys)


def test_another_build_of_the_model_under_the_same_name_is_asked_again(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    keys = checkout.partitions(instance)
    stored = checkout.store().extraction(checkout.version(), keys[0])
    result = table_to_result(read_table(stored))
    write_table(stored, result_to_table(replace(result, model_digest="older")))
    server.reset()
    assert checkout.run(instance, "extraction", batch=keys).success
    assert table_to_result(read_table(stored)).model_digest == result.model_digest


def tallies(instance: dg.DagsterInstance) -> int:
    return len(instance.fetch_materializations(dg.AssetKey(["census", "tally"]), limit=100).records)


def test_nothing_changed_costs_no_call_and_no_tally(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    calls, tallied = server.stats.calls, tallies(instance)
    outcome, _ = checkout.sweep(instance)
    assert (outcome.withheld, outcome.sent, server.stats.calls) == ("", 0, calls)
    assert len(outcome.run_ids) == 1, "only the corpus is looked at"
    assert tallies(instance) == tallied


@pytest.mark.parametrize("name", ["answer", "records", "tally"])
def test_a_damaged_or_missing_answer_is_made_anew_without_a_call(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer, name: str
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    calls, file = server.stats.calls, getattr(checkout.store(), name)
    whole = read_bytes(file)
    for damage in (lambda: write_bytes(file, whole[: len(whole) // 2]), file.unlink):
        damage()
        outcome, _ = checkout.sweep(instance)
        assert (outcome.withheld, outcome.sent, server.stats.calls) == ("", 0, calls)
        assert read_bytes(file) == whole


def test_another_answer_of_the_same_records_is_tallied_again_without_a_call(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    calls = server.stats.calls
    checkout.write_sweep(answer="most")
    outcome, _ = checkout.sweep(instance)
    assert (outcome.withheld, outcome.sent, server.stats.calls) == ("", 0, calls)
    assert answer(checkout)["answer"] == "Answer: alpha (4; 1 above the next)"


def test_a_damaged_file_is_a_failed_segment_and_is_asked_about_again(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(20))
    checkout.write_sweep()
    checkout.sweep(instance)
    keys = checkout.partitions(instance)
    damaged = checkout.store().extraction(checkout.version(), keys[1])
    write_bytes(damaged, read_bytes(damaged)[:-7])
    withheld = checkout.run(instance, "records", "tally")
    (coverage,) = [check for check in withheld.get_asset_check_evaluations() if check.check_name == "coverage"]
    assert not coverage.passed
    assert keys[1] in str(coverage.metadata["failed"].value)
    assert "is not a whole Parquet file" in str(coverage.metadata["failed"].value)

    server.reset()
    assert checkout.run(instance, "extraction", batch=keys).success
    assert table_to_result(read_table(damaged)).ok
    assert checkout.run(instance, "records", "tally").success


def test_mixed_builds_of_the_model_are_told_also_where_the_reply_store_answered(
    checkout: Checkout, instance: dg.DagsterInstance
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    stored = checkout.store().extraction(checkout.version(), checkout.partitions(instance)[0])
    result = table_to_result(read_table(stored))
    write_table(stored, result_to_table(replace(result, model_digest="older", calls=0)))
    outcome, _ = checkout.sweep(instance)
    assert outcome.withheld.startswith("Different builds of the model answered: ")


def test_a_run_with_another_model_than_the_loaded_one_is_refused(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    assert checkout.run(instance, "corpus").success
    result = checkout.run(
        instance,
        "extraction",
        batch=checkout.partitions(instance),
        resources={"ollama": {"config": {"model": "another"}}},
    )
    [failure] = [event.step_failure_data.user_failure_data for event in result.all_events if event.is_step_failure]
    assert failure is not None
    assert failure.description.startswith("The resource 'ollama' of this run names another, and census")
    assert server.stats.calls == 0


def test_no_answer_is_made_of_records_and_a_tally_of_different_runs(
    checkout: Checkout, instance: dg.DagsterInstance
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    records = read_table(checkout.store().records)
    write_table(checkout.store().records, with_facts(records, {**tally_facts(records), "inputs": "others"}))
    result = checkout.run(instance, "answer")
    [failure] = [event.step_failure_data.user_failure_data for event in result.all_events if event.is_step_failure]
    assert failure is not None
    assert "are of different runs" in failure.description


def test_mixed_builds_leave_the_last_good_tally(checkout: Checkout, instance: dg.DagsterInstance) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    before = read_bytes(checkout.store().tally)
    stored = checkout.store().extraction(checkout.version(), checkout.partitions(instance)[0])
    result = table_to_result(read_table(stored))
    write_table(stored, result_to_table(replace(result, model_digest="older", records=())))
    assert not checkout.run(instance, "records", "tally").success
    assert read_bytes(checkout.store().tally) == before


def test_a_plan_changed_from_outside_is_noticed_and_made_anew(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(20))
    checkout.write_sweep()
    checkout.sweep(instance)
    plan = checkout.store().current_plan()
    assert isinstance(plan, Path)
    text = read_bytes(plan / "packed.txt")
    write_bytes(plan / "packed.txt", text.replace(b"alpha", b"delta"))
    assert not checkout.run(instance, "extraction", batch=checkout.partitions(instance)).success
    assert checkout.run(instance, "corpus").success
    assert read_bytes(plan / "packed.txt") == text
    outcome, _ = checkout.sweep(instance, refresh=True)
    assert outcome.withheld == ""
    assert answer(checkout)["answer"] == "Answer: delta (2; 2 below the next)"


@pytest.mark.parametrize("file", ["packed.txt", "plan.json", "segments.parquet", "files.parquet"])
def test_a_plan_that_lost_a_file_is_made_anew(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer, file: str
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    plan = checkout.store().current_plan()
    assert isinstance(plan, Path)
    (plan / file).unlink()
    server.reset()
    outcome, _ = checkout.sweep(instance)
    assert (outcome.withheld, server.stats.calls) == ("", 0)


def test_a_corpus_planned_again_meanwhile_is_told_in_a_sentence(
    checkout: Checkout, instance: dg.DagsterInstance
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()

    @contextlib.contextmanager
    def planned_again(_: int) -> Iterator[Told]:
        checkout.write_corpus(status_lines(10, start=300))
        assert checkout.run(instance, "corpus").success
        yield Told()

    with pytest.raises(CtxstreamError, match="planned again by another process meanwhile"):
        run_sweep(checkout.project, "census", instance=instance, progress=planned_again)
    outcome, _ = checkout.sweep(instance)
    assert outcome.withheld == ""


def test_labels_that_are_digits_stay_text(checkout: Checkout) -> None:
    checkout.write_corpus(status_lines(1))
    checkout.write_sweep(question={"mode": "labels", "extract": "Stars.", "labels": ["1", "2"]})
    assert sweep_names(checkout.definitions()) == ["census"]
