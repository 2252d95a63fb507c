"""What a tally is made from and what it says of itself: the extraction files of the plan and version in force."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from upath import UPath

from ctxstream_dagster.errors import StorageError
from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.orchestration.lineage import result_version
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.planning.corpus import PackedCorpus
from ctxstream_dagster.reduction.records import table_to_result
from ctxstream_dagster.reduction.sweep import Reduction, stored_reduction
from ctxstream_dagster.storage import SweepStore, read_bytes, read_table

_FACTS = b"ctxstream"
ANSWER_FACTS = ("plan", "version", "inputs", "reduced_by")
"""What an answer repeats of the facts of its tally."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The plan in force and what is extracted of it under one version.

    Attributes:
        corpus: the plan.
        version: of question, options and model.
        results: by segment key, failed ones included; a key without a file is missing.
    """

    corpus: PackedCorpus
    version: str
    results: Mapping[str, SegmentResult]

    @property
    def plan_id(self) -> str:
        """The name of the plan's directory."""
        return self.corpus.directory.name

    def fingerprint(self) -> str:
        """Hash which segments contribute what."""
        content = [(key, result_version(result)) for key, result in sorted(self.results.items()) if result.ok]
        return hashlib.sha256(json.dumps(content).encode("ascii")).hexdigest()[:16]

    def models(self) -> set[str]:
        """Name every model build that answered."""
        return {f"{item.model} {item.model_digest[:12]}" for item in self.results.values() if item.ok and item.replies}


def open_plan(spec: SweepSpec) -> PackedCorpus:
    """Open the plan in force; raises `StorageError` before the first one."""
    return PackedCorpus.open(_plan_directory(spec.store()))


def planned_sweeps(project: Project) -> list[str]:
    """Return the names of the project's sweeps that have a plan in force."""
    folder = project.data_home / "sweeps"
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    return [name for name in names if SweepStore(project.data_home, name).current_plan() is not None]


def planned_keys(store: SweepStore) -> list[str]:
    """Return the segment keys of the plan in force, in order; raises `StorageError` when there is none."""
    return [segment.key for segment in PackedCorpus.open(_plan_directory(store)).manifest]


def answered_from(store: SweepStore) -> tuple[str, str, set[str]] | None:
    """Return plan, version and segment keys that the last good answer rests on; None when there is no whole one."""
    try:
        _, facts = last_good(store)
        corpus = PackedCorpus.open(store.plan_directory(facts["plan"]))
    except StorageError:
        return None
    return facts["plan"], facts["version"], set(corpus.stored)


def read_inputs(store: SweepStore, *, version: str) -> Inputs:
    """Read every extraction file of the plan in force; raises `StorageError` when there is no plan."""
    corpus = PackedCorpus.open(_plan_directory(store))
    results = {
        segment.key: stored
        for segment in corpus.manifest
        if (stored := stored_result(store, version=version, key=segment.key)) is not None
    }
    return Inputs(corpus=corpus, version=version, results=results)


def stored_result(store: SweepStore, *, version: str, key: str) -> SegmentResult | None:
    """Return what is stored of one segment, successful or failed; None when nothing is.

    A file that cannot be read is a failed segment with that reason, so that only this segment is asked about again.
    """
    path = store.extraction(version, key)
    if not path.exists():
        return None
    try:
        return table_to_result(read_table(path))
    except StorageError as error:
        return SegmentResult(index=0, key=key, ok=False, error=str(error), error_kind="unreadable")


def with_facts(table: pa.Table, facts: Mapping[str, str]) -> pa.Table:
    """Write into a table what it was made from, so that table and facts can never disagree."""
    return table.replace_schema_metadata({_FACTS: json.dumps(dict(facts)).encode("utf-8")})


def tally_facts(table: pa.Table) -> dict[str, str]:
    """Return what `with_facts` wrote; raises `StorageError` for any other table."""
    raw = (table.schema.metadata or {}).get(_FACTS)
    if raw is None:
        raise StorageError("The tally's file does not say what it was made from. Materialize the tally again.")
    return dict(json.loads(raw))


def last_good(store: SweepStore) -> tuple[Reduction, dict[str, str]]:
    """Return the last good reduction and what it was made from.

    Raises `StorageError` when there is none, or when a run was interrupted between its two files.
    """
    tally, records = read_table(store.tally), read_table(store.records)
    facts = tally_facts(tally)
    if tally_facts(records) != facts:
        raise StorageError(
            f"{store.records.name} and {store.tally.name} of {store.name} are of different runs, one of which was "
            "interrupted. Materialize the tally again."
        )
    return stored_reduction(json.loads(facts["reduction"]), records=records, tally_table=tally), facts


def differences(facts: Mapping[str, str], inputs: Inputs) -> list[str]:
    """Say in sentences why a tally with these facts is not of `inputs`, or why these are not of one kind."""
    reasons: list[str] = []
    if facts["plan"] != inputs.plan_id:
        reasons.append("The corpus was planned again since: materialize extraction and tally.")
    if facts["version"] != inputs.version:
        reasons.append("The question, the model or an option changed since: re-extract the stale segments.")
    if not reasons and facts["inputs"] != inputs.fingerprint():
        reasons.append("Segments were extracted again since: materialize the tally.")
    if mixed := mixed_builds(inputs):
        reasons.append(mixed)
    return reasons


def mixed_builds(inputs: Inputs) -> str:
    """Say which builds of the model answered when they are several, which no tally may mix; else nothing."""
    models = sorted(inputs.models())
    if len(models) < 2:
        return ""
    return f"Different builds of the model answered: {', '.join(models)}. Extract all segments again with `refresh`."


def is_answered(store: SweepStore, *, version: str, reduced_by: str) -> bool:
    """Whether the last good answer is of the present plan and extractions, and made as the sweep says now.

    Args:
        store: of the sweep.
        version: `extraction_version` of question, options and model.
        reduced_by: `reduction_version` of what is declared now.
    """
    try:
        _, facts = last_good(store)
        stated = json.loads(read_bytes(store.answer))
    except (StorageError, ValueError):
        # Missing or damaged: made anew from the extractions, which costs no call.
        return False
    made_of = {name: facts.get(name) for name in ANSWER_FACTS}
    if not isinstance(stated, dict):
        return False
    if facts.get("reduced_by") != reduced_by or {name: stated.get(name) for name in ANSWER_FACTS} != made_of:
        return False
    return not differences(facts, read_inputs(store, version=version))


def _plan_directory(store: SweepStore) -> Path | UPath:
    directory = store.current_plan()
    if directory is None:
        raise StorageError(f"The sweep {store.name} has no plan yet: materialize {store.name}/corpus first.")
    return directory
