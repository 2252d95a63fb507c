"""One segment's page, its staleness, and the tables a user's own asset loads."""

import shutil
import subprocess
from typing import Any

import dagster as dg
import pandas as pd
import pyarrow as pa
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from ctxstream_dagster.orchestration.lineage import SourceLinks
from ctxstream_dagster.orchestration.tables import SweepTables
from tests.orchestration.checkout import LABELS, REPOSITORY, Checkout, status_lines


@pytest.fixture
def swept(checkout: Checkout, instance: dg.DagsterInstance) -> Checkout:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    checkout.sweep(instance)
    return checkout


def metadata(instance: dg.DagsterInstance, asset: str, partition: str | None = None) -> dict[str, Any]:
    filtered = dg.AssetRecordsFilter(
        asset_key=dg.AssetKey(["census", asset]), asset_partitions=[partition] if partition else None
    )
    record = instance.fetch_materializations(filtered, limit=1).records[0]
    assert record.asset_materialization is not None
    return {name: value.value for name, value in record.asset_materialization.metadata.items()}


def stale(checkout: Checkout, instance: dg.DagsterInstance) -> dict[str, str]:
    resolver = CachingStaleStatusResolver(
        instance=instance,
        asset_graph=checkout.definitions().resolve_asset_graph(),
        loading_context=LoadingContextForTest(instance),
    )
    key = dg.AssetKey(["census", "extraction"])
    found = {}
    for segment in checkout.partitions(instance):
        if resolver.get_status(key, segment) is StaleStatus.STALE:
            found[segment] = "; ".join(cause.reason for cause in resolver.get_stale_causes(key, segment))
    return found


def test_the_page_of_a_segment_tells_where_its_text_is_from_and_what_came_back(
    swept: Checkout, instance: dg.DagsterInstance
) -> None:
    second = swept.partitions(instance)[1]
    page = metadata(instance, "extraction", second)
    assert page["source"] == "`corpus.txt:6-10`"
    assert "ticket 00005" in page["preview"]
    assert "The status of the ticket." in page["question"]
    assert '"beta"' in page["reply"]
    assert "| 1 | beta | 1 | 6 |\n| 2 | delta | 1 | 7 |" in page["records"]
    assert "| model | scripted:latest 5c915c915c91, server " in page["call"]
    for told in (
        "| calls | 5, none failed, 0 splits |",
        " of num_ctx 4,096 a call",
        "| guard | ok |",
        "| reused | no |",
    ):
        assert told in page["call"]
    assert page["ollama.scripted_latest.prompt_tokens"] > 0


@pytest.mark.parametrize(
    ("remote", "link"),
    [
        ("https://github.com/acme/desk.git", "https://github.com/acme/desk/blob/"),
        ("git@gitlab.example.org:acme/desk.git", "https://gitlab.example.org/acme/desk/blob/"),
        ("/srv/git/desk", ""),
    ],
)
def test_a_source_is_linked_where_the_repository_has_a_remote(checkout: Checkout, remote: str, link: str) -> None:
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep()
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]
    for command in (["init", "-q"], ["remote", "add", "origin", remote], ["add", "corpus.txt"], commit):
        subprocess.run(["git", *command], cwd=checkout.root, check=True)
    told = SourceLinks(checkout.spec()).link("corpus.txt", first=6, last=10)
    if not link:
        assert told == "`corpus.txt:6-10`"
        return
    assert told.startswith(f"[corpus.txt:6-10]({link}")
    assert told.endswith("/corpus.txt#L6-L10)")


def test_a_tally_answers_first_and_says_what_it_covers(swept: Checkout, instance: dg.DagsterInstance) -> None:
    page = metadata(instance, "tally")
    assert next(iter(page)) == "answer"
    assert "delta (1;" in page["answer"]
    assert page["coverage_share"] == 1.0
    assert "2 of 2 segments read" in page["coverage"]


