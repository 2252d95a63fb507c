"""What keeps an installation healthy: key rules, retirement in peace, garbage, the doctor's Dagster lines."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterRunStatus
from hypothesis import given
from hypothesis import strategies as st

from ctxstream_dagster.errors import ConfigError, CorpusError, PlanError
from ctxstream_dagster.orchestration import partitions
from ctxstream_dagster.orchestration.assets.corpus import moved
from ctxstream_dagster.orchestration.automation import build_housekeeping
from ctxstream_dagster.orchestration.garbage import collect
from ctxstream_dagster.orchestration.health import examine
from ctxstream_dagster.orchestration.partitions import contiguous_ranges, live_work, sync_partitions, validate_keys
from ctxstream_dagster.orchestration.results import last_good
from ctxstream_dagster.planning.keys import KeyMaker
from tests.fault_server import FaultServer
from tests.orchestration.checkout import Checkout, status_lines


@pytest.mark.parametrize(
    "key", ["", "../evil", "/abs", "a/b", "a..b", "a,b", "a\tb", "a\nb", "A", "a b", ".hidden", "x" * 121, "ä"]
)
def test_a_key_that_is_no_plain_file_name_is_refused(key: str) -> None:
    with pytest.raises(CorpusError, match="is no segment key"):
        validate_keys(["good~0123456789abcdef", key])


def test_a_key_that_occurs_twice_is_refused() -> None:
    with pytest.raises(PlanError, match="twice"):
        validate_keys([f"{name}~0123456789abcdef" for name in "aba"])


@given(st.text(max_size=60))
def test_every_key_that_planning_makes_can_be_a_partition(path: str) -> None:
    for name in (path, f"pkg/__init__{path}.py", "pkg/__init__.py"):
        validate_keys([KeyMaker().key(name, b"text", division=b"")])


@given(
    have=st.lists(st.integers(0, 60), unique=True, max_size=60).map(lambda found: [str(item) for item in found]),
    chosen=st.sets(st.integers(0, 60)),
    longest=st.integers(1, 7),
)
def test_ranges_cover_exactly_what_is_wanted_in_neighbours(have: list[str], chosen: set[int], longest: int) -> None:
    wanted = {str(item) for item in chosen} & set(have)
    ranges = contiguous_ranges(have, wanted, longest=longest)
    assert [key for batch in ranges for key in batch] == [key for key in have if key in wanted]
    for batch in ranges:
        start = have.index(batch[0])
        assert have[start : start + len(batch)] == batch
        assert len(batch) <= longest


def test_ten_thousand_keys_are_added_in_order(instance: dg.DagsterInstance) -> None:
    keys = [f"corpus~{number:016x}" for number in range(10_000)]
    assert len(sync_partitions(instance, "big", keys).added) == 10_000
    assert list(instance.get_dynamic_partitions("big_segments")) == keys


def test_a_segment_is_not_retired_while_a_run_is_live_and_goes_when_it_ended(
    checkout: Checkout, instance: dg.DagsterInstance
) -> None:
    checkout.write_corpus(status_lines(20))
    checkout.write_sweep()
    checkout.sweep(instance)

    @dg.job
    def empty() -> None:
        pass

    live = instance.create_run_for_job(empty, status=DagsterRunStatus.STARTED, tags={"ctxstream/sweep": "census"})
    checkout.write_corpus(status_lines(10))
    assert checkout.run(instance, "corpus").success
    assert len(checkout.partitions(instance)) == 4, "two of them wait"
    housekeeping = build_housekeeping(checkout.project)
    housekeeping(dg.build_sensor_context(instance=instance))
    assert len(checkout.partitions(instance)) == 4
    instance.report_run_failed(live)
    skipped = housekeeping(dg.build_sensor_context(instance=instance))
    assert "retired 2 segments of census" in skipped.skip_message
    assert len(checkout.partitions(instance)) == 2


def test_a_run_that_was_created_and_never_submitted_is_live_for_a_while_only(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dg.job
    def empty() -> None:
        pass

    run = instance.create_run_for_job(empty, status=DagsterRunStatus.NOT_STARTED, tags={"ctxstream/sweep": "census"})
    assert live_work(instance, "census") == f"run {run.run_id[:8]}"
    monkeypatch.setattr(partitions, "_SUBMITTED_WITHIN", timedelta(0))
    assert live_work(instance, "census") == ""


def test_gc_keeps_what_is_in_force_and_removes_the_rest(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(20))
    checkout.write_sweep()
    checkout.sweep(instance)
    checkout.write_corpus(status_lines(10))
    checkout.sweep(instance)
    root = checkout.store().root
    kept = collect(checkout.project, [], instance=instance, older_than_s=60)
    assert kept.removed == ()
    planned = collect(checkout.project, ["census"], instance=instance, older_than_s=0, dry_run=True)
    assert len([path for path in planned.removed if path.endswith(".parquet")]) == 2
    assert all(Path(path).exists() for path in planned.removed)
    done = collect(checkout.project, [], instance=instance, older_than_s=0)
    assert done == planned
    assert done.bytes > 0
    assert len(list((root / "plans").iterdir())) == 1
    assert len(list((root / "extraction").rglob("*.parquet"))) == 2
    server.reset()
    outcome, _ = checkout.sweep(instance)
    assert (outcome.withheld, outcome.sent, server.stats.calls) == ("", 0, 0)


def test_gc_keeps_what_the_last_good_answer_rests_on(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    _, facts = last_good(checkout.store())
    checkout.write_corpus(status_lines(10, start=100))
    server.script({"match": "ticket 00103", "fault": "400-other", "times": None})
    outcome, _ = checkout.sweep(instance)
    assert outcome.withheld
    assert collect(checkout.project, [], instance=instance, older_than_s=0).removed == ()
    assert checkout.store().plan_directory(facts["plan"]).exists()


def test_gc_leaves_a_sweep_with_a_live_run_alone(checkout: Checkout, instance: dg.DagsterInstance) -> None:
    checkout.write_corpus(status_lines(20))
    checkout.write_sweep()
    checkout.run(instance, "corpus")
    checkout.write_corpus(status_lines(10))
    checkout.run(instance, "corpus")

    @dg.job
    def empty() -> None:
        pass

    instance.create_run_for_job(empty, status=DagsterRunStatus.STARTING, tags={"ctxstream/sweep": "census"})
    outcome = collect(checkout.project, [], instance=instance, older_than_s=0)
    assert outcome.removed == ()
    assert "is live" in outcome.left_alone["census"]


def test_gc_of_an_unknown_sweep_names_the_nearest(checkout: Checkout, instance: dg.DagsterInstance) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.run(instance, "corpus")
    with pytest.raises(ConfigError, match="did you mean 'census'"):
        collect(checkout.project, ["cencus"], instance=instance, older_than_s=0)


def conditions(checkout: Checkout) -> dict[str, tuple[str, str]]:
    return {found.subject: (found.state, found.found) for found in examine(checkout.project)}


def test_the_doctor_of_a_healthy_project(checkout: Checkout) -> None:
    checkout.write_sweep()
    found = conditions(checkout)
    assert found["dagster.yaml"] == ("ok", "pool limit 2")
    assert found["sweeps"] == ("ok", "census")
    assert found["runs"][0] == "ok"
    assert found["daemon"][0] == "warning"
    assert "none is running" in found["daemon"][1]


def test_the_doctor_finds_a_temporary_home(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout.root / ".tmp_dagster_home_x1").mkdir()
    assert "temporary home" in conditions(checkout)["Dagster home"][1]
    monkeypatch.setattr("tempfile.tempdir", str(checkout.root))
    [found] = [found for found in examine(checkout.project) if found.subject == "Dagster home"]
    assert "is temporary" in found.found
    assert found.change == "Move the checkout to a lasting directory, or set DAGSTER_HOME to one."
    monkeypatch.setenv("DAGSTER_HOME", str(checkout.root / "elsewhere"))
    [found] = [found for found in examine(checkout.project) if found.subject == "Dagster home"]
    assert found.change.startswith("Unset DAGSTER_HOME")


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        ("concurrency: {pools: {granularity: run, default_limit: 2}}\n", "warning", "granularity"),
        ("concurency: {}\n", "problem", "concurency"),
        ("run_queue: [\n", "problem", ""),
    ],
)
def test_the_doctor_finds_a_wrong_dagster_yaml(checkout: Checkout, text: str, state: str, words: str) -> None:
    (checkout.root / "dagster.yaml").write_text(text, encoding="utf-8")
    found = conditions(checkout)["dagster.yaml"]
    assert found[0] == state
    assert words in found[1]


def test_the_doctor_finds_two_daemons(checkout: Checkout) -> None:
    environment = {**os.environ, "DAGSTER_HOME": str(checkout.project.dagster_home)}
    # What identifies a daemon is its command line; the real one takes seconds to start.
    command = [sys.executable, "-c", "import time; time.sleep(60)", "dagster._daemon", "run"]
    running = [subprocess.Popen(command, env=environment) for _ in range(2)]
    try:
        time.sleep(0.3)
        state, words = conditions(checkout)["daemon"]
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert state == "problem"
    assert "2 daemons work on one home" in words


def test_the_doctor_says_what_a_wrong_sweep_is(checkout: Checkout) -> None:
    checkout.write_sweep(corpuss="x")
    state, words = conditions(checkout)["sweeps"]
    assert state == "problem"
    assert "did you mean 'corpus'" in words


def test_a_full_disk_names_the_path_and_leaves_nothing_partial(
    checkout: Checkout, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    before = checkout.store().tally.read_bytes()
    checkout.write_corpus(status_lines(20))
    assert checkout.run(instance, "corpus").success
    small = checkout.root / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        extraction = checkout.store().root / "extraction"
        extraction.rename(checkout.root / "kept")
        extraction.symlink_to(small)
        (small / "filler").write_bytes(b"x" * 60_000)
        outcome, _ = checkout.sweep(instance)
        run = instance.get_run_by_id(outcome.run_ids[1])
        assert run is not None
        assert run.status is DagsterRunStatus.FAILURE
        failure = next(
            entry.dagster_event
            for entry in instance.all_logs(run.run_id)
            if entry.dagster_event and entry.dagster_event.is_step_failure
        )
        told = failure.step_failure_data.user_failure_data.description
        assert "No space left on device" in told
        assert str(extraction) in told
        assert not [path for path in small.rglob("*.parquet") if path.read_bytes()[-4:] != b"PAR1"]
        assert not list(small.rglob("*.tmp"))
        assert checkout.store().tally.read_bytes() == before
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_home_that_cannot_be_used_is_the_doctor_s_first_line(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkout.root / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("DAGSTER_HOME", str(checkout.root / "file" / "home"))
    found = conditions(checkout)
    assert list(found) == ["Dagster home"]
    assert found["Dagster home"][0] == "problem"


def test_two_runs_that_plan_the_same_text_at_once_share_one_plan(tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "packed.txt").touch()
    assert moved(tmp_path / "theirs", tmp_path / "plan")
    assert not moved(tmp_path / "mine", tmp_path / "plan")
    with pytest.raises(FileNotFoundError):
        moved(tmp_path / "nowhere", tmp_path / "other")
