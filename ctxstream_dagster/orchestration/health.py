"""What can be wrong with a project's Dagster side, each as one finding with what to change."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dagster as dg
import yaml

from ctxstream_dagster.errors import CtxstreamError
from ctxstream_dagster.orchestration.home import Project, ensure_home
from ctxstream_dagster.orchestration.launch import load_project, sweep_names
from ctxstream_dagster.orchestration.orphans import end_orphans

_ALIVE_S = 90
_LIMIT = ("concurrency", "pools", "default_limit")
# Each with what goes wrong without it; docs/decisions.md has the measurements.
_NEEDED: tuple[tuple[tuple[str, ...], object, str], ...] = (
    (
        ("concurrency", "pools", "granularity"),
        "op",
        "a sweep in a terminal and one in the UI would overload the server",
    ),
    (("run_monitoring", "enabled"), True, "a run whose process died would hold its slot"),
    (("run_retries", "retry_on_asset_or_op_failure"), False, "one failed segment would redo its whole batch"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One thing that was looked at: in order, weakening, or keeping sweeps from running."""

    subject: str
    state: Literal["ok", "warning", "problem"]
    found: str
    change: str = ""


def examine(project: Project) -> Iterator[Condition]:
    """Yield the state of home, settings, sweeps, daemons and runs; ends runs whose process is gone."""
    try:
        home = ensure_home(project)
    except CtxstreamError as error:
        sentence, _, change = str(error).partition(". ")
        yield Condition(subject="Dagster home", state="problem", found=sentence, change=change)
        return
    yield _home(project, home=home)
    try:
        with dg.DagsterInstance.from_config(str(home)) as instance:
            yield _settings(home / "dagster.yaml")
            yield _daemons(instance, home=home)
            yield _runs(instance)
    except (dg.DagsterError, yaml.YAMLError) as error:
        yield Condition(
            subject="dagster.yaml",
            state="problem",
            found=" ".join(str(error).split())[:300],
            change=f"Correct {home / 'dagster.yaml'}, or copy the project's dagster.yaml over it.",
        )
    yield _sweeps(project)


def daemon_processes(home: Path) -> list[int]:
    """Return the process ids of Dagster daemons of this home on this machine; empty where /proc does not exist."""
    found: list[int] = []
    wanted = f"DAGSTER_HOME={home}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            environment = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        is_daemon = b"dagster._daemon" in command or any(part.endswith(b"dagster-daemon") for part in command)
        if is_daemon and b"run" in command and wanted in environment:
            found.append(int(process.name))
    return sorted(found)


def _home(project: Project, *, home: Path) -> Condition:
    leftovers = sorted(project.root.glob(".tmp_dagster_home_*"))
    temporary = home.is_relative_to(tempfile.gettempdir()) or home.name.startswith(".tmp_dagster_home_")
    if temporary:
        own = home == project.root / ".dagster"
        return Condition(
            subject="Dagster home",
            state="warning",
            found=f"{home} is temporary: runs and partitions will be lost",
            change="Move the checkout to a lasting directory, or set DAGSTER_HOME to one."
            if own
            else "Unset DAGSTER_HOME to keep them in .dagster, or set it to a lasting directory.",
        )
    if leftovers:
        return Condition(
            subject="Dagster home",
            state="warning",
            found=f"{leftovers[0].name} shows that `dagster dev` ran without DAGSTER_HOME, with a temporary home",
            change=f"Start the UI with `ctxstream dev`, or with DAGSTER_HOME={home}; then remove the directory.",
        )
    return Condition(subject="Dagster home", state="ok", found=str(home))


def _settings(file: Path) -> Condition:
    settings = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for path, wanted, harm in _NEEDED:
        if _value(settings, path) != wanted:
            return Condition(
                subject="dagster.yaml",
                state="warning",
                found=f"{'.'.join(path)} is not {str(wanted).lower()}: {harm}",
                change=f"Copy the project's dagster.yaml to {file}, or set it there.",
            )
    return Condition(subject="dagster.yaml", state="ok", found=f"pool limit {_value(settings, _LIMIT)}")


def _daemons(instance: dg.DagsterInstance, *, home: Path) -> Condition:
    processes = daemon_processes(home)
    if len(processes) > 1:
        return Condition(
            subject="daemon",
            state="problem",
            found=f"{len(processes)} daemons work on one home (processes {', '.join(map(str, processes))})",
            change="Stop all but one: two daemons start every run twice.",
        )
    beats = instance.get_daemon_heartbeats().values()
    fresh = {beat.daemon_id for beat in beats if time.time() - beat.timestamp < _ALIVE_S}
    if len(fresh) > 1:
        return Condition(
            subject="daemon",
            state="problem",
            found=f"{len(fresh)} daemons sent a heartbeat to this home in the last {_ALIVE_S} s",
            change="Stop all but one, on other machines too; then wait a minute.",
        )
    if not processes and not fresh:
        return Condition(
            subject="daemon",
            state="warning",
            found="none is running: backfills, schedules and the queue wait",
            change="`ctxstream dev` starts one with the UI; `ctxstream sweep` needs none.",
        )
    return Condition(subject="daemon", state="ok", found="one is running")


def _runs(instance: dg.DagsterInstance) -> Condition:
    ended = end_orphans(instance)
    if ended:
        return Condition(
            subject="runs",
            state="ok",
            found=f"ended {len(ended)} runs whose process was gone: {', '.join(run[:8] for run in ended)}",
        )
    return Condition(subject="runs", state="ok", found="none is orphaned")


def _sweeps(project: Project) -> Condition:
    try:
        names = sweep_names(load_project(project))
    except CtxstreamError as error:
        return Condition(subject="sweeps", state="problem", found=str(error), change="Correct the file and line named.")
    return Condition(subject="sweeps", state="ok", found=", ".join(names) or "none declared")


def _value(settings: Any, path: tuple[str, ...]) -> object:
    for name in path:
        settings = settings.get(name) if isinstance(settings, dict) else None
    return settings
