"""Asset checks of a tally: what would make its answer wrong blocks the answer, what weakens it warns."""

from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg

from ctxstream_dagster.errors import StorageError
from ctxstream_dagster.orchestration.results import differences, read_inputs, tally_facts
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.reduction.coverage import Coverage, counted
from ctxstream_dagster.report.escaping import markdown_text
from ctxstream_dagster.storage import read_table

_LINKED = 20


def tally_check_specs(spec: SweepSpec) -> list[dg.AssetCheckSpec]:
    """Return the checks that every tally run evaluates itself."""
    tally = spec.key("tally")
    return [
        dg.AssetCheckSpec(
            "coverage",
            asset=tally,
            blocking=True,
            description="Enough segments were read, or the failed ones are named.",
        ),
        # A clipped prompt fails its segment, which `coverage` blocks on; this says where, and where nobody can tell.
        dg.AssetCheckSpec(
            "truncation", asset=tally, description="The server's token counts show that every prompt was read whole."
        ),
        dg.AssetCheckSpec(
            "rejected_share",
            asset=tally,
            description="Few reply lines were no records; more could overturn the answer.",
        ),
    ]


def check_tally(spec: SweepSpec, coverage: Coverage, *, parsed_records: int) -> Iterator[dg.AssetCheckResult]:
    """Evaluate the checks of `tally_check_specs` on what was reduced."""
    tally = spec.key("tally")
    yield dg.AssetCheckResult(
        asset_key=tally,
        check_name="coverage",
        passed=coverage.share >= spec.min_coverage,
        description=coverage.sentence(),
        metadata={"share": coverage.share, "min_coverage": spec.min_coverage, "failed": failed_links(spec, coverage)},
    )
    yield dg.AssetCheckResult(
        asset_key=tally,
        check_name="truncation",
        passed=not coverage.truncated,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{counted(coverage.truncated, 'segment')} clipped, or without a token count to tell by.",
        metadata={"segments": coverage.truncated},
    )
    lines = parsed_records + coverage.rejected
    share = coverage.rejected / lines if lines else 0.0
    yield dg.AssetCheckResult(
        asset_key=tally,
        check_name="rejected_share",
        passed=share <= spec.question.max_rejected,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{coverage.rejected} reply lines were no records.",
        metadata={"share": share, "max_rejected": spec.question.max_rejected},
    )


def failed_links(spec: SweepSpec, coverage: Coverage) -> dg.MarkdownMetadataValue:
    """List failed segments with their reasons, each a link to its page."""
    address = segment_url(spec)
    rows = [
        f"- [{markdown_text(item.key)}]({address(item.key)}): {markdown_text(item.reason, limit=300)}"
        for item in coverage.failed[:_LINKED]
    ]
    more = len(coverage.failed) - _LINKED
    return dg.MetadataValue.md("\n".join(rows) + (f"\n- and {more} more" if more > 0 else "") or "none")


def segment_url(spec: SweepSpec) -> Callable[[str], str]:
    """Return what gives the address of a segment's page in the UI by its key."""
    return lambda key: f"/assets/{spec.name}/extraction?view=partitions&partition={key}"


def build_plan_consistency(spec: SweepSpec) -> dg.AssetChecksDefinition:
    """Return the check that a tally still speaks of the plan, the question and the extractions that are in force now.

    It runs after every tally and, by itself, any time: Dagster does not track staleness through all partitions.
    """

    @dg.asset_check(
        asset=spec.key("tally"),
        name="plan_consistency",
        blocking=True,
        description="The tally is of the present plan, question and extractions.",
        required_resource_keys={"ollama"},
    )
    def plan_consistency(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        store = spec.store()
        try:
            facts = tally_facts(read_table(store.tally))
            inputs = read_inputs(store, version=context.resources.ollama.version(spec))
        except StorageError as error:
            return dg.AssetCheckResult(passed=False, description=str(error))
        reasons = differences(facts, inputs)
        return dg.AssetCheckResult(
            passed=not reasons,
            description=" ".join(reasons) or "The tally is current.",
            metadata={"plan": Path(str(inputs.corpus.directory)).name, "version": inputs.version},
        )

    return plan_consistency
