"""Runs a declared sweep in this process, in the same instance and with the same partitions that the UI shows."""

import os
import runpy
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import dagster as dg

from ctxstream_dagster.errors import ConfigError, CtxstreamError, UsageError, nearest_name
from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.orchestration.automation import RANGE_END, RANGE_START
from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.orchestration.orphans import WORKER_TAG, end_orphans, worker_id
from ctxstream_dagster.orchestration.partitions import SWEEP_TAG, contiguous_ranges, partitions_name
from ctxstream_dagster.orchestration.results import is_answered, planned_keys, stored_result
from ctxstream_dagster.storage import SweepStore

# The daemon could not restart a run of ours: it does not know this process.
_RUN_TAGS = {"dagster/max_retries": "0", "ctxstream/launched_by": "ctxstream sweep"}
# What a person asked for and cannot be done, as a run's page names it.
_USAGE = {error.__name__ for error in UsageError.__subclasses__()}
# Every event is recorded in the instance; a copy on the terminal would bury the answer.
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a sweep ended.

    Attributes:
        withheld: why there is no new answer; empty when there is one.
        refused: whether the server or the model was not ready, so that nothing could be asked.
        segments: segments in the plan; sent: how many of them this sweep asked about; failed: by key, why.
        run_ids: the runs, in order, as the UI shows them.
    """

    withheld: str
    refused: bool
    segments: int
    sent: int
    failed: dict[str, str]
    run_ids: tuple[str, ...]


class Progress(Protocol):
    """Who is told of every segment's result as it becomes true."""

    def segment(self, result: SegmentResult) -> None:
        """Take one finished segment, successful or failed."""
        ...


def load_project(project: Project) -> dg.Definitions:
    """Return the project's definitions by running ``assets/definitions.py`` as Dagster does; raises `ConfigError`."""
    found = runpy.run_path(str(project.definitions_file))
    for value in found.values():
        if isinstance(value, dg.Definitions):
            return value
        if type(value).__name__ == "LazyDefinitions":
            return value()
    raise ConfigError(f"{project.definitions_file} defines no dagster.Definitions.")


def sweep_names(definitions: dg.Definitions) -> list[str]:
    """Return the names of the declared sweeps; raises `ConfigError` when the definitions do not fit together."""
    try:
        graph = definitions.resolve_asset_graph()
    except dg.DagsterInvalidDefinitionError as error:
        raise ConfigError(
            f"The definitions do not fit together: {error} `ctxstream check` looks at each alone."
        ) from error
    keys = [key for key in graph.get_all_asset_keys() if len(key.path) == 2]
    return sorted(key.path[0] for key in keys if key.path[1] == "extraction")


def run_sweep(
    project: Project,
    name: str,
    *,
    instance: dg.DagsterInstance,
    progress: Callable[[int], AbstractContextManager[Progress]],
    refresh: bool = False,
) -> Outcome:
    """Plan, extract what is not extracted yet, and tally unless nothing changed, each as recorded runs.

    Args:
        project: the checkout.
        name: the sweep.
        instance: where the runs are recorded.
        progress: opened with the number of segments to be sent, told of each.
        refresh: extract every segment again.

    Raises:
        ConfigError: there is no such sweep.
        UsageError: the corpus is not there or not text; the sentence is the failed run's.
        CtxstreamError: the plan could not be made for another reason.
    """
    definitions = load_project(project)
    names = sweep_names(definitions)
    if name not in names:
        raise ConfigError(
            f"There is no sweep {name!r}{nearest_name(name, names)}. Declared: {', '.join(names) or 'none'}."
        )
    end_orphans(instance)
    runner = _Runner(job=definitions.resolve_implicit_global_asset_job_def(), instance=instance, sweep=name)
    runner.run(["corpus"])
    store = SweepStore(project.data_home, name)
    extraction = definitions.resolve_assets_def(dg.AssetKey([name, "extraction"]))
    version = code_version(definitions, name, "extraction")
    keys = planned_keys(store)
    wanted = keys if refresh else _unfinished(store, version=version, keys=keys)
    policy = extraction.backfill_policy
    have = instance.get_dynamic_partitions(partitions_name(name))
    config = {"ops": {extraction.op.name: {"config": {"refresh": refresh}}}}
    refused = ""
    with progress(len(wanted)) as shown:
        for batch in contiguous_ranges(have, wanted, longest=(policy and policy.max_partitions_per_run) or 1):
            with _watching(runner, store=store, version=version, batch=batch, progress=shown):
                runner.run(["extraction"], batch=batch, config=config, may_fail=True)
            if runner.refused:
                # No server or no model: every other batch would be told the same.
                refused = f"{runner.refused} "
                break
    withheld = ""
    if wanted or not is_answered(store, version=version, reduced_by=code_version(definitions, name, "tally")):
        withheld = runner.run(["records", "tally", "answer"], may_fail=True)
    failed = {
        key: stored.error
        for key in wanted
        if (stored := stored_result(store, version=version, key=key)) is not None and not stored.ok
    }
    return Outcome(
        withheld=f"{refused}{withheld}" if withheld else "",
        refused=bool(refused and withheld),
        segments=len(keys),
        sent=len(wanted),
        failed=failed,
        run_ids=tuple(runner.run_ids),
    )


