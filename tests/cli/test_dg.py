"""Dagster's own `dg` offers a sweep and writes one, wherever this package is installed.

The real command needs an environment of its own (it pins Dagster): `make test-dg`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dagster.components.core.package_entry import discover_entry_point_package_objects

from ctxstream_dagster.orchestration.component import SweepComponent
from ctxstream_dagster.orchestration.declaration import COMPONENT
from tests.orchestration.checkout import REPOSITORY, Checkout

DG = shutil.which("dg", path=str(Path(sys.executable).parent))


def test_the_installed_package_registers_the_component_and_nothing_else() -> None:
    found = {
        f"{key.namespace}.{key.name}": value
        for key, value in discover_entry_point_package_objects().items()
        if key.namespace.startswith("ctxstream_dagster")
    }
    assert found == {COMPONENT: SweepComponent}


@pytest.mark.skipif(DG is None, reason="needs the dg command: make test-dg")
def test_dg_lists_writes_and_checks_a_sweep(tmp_path: Path) -> None:
    Checkout.lay_out(tmp_path)
    shutil.copyfile(REPOSITORY / "pyproject.toml", tmp_path / "pyproject.toml")
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    # It warns wherever the environment in use is not the project's own .venv.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    def dg(*arguments: str) -> str:
        done = subprocess.run(
            [str(DG), *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert f'"{COMPONENT}"' in dg("list", "components", "--json")
    asked = ("--corpus", "c.txt", "--extract", "Which status?", "--labels", "a,b", "--cue", "Status:")
    dg("scaffold", "defs", "SweepComponent", "ticket_status", *asked, "--answer", "least")
    written = (tmp_path / "assets" / "sweeps" / "ticket_status" / "defs.yaml").read_text(encoding="utf-8")
    attributes = yaml.safe_load(written)["attributes"]
    assert attributes["question"] == {
        "mode": "labels",
        "extract": "Which status?",
        "labels": ["a", "b"],
        "cue": "Status:",
    }
    dg("check", "yaml")
    dg("check", "defs")
