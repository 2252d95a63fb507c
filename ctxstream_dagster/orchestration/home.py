"""The project's directories: where Dagster keeps its instance and ctxstream its data, created once and by one process.

Eight processes that open a fresh SQLite home at once break it for good (docs/decisions.md), so every entry point comes
through `ensure_home`, which lets one of them create the schema while the others wait.
"""

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from filelock import FileLock
from upath import UPath

from ctxstream_dagster.errors import ConfigError, StorageError
from ctxstream_dagster.storage import data_home, replies_path

_MARKER = ".initialised"
_LOCK_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Project:
    """A checkout that holds a code location: ``workspace.yaml``, ``dagster.yaml`` and ``assets/``.

    Attributes:
        root: absolute path of the checkout.
    """

    root: Path

    @property
    def dagster_home(self) -> Path:
        """``DAGSTER_HOME`` when set, else ``.dagster`` inside the checkout."""
        return Path(os.environ.get("DAGSTER_HOME") or self.root / ".dagster").expanduser().absolute()

    @property
    def data_home(self) -> Path | UPath:
        """``CTXSTREAM_HOME`` (a directory or an object-store URL), else ``.ctxstream`` inside the checkout."""
        return data_home(self.root / ".ctxstream")

    @property
    def reply_store(self) -> Path:
        """The reply store; always a local file, because it is SQLite."""
        return replies_path(self.data_home, local=self.root / ".ctxstream")

    @property
    def definitions_file(self) -> Path:
        """The code location's entry module."""
        return self.root / "assets" / "definitions.py"


def find_project(start: Path | None = None) -> Project:
    """Return the project around `start` (the working directory), else the checkout this package is installed from.

    Raises:
        ConfigError: there is no ``assets/definitions.py`` in any of them.
    """
    here = (start or Path.cwd()).absolute()
    own_checkout = Path(__file__).resolve().parents[2]
    for directory in (here, *here.parents, own_checkout):
        if Project(directory).definitions_file.is_file():
            return Project(directory)
    raise ConfigError(
        f"No sweeps here: neither {here} nor a directory above it holds assets/definitions.py. "
        "Change into your checkout and run again."
    )


def ensure_home(project: Project) -> Path:
    """Create the Dagster home once, however many processes ask at the same time, and point ``DAGSTER_HOME`` to it.

    The home's ``dagster.yaml`` is a copy of the project's, renewed whenever the project's changes; a home outside the
    checkout that already has one keeps its own.

    Raises:
        StorageError: the home cannot be written, or another process held its lock for two minutes.
    """
    home = project.dagster_home
    try:
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / ".lock", timeout=_LOCK_TIMEOUT_S):
            _settle_settings(project, home=home)
            if not (home / _MARKER).exists():
                _create_schema(home)
                (home / _MARKER).write_text("Created by ctxstream; the schema is complete.\n", encoding="utf-8")
    except (OSError, TimeoutError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"The Dagster home {home} cannot be used: {reason}. "
            "Make it writable, or set DAGSTER_HOME to a directory that is."
        ) from error
    os.environ["DAGSTER_HOME"] = str(home)
    return home


@contextmanager
def open_instance(project: Project) -> Iterator[dg.DagsterInstance]:
    """Yield the project's instance, the one that the UI shows."""
    with dg.DagsterInstance.from_config(str(ensure_home(project))) as instance:
        yield instance


def _settle_settings(project: Project, *, home: Path) -> None:
    source, target = project.root / "dagster.yaml", home / "dagster.yaml"
    if home.parent != project.root and target.exists():
        return
    if source.is_file() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
        temporary = home / ".dagster.yaml.tmp"
        shutil.copyfile(source, temporary)
        temporary.replace(target)


def _create_schema(home: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with dg.DagsterInstance.from_config(str(home)) as instance:
            instance.get_runs(limit=1)
            instance.all_instigator_state()
            instance.get_dynamic_partitions("")
            instance.event_log_storage.get_pool_limits()
