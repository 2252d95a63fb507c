"""`corpus`: plans the text that exists now, and makes its segments partitions. Calls no model."""

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dagster as dg
from upath import UPath

from ctxstream_dagster.extraction.budget import within_context
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.orchestration.boundary import failures
from ctxstream_dagster.orchestration.lineage import SourceLinks, manifest_event
from ctxstream_dagster.orchestration.orphans import claim_run
from ctxstream_dagster.orchestration.partitions import Sync, sync_partitions
from ctxstream_dagster.orchestration.resources import OllamaResource
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.planning.corpus import PackedCorpus, pack
from ctxstream_dagster.planning.line_ends import line_end_hint
from ctxstream_dagster.planning.plan_store import is_whole
from ctxstream_dagster.reduction.coverage import counted
from ctxstream_dagster.report.summary import by_file_markdown, manifest_markdown


def build_corpus(spec: SweepSpec) -> dg.AssetsDefinition:
    """Return the asset that plans the corpus and keeps the sweep's partitions equal to the plan."""

    @dg.asset(
        key=spec.key("corpus"),
        group_name=spec.name,
        description=f"The text of {', '.join(spec.corpus)}, planned.\n\n{spec.description}",
        kinds={"python", "file"},
        owners=list(spec.owners),
        tags=dict(spec.tags),
    )
    def corpus(context: dg.AssetExecutionContext, ollama: OllamaResource) -> dg.MaterializeResult:
        claim_run(context, spec.run_tags())
        with failures():
            planned = plan_corpus(spec, model=ollama.options(spec), scratch=context.run.run_id)
            keys = [segment.key for segment in planned.manifest]
            sync = sync_partitions(context.instance, spec.name, keys, own_run_id=context.run.run_id)
            known = context.instance.get_materialized_partitions(spec.key("manifest"))
            links = SourceLinks(spec)
            fresh = [key for key in keys if key not in known]
            for key in fresh:
                context.log_event(manifest_event(spec, planned.read(key), links=links))
        return dg.MaterializeResult(
            metadata=_metadata(spec, planned=planned, sync=sync), data_version=dg.DataVersion(planned.directory.name)
        )

    return corpus


def plan_corpus(spec: SweepSpec, *, model: OllamaOptions, scratch: str) -> PackedCorpus:
    """Plan the corpus as it is now and put that plan in force; equal text and options give the same plan again.

    Args:
        spec: the sweep.
        model: whose context every segment must fit.
        scratch: a name of the caller's own for the plan until its id is known.
    """
    store = spec.store()
    options = within_context(spec.planning, question=spec.question, options=model)
    planned = pack(spec.corpus_paths(), directory=store.plan_directory(f"new-{scratch}"), options=options)
    name = plan_id(planned)
    target = store.plan_directory(name)
    if target.exists() and not is_whole(target):
        _remove(target)
    if target.exists() or not moved(planned.directory, target):
        _remove(planned.directory)
    if not target.exists():
        # Object stores cannot rename a directory.
        pack(spec.corpus_paths(), directory=target, options=options)
    store.set_current_plan(name)
    return PackedCorpus.open(target)


def moved(source: Path | UPath, target: Path | UPath) -> bool:
    """Rename a plan's directory; False where that cannot be, or when another run has just put the same plan there."""
    if not isinstance(source, Path) or not isinstance(target, Path):
        return False
    try:
        source.rename(target)
    except OSError:
        if target.exists():
            return False
        raise
    return True


def plan_id(planned: PackedCorpus) -> str:
    """Hash what a plan says: text, cuts, files and what was left out."""
    content = [
        asdict(planned.options),
        asdict(planned.manifest.proof),
        [segment.key for segment in planned.manifest],
        [asdict(file) for file in planned.files],
        [asdict(path) for path in planned.skipped],
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _remove(directory: Path | UPath) -> None:
    if isinstance(directory, Path):
        shutil.rmtree(directory)
    else:
        directory.rmdir(recursive=True)


def _metadata(spec: SweepSpec, *, planned: PackedCorpus, sync: Sync) -> dict[str, Any]:
    root = str(spec.root)
    metadata: dict[str, Any] = {
        "overview": dg.MetadataValue.md(manifest_markdown(planned, root=root)),
        "by_file": dg.MetadataValue.md(by_file_markdown(planned, root=root)),
    }
    if hint := line_end_hint(spec.corpus_paths(), delim=spec.planning.record_delim, way='planning.record_delim: "\\r"'):
        metadata["hint"] = hint
    if sync.waiting:
        leave = "leaves" if len(sync.waiting) == 1 else "leave"
        metadata["waiting"] = f"{counted(len(sync.waiting), 'segment')} {leave} once {sync.busy} has finished."
    return metadata | {
        "segments": len(planned.manifest),
        "added": len(sync.added),
        "retired": len(sync.retired),
        "files": len(planned.files),
        "skipped": len(planned.skipped),
        "bytes": sum(file.bytes for file in planned.files),
        "chars": planned.manifest.proof.chars,
        "cut_records": planned.manifest.proof.cut_records,
        "plan": planned.directory.name,
    }
