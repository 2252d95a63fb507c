"""What declares a sweep: one value that YAML and Python fill, and that `build_sweep` turns into assets."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg

from ctxstream_dagster.errors import ConfigError
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.orchestration.partitions import SWEEP_TAG
from ctxstream_dagster.planning.manifest import ManifestOptions
from ctxstream_dagster.reduction.answer import Answer
from ctxstream_dagster.storage import SweepStore

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a sweep looks at its corpus again by itself.

    Attributes:
        cron: when `corpus` is planned again.
        retry_cron: when failed segments are tried again.
        max_tries: after so many failed runs a segment stays red until somebody runs it by hand.
        timezone: of both crons.
        check_every_s: seconds between two looks of the automation sensor, once it is on.
    """

    DEFAULT_CHECK_EVERY_S: ClassVar[int] = 60

    cron: str
    retry_cron: str = "0 * * * *"
    max_tries: int = 3
    timezone: str = "UTC"
    check_every_s: int = DEFAULT_CHECK_EVERY_S

    def __post_init__(self) -> None:
        if self.max_tries < 1:
            raise ConfigError(f"max_tries is {self.max_tries}; it must be 1 or more.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpec:
    """One question asked of one corpus.

    Attributes:
        name: first part of every asset key; a-z, 0-9 and '_'.
        root: the project's directory, which relative corpus paths start from.
        corpus: files, globs or directories.
        question: what the model is asked of every unit.
        answer: what code concludes from the tally.
        planning: how the corpus is cut.
        ollama: settings of the Ollama client that differ from the defaults; ``model`` and ``url`` fall back to
            CTXSTREAM_MODEL and OLLAMA_HOST when a run starts.
        in_flight: model calls that one run keeps in flight.
        batch_size: segments in one run.
        min_coverage: share of segments that must be read, or the tally is withheld.
        schedule: None for a sweep that runs only when asked.
        description: shown beside every asset of the sweep.
        owners: e-mail addresses or ``team:name``.
        tags: put on every asset.
    """

    name: str
    root: Path
    corpus: tuple[str, ...]
    question: Question
    answer: Answer = Answer.LIST
    planning: ManifestOptions = field(default_factory=ManifestOptions)
    ollama: Mapping[str, Any] = field(default_factory=dict)
    in_flight: int = 4
    batch_size: int = 100
    min_coverage: float = 1.0
    schedule: Schedule | None = None
    description: str = ""
    owners: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(f"The name {self.name!r} must be 1 to 60 of a-z, 0-9 and '_', a letter first.")
        if not self.corpus or not all(self.corpus):
            raise ConfigError("'corpus' names no path.")
        for name, least, most in (("in_flight", 1, 256), ("batch_size", 1, 100)):
            if not least <= getattr(self, name) <= most:
                raise ConfigError(f"{name!r} is {getattr(self, name)}; it must be {least} to {most}.")
        if not 0 < self.min_coverage <= 1:
            raise ConfigError(f"'min_coverage' is {self.min_coverage}; it must be above 0 and at most 1.")

    def key(self, asset: str) -> dg.AssetKey:
        """Return the key of the sweep's asset `asset`."""
        return dg.AssetKey([self.name, asset])

    def run_tags(self) -> dict[str, str]:
        """Return the tags by which a run of this sweep is found and limited."""
        return {
            SWEEP_TAG: self.name,
            "ctxstream/corpus": ", ".join(self.corpus)[:200],
            "ctxstream/question": self.question.extract.strip().splitlines()[0][:100],
        }

    def store(self) -> SweepStore:
        """Where this sweep keeps its plans, extractions and results."""
        return SweepStore(Project(self.root).data_home, self.name)

    def corpus_paths(self) -> list[str]:
        """The corpus's paths, relative ones resolved against the project."""
        return [os.path.join(self.root, Path(path).expanduser()) for path in self.corpus]  # noqa: PTH118 -- globs too
