"""`manifest`: one partition for every planned segment. `corpus` writes its events; it can be written again by hand."""

from collections.abc import Iterator

import dagster as dg

from ctxstream_dagster.orchestration.boundary import failures
from ctxstream_dagster.orchestration.lineage import SourceLinks, manifest_event
from ctxstream_dagster.orchestration.orphans import claim_run
from ctxstream_dagster.orchestration.partitions import segments_of
from ctxstream_dagster.orchestration.results import open_plan
from ctxstream_dagster.orchestration.spec import SweepSpec


def build_manifest(spec: SweepSpec) -> dg.AssetsDefinition:
    """Return the asset that says of every segment where its text is from."""

    @dg.asset(
        key=spec.key("manifest"),
        deps=[spec.key("corpus")],
        partitions_def=segments_of(spec.name),
        backfill_policy=dg.BackfillPolicy.single_run(),
        group_name=spec.name,
        description="The segments of the plan. `corpus` keeps it up to date: there is no need to materialize it.",
        kinds={"python"},
        owners=list(spec.owners),
        tags=dict(spec.tags),
        output_required=False,
    )
    def manifest(context: dg.AssetExecutionContext) -> Iterator[dg.AssetMaterialization]:
        claim_run(context, spec.run_tags())
        with failures():
            planned = open_plan(spec)
            present = {segment.key for segment in planned.manifest}
            links = SourceLinks(spec)
            for key in context.partition_keys:
                if key in present:
                    yield manifest_event(spec, planned.read(key), links=links)

    return manifest
