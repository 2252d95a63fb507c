"""Runs whose process is gone: Dagster's default launcher cannot tell, so every run says who works on it.

After ``kill -9`` of a whole stack its runs stay STARTED and hold their pool slots. A run tag names host, process and
the process's start time; whoever comes next on that host (a sensor, `ctxstream sweep`, `ctxstream doctor`) ends it.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
from dagster import DagsterRunStatus

WORKER_TAG = "ctxstream/worker"
_UNFINISHED = [
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


def claim_run(context: dg.AssetExecutionContext, tags: Mapping[str, str]) -> None:
    """Put this process and the sweep's own tags on the run, so that it can be found and, when orphaned, ended."""
    context.instance.add_run_tags(context.run.run_id, {**tags, WORKER_TAG: worker_id(os.getpid())})


def worker_id(pid: int) -> str:
    """Name a process so that its number, once reused, is not taken for it."""
    return f"{socket.gethostname()}:{pid}:{_start_time(pid)}"


def is_gone(worker: str) -> bool:
    """Say whether the process of a worker tag has ended; False for another host's, which cannot be asked."""
    host, pid, _ = worker.rsplit(":", 2)
    if host != socket.gethostname():
        return False
    return worker_id(int(pid)) != worker or not _is_running(int(pid))


def end_orphans(instance: dg.DagsterInstance) -> list[str]:
    """Mark every run of a dead process as failed (or canceled, when it was being canceled) and free its pool slots.

    Returns:
        The ids of those runs. The daemon's run retries then start them again; finished segments cost no call.
    """
    ended: list[str] = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        if WORKER_TAG not in run.tags or not is_gone(run.tags[WORKER_TAG]):
            continue
        message = f"The process {run.tags[WORKER_TAG]} that worked on this run is gone. Finished segments are kept."
        if run.status is DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, message)
        else:
            instance.report_run_failed(run, message)
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        ended.append(run.run_id)
    return ended


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state(pid) != "Z"


def _stat(pid: int) -> list[str]:
    try:
        # The second field is the command in parentheses and may itself hold spaces.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _state(pid: int) -> str:
    return (_stat(pid) or ["?"])[0]


def _start_time(pid: int) -> str:
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else "0"
