"""`extraction`: asks the model about a batch of segments; every segment succeeds or fails for itself.

The truth per segment (docs/decisions.md): the segment's file is written, then its event is yielded; what failed gets no
event, and one `Failure` at the end, naming it, makes Dagster show exactly those partitions red. Dagster's own retries
are off, because they would redo the whole batch; the client retries single calls.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing

import dagster as dg

from ctxstream_dagster.errors import ConfigError
from ctxstream_dagster.extraction.advice import server_advice
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.extraction.store import ReplyStore
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from ctxstream_dagster.orchestration.automation import extraction_condition
from ctxstream_dagster.orchestration.boundary import failures
from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.orchestration.lineage import SourceLinks, extraction_event, latest_records
from ctxstream_dagster.orchestration.orphans import claim_run
from ctxstream_dagster.orchestration.partitions import segments_of
from ctxstream_dagster.orchestration.resources import OllamaResource
from ctxstream_dagster.orchestration.results import open_plan, stored_result
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.planning.units import SegmentText
from ctxstream_dagster.reduction.records import place, result_to_table
from ctxstream_dagster.storage import write_table

POOL = "ollama"
_NAMED = 20
_LEFT = "left the plan; it goes once no run is live"


class ExtractionConfig(dg.Config):
    """How this run treats what is already there."""

    refresh: bool = False
    """Ask the model again, even where a result of this version is stored."""


def build_extraction(spec: SweepSpec, *, version: str) -> dg.AssetsDefinition:
    """Return the asset that extracts segments in batches.

    Args:
        spec: the sweep.
        version: `extraction_version` of question, options and model: a change makes every segment stale.
    """

    @dg.asset(
        key=spec.key("extraction"),
        deps=[spec.key("manifest")],
        partitions_def=segments_of(spec.name),
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=spec.batch_size),
        pool=POOL,
        code_version=version,
        group_name=spec.name,
        description=f"What the model found in each segment.\n\n{spec.question.extract}",
        kinds={"llama", "parquet"},
        owners=list(spec.owners),
        tags=dict(spec.tags),
        output_required=False,
        automation_condition=extraction_condition(),
    )
    def extraction(
        context: dg.AssetExecutionContext, config: ExtractionConfig, ollama: OllamaResource
    ) -> Iterator[dg.AssetMaterialization]:
        with failures():
            claim_run(context, {**spec.run_tags(), "ctxstream/model": ollama.options(spec).model})
            _refuse_another_model(spec, ollama=ollama, version=version)
            yield from extract_batch(context, spec=spec, ollama=ollama, refresh=config.refresh)

    return extraction


def extract_batch(
    context: dg.AssetExecutionContext, *, spec: SweepSpec, ollama: OllamaResource, refresh: bool
) -> Iterator[dg.AssetMaterialization]:
    """Yield the event of every segment of the run's partitions as it becomes true.

    Raises:
        dg.Failure: at the end, naming the segments that failed.
    """
    plan = open_plan(spec)
    version = ollama.version(spec)
    # A segment that left the plan stays a partition while a run is live; there is no text to ask about.
    keys = [key for key in context.partition_keys if key in plan.stored]
    failed = {key: _LEFT for key in context.partition_keys if key not in plan.stored}
    backend = ollama.backend(spec)
    stored = {} if refresh else _stored(spec, keys, version=version, digest=backend.listed_digest())
    event = _events(context, spec=spec, version=version, num_ctx=backend.options.num_ctx, keys=keys)
    for key, result in stored.items():
        yield event(result, plan.read(key), reused=True)
    unread = [key for key in keys if key not in stored]
    # Without one left, the server need not even be there.
    if unread:
        texts = (plan.read(key) for key in unread)
        with closing(_stream(texts, spec=spec, backend=backend, refresh=refresh)) as results:
            done: list[SegmentResult] = []
            for result in results:
                done.append(result)
                write_table(spec.store().extraction(version, result.key), result_to_table(result))
                if result.ok:
                    yield event(result, plan.read(result.key), reused=False)
                else:
                    failed[result.key] = result.error
                    context.log.warning(f"{result.key}: {result.error}")
            for sentence in server_advice(done):
                context.log.warning(sentence)
    if failed:
        raise _failure(failed, of=len(context.partition_keys))


def _refuse_another_model(spec: SweepSpec, *, ollama: OllamaResource, version: str) -> None:
    # Results of a model that the loaded definitions do not know would be stale at once, and garbage to `ctxstream gc`.
    if ollama.version(spec) != version:
        raise ConfigError(
            f"The resource 'ollama' of this run names {ollama.options(spec).model}, and {spec.name} was loaded for "
            "another model. Name it in the sweep (ollama.model) or by CTXSTREAM_MODEL, then reload the code location."
        )


def _stored(spec: SweepSpec, keys: list[str], *, version: str, digest: str) -> dict[str, SegmentResult]:
    found = {key: stored_result(spec.store(), version=version, key=key) for key in keys}
    # Another build of the model under the same name makes a result stale; without a server nobody can tell.
    return {
        key: result
        for key, result in found.items()
        if result is not None and result.ok and digest in ("", result.model_digest)
    }


def _stream(
    texts: Iterator[SegmentText], *, spec: SweepSpec, backend: OllamaBackend, refresh: bool
) -> Generator[SegmentResult, None, None]:
    yield from stream_segments(
        texts,
        spec.question,
        backend=backend,
        options=PipelineOptions(concurrency=spec.in_flight, refresh=refresh),
        store=ReplyStore(Project(spec.root).reply_store),
        ordered=False,
    )


def _events(
    context: dg.AssetExecutionContext,
    *,
    spec: SweepSpec,
    version: str,
    num_ctx: int,
    keys: list[str],
) -> Callable[..., dg.AssetMaterialization]:
    upstream = latest_records(context.instance, spec.key("manifest"), keys)
    links = SourceLinks(spec)

    def event(result: SegmentResult, text: SegmentText, *, reused: bool) -> dg.AssetMaterialization:
        return extraction_event(
            spec,
            place(result, text),
            text,
            version=version,
            num_ctx=num_ctx,
            file=spec.store().extraction(version, result.key),
            reused=reused,
            upstream=upstream.get(result.key),
            links=links,
        )

    return event


def _failure(failed: Mapping[str, str], *, of: int) -> dg.Failure:
    reasons = "; ".join(f"{key}: {reason}" for key, reason in list(failed.items())[:_NAMED])
    return dg.Failure(
        f"{len(failed)} of {of} segments failed. {reasons}. Finished segments are kept: run the failed ones again.",
        metadata={"failed": dg.MetadataValue.json(dict(failed))},
        allow_retries=False,
    )