class _Runner:
    """Runs parts of one sweep's asset job and remembers their ids."""

    def __init__(self, *, job: dg.JobDefinition, instance: dg.DagsterInstance, sweep: str) -> None:
        self._job, self.instance, self._sweep = job, instance, sweep
        self.run_ids: list[str] = []
        self.next_id = str(uuid.uuid4())
        self.refused = ""

    def run(
        self,
        assets: Sequence[str],
        *,
        batch: Sequence[str] = (),
        config: Mapping[str, Any] | None = None,
        may_fail: bool = False,
    ) -> str:
        """Return why the run failed, or an empty string; raises `CtxstreamError` instead unless it `may_fail`."""
        selection = {dg.AssetKey([self._sweep, asset]) for asset in assets}
        checks = self._job.asset_layer.asset_graph.asset_check_keys
        part = self._job.get_subset(
            asset_selection=selection,
            asset_check_selection={check for check in checks if check.asset_key in selection},
        )
        limits = {RANGE_START: batch[0], RANGE_END: batch[-1]} if batch else {}
        try:
            result = part.execute_in_process(
                run_id=self.next_id,
                instance=self.instance,
                run_config={**_QUIET, **(config or {})},
                # Here, not once it runs: a run whose process died just after creating it must be found too.
                tags={SWEEP_TAG: self._sweep, WORKER_TAG: worker_id(os.getpid()), **_RUN_TAGS, **limits},
                raise_on_error=False,
            )
        except dg.DagsterInvalidInvocationError as error:
            raise CtxstreamError(
                f"The corpus of {self._sweep} was planned again by another process meanwhile ({error}). Run the sweep "
                "again: what is finished costs no call."
            ) from error
        self.run_ids.append(self.next_id)
        self.next_id = str(uuid.uuid4())
        reason = "" if result.success else _reason(result)
        kind = _kind(result)
        self.refused = reason if reason and kind else ""
        if reason and not may_fail:
            raise UsageError(reason) if kind in _USAGE else CtxstreamError(reason)
        return reason


@contextmanager
def _watching(
    runner: _Runner, *, store: SweepStore, version: str, batch: Sequence[str], progress: Progress
) -> Iterator[None]:
    """Tell `progress` of every segment of the next run: the good ones at once, the failed ones when it ends."""
    told: set[str] = set()

    def tell(key: str) -> None:
        stored = stored_result(store, version=version, key=key)
        if stored is not None and key not in told:
            told.add(key)
            progress.segment(stored)

    def listen(entry: dg.EventLogEntry) -> None:
        event = entry.dagster_event
        if event is not None and event.is_step_materialization and event.partition is not None:
            tell(event.partition)

    runner.instance.add_event_listener(runner.next_id, listen)
    yield
    for key in batch:
        tell(key)


def code_version(definitions: dg.Definitions, sweep: str, asset: str) -> str:
    """Return the version of a sweep's asset as it is declared now; empty for one that has none."""
    key = dg.AssetKey([sweep, asset])
    return definitions.resolve_assets_def(key).code_versions_by_key[key] or ""


def _unfinished(store: SweepStore, *, version: str, keys: Sequence[str]) -> list[str]:
    stored = {key: stored_result(store, version=version, key=key) for key in keys}
    return [key for key, result in stored.items() if result is None or not result.ok]


def _kind(result: dg.ExecuteInProcessResult) -> str:
    """Name the error of its own that a run failed by (`boundary.failures`); empty when its segments failed, or none."""
    for event in result.all_events:
        told = event.step_failure_data.user_failure_data if event.is_step_failure else None
        if told is not None and "kind" in told.metadata:
            return str(told.metadata["kind"].value)
    return ""


def _reason(result: dg.ExecuteInProcessResult) -> str:
    # Of a check that blocks, Dagster's own error gives the name only.
    blocked = [
        check.description or check.check_name
        for check in result.get_asset_check_evaluations()
        if not check.passed and check.severity is dg.AssetCheckSeverity.ERROR
    ]
    for event in result.all_events:
        if event.is_step_failure:
            told = event.step_failure_data.user_failure_data
            error = event.step_failure_data.error
            return (told and told.description) or " ".join(blocked) or (error.message if error else "the run failed")
    return "the run failed before its first step; `ctxstream dev` shows its log"
