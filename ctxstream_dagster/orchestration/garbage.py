"""Collects what a sweep left behind: plans that are not in force, extractions nobody can ask for again."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from upath import UPath

from ctxstream_dagster.errors import ConfigError, StorageError, nearest_name
from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.orchestration.launch import code_version, load_project, sweep_names
from ctxstream_dagster.orchestration.partitions import live_work
from ctxstream_dagster.orchestration.results import answered_from, planned_keys, planned_sweeps
from ctxstream_dagster.storage import SweepStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What was (or would be) removed.

    Attributes:
        removed: paths, plans as directories.
        bytes: their size.
        left_alone: sweeps that were not touched, and why.
    """

    removed: tuple[str, ...]
    bytes: int
    left_alone: Mapping[str, str]


def collect(
    project: Project, names: Sequence[str], *, instance: dg.DagsterInstance, older_than_s: float, dry_run: bool = False
) -> Collected:
    """Remove plans and extraction files that are old enough and that nothing rests on.

    What stays: the plan in force and the one that the last good answer is of, each with its extractions (of the
    declared version; for a sweep that is declared no more, of any). A sweep with a live run or backfill is left alone.

    Args:
        project: the checkout.
        names: sweeps to look at; all that have a plan when empty.
        instance: asked for live runs.
        older_than_s: what was written in the last so many seconds stays.
        dry_run: remove nothing.

    Raises:
        ConfigError: a name has no plan. StorageError: a path cannot be removed.
    """
    known = planned_sweeps(project)
    for name in names:
        if name not in known:
            raise ConfigError(f"The sweep {name!r} has no plan{nearest_name(name, known)}; known: {', '.join(known)}.")
    versions = _declared_versions(project)
    left_alone: dict[str, str] = {}
    removed: list[str] = []
    size = 0
    for name in names or known:
        if busy := live_work(instance, name):
            left_alone[name] = f"{busy} is live"
            continue
        for path in _garbage(SweepStore(project.data_home, name), version=versions.get(name)):
            if time.time() - path.stat().st_mtime >= older_than_s:
                size += _size(path)
                removed.append(str(path))
                if not dry_run:
                    _remove(path)
    return Collected(removed=tuple(removed), bytes=size, left_alone=left_alone)


def _garbage(store: SweepStore, *, version: str | None) -> Iterator[Path | UPath]:
    current = store.current_plan()
    plans = {current.name if current else ""}
    needed = [(version, set(planned_keys(store)))]
    if rests_on := answered_from(store):
        # The last good answer may be of an older plan, and its evidence has to last as long as it does.
        plan, answered_version, keys = rests_on
        plans.add(plan)
        needed.append((answered_version, keys))
    yield from (plan for plan in sorted((store.root / "plans").iterdir()) if plan.name not in plans)
    extraction = store.root / "extraction"
    for folder in sorted(extraction.iterdir()) if extraction.exists() else ():
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            if not any(file.stem in keys and wanted in (None, folder.name) for wanted, keys in needed):
                yield file


def _declared_versions(project: Project) -> dict[str, str]:
    definitions = load_project(project)
    return {name: code_version(definitions, name, "extraction") for name in sweep_names(definitions)}


def _size(path: Path | UPath) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _remove(path: Path | UPath) -> None:
    try:
        if not path.is_dir():
            path.unlink()
        elif isinstance(path, Path):
            shutil.rmtree(path)
        else:
            path.rmdir(recursive=True)
    except OSError as error:
        raise StorageError(f"Could not remove {path}: {error.strerror or error}.") from error
