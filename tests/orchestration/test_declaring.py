"""Declaring a sweep: what a person may get wrong, and that loading reads settings only."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from ctxstream_dagster.errors import ConfigError
from ctxstream_dagster.planning.options import ManifestOptions
from tests.orchestration.checkout import LABELS, REPOSITORY, Checkout

QUESTION = {"mode": "labels", "extract": "The status.", "labels": LABELS}


@pytest.mark.parametrize(
    ("attributes", "line", "sentence"),
    [
        ({"corpuss": "x"}, "corpuss", "unknown field 'corpuss' (did you mean 'corpus'?)"),
        ({"question": {**QUESTION, "lables": ["a"]}}, "lables", "'lables' (did you mean 'labels'?)"),
        ({"question": {**QUESTION, "mode": "label"}}, "mode", "'label' (did you mean 'labels'?)"),
        ({"question": {"mode": "labels", "extract": "x"}}, None, "give at least two"),
        ({"planning": {"segment_char": 5}}, "segment_char", "(did you mean 'segment_chars'?)"),
        ({"planning": {"boundary": "stabel"}}, "boundary", "(did you mean 'stable'?)"),
        ({"ollama": {"num_ctxt": 5}}, "num_ctxt", "'num_ctxt' (did you mean 'num_ctx'?)"),
        ({"schedule": {"crom": "0 3 * * *"}}, "crom", "'crom' (did you mean 'cron'?)"),
        ({"answer": "lest"}, "answer", "answer"),
        ({"batch_size": 5000}, "batch_size", "'batch_size' is 5000; it must be 1 to 100"),
        ({"min_coverage": 0}, "min_coverage", "'min_coverage' is 0"),
        ({"name": "Bad Name"}, "name", "'Bad Name'"),
    ],
)
def test_a_wrong_setting_names_file_line_field_and_nearest(
    checkout: Checkout, attributes: dict[str, Any], line: str | None, sentence: str
) -> None:
    file = checkout.write_sweep(**attributes)
    with pytest.raises(ConfigError) as caught:
        checkout.definitions()
    assert sentence in str(caught.value)
    lines = file.read_text(encoding="utf-8").splitlines()
    if line is not None:
        number = next(n for n, text in enumerate(lines, start=1) if text.strip().startswith(f"{line}:"))
        assert f"{file}:{number}: " in str(caught.value)


def test_two_sweeps_of_one_name_are_both_named(checkout: Checkout) -> None:
    first = checkout.write_sweep("census")
    second = checkout.write_sweep("other", name="census")
    with pytest.raises(ConfigError, match="'census' exists already") as caught:
        checkout.definitions()
    assert str(first) in str(caught.value)
    assert f"{second}:" in str(caught.value)


def test_a_scheduled_sweep_is_cut_so_that_plans_survive_edits(checkout: Checkout) -> None:
    from ctxstream_dagster.orchestration.component import SweepComponent

    plain = {"corpus": "x", "question": QUESTION}
    once = SweepComponent(**plain).spec(root=checkout.root, default_name="a")
    nightly = SweepComponent(**plain, schedule={"cron": "0 3 * * *"}).spec(root=checkout.root, default_name="a")
    chosen = SweepComponent(**plain, schedule={"cron": "0 3 * * *"}, planning={"boundary": "nearest"})
    assert once.planning == ManifestOptions()
    assert nightly.planning.boundary == "stable"
    assert chosen.spec(root=checkout.root, default_name="a").planning.boundary == "nearest"


def test_the_assets_of_a_sweep(checkout: Checkout) -> None:
    checkout.write_sweep()
    graph = checkout.definitions().resolve_asset_graph()
    names = {key.path[-1] for key in graph.get_all_asset_keys()}
    assert names == {"corpus", "manifest", "extraction", "records", "tally", "answer"}
    assert {node.group_name for node in graph.asset_nodes} == {"census"}
    extraction = graph.get(dg.AssetKey(["census", "extraction"]))
    assert extraction.pools == {"ollama"}


def test_loading_the_bundled_location_reads_no_corpus_and_asks_no_server(tmp_path: Path) -> None:
    code = (
        "import socket, sys, builtins, pathlib\n"
        "def refuse(*_): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "real = pathlib.Path.open\n"
        "def watch(self, *args, **kwargs):\n"
        "    assert 'corpora' not in str(self), self\n"
        "    return real(self, *args, **kwargs)\n"
        "pathlib.Path.open = watch\n"
        "from ctxstream_dagster.orchestration.home import Project\n"
        "from ctxstream_dagster.orchestration.launch import load_project, sweep_names\n"
        f"print(sweep_names(load_project(Project(pathlib.Path({str(REPOSITORY)!r})))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "status_census" in done.stdout


@pytest.mark.stack
def test_the_workspace_loads_from_any_directory_even_beside_a_foreign_assets_package(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "__init__.py").write_text("raise RuntimeError('the wrong assets')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", str(REPOSITORY / "workspace.yaml")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "DAGSTER_HOME": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
