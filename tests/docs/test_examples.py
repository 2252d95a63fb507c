"""What the documentation tells people to type works: commands, options, make targets, YAML and Python."""

import re
import shlex
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from ctxstream_dagster.cli import app
from ctxstream_dagster.orchestration.component import SweepComponent
from tests.docs.pages import PAGES, ROOT, blocks, everything, page, prose
from tests.fault_server import FaultServer


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The names of every command's options."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    reference: Any = import_module("reference")
    return {
        name: {
            option
            for parameter, hint, note in reference.parameters(function)
            for option in reference.option_names(parameter, hint, note)
        }
        for name, function in reference.all_commands(app)
    }


def shown() -> list[list[str]]:
    """Every command line of the pages' console blocks, as words."""
    text = "\n".join(block for file in PAGES for block in blocks(file.read_text(encoding="utf-8"), "console"))
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [shlex.split(line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]


def test_the_commands_shown_exist_with_their_options(options: dict[str, set[str]]) -> None:
    calls = [words[1:] for words in shown() if words[0] == "ctxstream"]
    assert len(calls) > 5
    for command, *words in calls:
        assert command in options
        given = {word for word in words if word.startswith("--")}
        assert given <= options[command] | {"--help"}, f"ctxstream {command}"


def test_the_commands_named_in_prose_exist(options: dict[str, set[str]]) -> None:
    named = set(re.findall(r"`ctxstream ([a-z][a-z-]*)", prose(everything())))
    assert named <= set(options)


def test_the_make_targets_named_exist() -> None:
    known = set(re.findall(r"^([a-z-]+):", page("Makefile"), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", prose(everything()))) | {
        words[1] for words in shown() if words[0] == "make"
    }
    assert named <= known


@pytest.mark.parametrize(
    "text",
    [
        block
        for file in PAGES
        for block in blocks(file.read_text(encoding="utf-8"), "yaml")
        if "SweepComponent" in block
    ],
)
def test_a_sweep_shown_can_be_declared(text: str, tmp_path: Path) -> None:
    declared = yaml.safe_load(text)
    spec = SweepComponent(**declared["attributes"]).spec(root=tmp_path, default_name="shown")
    assert spec.name


def test_the_python_sweeps_shown_can_be_declared(tmp_path: Path) -> None:
    code = next(block for block in blocks(page("docs/writing-a-sweep.md"), "python") if "build_sweep" in block)
    module: dict[str, Any] = {"__file__": str(tmp_path / "assets" / "sweeps" / "regions.py"), "__name__": "regions"}
    exec(compile(code, "regions.py", "exec"), module)
    declared: dg.Definitions = module["defs"]()
    assert {group.path[0] for group in _keys(declared)} == {"status_eu", "status_us"}


def _keys(definitions: dg.Definitions) -> set[dg.AssetKey]:
    return {
        key for assets in definitions.assets or () if isinstance(assets, dg.AssetsDefinition) for key in assets.keys
    }


def test_figures_of_the_bundled_sweep_are_those_of_its_corpus() -> None:
    statuses = re.findall(r"Status: ([a-z]+)", page("assets/corpora/tickets.txt"))
    (least, fewest), (_, next_fewest) = sorted(Counter(statuses).items(), key=lambda pair: pair[1])[:2]
    assert f"{len(statuses)} bundled tickets" in page("README.md")
    assert f"{len(statuses)} bundled tickets" in page("docs/index.md")
    picture = page("docs/images/data-flow.svg")
    assert f"{least} ({fewest}; {next_fewest - fewest} below the next)" in picture
    assert f"{len(statuses)} tickets" in picture


@pytest.mark.parametrize("number", [0, 1])
def test_the_python_shown_answers(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses = ["open"] * 3 + ["closed"] * 2
    lines = "".join(f"{number} Status: {status}\n" for number, status in enumerate(statuses))
    (tmp_path / "tickets.log").write_text(lines, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with FaultServer() as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        code = blocks(page("docs/python.md"), "python")[number].replace(
            "OllamaOptions(", "OllamaOptions(model='scripted', "
        )
        exec(compile(code, "python.md", "exec"), {})
    assert "lost (0; 2 below the next)" in capsys.readouterr().out
