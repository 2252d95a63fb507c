"""What a sweep does by itself: plan on a schedule, send what is missing, try failures again, and tally when complete.

Nothing here is on until somebody switches it on in the UI (Automation), but for the sensor that tidies up.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
from dagster import AutomationCondition as When
from dagster._core.storage.partition_status_cache import AssetPartitionStatus

from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.orchestration.orphans import end_orphans
from ctxstream_dagster.orchestration.partitions import (
    SWEEP_TAG,
    contiguous_ranges,
    partitions_name,
    segments_of,
    sync_partitions,
)
from ctxstream_dagster.orchestration.results import planned_keys, planned_sweeps
from ctxstream_dagster.orchestration.spec import Schedule, SweepSpec
from ctxstream_dagster.storage import SweepStore

RANGE_START = "dagster/asset_partition_range_start"
RANGE_END = "dagster/asset_partition_range_end"
HOUSEKEEPING_INTERVAL_S = 30


def extraction_condition() -> dg.AutomationCondition:
    """Send a segment that is missing and planned, once; what failed waits for the retry schedule.

    `missing` and not `on_missing`: segments that were there before the first evaluation count too.
    """
    return (When.missing() & ~When.in_progress() & ~When.execution_failed() & ~When.any_deps_missing()).with_label(
        "new or changed segments"
    )


def tally_condition(spec: SweepSpec) -> dg.AutomationCondition:
    """Tally when every segment is read and an extraction changed, the plan (by a removal only), or what is answered."""
    changed = When.any_deps_match(When.newly_updated()).allow(dg.AssetSelection.assets(spec.key("extraction")))
    replanned = When.any_deps_match(When.data_version_changed()).allow(dg.AssetSelection.assets(spec.key("corpus")))
    complete = (
        ~When.any_deps_missing()
        & ~When.any_deps_in_progress()
        & ~When.any_deps_match(When.execution_failed())
        & ~When.in_progress()
    )
    anew = changed | replanned | When.code_version_changed()
    return (anew.since_last_handled() & complete).with_label("complete and changed")


def build_automation(spec: SweepSpec) -> dict[str, Any]:
    """Return the jobs, schedules and sensor of a sweep, as arguments of `dg.Definitions`."""
    plan_job = dg.define_asset_job(
        f"{spec.name}_plan", selection=[spec.key("corpus")], tags=spec.run_tags(), description="Plan the corpus again."
    )
    sensor = dg.AutomationConditionSensorDefinition(
        f"{spec.name}_automation",
        target=dg.AssetSelection.groups(spec.name),
        minimum_interval_seconds=spec.schedule.check_every_s if spec.schedule else Schedule.DEFAULT_CHECK_EVERY_S,
        run_tags=spec.run_tags(),
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Sends new and changed segments, and tallies when the set is complete.",
    )
    if spec.schedule is None:
        return {"jobs": [plan_job], "sensors": [sensor]}
    plan_schedule = dg.ScheduleDefinition(
        name=f"{spec.name}_plan_schedule",
        job=plan_job,
        cron_schedule=spec.schedule.cron,
        execution_timezone=spec.schedule.timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description="Plans the corpus again; the automation sensor does the rest.",
    )
    retry_job = dg.define_asset_job(f"{spec.name}_retry", selection=[spec.key("extraction")], tags=spec.run_tags())
    return {
        "jobs": [plan_job, retry_job],
        "sensors": [sensor],
        "schedules": [plan_schedule, _retry_schedule(spec, schedule=spec.schedule, job=retry_job)],
    }


def build_housekeeping(project: Project) -> dg.SensorDefinition:
    """Return the one sensor that is on from the start: it ends orphaned runs and retires segments that had to wait."""

    @dg.sensor(
        name="ctxstream_housekeeping",
        minimum_interval_seconds=HOUSEKEEPING_INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Ends runs whose process is gone, and retires segments that left the plan during a run.",
    )
    def housekeeping(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        done = [f"ended run {run_id[:8]}, whose process is gone" for run_id in end_orphans(context.instance)]
        for name in planned_sweeps(project):
            keys = planned_keys(SweepStore(project.data_home, name))
            if set(context.instance.get_dynamic_partitions(partitions_name(name))) > set(keys):
                retired = sync_partitions(context.instance, name, keys).retired
                done += [f"retired {len(retired)} segments of {name}"] if retired else []
        return dg.SkipReason("; ".join(done) or "nothing to do")

    return housekeeping


def _retry_schedule(spec: SweepSpec, *, schedule: Schedule, job: Any) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=f"{spec.name}_retry_schedule",
        job=job,
        cron_schedule=schedule.retry_cron,
        execution_timezone=schedule.timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"Tries failed segments again, until each has failed {schedule.max_tries} times.",
    )
    def retry(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        keys = list(context.instance.get_dynamic_partitions(partitions_name(spec.name)))
        failed = failed_segments(context.instance, spec, keys)
        tries = count_tries(context.instance, spec, failed)
        again = [key for key in failed if tries[key] < schedule.max_tries]
        for batch in contiguous_ranges(keys, again, longest=spec.batch_size):
            yield dg.RunRequest(tags={SWEEP_TAG: spec.name, RANGE_START: batch[0], RANGE_END: batch[-1]})
        given_up = [key for key in failed if key not in again]
        if not again:
            reason = f"{len(given_up)} segments failed {schedule.max_tries} times: {', '.join(given_up[:10])}"
            yield dg.SkipReason(f"{reason}. Their pages say why." if given_up else "no segment failed")

    return retry


def failed_segments(instance: dg.DagsterInstance, spec: SweepSpec, keys: Sequence[str]) -> list[str]:
    """Return those of `keys` that Dagster shows red."""
    status = instance.get_status_by_partition(spec.key("extraction"), keys, segments_of(spec.name)) or {}
    return [key for key in keys if status.get(key) is AssetPartitionStatus.FAILED]


def count_tries(instance: dg.DagsterInstance, spec: SweepSpec, keys: Sequence[str]) -> dict[str, int]:
    """Count the runs that were to materialize each of `keys` and have not, since it was last materialized."""
    asset, tries = spec.key("extraction"), dict.fromkeys(keys, 0)
    for key in keys:
        wanted = dg.AssetRecordsFilter(asset_key=asset, asset_partitions=[key])
        last = instance.fetch_materializations(wanted, limit=1).records
        since = last[0].storage_id if last else 0
        planned = instance.fetch_planned_materializations(wanted, limit=100).records
        tries[key] = sum(record.storage_id > since for record in planned)
    return tries
