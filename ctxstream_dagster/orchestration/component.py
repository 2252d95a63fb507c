"""`SweepComponent`: a sweep declared in ``defs.yaml``. Everything it does is `sweep.build_sweep`."""

from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import dagster as dg
from pydantic import BaseModel, Field, ValidationError
from typing_extensions import Self

from ctxstream_dagster.errors import ConfigError, nearest_name
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.orchestration.scaffold import SweepScaffolder
from ctxstream_dagster.orchestration.spec import Schedule, SweepSpec
from ctxstream_dagster.orchestration.sweep import build_sweep
from ctxstream_dagster.orchestration.yaml_errors import located
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.reduction.answer import Answer

_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(SweepSpec)}


@dg.scaffold_with(SweepScaffolder)
class SweepComponent(dg.Component, dg.Model, dg.Resolvable):
    """Ask one counting question of one corpus: corpus, manifest, extraction, tally and answer as assets."""

    corpus: str | list[str] = Field(description="Files, globs or directories, from the project's root.")
    question: dict[str, Any] = Field(description="What the model is asked; fields of `Question`.")
    answer: Literal["least", "most", "total", "list"] = Field("list", description="What code concludes from the tally.")
    name: str = Field("", description="First part of every asset key; empty for the folder's name.")
    description: str = Field("", description="Shown beside every asset of the sweep.")
    planning: dict[str, Any] = Field({}, description="How the corpus is cut; fields of `ManifestOptions`.")
    ollama: dict[str, Any] = Field(
        {}, description="The client's settings, model and url too; fields of `OllamaOptions`."
    )
    in_flight: int = Field(_DEFAULTS["in_flight"], description="Model calls that one run keeps in flight, 1 to 256.")
    batch_size: int = Field(_DEFAULTS["batch_size"], description="Segments in one run, 1 to 100.")
    min_coverage: float = Field(
        _DEFAULTS["min_coverage"], description="Share of segments that must be read, or the tally is withheld."
    )
    schedule: dict[str, Any] | None = Field(None, description="When it runs by itself; fields of `Schedule`.")
    owners: list[str] = Field([], description="E-mail addresses or team:name.")
    tags: dict[str, str] = Field({}, description="Put on every asset.")

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Return the component; raises `ConfigError` with file, line and field."""
        with located(_file(context)):
            try:
                return super().load(attributes, context)
            except ValidationError as error:
                told = [f"{'.'.join(map(str, item['loc']))!r}: {item['msg']}." for item in error.errors()]
                raise ConfigError(" ".join(told)) from error

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the sweep's definitions; raises `ConfigError` with file, line and field."""
        with located(_file(context)):
            return build_sweep(self.spec(root=context.project_root, default_name=context.path.name))

    def spec(self, *, root: Path, default_name: str) -> SweepSpec:
        """Return the sweep that these attributes declare; raises `ConfigError`."""
        planning = dict(self.planning)
        if self.schedule is not None:
            # A sweep that runs again after every edit should not be cut anew by it.
            planning.setdefault("boundary", "stable")
        return SweepSpec(
            name=self.name or default_name,
            root=root,
            corpus=(self.corpus,) if isinstance(self.corpus, str) else tuple(self.corpus),
            question=Question.from_mapping(_with_text_labels(self.question)),
            answer=Answer(self.answer),
            planning=ManifestOptions.from_mapping(planning),
            ollama=_checked(self.ollama),
            in_flight=self.in_flight,
            batch_size=self.batch_size,
            min_coverage=self.min_coverage,
            schedule=_schedule(self.schedule),
            description=self.description,
            owners=tuple(self.owners),
            tags=self.tags,
        )


def _file(context: dg.ComponentLoadContext) -> Path:
    return context.path / "defs.yaml" if context.path.is_dir() else context.path


def _with_text_labels(question: dict[str, Any]) -> dict[str, Any]:
    # Dagster fills in templates, and makes a number of a quoted "1" on the way.
    labels = question.get("labels")
    if not isinstance(labels, list):
        return question
    return {**question, "labels": [str(label) if type(label) is int else label for label in labels]}


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    OllamaOptions.from_mapping(settings)
    return settings


def _schedule(settings: dict[str, Any] | None) -> Schedule | None:
    if settings is None:
        return None
    known = [field.name for field in fields(Schedule)]
    for name in settings:
        if name not in known:
            raise ConfigError(f"Unknown schedule setting {name!r}{nearest_name(name, known)}.")
    if "cron" not in settings:
        raise ConfigError("The schedule needs 'cron', for example cron: \"0 3 * * *\".")
    return Schedule(**settings)