def test_nothing_is_stale_after_a_sweep(swept: Checkout, instance: dg.DagsterInstance) -> None:
    assert stale(swept, instance) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"question": {"mode": "labels", "extract": "Another question.", "labels": LABELS}},
        {"ollama": {"num_ctx": 8192, "num_predict": 64}},
        {"ollama": {"num_ctx": 4096, "num_predict": 64, "model": "other"}},
    ],
    ids=["prompt", "option", "model"],
)
def test_every_segment_is_stale_after_a_change_that_matters(
    swept: Checkout, instance: dg.DagsterInstance, change: dict[str, Any]
) -> None:
    swept.write_sweep(**change)
    found = stale(swept, instance)
    assert set(found) == set(swept.partitions(instance))
    assert all("code version" in reason for reason in found.values())


def test_no_segment_is_stale_after_a_change_that_does_not(swept: Checkout, instance: dg.DagsterInstance) -> None:
    swept.write_sweep(in_flight=9, batch_size=3, description="New words.", answer="most")
    assert stale(swept, instance) == {}


def test_only_the_changed_segment_is_new_after_an_edit(swept: Checkout, instance: dg.DagsterInstance) -> None:
    before = set(swept.partitions(instance))
    swept.write_corpus([*status_lines(9), "ticket 00009 | Status: delta | owner: ana"])
    swept.sweep(instance)
    assert len(set(swept.partitions(instance)) - before) == 1
    assert stale(swept, instance) == {}


@pytest.mark.parametrize("wanted", [pd.DataFrame, pa.Table])
@pytest.mark.parametrize(("table", "rows"), [("tally", 4), ("records", 10)])
def test_a_users_asset_loads_tables_by_annotation(
    swept: Checkout, instance: dg.DagsterInstance, wanted: type, table: str, rows: int
) -> None:
    seen: list[object] = []

    def body(loaded) -> None:  # the annotation is set below
        seen.append(loaded)

    body.__annotations__["loaded"] = wanted
    mine = dg.asset(name="mine", ins={"loaded": dg.AssetIn(["census", table])})(body)
    definitions = dg.Definitions.merge(swept.definitions(), dg.Definitions(assets=[mine]))
    job = definitions.resolve_implicit_global_asset_job_def().get_subset(asset_selection={dg.AssetKey("mine")})
    assert job.execute_in_process(instance=instance).success
    assert isinstance(seen[0], wanted)
    assert len(seen[0]) == rows  # ty: ignore
    if isinstance(seen[0], pd.DataFrame):
        assert seen[0]["value"].sum() == 10
        assert seen[0]["value"].dtype == "int64"


def test_the_bundled_asset_downstream_of_a_sweep(checkout: Checkout, instance: dg.DagsterInstance) -> None:
    shutil.copy(REPOSITORY / "assets" / "sweeps" / "rarest_share.py", checkout.root / "assets" / "sweeps")
    checkout.write_corpus(status_lines(10))
    checkout.write_sweep("status_census")
    checkout.sweep(instance, "status_census")
    job = checkout.definitions().resolve_implicit_global_asset_job_def()
    mine = job.get_subset(asset_selection={dg.AssetKey("rarest_share")})
    (told,) = mine.execute_in_process(instance=instance).get_asset_materialization_events()
    found = told.step_materialization_data.materialization.metadata
    assert {name: found[name].value for name in ("rarest", "share")} == {"rarest": "delta", "share": 0.1}


def test_another_annotation_is_refused_with_what_to_write(swept: Checkout, instance: dg.DagsterInstance) -> None:
    @dg.asset(ins={"loaded": dg.AssetIn(["census", "tally"])})
    def mine(loaded: dict[str, int]) -> None:
        raise AssertionError("never reached")

    definitions = dg.Definitions.merge(swept.definitions(), dg.Definitions(assets=[mine]))
    job = definitions.resolve_implicit_global_asset_job_def().get_subset(asset_selection={mine.key})
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    failure = next(event for event in result.all_events if event.is_step_failure)
    assert "pandas.DataFrame or pyarrow.Table" in str(failure.step_failure_data.error)


def test_tables_are_read_only() -> None:
    with pytest.raises(dg.Failure, match="only reads"):
        SweepTables(root=".").handle_output(dg.build_output_context(), object())
