"""`records` and `tally`: code reads every extraction of the plan in force and counts each identity once.

One step writes both, so they always speak of the same extractions. Below `min_coverage` neither is written: the last
good files stay, and the run fails naming the segments.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg
import pyarrow as pa

from ctxstream_dagster.orchestration.automation import tally_condition
from ctxstream_dagster.orchestration.boundary import failures
from ctxstream_dagster.orchestration.checks import check_tally, failed_links, segment_url, tally_check_specs
from ctxstream_dagster.orchestration.orphans import claim_run
from ctxstream_dagster.orchestration.resources import OllamaResource
from ctxstream_dagster.orchestration.results import Inputs, mixed_builds, read_inputs, with_facts
from ctxstream_dagster.orchestration.shown import place
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.reduction.records import RECORDS_SCHEMA
from ctxstream_dagster.reduction.sweep import Reduction, reduce_sweep, reduction_json
from ctxstream_dagster.reduction.tally import TALLY_SCHEMA
from ctxstream_dagster.report.summary import answer_inline, answer_markdown
from ctxstream_dagster.storage import write_table

REDUCTION_VERSION = 1
"""Raised when the same extractions give another tally or answer than before."""


def build_tally(spec: SweepSpec) -> dg.AssetsDefinition:
    """Return the assets that turn extractions into the records behind the tally, and the tally."""
    shared: Mapping[str, Any] = {
        "deps": [
            dg.AssetDep(spec.key("extraction"), partition_mapping=dg.AllPartitionMapping()),
            dg.AssetDep(spec.key("corpus")),
        ],
        "group_name": spec.name,
        "owners": list(spec.owners),
        "tags": dict(spec.tags),
        "kinds": {"parquet", "arrow"},
        "code_version": reduction_version(spec),
        "automation_condition": tally_condition(spec),
    }
    records = dg.AssetSpec(
        spec.key("records"),
        description="Every counted record with its source position. Load it as pandas.DataFrame or pyarrow.Table.",
        metadata={"dagster/column_schema": _columns(RECORDS_SCHEMA)},
        **shared,
    )
    tally = dg.AssetSpec(
        spec.key("tally"),
        description="Value summed per key. Load it as pandas.DataFrame or pyarrow.Table.",
        metadata={"dagster/column_schema": _columns(TALLY_SCHEMA)},
        **shared,
    )

    @dg.multi_asset(
        name=f"{spec.name}__tally",
        specs=[asset.with_io_manager_key("sweep_tables") for asset in (records, tally)],
        check_specs=tally_check_specs(spec),
    )
    def reduce(context: dg.AssetExecutionContext, ollama: OllamaResource) -> Iterator[Any]:
        claim_run(context, spec.run_tags())
        with failures():
            inputs = read_inputs(spec.store(), version=ollama.version(spec))
            if mixed := mixed_builds(inputs):
                raise dg.Failure(f"{mixed} The last good tally is kept.", allow_retries=False)
            reduction = reduce_sweep(
                inputs.corpus,
                inputs.results.values(),
                how=spec.answer,
                labels=spec.question.labels,
                one_per_unit=spec.question.mode == "labels",
            )
            yield from check_tally(spec, reduction.coverage, parsed_records=reduction.tally.parsed_records)
            if reduction.coverage.share < spec.min_coverage:
                raise _withheld(spec, reduction)
            _write(spec, inputs=inputs, reduction=reduction)
        version = dg.DataVersion(inputs.fingerprint())
        rows = {"dagster/row_count": len(reduction.records), "duplicates": reduction.tally.duplicates}
        yield dg.MaterializeResult(spec.key("records"), metadata=rows, data_version=version)
        yield dg.MaterializeResult(
            spec.key("tally"), metadata=_metadata(spec, inputs=inputs, reduction=reduction), data_version=version
        )

    return reduce


def reduction_version(spec: SweepSpec) -> str:
    """Hash what decides a tally and its answer beside the extractions: 12 hexadecimal digits."""
    question = spec.question
    content = [REDUCTION_VERSION, spec.answer.value, question.mode, question.labels, spec.min_coverage]
    return hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()[:12]


def _write(spec: SweepSpec, *, inputs: Inputs, reduction: Reduction) -> None:
    facts = {
        "plan": inputs.plan_id,
        "version": inputs.version,
        "inputs": inputs.fingerprint(),
        "reduced_by": reduction_version(spec),
        "question": spec.question.extract,
        "reduction": json.dumps(reduction_json(reduction), ensure_ascii=False),
    }
    write_table(spec.store().records, with_facts(reduction.records, facts))
    write_table(spec.store().tally, with_facts(reduction.tally_table, facts))


def _withheld(spec: SweepSpec, reduction: Reduction) -> dg.Failure:
    coverage = reduction.coverage
    names = ", ".join(item.key for item in coverage.failed[:20])
    return dg.Failure(
        f"The tally is withheld: {coverage.segments_ok} of {coverage.segments} segments are read, and min_coverage is "
        f"{spec.min_coverage:g}. Not read: {names}. The last good tally is kept; extract these segments again.",
        metadata={"failed": failed_links(spec, coverage), "coverage": coverage.share},
        allow_retries=False,
    )


def _metadata(spec: SweepSpec, *, inputs: Inputs, reduction: Reduction) -> dict[str, Any]:
    done = [result for result in inputs.results.values() if result.ok]
    total = float(reduction.tally.total)
    by_model = spec.question.mode == "counts"
    whole = answer_markdown(reduction, segment_url=segment_url(spec), model_counted=by_model)
    return {
        "answer": dg.MetadataValue.md(answer_inline(reduction, model_counted=by_model)),
        "chart": dg.MetadataValue.md(whole),
        "coverage": dg.MetadataValue.md(reduction.coverage.sentence()),
        "failed": failed_links(spec, reduction.coverage),
        "caveat": reduction.statement.caveat or "none",
        "dagster/row_count": len(reduction.tally_table),
        "total": total,
        "coverage_share": reduction.coverage.share,
        "margin": float(reduction.statement.margin) if reduction.statement.margin is not None else 0.0,
        "rejected": reduction.coverage.rejected,
        "model": ", ".join(sorted(inputs.models())),
        "prompt_tokens": sum(result.prompt_tokens for result in done),
        "output_tokens": sum(result.output_tokens for result in done),
        "model_seconds": round(sum(result.seconds for result in done), 3),
        "file": place(spec, spec.store().tally),
    }


def _columns(schema: pa.Schema) -> dg.TableSchema:
    return dg.TableSchema(columns=[dg.TableColumn(field.name, str(field.type)) for field in schema])
