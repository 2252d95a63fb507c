"""Segment keys as Dagster partitions: validated by us, because Dagster validates nothing, and retired only in peace."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import dagster as dg
from dagster import DagsterRunStatus
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from ctxstream_dagster.errors import PlanError
from ctxstream_dagster.planning.keys import validate_key

SWEEP_TAG = "ctxstream/sweep"
# SQLite refuses one statement with more variables than this many keys need.
_ADD_CHUNK = 1_000
_SUBMITTED_WITHIN = timedelta(hours=1)
_LIVE_BACKFILLS = [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """What `sync_partitions` changed.

    Attributes:
        added: keys that became partitions.
        retired: keys that are partitions no longer; their events stay.
        waiting: keys to retire once `busy` has finished.
        busy: what is live, empty when nothing is.
    """

    added: tuple[str, ...]
    retired: tuple[str, ...]
    waiting: tuple[str, ...]
    busy: str


def segments_of(sweep: str) -> dg.DynamicPartitionsDefinition:
    """Return the one partitions definition that manifest and extraction of a sweep share."""
    return dg.DynamicPartitionsDefinition(name=partitions_name(sweep))


def partitions_name(sweep: str) -> str:
    """Return the name under which the instance keeps a sweep's partitions."""
    return f"{sweep}_segments"


def validate_keys(keys: Iterable[str]) -> None:
    """Raise `CorpusError` for what is no segment key (`planning.keys`), `PlanError` for one that occurs twice."""
    seen: set[str] = set()
    for key in keys:
        if validate_key(key) in seen:
            raise PlanError(
                f"The segment key {key!r} occurs twice in one plan. "
                "This is a defect of the planner: please report it with the options used."
            )
        seen.add(key)


def sync_partitions(
    instance: dg.DagsterInstance, sweep: str, keys: Sequence[str], *, own_run_id: str | None = None
) -> Sync:
    """Make the sweep's partitions equal to `keys`, in plan order for the new ones.

    Deleting a key under a live run or backfill breaks it, so keys that left the plan wait while one is live.

    Args:
        instance: the instance that holds the partitions.
        sweep: name of the sweep.
        keys: the segment keys of the plan in force.
        own_run_id: the run that calls, which does not count as live.
    """
    validate_keys(keys)
    name = partitions_name(sweep)
    have = instance.get_dynamic_partitions(name)
    known, wanted = set(have), set(keys)
    added = [key for key in keys if key not in known]
    for start in range(0, len(added), _ADD_CHUNK):
        instance.add_dynamic_partitions(name, added[start : start + _ADD_CHUNK])
    gone = [key for key in have if key not in wanted]
    busy = live_work(instance, sweep, own_run_id=own_run_id) if gone else ""
    if not busy:
        for key in gone:
            instance.delete_dynamic_partition(name, key)
    return Sync(
        added=tuple(added),
        retired=() if busy else tuple(gone),
        waiting=tuple(gone) if busy else (),
        busy=busy,
    )


def live_work(instance: dg.DagsterInstance, sweep: str, *, own_run_id: str | None = None) -> str:
    """Name a run or backfill of the sweep that has not finished, or return an empty string."""
    for backfill in instance.get_backfills(BulkActionsFilter(statuses=_LIVE_BACKFILLS)):
        if any(key.path[0] == sweep for key in backfill.asset_selection or ()):
            return f"backfill {backfill.backfill_id}"
    for record in instance.get_run_records(dg.RunsFilter(statuses=list(NOT_FINISHED_STATUSES))):
        run = record.dagster_run
        if run.run_id != own_run_id and sweep_of_run(run) == sweep and not _was_abandoned(record):
            return f"run {run.run_id[:8]}"
    return ""


def _was_abandoned(record: dg.RunRecord) -> bool:
    # Whoever creates a run submits it at once; if its process died in between, nobody ever will.
    age = datetime.now(timezone.utc) - record.create_timestamp
    return record.dagster_run.status is DagsterRunStatus.NOT_STARTED and age > _SUBMITTED_WITHIN


def sweep_of_run(run: dg.DagsterRun) -> str:
    """Return the sweep a run belongs to: by its tag, else by the assets it selects; empty for any other run."""
    if SWEEP_TAG in run.tags:
        return run.tags[SWEEP_TAG]
    # Runs launched by hand carry no tag; their assets' first key part is the sweep.
    return next((key.path[0] for key in run.asset_selection or () if len(key.path) == 2), "")


def contiguous_ranges(have: Sequence[str], wanted: Iterable[str], *, longest: int) -> list[list[str]]:
    """Group `wanted` into neighbours in `have`, at most `longest` each: a Dagster run takes one such range."""
    pending = set(wanted)
    ranges: list[list[str]] = []
    previous_taken = False
    for key in have:
        taken = key in pending
        if taken and previous_taken and len(ranges[-1]) < longest:
            ranges[-1].append(key)
        elif taken:
            ranges.append([key])
        previous_taken = taken
    return ranges
