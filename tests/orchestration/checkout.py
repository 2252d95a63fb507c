"""A small checkout on disk and what tests do with it."""

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster._core.storage.partition_status_cache import AssetPartitionStatus

from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.orchestration.automation import RANGE_END, RANGE_START
from ctxstream_dagster.orchestration.component import SweepComponent
from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.orchestration.launch import Outcome, load_project, run_sweep
from ctxstream_dagster.orchestration.partitions import partitions_name, segments_of
from ctxstream_dagster.orchestration.resources import OllamaResource
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.storage import SweepStore

REPOSITORY = Path(__file__).resolve().parents[2]
LABELS = ["alpha", "beta", "gamma", "delta"]


def status_lines(count: int, *, start: int = 0) -> list[str]:
    """Return ticket lines whose labels repeat with the period 10: alpha 4, beta 3, gamma 2, delta 1."""
    cycle = ["alpha", "beta", "alpha", "gamma", "alpha", "beta", "delta", "alpha", "gamma", "beta"]
    return [f"ticket {number:05} | Status: {cycle[number % 10]} | owner: ana" for number in range(start, start + count)]


@dataclass
class Told:
    """Progress as a test reads it."""

    results: list[SegmentResult] = field(default_factory=list)

    def segment(self, result: SegmentResult) -> None:
        self.results.append(result)


@dataclass(frozen=True)
class Checkout:
    """A project directory with the repository's own settings."""

    root: Path

    @classmethod
    def lay_out(cls, root: Path) -> None:
        for name in ("dagster.yaml", "workspace.yaml", "assets/definitions.py"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / name, root / name)
        (root / "assets" / "sweeps").mkdir()

    @property
    def project(self) -> Project:
        return Project(self.root)

    @property
    def corpus(self) -> Path:
        return self.root / "corpus.txt"

    def write_corpus(self, lines: Sequence[str]) -> None:
        self.corpus.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def write_sweep(self, folder: str = "census", **attributes: Any) -> Path:
        """Declare a sweep of five lines a segment."""
        settings = {
            "corpus": "corpus.txt",
            "question": {"mode": "labels", "extract": "The status of the ticket.", "labels": LABELS},
            "answer": "least",
            # A line has 41 to 42 characters.
            "planning": {"segment_chars": 215},
            "ollama": {"num_ctx": 4096, "num_predict": 64},
            **attributes,
        }
        file = self.root / "assets" / "sweeps" / folder / "defs.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        declared = {"type": "ctxstream_dagster.orchestration.component.SweepComponent", "attributes": settings}
        file.write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")
        return file

    def definitions(self) -> dg.Definitions:
        return load_project(self.project)

    def store(self, name: str = "census") -> SweepStore:
        return SweepStore(self.project.data_home, name)

    def sweep(self, instance: dg.DagsterInstance, name: str = "census", **options: Any) -> tuple[Outcome, Told]:
        told = Told()

        @contextlib.contextmanager
        def progress(_: int) -> Iterator[Told]:
            yield told

        return run_sweep(self.project, name, instance=instance, progress=progress, **options), told

    def run(
        self,
        instance: dg.DagsterInstance,
        *assets: str,
        name: str = "census",
        batch: Sequence[str] = (),
        loaded: dg.Definitions | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Run assets of a sweep in this process, the extraction for one range of partitions."""
        job = (loaded or self.definitions()).resolve_implicit_global_asset_job_def()
        selection = {dg.AssetKey([name, asset]) for asset in assets}
        checks = job.asset_layer.asset_graph.asset_check_keys
        part = job.get_subset(
            asset_selection=selection, asset_check_selection={key for key in checks if key.asset_key in selection}
        )
        return part.execute_in_process(
            instance=instance,
            run_config={
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                "resources": dict(resources or {}),
            },
            tags={RANGE_START: batch[0], RANGE_END: batch[-1]} if batch else {},
            raise_on_error=False,
        )

    def partitions(self, instance: dg.DagsterInstance, name: str = "census") -> list[str]:
        return list(instance.get_dynamic_partitions(partitions_name(name)))

    def states(self, instance: dg.DagsterInstance, name: str = "census") -> dict[str, AssetPartitionStatus | None]:
        """Return the extraction's state of every partition, as Dagster stores it."""
        keys = self.partitions(instance, name)
        key = dg.AssetKey([name, "extraction"])
        found = instance.get_status_by_partition(key, keys, segments_of(name)) or {}
        return {segment: found.get(segment) for segment in keys}

    def spec(self, name: str = "census") -> SweepSpec:
        """Return what a folder declares."""
        file = self.root / "assets" / "sweeps" / name / "defs.yaml"
        attributes = yaml.safe_load(file.read_text(encoding="utf-8"))["attributes"]
        return SweepComponent(**attributes).spec(root=self.root, default_name=name)

    def version(self, name: str = "census") -> str:
        """Return the version that its extractions are stored under."""
        return OllamaResource().version(self.spec(name))

    def retry(self, instance: dg.DagsterInstance, name: str = "census") -> list[Any]:
        """Evaluate the retry schedule; return its requests or its reason to skip."""
        schedule = self.definitions().resolve_schedule_def(f"{name}_retry_schedule")
        result = schedule.evaluate_tick(
            dg.build_schedule_context(
                instance=instance, scheduled_execution_time=datetime(2026, 12, 1, tzinfo=timezone.utc)
            )
        )
        return list(result.run_requests or []) or [result]
