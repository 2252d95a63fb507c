"""Loads a code location: every sweep under ``assets/sweeps``, and what all of them share."""

import importlib.util
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import dagster as dg
from dagster.components.core.component_tree import ComponentTreeException
from pydantic import ValidationError

from ctxstream_dagster.errors import CtxstreamError
from ctxstream_dagster.orchestration.automation import build_housekeeping
from ctxstream_dagster.orchestration.component import SweepComponent
from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.orchestration.resources import OllamaResource
from ctxstream_dagster.orchestration.tables import SweepTables
from ctxstream_dagster.orchestration.yaml_errors import declared_names, explain, refuse_twins


def load_sweeps(assets: Path) -> dg.Definitions:
    """Return the definitions of every sweep (YAML or Python) under ``sweeps/`` of the directory `assets`.

    The resources ``ollama`` and ``sweep_tables`` are added unless the folder defines its own.

    Raises:
        ConfigError: a sweep is declared wrongly (file, line, field and nearest name), or two have one name.
    """
    sweeps = assets.resolve() / "sweeps"
    project = Project(sweeps.parents[1])
    refuse_twins(declared_names(sweeps, component=SweepComponent.__name__))
    declared = _declared(sweeps, project=project)
    shared = {"ollama": OllamaResource(), "sweep_tables": SweepTables(root=str(project.root))}
    return dg.Definitions.merge(
        declared,
        dg.Definitions(
            resources={name: value for name, value in shared.items() if name not in (declared.resources or {})},
            sensors=[build_housekeeping(project)],
            executor=dg.in_process_executor,
        ),
    )


def check_sweeps(assets: Path) -> Iterator[tuple[str, Exception | None]]:
    """Load every folder under ``sweeps/`` by itself; yield its name and what is wrong with it, if anything is."""
    sweeps = assets.resolve() / "sweeps"
    for folder in sorted(path for path in sweeps.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))):
        try:
            _declared(folder, project=Project(sweeps.parents[1]))
            yield folder.name, None
        # A sweep in Python may raise anything, and the others are to be checked all the same.
        except Exception as error:
            yield folder.name, error


def _declared(folder: Path, *, project: Project) -> dg.Definitions:
    # The beta APIs in use, and what replaces each, are listed in docs/decisions.md.
    for category in (dg.BetaWarning, dg.PreviewWarning):
        warnings.filterwarnings("ignore", category=category, module=r"dagster\..*")
    if not any((*folder.rglob("defs.yaml"), *folder.rglob("*.py"))):
        # Dagster takes an empty folder for a defect.
        return dg.Definitions()
    try:
        return dg.ComponentTree.from_module(
            defs_module=_package("ctxstream_sweeps", folder), project_root=project.root
        ).build_defs()
    except ComponentTreeException as error:
        raise _readable(error) from error


def _package(name: str, directory: Path) -> ModuleType:
    """Return a package made of `directory`, whatever else is called like it on the import path."""
    for known in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
        del sys.modules[known]
    spec = importlib.util.spec_from_loader(name, loader=None, is_package=True)
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    package.__path__ = [str(directory)]
    sys.modules[name] = package
    return package


def _readable(error: ComponentTreeException) -> Exception:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ValidationError):
            return explain(cause, known=SweepComponent.model_fields)
        if isinstance(cause, CtxstreamError):
            return cause
        cause = cause.__cause__
    return error
