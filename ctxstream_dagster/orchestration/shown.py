"""How asset pages name files: Dagster never breaks a path, and one long path cuts off the text of every other row."""

from pathlib import Path

from upath import UPath

from ctxstream_dagster.orchestration.spec import SweepSpec


def place(spec: SweepSpec, file: Path | UPath) -> str:
    """Return ``name in directory``, the directory relative to the project where it lies inside."""
    directory = file.parent
    if isinstance(directory, Path) and directory.is_relative_to(spec.root):
        directory = directory.relative_to(spec.root)
    return f"{file.name} in {directory}"
