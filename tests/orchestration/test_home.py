"""The Dagster home: created once, whoever starts first; unusable ones say so."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from ctxstream_dagster.errors import ConfigError, StorageError
from ctxstream_dagster.orchestration.home import Project, ensure_home, find_project
from tests.orchestration.checkout import Checkout


def test_eight_processes_that_start_at_once_leave_one_whole_home(place: Path) -> None:
    Checkout.lay_out(place)
    code = (
        "import sys, pathlib, dagster as dg\n"
        "from ctxstream_dagster.orchestration.home import Project, open_instance\n"
        f"project = Project(pathlib.Path({str(place)!r}))\n"
        "sys.stdin.readline()\n"
        "with open_instance(project) as instance:\n"
        "    for n in range(3):\n"
        "        instance.report_runless_asset_event(dg.AssetMaterialization(f'started_{sys.argv[1]}'))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    starting = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code, str(n)],
            env=environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(8)
    ]
    errors = [process.communicate("go\n", timeout=120)[1] for process in starting]
    assert [process.returncode for process in starting] == [0] * 8, errors
    with dg.DagsterInstance.from_config(str(place / ".dagster")) as instance:
        assert {key.path[0] for key in instance.all_asset_keys()} == {f"started_{n}" for n in range(8)}


def test_the_home_follows_the_project_s_settings(checkout: Checkout) -> None:
    settings = checkout.root / "dagster.yaml"
    settings.write_text(settings.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    home = ensure_home(checkout.project)
    assert (home / "dagster.yaml").read_text(encoding="utf-8").endswith("# changed\n")


def test_a_home_elsewhere_keeps_its_own_settings(
    checkout: Checkout, tmp_path: Path, new_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(new_home, tmp_path / "home")
    (tmp_path / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    home = ensure_home(checkout.project)
    assert (home / "dagster.yaml").read_text(encoding="utf-8") == "telemetry: {enabled: false}\n"


def test_a_home_that_cannot_be_written_says_so(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = checkout.root / "file"
    blocked.write_text("", encoding="utf-8")
    monkeypatch.setenv("DAGSTER_HOME", str(blocked / "home"))
    with pytest.raises(StorageError, match="set DAGSTER_HOME to a directory that is"):
        ensure_home(checkout.project)


def test_a_project_is_found_from_below(checkout: Checkout) -> None:
    below = checkout.root / "assets" / "sweeps"
    assert find_project(below) == Project(checkout.root)


def test_without_a_project_around_the_checkout_of_the_package_is_taken(tmp_path: Path) -> None:
    assert find_project(tmp_path).definitions_file.is_file()


def test_no_project_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxstream_dagster.orchestration.home.__file__", str(tmp_path / "a" / "b" / "home.py"))
    with pytest.raises(ConfigError, match="Change into your checkout"):
        find_project(tmp_path)
