"""What the code decides is documented as it is: commands, options, settings, schemas, checks, statuses, variables."""

import ast
import re
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from typing import Any, get_args

import pytest

from ctxstream_dagster.embedded.catalog import CATALOG
from ctxstream_dagster.embedded.weights import DEFAULT_MODEL
from ctxstream_dagster.extraction.guard import Verdict
from ctxstream_dagster.extraction.records import RejectReason
from ctxstream_dagster.orchestration.component import SweepComponent
from ctxstream_dagster.orchestration.location import load_sweeps
from tests.docs.pages import ROOT, everything, page, sources


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return import_module("reference")


def test_the_generated_parts_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "reference.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_page_that_is_behind_is_found(reference: Any) -> None:
    behind = re.sub(r"^\| `--answer`.*\n", "", page("docs/commands.md"), flags=re.MULTILINE)
    assert reference.renewed(behind) == page("docs/commands.md") != behind


def test_every_command_and_option_is_on_the_page(reference: Any) -> None:
    from ctxstream_dagster.cli import app

    text = page("docs/commands.md")
    for name, function in reference.all_commands(app):
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert section, f"docs/commands.md has no section {name!r}"
        for parameter, hint, note in reference.parameters(function):
            if type(note).__name__ == "OptionInfo" and not note.hidden:
                for option in reference.option_names(parameter, hint, note):
                    assert f"`{option}`" in section


def test_every_setting_of_a_sweep_is_on_the_page(reference: Any) -> None:
    text = page("docs/sweep-options.md")
    for name, field in SweepComponent.model_fields.items():
        assert f"| `{name}` |" in text
        for value in re.findall(r"fields of `(\w+)`", field.description or ""):
            assert value in {section.__name__ for section in reference.yaml_sections().values()}
    for value in reference.yaml_sections().values():
        assert all(f"| `{field.name}` |" in text for field in fields(value))


def test_every_asset_and_check_is_documented() -> None:
    graph = load_sweeps(ROOT / "assets").resolve_asset_graph()
    text = everything()
    for key in graph.get_all_asset_keys():
        assert f"`{key.path[-1]}`" in text
    assert {check.name for check in graph.asset_check_keys} >= {"coverage", "plan_consistency"}
    for check in graph.asset_check_keys:
        assert re.search(rf"^\| `{check.name}` \|", text, re.MULTILINE), f"check {check.name} is not documented"


def test_every_exit_status_is_documented() -> None:
    statuses = {
        node.value.value
        for _, module in sources("cli")
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and any(isinstance(target, ast.Name) and target.id.startswith("EXIT_") for target in node.targets)
    }
    assert statuses >= {1, 2, 130}
    for status in {0, *statuses}:
        assert re.search(rf"^\| {status} \|", page("docs/commands.md"), re.MULTILINE), f"status {status}"


def test_every_environment_variable_is_documented() -> None:
    read = {name for _, module in sources() for node in ast.walk(module) for name in _variables(node)}
    read |= set(re.findall(r"^export (\w+)", page("Makefile"), re.MULTILINE))
    assert read >= {"OLLAMA_HOST", "CTXSTREAM_HOME", "CTXSTREAM_MODEL", "DAGSTER_HOME"}
    text = page("docs/environment.md")
    missing = sorted(name for name in read if f"| `{name}` |" not in text)
    assert missing == []


def _variables(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
        names: list[ast.expr] = [node.slice]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv", "os.environ.pop"):
        names = node.args[:1]
    elif isinstance(node, ast.keyword) and node.arg == "envvar":
        names = [node.value]
    else:
        return []
    return [name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)]


def test_every_typed_reason_is_documented() -> None:
    text = page("docs/troubleshooting.md")
    kinds = {
        node.value.value
        for _, module in sources("extraction")
        for node in ast.walk(module)
        if isinstance(node, ast.keyword) and node.arg == "kind" and isinstance(node.value, ast.Constant)
    }
    assert "connect" in kinds
    for reason in sorted({*kinds, *get_args(RejectReason), *get_args(Verdict)}):
        assert re.search(rf"^\|.*`{reason}`.* \|", text, re.MULTILINE), f"{reason} is not in docs/troubleshooting.md"


def test_every_embedded_model_is_documented_with_its_licence_and_size() -> None:
    text = page("docs/choosing-a-model.md")
    for weights in CATALOG.values():
        row = re.search(rf"^\| `{re.escape(weights.name)}`[^|]*\| (\d+) MB \| ([^|]+) \|", text, re.MULTILINE)
        assert row, f"{weights.name} is not in docs/choosing-a-model.md"
        assert int(row[1]) == round(weights.size_bytes / 1e6)
        assert row[2].split()[0] == re.split(r"[ -]", weights.licence)[0]
    assert DEFAULT_MODEL in page("README.md")
